"""Fields whose records differ in size, of any rank, in batches and batches of batches."""

from __future__ import annotations

import copy
import pathlib
import pickle
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import _headrace


def made(x: int) -> dict[str, Any]:
    """Boxes, a list, a picture and a text whose sizes follow from the number."""
    return {
        "boxes": np.arange(4 * (x % 3), dtype=np.float32).reshape(-1, 4) + x,
        "ids": np.arange(x % 4, dtype=np.int32) + x,
        "picture": np.full((1 + x % 2, 2 + x % 3, 3), x, dtype=np.uint8),
        "text": "t" * (x % 5),
    }


def pipe(n: int = 11) -> hr.Pipeline:
    return hr.range(n).map(made)


def same(record: dict[str, Any], x: int) -> None:
    for name, value in made(int(x)).items():
        if name == "text":
            assert record[name] == value
        else:
            assert record[name].dtype == value.dtype and record[name].shape == value.shape
            assert (record[name] == value).all()


def test_records_of_a_batch_have_their_shapes() -> None:
    at = 0
    for batch in pipe().batch(4, ragged=True).loader(output="numpy"):
        assert isinstance(batch.boxes, hr.Ragged) and batch.boxes.records == batch.records
        values, offsets = batch.ids
        assert len(offsets) == batch.records + 1 and len(values) == offsets[-1]
        assert batch.ids.shapes is None and batch.boxes.shapes.shape == (batch.records, 2)
        assert [box.shape for box in batch.boxes.items()] == [tuple(s) for s in batch.boxes.shapes]
        for i in range(batch.records):
            same({n: batch[n][i] if n == "text" else batch[n].item(i) for n in ("boxes", "ids", "picture", "text")}, at)
            at += 1
        assert (batch.boxes.item(-1) == batch.boxes.item(batch.records - 1)).all()
        with pytest.raises(IndexError, match="of"):
            batch.boxes.item(batch.records)
    assert at == 11


def test_records_of_nested_batches_have_their_shapes() -> None:
    at = 0
    for outer in pipe().batch(2, ragged=True).batch(3, ragged=True).loader(output="numpy"):
        inner = {n: outer[n] if n == "text" else outer[n].items() for n in ("boxes", "ids", "picture", "text")}
        for b in range(outer.records):
            assert isinstance(inner["boxes"][b], hr.Ragged) and len(inner["boxes"][b].splits) == 1
            for i in range(len(inner["text"][b])):
                same({n: v[b][i] if n == "text" else v[b].item(i) for n, v in inner.items()}, at)
                at += 1
    assert at == 11


@pytest.mark.parametrize("threads", [0, 2])
def test_batches_of_batches_are_taken_apart_again(threads: int) -> None:
    plain = [dict(b) for b in pipe().batch(5, ragged=True).loader(output="numpy", threads=threads)]
    nested = pipe().batch(3, ragged=True).batch(2, ragged=True).unbatch().unbatch().batch(5, ragged=True)
    again = [dict(b) for b in nested.loader(output="numpy", threads=threads)]
    assert len(plain) == len(again) == 3
    for one, other in zip(plain, again, strict=True):
        assert one["text"] == other["text"]
        for name in ("boxes", "ids", "picture"):
            assert len(one[name]) == len(other[name])
            assert all((a == b).all() for a, b in zip(one[name], other[name], strict=True))


def test_raw_fields_show_splits_of_all_levels_and_shapes() -> None:
    (batch,) = pipe().batch(2, ragged=True).batch(6, ragged=True).loader(output="headrace")
    boxes = batch.raw("boxes")
    assert boxes.ragged and boxes.levels == 2 and boxes.item_ndim == 2
    outer, inner = np.asarray(boxes.splits(0)), np.asarray(boxes.splits(1))
    assert outer.tolist() == [0, 2, 4, 6, 8, 10, 11] == np.asarray(boxes.offsets()).tolist()
    assert len(inner) == 12 and inner[-1] == len(np.asarray(boxes.values()))
    assert np.asarray(boxes.shapes()).tolist() == [[x % 3, 4] for x in range(11)]
    assert (np.diff(inner) == np.asarray(boxes.shapes()).prod(axis=1)).all()
    for level in (-1, 2):
        with pytest.raises(_headrace.Error, match="levels 0 to 1"):
            boxes.splits(level)
    assert batch.raw("ids").item_ndim == 1 and batch.raw("text").item_ndim == 0
    with pytest.raises(_headrace.Error, match="1 dimension"):
        batch.raw("ids").shapes()
    texts = ["t" * (x % 5) for x in range(11)]
    assert batch.raw("text").strings() == [texts[i : i + 2] for i in range(0, 11, 2)]


def test_user_code_is_given_splits_and_shapes() -> None:
    def count(boxes: Any) -> Any:
        values, *splits, shapes = boxes
        assert len(splits) == 1 and shapes.shape[1] == 2 and len(values) == shapes.prod(axis=1).sum()
        return shapes[:, 0].sum()

    counted = pipe().batch(4, ragged=True).map_batch(count, fields="boxes", outputs="n: int64")
    total = sum(int(np.asarray(b.raw("n")).sum()) for b in counted.loader(output="headrace"))
    assert total == sum(x % 3 for x in range(11))


def test_ragged_fields_are_pickled_copied_and_compared() -> None:
    (batch,) = pipe().batch(20, ragged=True).loader(output="numpy")
    for other in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert other == batch and isinstance(other.boxes, hr.Ragged)
        assert (other.picture.item(3) == batch.picture.item(3)).all()
    assert "ragged float32" in repr(batch)


def test_shapes_change_the_digest() -> None:
    """The same bytes in other shapes are other batches."""

    def digest(turn: bool) -> str:
        shaped = hr.range(8).map(lambda x: np.zeros((1 + x, 2) if turn else (2, 1 + x), dtype=np.uint8))
        sum_of = _headrace.Digest()
        for batch in shaped.batch(4, ragged=True).loader(output="headrace"):
            _headrace.digest_batch(sum_of, batch._batch)
        return sum_of.hexdigest()

    assert digest(True) != digest(False)


# ---- lengths of padded batches ----


def test_a_padded_batch_gives_lengths(rng: random.Random) -> None:
    """Issue 14 A6: they are the sizes before padding."""
    sizes = [rng.randrange(9) for _ in range(23)]
    pipe = (
        hr.from_dataset([np.arange(n, dtype=np.int32) for n in sizes])
        .map(
            lambda value: (value, np.ones((len(value) // 2, 4), np.float32)),
            outputs={"ids": hr.spec("int32", (None,)), "boxes": hr.spec("float32", (None, 4))},
        )
        .padded_batch(5, value=-1, multiple=4, lengths=["ids", "boxes"])
    )
    assert [f"{f.name}: {f.text()}" for f in pipe.fields][2:] == [
        "ids_length: int64[batch]",
        "boxes_length: int64[batch]",
    ]
    for threads in (0, 2):
        seen: list[int] = []
        for batch in pipe.loader(threads=threads, output="numpy"):
            ids = batch.ids
            lengths = batch.ids_length
            seen += lengths.tolist()
            assert ((np.arange(ids.shape[1]) < lengths[:, None]) == (ids >= 0)).all()
            assert batch.boxes_length.tolist() == [n // 2 for n in lengths.tolist()]
            assert (batch.boxes[..., 0] > 0).sum(1).tolist() == batch.boxes_length.tolist()
        assert seen == sizes


def test_lengths_of_several_dimensions_have_a_column_for_each(pictures: pathlib.Path) -> None:
    images = hr.files(pictures).decode()
    (batch,) = images.padded_batch(30, lengths="image").loader(output="numpy")
    single = [b.image.shape[1:3] for b in images.batch(1).loader(output="numpy")]
    assert batch.image_length.tolist() == [list(shape) for shape in single]
    (batch,) = images.resize((6, 5)).padded_batch(30, lengths="image").loader(output="numpy")
    assert batch.image_length.tolist() == [6] * 30


@pytest.mark.parametrize(
    ("pipe", "words"),
    [
        (hr.range(5).padded_batch(2, lengths="value"), '"value" is one number a record'),
        (hr.range(5).padded_batch(2, lengths="x"), 'no field "x"'),
        (
            hr.range(5).map(lambda v: {"a": np.ones(int(v)), "a_length": v}).padded_batch(2, lengths="a"),
            "which is taken",
        ),
        (hr.range(5).map(lambda v: {"b": b"x"}).padded_batch(2, lengths="b"), '"b" is a list'),
    ],
)
def test_lengths_that_cannot_be_given_are_refused(pipe: hr.Pipeline, words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words) as caught:
        pipe.fields  # noqa: B018
    assert caught.value.op == "batch.pad"


@pytest.mark.parametrize("items", [[[1, 2], [3], []], [[], [1, 2], [3]]])
def test_an_empty_list_has_the_type_of_the_others(items: list[list[int]]) -> None:
    pipe = hr.from_dataset([{"ids": one, "at": at} for at, one in enumerate(items)])
    assert pipe.fields["ids"].text() == "int64[-1]"
    whole = [n for one in items for n in one]
    (ragged,) = pipe.batch(3, ragged=True).loader(output="numpy")
    assert ragged.ids.values.tolist() == whole
    assert [one.tolist() for one in ragged.ids.items()] == items
    (padded,) = pipe.padded_batch(3).loader(output="numpy")
    assert padded.ids.tolist() == [one + [0] * (2 - len(one)) for one in items]
    (flat,) = pipe.flat("ids").batch(9).loader(output="numpy")
    assert flat.ids.tolist() == whole
    assert flat.at.tolist() == [at for at, one in enumerate(items) for _ in one]


def test_only_an_empty_list_is_of_any_type() -> None:
    with pytest.raises(TypeError, match="field 'value' is int64: NumPy takes .1.5. for float64"):
        list(hr.from_dataset([[1, 2], [1.5]]).padded_batch(2).loader())
