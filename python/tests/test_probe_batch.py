"""map_batch is tried out with what it is called with in the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr


def shape_of(value: Any) -> Any:
    """Class, element type and number of dimensions, part by part."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [shape_of(part) for part in value[:2]]
    return type(value).__name__, str(getattr(value, "dtype", "")), getattr(value, "ndim", 0)


def batches(fn: Any, **options: Any) -> hr.Pipeline:
    return hr.range(6).map(fn).batch(3, **options)


@pytest.mark.parametrize(
    "pipe",
    [
        batches(lambda x: np.arange(x + 1, dtype=np.float32), ragged=True),
        batches(lambda x: np.ones((x + 1, 2), np.float32), ragged=True),
        batches(lambda x: b"x" * x),
        batches(lambda x: {"a": x, "b": b"x", "c": np.ones((2, x + 1), np.uint8)}, ragged=True),
        batches(lambda x: np.arange(x + 1, dtype=np.float32), ragged=True).batch(2, ragged=True),
    ],
)
def test_the_first_call_gets_what_all_get(pipe: hr.Pipeline) -> None:
    seen = []

    def look(fields: dict[str, Any]) -> dict[str, Any]:
        seen.append({name: shape_of(value) for name, value in fields.items()})
        return {"n": np.zeros(1, np.int64)}

    mapped = pipe.map_batch(look)
    assert [f.name for f in mapped.fields] == ["n"] and len(seen) == 1
    list(mapped.loader(output="numpy", threads=0))
    assert len(seen) > 1 and all(one == seen[0] for one in seen)


def test_lengths_of_a_ragged_field() -> None:
    pipe = batches(lambda x: np.arange(x + 1, dtype=np.float32), ragged=True)
    counted = pipe.map_batch(lambda value: np.diff(value[1]), fields="value")
    assert np.concatenate([b.value for b in counted.loader(output="numpy")]).tolist() == [1, 2, 3, 4, 5, 6]


def test_a_failure_names_the_batch() -> None:
    with pytest.raises(hr.CodeError, match=r"ZeroDivisionError.* for the first 1 batch\(s\)"):
        _ = hr.range(6).batch(3).map_batch(lambda fields: 1 // 0).fields
