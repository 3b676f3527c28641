"""Data sets with __getitems__, for test_getitems.py and its worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr


class Several:
    """Pairs (i, i * i); `asked` has the lengths of the lists that it was asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Any:
        return at, float(at * at)

    def __getitems__(self, indices: list[int]) -> Any:
        assert all(type(at) is int for at in indices)
        self.asked.append(len(indices))
        return [self[at] for at in indices]


class Damaged(Several):
    """Item 37 cannot be read, alone or with others."""

    def __getitem__(self, at: int) -> Any:
        if at == 37:
            raise ValueError("item 37 is torn")
        return super().__getitem__(at)


class Short(Several):
    def __getitems__(self, indices: list[int]) -> Any:
        return super().__getitems__(indices)[1:]


class Columns(Several):
    def __getitems__(self, indices: list[int]) -> Any:
        return {"x": indices, "y": indices}


class Matrix(Several):
    """A matrix whose rows are no tuples."""

    def __getitems__(self, indices: list[int]) -> Any:
        return np.array(super().__getitems__(indices))


class Mixed(Several):
    """A list of pairs whose second part is a text in some."""

    def __getitems__(self, indices: list[int]) -> Any:
        return [(x, str(y) if x % 7 else y) for x, y in super().__getitems__(indices)]


class Numbers(Several):
    """Numbers, of which `returns` makes what __getitems__ returns. Item 37 cannot be read."""

    def __init__(self, count: int, returns: Callable[[list[int]], Any]) -> None:
        super().__init__(count)
        self.returns = returns

    def __getitem__(self, at: int) -> Any:
        if at == 37:
            raise ValueError("item 37 is torn")
        return at

    def __getitems__(self, indices: list[int]) -> Any:
        if 37 in indices:
            raise ValueError("an item is torn")
        self.asked.append(len(indices))
        return self.returns(indices)


class Drawing(Several):
    def __getitems__(self, indices: list[int]) -> Any:
        hr.rng()
        raise AssertionError("rng() gave a generator for several records")


class Stopping(Several):
    def __getitems__(self, indices: list[int]) -> Any:
        raise KeyboardInterrupt
