"""RetinaNet of Pecan's Table 1: every step, in the written order.

retinanet.yaml says what differs from TensorFlow's Model Garden.

python examples/papers/retinanet.py train2017 instances_train2017.json
"""

from __future__ import annotations

import sys
from typing import Literal

import headrace as hr

MOVED = ["image", "boxes"]


def pipeline(
    data: str,
    annotations: str,
    size: int = 640,
    batch: int = 64,
    mode: Literal["exact", "close", "fast"] = "close",
) -> hr.Pipeline:
    """The images of COCO's folder `data`, shuffled, with targets for each anchor."""
    return (
        hr.coco(data, annotations, crowd=False, empty=False)
        .shuffle()
        .decode(mode=mode)
        .normalize("imagenet", "imagenet")
        .flip(p=0.5, field=MOVED)
        .scale_jitter(size, scale=[0.8, 1.2], antialias=False, field=MOVED)
        .fixed_size_crop(size, field=MOVED)
        .sanitize()
        .anchors(size)
        .cast("bfloat16")
        .select("image", "class_targets", "box_targets", "image_id")
        .batch(batch)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1], sys.argv[2]).loader(progress=True):
        pass
