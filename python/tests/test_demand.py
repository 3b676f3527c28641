"""loader(demand=): the same batches with fewer threads."""

from __future__ import annotations

import time
from typing import Any

import pytest

import headrace as hr


def sleepy(records: int, ms: float) -> hr.Pipeline:
    return hr.range(records).shuffle(seed=3).op("debug.sleep", ms=ms).batch(4)


def numbers(loader: Any) -> list[int]:
    return [number for batch in loader for number in batch.value.tolist()]


@pytest.mark.parametrize("demand", [30, 150.5, "consumer"])
def test_batches_are_the_same_with_a_demand(demand: Any) -> None:
    pipe = sleepy(400, 10)
    loader = pipe.loader(threads=8, demand=demand, output="numpy", seed=1)
    assert loader.demand == demand
    assert numbers(loader) == numbers(sleepy(400, 0).loader(threads=0, output="numpy", seed=1))
    stats = loader.stats()
    assert stats["demand"] == (-1 if demand == "consumer" else demand)
    assert 1 <= stats["threads_used"] <= stats["threads"] == 8


def test_a_demand_changes_while_a_loop_runs() -> None:
    loader = sleepy(1_000_000, 5).loader(threads=4, demand=10, output="numpy")
    assert loader.stats() == {}
    seen = []
    for _ in loader:
        stats = loader.stats()
        if len(seen) == 0 and stats["thread_changes"] == 1:
            seen.append(stats["threads_used"])
            assert "records/s are wanted" in stats["threads_reason"]
            loader.demand = 1e9
        elif len(seen) == 1 and stats["thread_changes"] == 2:
            seen.append(stats["threads_used"])
            loader.demand = None
            assert loader.stats()["demand"] == 0
            break
    loader.close()
    assert seen[0] < 4 and seen[1] == 4


def test_a_slow_loop_needs_fewer_threads() -> None:
    loader = sleepy(1_000_000, 5).loader(threads=8, demand="consumer", output="numpy")
    for _ in loader:
        time.sleep(0.02)
        if loader.stats()["thread_changes"] > 0:
            break
    assert loader.stats()["threads_used"] < 8
    loader.close()


def test_a_demand_is_a_rate() -> None:
    for wrong in (0, -1, True, "trainer", float("nan"), float("inf"), [1]):
        options: Any = {"demand": wrong}
        with pytest.raises(hr.ArgumentError, match="demand is a number of records per second"):
            hr.range(4).batch(2).loader(**options)
    loader = hr.range(4).batch(2).loader()
    with pytest.raises(hr.ArgumentError, match="demand is a number"):
        loader.demand = -5
    assert loader.demand is None
    loader.demand = 7
    assert loader.demand == 7


def slow(value: int) -> int:
    time.sleep(0.002)
    return 3 * value


def test_worker_processes_follow_a_demand() -> None:
    pipe = hr.range(1_000_000).shuffle(seed=3).map(slow, fields="value", variant="processes").batch(4)
    loader = pipe.loader(threads=3, demand=5, output="numpy", seed=1)
    seen: list[int] = []
    got: list[int] = []
    for batch in loader:
        got += batch.value.tolist()
        stats = loader.stats()
        assert stats["processes"] == 3 and stats["processes_used"] == stats["threads_used"]
        assert stats["processes_alive"] <= 3
        if not seen and stats["processes_used"] < 3:
            seen.append(stats["processes_used"])
            loader.demand = 1e9
        elif seen and stats["processes_used"] == 3:
            assert stats["processes_alive"] == 3
            break
    loader.close()
    whole = pipe.loader(threads=0, output="numpy", seed=1)
    assert got == [
        value for _, batch in zip(range(len(got) // 4), whole, strict=False) for value in batch.value.tolist()
    ]
    whole.close()
