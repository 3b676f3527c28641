"""SSD-tf of cedar's evaluation: every step, in the written order.

ssd_tf.yaml says what differs from tf.image.

python examples/papers/ssd_tf.py val2017 instances_val2017.json
"""

from __future__ import annotations

import sys
from typing import Literal

import headrace as hr

MOVED = ["image", "boxes"]
MEAN = (123, 117, 104)


def pipeline(
    data: str, annotations: str, batch: int = 1, mode: Literal["exact", "close", "fast"] = "close"
) -> hr.Pipeline:
    """The images of COCO's folder `data` that have annotations, in order of id."""
    return (
        hr.coco(data, annotations, empty=False)
        .decode(mode=mode)
        .cast("float32")
        .cover_crop(cover=0.3, ratio=[0.9, 1.1], scale=[0.1, 1], trials=200, keep=0.5, field=MOVED)
        .sanitize()
        .resize(1333, antialias=False, field=MOVED)
        .flip(p=0.5, field=MOVED)
        .color_jitter(brightness=32 / 255, contrast=[0.5, 1.5], saturation=[0.5, 1.5], hue=0.2)
        .normalize([mean / 255 for mean in MEAN], [1 / 255])
        .batch(batch, ragged=True)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1], sys.argv[2]).loader(progress=True):
        pass
