"""What the reproducers of test_reports.py ship to worker processes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np


class Names:
    """A dataset of many small Python objects, as lists of file names are (pytorch#13246)."""

    def __init__(self, count: int) -> None:
        self.names = [f"folder/photo-{i:08}.jpg" for i in range(count)]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> int:
        return len(self.names[i])


class Lengths:
    """The same as one array."""

    def __init__(self, count: int) -> None:
        self.names = np.array([f"folder/photo-{i:08}.jpg" for i in range(count)], "S")

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> int:
        return len(self.names[i])


class Draws:
    """The dataset of pytorch#5059: draws by NumPy's global generator."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> tuple[int, int]:
        return int(np.random.randint(0, 1 << 40)), random.getrandbits(40)


def large(x: int) -> np.ndarray[Any, Any]:
    """4 MiB."""
    return np.full((1 << 20,), x, np.float32)


def product(x: int) -> float:
    """Runs in torch's own pool of threads."""
    import torch

    torch.set_num_threads(2)
    a = torch.full((200, 200), float(x))
    return float((a @ a)[0, 0])


def first(array: np.ndarray[Any, Any]) -> float:
    """Of its elements."""
    return float(array[0])
