"""Loops that would go wrong without an error get a warning."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import headrace as hr

REPEATS = "has run epoch 0 with the same seed"


def values(loader: Any) -> list[int]:
    return [int(value) for batch in loader for value in batch.value]


def test_a_new_loader_for_each_epoch_is_warned_of() -> None:
    """All epochs had one order and the same draws."""
    train = hr.range(50).shuffle().batch(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(train.loader()))  # a look at a batch is no epoch
        first = values(train.loader())
    with pytest.warns(UserWarning, match=REPEATS) as caught:
        assert values(train.loader()) == first
    assert caught[0].filename == __file__


def test_loops_that_repeat_on_purpose_or_not_at_all_are_not() -> None:
    train, val = hr.range(50).shuffle().batch(8), hr.range(50).batch(8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = train.loader()
        assert values(loader) != values(loader)
        assert values(train.loader(seed=1)) == values(train.loader(seed=1))
        assert values(val.loader()) == values(val.loader())
        again = train.loader()
        again.set_epoch(0)
        values(again)
        half = train.loader(seed=5)
        next(iter(half))
        resumed = train.loader()
        resumed.load_state_dict(half.state_dict())
        assert len(values(resumed)) == 42
