"""CV-torch of cedar's evaluation: SimCLRv2's augmentations as torchvision has them, in the written order.

python examples/papers/cv_torch.py photos
"""

from __future__ import annotations

import sys
from typing import Literal

import headrace as hr


def pipeline(data: str, batch: int = 1, mode: Literal["exact", "close", "fast"] = "close") -> hr.Pipeline:
    """Photos of the folder `data`, in the order of their names."""
    return (
        hr.files(data)
        .decode(mode=mode)
        .cast("float32")
        .random_resized_crop(244)
        .flip(p=0.5)
        .color_jitter(brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1)
        .grayscale()
        .gaussian_blur(11, sigma=[0.1, 2.0])
        .normalize([0.1307], [0.3081])
        .batch(batch)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1]).loader(progress=True):
        pass
