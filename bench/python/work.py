"""The benchmark's user code, as in a training script.

Worker processes find it by name. Code that needs torch in a worker process is in photos.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_SCALE = (1 / (255 * np.array(STD, np.float32))).reshape(3, 1, 1)
_SHIFT = (-np.array(MEAN, np.float32) / np.array(STD, np.float32)).reshape(3, 1, 1)


def same(value: Any) -> Any:
    """The cost of an identity is the loader's overhead."""
    return value


def normalize(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """uint8 HWC to float32 CHW, in NumPy."""
    made: np.ndarray[Any, Any] = image.transpose(2, 0, 1) * _SCALE
    made += _SHIFT
    return made


class Arrays:
    """Items of `size` bytes: views, so that each is a separate object to pickle."""

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
    """Numbers, for measuring the time to the first batch."""

    def __len__(self) -> int:
        return 1024

    def __getitem__(self, at: int) -> int:
        return at
