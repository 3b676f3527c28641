"""SSD-torch of cedar's evaluation: every step, in the written order.

python examples/papers/ssd_torch.py val2017 instances_val2017.json
"""

from __future__ import annotations

import sys
from typing import Literal

import headrace as hr

MOVED = ["image", "boxes"]


def pipeline(
    data: str, annotations: str, batch: int = 1, mode: Literal["exact", "close", "fast"] = "close"
) -> hr.Pipeline:
    """The images of COCO's folder `data` that have annotations, in order of id."""
    return (
        hr.coco(data, annotations, empty=False)
        .decode(mode=mode)
        .zoom_out(fill=[123, 117, 104], p=1, field=MOVED)
        .iou_crop(field=MOVED)
        .sanitize()
        .flip(p=1, field=MOVED)
        .photometric_distort(p=1)
        .cast("float32")
        .layout("chw")
        .batch(batch, ragged=True)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1], sys.argv[2]).loader(progress=True):
        pass
