"""What functions of batches may return: records that stay together, and strings unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr


def numbers() -> hr.Pipeline:
    return hr.from_columns({"x": np.arange(10), "y": np.arange(10)})


@pytest.mark.parametrize("field", ["x", "y"])
@pytest.mark.parametrize(
    "fn", [lambda v: v[:1], lambda v: v[:0], lambda v: np.concatenate([v + 100, v])], ids=["fewer", "none", "more"]
)
def test_unbatch_refuses_fields_of_different_numbers_of_records(field: str, fn: Any) -> None:
    """The count of the first field was used, so records of other fields were lost."""
    pipe = numbers().batch(4).map_batch(fn, fields=field).unbatch()
    for after in (pipe, pipe.select("y")):
        with pytest.raises(hr.ShapeError, match="the fields of a batch have different numbers of records") as caught:
            list(after.batch(30).loader(output="numpy"))
        assert caught.value.node == "batch.unbatch"


def test_unbatch_refuses_a_value_of_the_whole_batch() -> None:
    pipe = numbers().batch(4).map_batch(lambda y: y.sum(), fields="y")
    assert [int(b.y) for b in pipe.loader(output="numpy")] == [6, 22, 17]
    with pytest.raises(hr.ShapeError, match='field "y" is one value for a whole batch'):
        pipe.unbatch().batch(30).loader()


def test_unbatch_takes_what_a_function_left_of_all_fields() -> None:
    pipe = numbers().batch(4).map_batch(lambda b: {name: value[1:] for name, value in b.items()}).unbatch()
    (batch,) = pipe.batch(30).loader(output="numpy")
    assert batch.x.tolist() == batch.y.tolist() == [1, 2, 3, 5, 6, 7, 9]
