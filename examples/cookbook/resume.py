"""Stop a training at any batch and continue with exactly the batches that were left.

python examples/cookbook/resume.py photos state.json        # stops in the middle
python examples/cookbook/resume.py photos state.json        # continues
"""

import json
import pathlib
import sys

import headrace as hr

photos, file = sys.argv[1:] or ("photos", "state.json")
saved = pathlib.Path(file)

train = hr.files(photos, paths=True).shuffle().decode().random_resized_crop(64).flip().batch(16)
loader = train.loader(seed=1, output="numpy")
if saved.exists():
    loader.load_state_dict(json.loads(saved.read_text()))

for batch in loader:
    print(f"epoch {batch.epoch}: {batch.path[0]} and {batch.records - 1} more")
    # Save it with the model, as often as you like: a few hundred bytes, after the last batch that the loop got.
    state = json.dumps(loader.state_dict())
    if not saved.exists():
        saved.write_text(state)
        print(f"stopped; {len(state)} bytes of state are in {saved}")
        sys.exit()

saved.unlink()
print("the epoch is complete")
