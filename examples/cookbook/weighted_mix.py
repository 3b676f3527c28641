"""Two folders in exact proportions, and classes in equal ones.

python examples/cookbook/weighted_mix.py photos more_photos
"""

import sys
from collections import Counter

import headrace as hr

ours, theirs = sys.argv[1:] or ("photos", "more_photos")

mix = hr.mix(
    {"ours": hr.files(ours, paths=True).shuffle(), "theirs": hr.files(theirs, paths=True).shuffle()},
    weights={"ours": 3, "theirs": 1},
    until="first",  # ends the epoch before a folder would repeat; "all" repeats the shorter one
)
counts: Counter[str] = Counter()
for batch in mix.decode().resize([64, 64]).batch(8).loader(output="numpy"):
    counts.update("ours" if path.startswith(ours) else "theirs" for path in batch.path)
print(f"mixed 3 to 1: {dict(counts)}")

balanced = hr.files(ours, labels="folder").sample(balance="label", count=400)
classes = balanced.fields["label"].classes
labels: Counter[str] = Counter()
for batch in balanced.decode().resize([64, 64]).batch(8).loader(output="numpy"):
    labels.update(classes[label] for label in batch.label)
print(f"balanced: {dict(labels)}")
