"""Decoded photos kept on disk: later epochs, and other jobs on the machine, skip the decoding.

python examples/cookbook/cached.py photos cache
"""

import sys
import time

import headrace as hr

photos, folder = sys.argv[1:] or ("photos", "cache")

train = (
    hr.files(photos, labels="folder")
    .decode()
    .resize_shortest(256)
    .center_crop(224)
    .cache(folder, budget="50GB")  # what is before it is done once
    .shuffle()
    .flip()  # what is random comes after it
    .normalize("imagenet")
    .layout("chw")
    .batch(32)
)

loader = train.loader(output="numpy")
for epoch in range(3):
    start = time.perf_counter()
    count = sum(batch.records for batch in loader)
    print(f"epoch {epoch}: {count / (time.perf_counter() - start):.0f} photos per second")
