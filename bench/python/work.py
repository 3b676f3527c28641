"""The user's code of the benchmark: what a training script would bring along.

Found by name in worker processes. What needs torch in a worker is in photos.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

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
