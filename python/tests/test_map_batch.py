"""What functions of batches may return: records that stay together, and strings unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns


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


# ---- strings ----


def texts() -> hr.Pipeline:
    return hr.from_columns({"v": np.arange(6), "t": [f"t{i}" for i in range(6)]})


@pytest.mark.parametrize("variant", ["threads", "inline", "processes"])
def test_a_list_that_was_changed_in_place_is_refused(variant: Any) -> None:
    """Whether the list was that of the batch was decided by its identity, so the change was lost."""
    pipe = texts().batch(3).map_batch(userfns.reverse_both, variant=variant)
    with pytest.raises(hr.CodeError, match="field 't' is a list that the function has changed in place") as caught:
        list(pipe.loader(output="numpy"))
    assert caught.value.node == "code.map"


@pytest.mark.parametrize(
    "change",
    [list.clear, list.reverse, lambda t: t.append("x"), lambda t: t.__setitem__(1, "x"), lambda t: t.__delitem__(0)],
)
def test_any_change_of_a_list_is_seen(change: Any) -> None:
    def changed(batch: dict[str, Any]) -> dict[str, Any]:
        change(batch["t"])
        return batch

    for pipe in (texts(), texts().map(lambda r: {"v": r["v"], "t": r["t"].encode() + b"\xff"})):
        with pytest.raises(hr.CodeError, match="changed in place"):
            list(pipe.batch(3).map_batch(changed).loader(output="numpy"))


def test_a_list_that_is_not_returned_or_has_the_same_strings_may_be_changed() -> None:
    def count(batch: dict[str, Any]) -> dict[str, Any]:
        batch["t"].pop()
        return {"v": batch["v"], "n": np.array(len(batch["t"]))}

    def restored(batch: dict[str, Any]) -> dict[str, Any]:
        batch["t"].append(batch["t"].pop())
        batch["t"][0] = "".join(batch["t"][0])
        return {"v": batch["v"] * 2, "t": batch["t"]}

    assert [int(b.n) for b in texts().batch(3).map_batch(count).loader(output="numpy")] == [2, 2]
    (batch,) = texts().batch(6).map_batch(restored).loader(output="numpy")
    assert batch.v.tolist() == [0, 2, 4, 6, 8, 10] and batch.t == [f"t{i}" for i in range(6)]


def test_strings_of_batches_of_batches_are_refused() -> None:
    with pytest.raises(hr.CodeError, match="field 't' holds the strings of batches of batches"):
        list(texts().batch(2).batch(3).map_batch(lambda b: b).loader(output="numpy"))


def test_a_later_batch_with_new_strings_is_refused() -> None:
    def sometimes(batch: dict[str, Any]) -> dict[str, Any]:
        return {"v": batch["v"], "t": batch["t"] if 0 in batch["v"] else list(batch["t"])}

    with pytest.raises(hr.CodeError, match=r"field 't' is a new value, <class 'list'>.* begins with record 3"):
        list(texts().batch(3).map_batch(sometimes).loader(output="numpy"))


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (lambda b: {"v": b["v"], "tag": "train"}, "'tag' is a new str"),
        (lambda b: {"v": b["v"], "tag": b"train"}, "'tag' is a new bytes"),
        (lambda b: {"v": b["v"], "t": [s + "!" for s in b["t"]]}, "'t' is a new list"),
        (lambda b: {"v": b["v"], "t": tuple(b["t"])}, "'t' is a new tuple"),
    ],
)
def test_new_strings_are_refused_when_types_are_found(fn: Any, what: str) -> None:
    """They failed where a field was read, as an error of no public class, without a node."""
    named = hr.range(6).map(lambda x: {"v": x, "t": f"t{x}"})
    for pipe in (texts(), named):
        with pytest.raises(hr.CodeError, match=f"gave what no batch can hold: field {what}") as caught:
            pipe.batch(3).map_batch(fn).loader()
        assert caught.value.node == "code.map"


def test_new_strings_in_items_of_another_structure_are_refused() -> None:
    pairs = hr.from_dataset([(i, f"t{i}") for i in range(6)])
    with pytest.raises(hr.CodeError, match="field 'field1' is a new list"):
        pairs.batch(3).map_batch(lambda b: (b[0], [s + "!" for s in b[1]])).loader()
    with pytest.raises(hr.CodeError, match="field 'value' is a new list"):
        hr.from_dataset(["a", "b"]).batch(2).map_batch(lambda b: [s + "!" for s in b]).loader()


@pytest.mark.parametrize("outputs", [None, {"v": hr.spec("int64", (None,)), "t": "text"}])
def test_named_and_declared_strings_are_returned_unchanged(outputs: Any) -> None:
    """`fields` did not recognize the list that was given, and a text that was declared was one for the batch."""
    mapped = texts().batch(3).map_batch(lambda v, t: (v * 2, t), fields=["v", "t"], outputs=outputs)
    whole = texts().batch(3).map_batch(lambda b: {"v": b["v"] * 2, "t": b["t"]}, outputs=outputs)
    for pipe in (mapped, whole):
        first, second = pipe.loader(output="numpy")
        assert first.v.tolist() == [0, 2, 4] and first.t == ["t0", "t1", "t2"] and second.t == ["t3", "t4", "t5"]


def test_declared_strings_that_are_new_are_refused() -> None:
    outputs = {"v": hr.spec("int64", (None,)), "t": "text"}
    pipe = texts().batch(3).map_batch(lambda b: {"v": b["v"], "t": "train"}, outputs=outputs)
    with pytest.raises(hr.CodeError, match="field 't' is a new value, <class 'str'>") as caught:
        list(pipe.loader(output="numpy"))
    assert caught.value.node == "code.map"
