"""loader(schema=): batches of the user's class, whose declared fields are there."""

from __future__ import annotations

import copy
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

import headrace as hr


class Pair(hr.Batch):
    x: np.ndarray
    y: np.ndarray
    _own: int  # no field


class More(Pair):
    """One more field, and a method."""

    z: list[str]

    def total(self) -> float:
        return float(self.x.sum())


def pairs() -> hr.Pipeline:
    return hr.from_columns({"x": np.arange(10.0), "y": np.arange(10), "z": list("abcdefghij")}).batch(4)


def test_batches_are_of_the_class() -> None:
    got = list(pairs().loader(schema=More, output="numpy"))
    assert [type(batch) for batch in got] == [More] * 3
    assert [batch.total() for batch in got] == [6.0, 22.0, 17.0] and got[0].z == list("abcd")
    assert repr(got[0]).startswith("<More of 4 records")


@pytest.mark.parametrize("again", [lambda b: pickle.loads(pickle.dumps(b)), copy.deepcopy, lambda b: b.to("cpu")])
def test_copies_are_of_the_class(again: Any) -> None:
    batch = next(iter(pairs().loader(schema=Pair, output="numpy")))
    made = again(batch)
    assert type(made) is Pair and made == batch and (made.records, made.epoch) == (4, 0)


def test_the_mask_of_eval_may_be_declared() -> None:
    class Valid(Pair):
        valid: np.ndarray

    batch = next(iter(pairs().loader(schema=Valid, output="numpy", eval=True)))
    assert type(batch) is Valid and batch.valid.all()
    with pytest.raises(hr.ArgumentError, match="declares 'valid'"):
        pairs().loader(schema=Valid)


def test_async_and_dicts_of_items(pictures: pathlib.Path) -> None:
    import asyncio

    async def first() -> Any:
        async for batch in hr.from_dataset([{"x": 1.0, "y": 2}] * 4).batch(2).loader(schema=Pair, output="numpy"):
            return batch
        return None

    assert type(asyncio.run(first())) is Pair


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (dict, "class such as"),
        (3, "class such as"),
        (
            type("Wrong", (hr.Batch,), {"__annotations__": {"label": int, "yy": int}}),
            "declares 'label', and batches have x, y, z",
        ),
        (type("Near", (hr.Batch,), {"__annotations__": {"yy": int}}), "did you mean 'y'"),
    ],
)
def test_other_schemas_are_refused_when_called(schema: Any, words: str) -> None:
    with pytest.raises(hr.ArgumentError, match=words) as caught:
        pairs().loader(schema=schema)
    assert caught.value.param == "schema"


def test_a_field_that_every_batch_has_is_refused() -> None:
    made = type("Same", (hr.Batch,), {"__annotations__": {"records": int}})
    with pytest.raises(hr.ArgumentError, match=r"batch\['records'\]"):
        hr.from_columns({"records": np.arange(3)}).batch(2).loader(schema=made)


def test_tuples_need_names() -> None:
    with pytest.raises(hr.ArgumentError, match="names="):
        hr.from_columns((np.arange(3), np.arange(3))).batch(2).loader(schema=Pair)


def test_of_a_field_that_is_written_nothing_remains() -> None:
    pipe = hr.from_columns({"tokens": np.arange(12, dtype=np.int32).reshape(4, 3), "labels": list("abcd")})
    masked = hr.ops.tokens_mask(pipe, mask_id=3, vocab_size=300)
    labels = masked.fields["labels"].spec
    assert pipe.fields["labels"].spec.dtype == "text"
    assert (labels.dtype, labels.shape) == ("int32", (3,))
    (batch,) = masked.batch(4).loader(output="numpy")
    assert batch["labels"].shape == (4, 3) and batch["labels"].dtype == np.int32
