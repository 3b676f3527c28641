"""SimCLR of Pecan's Table 1: two views of each photo, in the written order.

python examples/papers/simclr.py photos
"""

from __future__ import annotations

import sys
from typing import Literal

import headrace as hr


def view(photo: hr.Pipeline, name: str) -> hr.Pipeline:
    """Crop, flip, colours, blur; grey with three equal channels."""
    return (
        photo.random_resized_crop(224)
        .flip(p=0.5)
        .color_jitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2)
        .gaussian_blur(23, sigma=[0.1, 2.0])
        .clip(0, 1)
        .grayscale(channels=3, name=name)
    )


def pipeline(data: str, batch: int = 256, mode: Literal["exact", "close", "fast"] = "close") -> hr.Pipeline:
    """Photos of the folder `data`, shuffled."""
    photo = hr.files(data).shuffle().decode(mode=mode).cast("float32", name="photo")
    return hr.zip(view(photo, "a"), view(photo, "b"), prefix=["a_", "b_"]).batch(batch)


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1]).loader(progress=True):
        pass
