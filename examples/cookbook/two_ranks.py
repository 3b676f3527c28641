"""Several ranks share an epoch: each gets its part, and all make equally many steps.

    torchrun --nproc-per-node 2 examples/cookbook/two_ranks.py photos

RANK and WORLD_SIZE, or torch.distributed once it is initialised, say which share a loader takes.
"""

import sys

import headrace as hr

photos = hr.files(sys.argv[1] if len(sys.argv) > 1 else "photos", labels="folder")
train, val = hr.split(photos, [0.8, 0.2], seed=1)


def batches(images: hr.Pipeline) -> hr.Pipeline:
    return images.decode().resize([64, 64]).batch(16)


loader = batches(train.shuffle()).loader(seed=1, output="numpy")
for epoch in range(2):
    loader.set_epoch(epoch)
    steps = sum(1 for _ in loader)
    print(f"rank {loader.rank} of {loader.world}: epoch {epoch}, {steps} steps")

# For metrics: each photo once over all ranks; `valid` marks those that only fill up a rank's last batch.
count = sum(int(batch.valid.sum()) for batch in batches(val).loader(eval=True, output="numpy"))
print(f"rank {loader.rank} of {loader.world}: validates with {count} of {val.record_count} photos")
