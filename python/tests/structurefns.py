"""Data sets and functions for test_structure.py, which worker processes import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Point(NamedTuple):
    x: Any
    y: Any


def picture(i: int) -> Any:
    return np.full((4, 4, 3), i, np.uint8)


ITEMS: dict[str, Callable[[int], Any]] = {
    "pair": lambda i: (picture(i), i),
    "single": lambda i: (i,),
    "list": lambda i: [np.full(3, i, np.float32), i],
    "named tuple": lambda i: Point(float(i), i),
    "dict": lambda i: {"pixels": picture(i), "caption": f"ä {i}", "raw": b"\xff%d" % i, "ids": [i, i + 1]},
    "nested dict": lambda i: {"image": {"pixels": picture(i), "path": f"{i}.png"}, "size": (i, 2 * i), "id": i},
    "nested pair": lambda i: ((picture(i), Point(i, f"p{i}")), {"tags": [f"a{i}", "b"], "box": [[i, 0, 1, 2]]}),
    "array": picture,
    "number": lambda i: i,
    "text": lambda i: f"text ö {i}",
    "bytes": lambda i: b"\xff %d" % i,
}


class Items:
    def __init__(self, kind: str, count: int) -> None:
        self.kind, self.count = kind, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Any:
        return ITEMS[self.kind](i)


def same(item: Any) -> Any:
    return item


def brighter(pair: tuple[Any, int]) -> tuple[Any, int]:
    image, label = pair
    return image + 1, label
