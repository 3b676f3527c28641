"""A run keeps within its memory although the values of your own code grow from one record to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

BUDGET = 30_000_000
LARGE = 1_000_000  # float32: 4 MB


def grows(x: int) -> np.ndarray[Any, Any]:
    return np.full(LARGE if x >= 40 else 100, x, np.float32)


@pytest.mark.parametrize("threads", [0, 2, 4])
@pytest.mark.parametrize("filtered", [False, True])
def test_records_that_grow_at_once_are_given_back(threads: int, filtered: bool) -> None:
    pipe = hr.range(160).map(grows, outputs={"value": hr.spec("float32", (None,))})
    if filtered:
        pipe = pipe.filter(lambda value: value[0] % 3 != 1, fields="value")
    loader = pipe.loader(memory=BUDGET, threads=threads, output="numpy")
    seen = [int(batch["value"][0][0]) for batch in loader]
    assert seen == [x for x in range(160) if not filtered or x % 3 != 1]
    assert loader.stats()["memory_peak_bytes"] < 2 * BUDGET
