"""What cedar's own tests assert and no other test of ours does; docs/cedar-tests.md lists all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr


def values(pipe: hr.Pipeline, **options: object) -> list[int]:
    """The field `value` of all records that a loader delivers."""
    loader = pipe.loader(**options)  # type: ignore[arg-type]
    return [int(v) for batch in loader for v in np.asarray(batch["value"]).reshape(-1)]


def add_one(value: int) -> int:
    return value + 1


def double(value: int) -> int:
    return value * 2


def test_three_operators_that_do_nothing_pass_on_every_value():
    pipe = hr.range(10).op("debug.identity").op("debug.identity").op("debug.identity")
    assert values(pipe, epochs=3) == [*range(10)] * 3


def test_the_order_of_functions_is_what_they_compute():
    one = hr.range(10).map(add_one, fields="value").map(double, fields="value")
    other = hr.range(10).map(double, fields="value").map(add_one, fields="value")
    assert values(one) == [(x + 1) * 2 for x in range(10)]
    assert values(other) == [x * 2 + 1 for x in range(10)]
    assert values(one.optimize(strictness="relaxed", seconds=0.2)) == values(one)


def test_the_last_batch_holds_what_is_left():
    assert [len(b["value"]) for b in hr.range(7).batch(3).loader()] == [3, 3, 1]
    assert [len(b["value"]) for b in hr.range(7).batch(3, drop_last=True).loader()] == [3, 3]


@pytest.mark.parametrize("variant", ["inline", "threads", "processes"])
def test_five_epochs_are_complete_and_in_order_in_every_variant(variant: str):
    pipe = hr.range(100).map(double, fields="value", variant=variant).batch(8)  # type: ignore[arg-type]
    assert values(pipe, epochs=5, threads=2) == [2 * x for x in range(100)] * 5


@pytest.mark.parametrize(
    ("records", "ranks"), [(0, 2), (1, 2), (1000, 2), (1500, 2), (10_000, 2), (10_001, 2), (99, 3)]
)
def test_shares_are_disjoint_and_complete(records: int, ranks: int):
    shares = [values(hr.range(records).batch(3), shard=(rank, ranks), even="none") for rank in range(ranks)]
    assert sorted(v for share in shares for v in share) == [*range(records)]
    assert max(map(len, shares)) - min(map(len, shares)) <= 3


@pytest.mark.parametrize("records", [5, 20_000])
@pytest.mark.parametrize("kept", ["memory", "folder"])
def test_a_cache_gives_every_value_in_every_epoch(records: int, kept: str, tmp_path: Path):
    folder = tmp_path / "kept" if kept == "folder" else None
    pipe = hr.range(records).op("debug.identity").op("flow.cache", folder=folder).batch(100)
    assert values(pipe, epochs=2) == [*range(records)] * 2


def test_a_cache_that_was_left_in_its_first_epoch_is_not_the_whole_data():
    """cedar took what it had written until then for the data set (its tests of this are skipped)."""
    loader = hr.range(5000).op("debug.identity").op("flow.cache").batch(100).loader()
    for number, _ in enumerate(loader):
        if number == 24:
            break
    assert sum(len(batch["value"]) for batch in loader) == 5000
    assert sum(len(batch["value"]) for batch in loader) == 5000


def test_changes_after_a_cache_do_not_leak_into_it():
    def change(value: np.ndarray) -> np.ndarray:
        value += 1
        return value

    pipe = hr.range(50).op("flow.cache").map(change, fields="value").batch(10)
    assert values(pipe, epochs=3) == [x + 1 for x in range(50)] * 3


def test_an_exception_ends_the_loop_in_every_variant():
    """cedar hangs for ever in all but the first."""
    for variant in ("inline", "threads", "processes"):
        with pytest.raises(ValueError, match="seven"):
            values(hr.range(20).map(fail_at_seven, fields="value", variant=variant).batch(2), threads=2)


def fail_at_seven(value: int) -> int:
    if value == 7:
        raise ValueError("seven")
    return value
