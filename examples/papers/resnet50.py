"""ResNet50 of Pecan's Table 1, in the written order; angle and shear are drawn for each photo.

resnet50.yaml says what differs from Pecan's code.

python examples/papers/resnet50.py photos 10
"""

from __future__ import annotations

import sys
from typing import Literal

import headrace as hr

MEAN = (123.68, 116.78, 103.94)


def pipeline(
    data: str, batch: int = 128, classes: int = 1000, mode: Literal["exact", "close", "fast"] = "close"
) -> hr.Pipeline:
    """Photos of the folder `data`, shuffled; its subfolders are the labels."""
    return (
        hr.files(data, labels="folder")
        .shuffle()
        .decode(mode=mode)
        .random_area_crop(scale=[0.05, 1], ratio=[0.75, 1.33])
        .flip(p=0.5)
        .rotate([0, 5])
        .affine(0, shear=5.71)
        .resize(224, antialias=False)
        .normalize([mean / 255 for mean in MEAN], [1 / 255], dtype="float16")
        .one_hot(classes)
        .batch(batch)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1], classes=int(sys.argv[2])).loader(progress=True):
        pass
