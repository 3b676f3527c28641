"""What finding out the types of user code costs: calls of functions, and nodes that are built."""

from __future__ import annotations

from collections.abc import Callable

import headrace as hr


def counted(calls: dict[int, int], at: int) -> Callable[[int], int]:
    def function(x: int) -> int:
        calls[at] = calls.get(at, 0) + 1
        return x + 1

    return function


def test_types_need_one_record_of_the_steps_before() -> None:
    calls: dict[int, int] = {}
    pipe = hr.range(1000).map(counted(calls, 0)).map(counted(calls, 1))
    assert pipe.fields[0].dtype == "int64"
    assert calls[0] <= 3 and calls[1] == 1, calls


def test_types_need_one_batch_of_the_steps_before() -> None:
    calls: dict[int, int] = {}
    pipe = hr.range(1000).map(counted(calls, 0)).batch(16).map_batch(lambda batch: {"x": batch["value"]})
    assert pipe.fields[0].name == "x"
    assert calls[0] <= 17, calls
