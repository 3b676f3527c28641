"""Data sets and functions for worker processes of hr.DataLoader, importable so that they can be spawned."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Pair(NamedTuple):
    x: Any
    y: Any


class Items(Dataset[Any]):
    """Items of every kind, with numbers drawn from all generators."""

    def __init__(self, count: int, kind: str = "dict") -> None:
        self.count, self.kind = count, kind

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Any:
        drawn = torch.rand(2), np.random.rand(), random.random()
        x = torch.full((2, 3), at, dtype=torch.int32)
        if self.kind == "pair":
            return x, at
        if self.kind == "named":
            return Pair(x, drawn)
        if self.kind == "text":
            return f"item {at}"
        if self.kind == "array":
            return np.full((3,), at, np.float32)
        return {"x": x, "text": f"item {at}", "drawn": drawn, "list": [at, float(at)], "array": np.arange(at, at + 4)}


class Many(Items):
    """Gives many items in one call."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[at] for at in indices]


class Stream(IterableDataset[Any]):
    """The numbers from 0 up, split among the workers by default."""

    def __init__(self, count: int, divided: bool = True) -> None:
        self.count, self.divided = count, divided

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        step = info.num_workers if info is not None and self.divided else 1
        start = info.id if info is not None and self.divided else 0
        for at in range(start, self.count, step):
            yield at, torch.rand(1)


def as_list(items: list[Any]) -> Any:
    return {"items": items, "count": len(items), "set": {type(one).__name__ for one in items}}
