"""The user's code of the benchmark: what a training script would bring along.

Found by name in worker processes, so it imports torch only where it is used.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
COPIES = 1000  # of the photos in an epoch: a new epoch would start DataLoader's workers again

_SCALE = (1 / (255 * np.array(STD, np.float32))).reshape(3, 1, 1)
_SHIFT = (-np.array(MEAN, np.float32) / np.array(STD, np.float32)).reshape(3, 1, 1)


def same(value: Any) -> Any:
    """What identity costs is what the loader costs."""
    return value


def normalize(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """uint8 HWC to float32 CHW, in NumPy."""
    made: np.ndarray[Any, Any] = image.transpose(2, 0, 1) * _SCALE
    made += _SHIFT
    return made


@functools.cache
def _chain() -> Callable[[Any], Any]:
    import torch

    v2: Any = importlib.import_module("torchvision.transforms.v2")

    torch.set_num_threads(1)
    chain: Callable[[Any], Any] = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    return chain


class Photos:
    """A map-style data set as one writes it for torchvision, on Pillow."""

    def __init__(self, folder: str) -> None:
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __len__(self) -> int:
        return len(self.files) * COPIES

    def __getitem__(self, at: int) -> Any:
        pil: Any = importlib.import_module("PIL.Image")
        with pil.open(self.files[at % len(self.files)]) as image:
            return _chain()(image.convert("RGB"))


class Arrays:
    """Items of `size` bytes: views, so that each is an object of its own to pickle."""

    def __init__(self, size: int, count: int, torch: bool) -> None:
        self.count = count
        self.item: Any = np.arange(size, dtype=np.uint8)
        if torch:
            import torch as module

            self.item = module.from_numpy(self.item)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Any:
        return self.item[:]


class Few:
    """Numbers, for the time to the first batch."""

    def __len__(self) -> int:
        return 1024

    def __getitem__(self, at: int) -> int:
        return at
