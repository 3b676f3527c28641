"""Issue 14 F: __getitems__ of a data set reads several items at once, and nothing else changes."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.dataset_call import DatasetCall
from severalfns import Columns, Damaged, Drawing, Matrix, Mixed, Numbers, Several, Short, Stopping


def _records(pipe: hr.Pipeline, **options: Any) -> list[tuple[int, float]]:
    made: list[tuple[int, float]] = []
    for x, y in pipe.loader(output="numpy", **options):
        made += zip(x.tolist(), y.tolist(), strict=True)
    return made


@pytest.mark.parametrize("variant", ["inline", "threads", "processes"])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_records_are_those_of_single_items(variant: Any, threads: int) -> None:
    count = random.randrange(200, 2000)
    print(f"count={count}")
    seed = count
    want = _records(hr.from_dataset([(i, float(i * i)) for i in range(count)]).shuffle().batch(32), seed=seed, epochs=2)
    got = _records(
        hr.from_dataset(Several(count), variant=variant).shuffle().batch(32), seed=seed, epochs=2, threads=threads
    )
    assert got == want and len(got) == 2 * count


def test_lists_are_long() -> None:
    data = Several(20000)
    assert len(_records(hr.from_dataset(data).batch(256), threads=1)) == 20000
    assert sum(data.asked) <= 20000
    assert max(data.asked) > 100 and len(data.asked) < 2000


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_a_bad_item_is_found_among_the_others(variant: Any) -> None:
    data = Damaged(200)
    with pytest.raises(ValueError, match="item 37 is torn") as caught:
        _records(hr.from_dataset(data, variant=variant).batch(10), threads=2)
    assert "37" in "".join(getattr(caught.value, "__notes__", [str(caught.value)]))
    got = _records(hr.from_dataset(data, variant=variant).batch(10), threads=2, on_error="skip")
    assert [x for x, _ in got] == [i for i in range(200) if i != 37]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("variant", ["threads", "processes"])
@pytest.mark.parametrize("kind", [Short, Columns])
def test_without_one_item_for_each_they_are_read_one_by_one(variant: Any, kind: Any) -> None:
    got = _records(hr.from_dataset(kind(500), variant=variant).batch(100), threads=1)
    assert got == [(i, float(i * i)) for i in range(500)]


def _left(data: Numbers, threads: int) -> list[int]:
    loader = hr.from_dataset(data).batch(8).loader(output="numpy", threads=threads, on_error="skip")
    return [x for batch in loader for x in np.asarray(batch).tolist()]


SEQUENCES: dict[str, Callable[[list[int]], Any]] = {
    "array": np.array,
    "tuple": tuple,
    "array of int32": lambda indices: np.array(indices, np.int32),
    "tensor": lambda indices: pytest.importorskip("torch").tensor(indices),
}
OTHERS: dict[str, Callable[[list[int]], Any]] = {
    "short": lambda indices: np.array(indices[1:]),
    "long": lambda indices: [*indices, 0],
    "dict": dict.fromkeys,
    "set": set,
    "iterator": iter,
    "number": lambda indices: np.int32(3),
    "text": lambda indices: "a" * len(indices),
    "None": lambda indices: None,
}


@pytest.mark.parametrize("kind", [*SEQUENCES, *OTHERS])
def test_the_same_records_survive_with_any_number_of_threads(kind: str) -> None:
    """Whatever __getitems__ returns: items of a sequence are taken, for anything else they are read one by one."""
    for threads in (0, 1, 2, 4):
        data = Numbers(203, {**SEQUENCES, **OTHERS}[kind])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert _left(data, threads) == [i for i in range(203) if i != 37]
        assert data.asked
        words = [str(one.message) for one in caught if one.category is RuntimeWarning]
        assert len(words) == (kind in OTHERS), words
        for text in words:
            assert re.search(
                r"Numbers.__getitems__ was asked for (\d+) items and returned .*: return a list of \1 items", text
            )


@pytest.mark.parametrize("variant", ["threads", "processes"])
@pytest.mark.parametrize("kind", [Matrix, Mixed])
def test_items_that_do_not_convert_are_read_one_by_one(kind: Any, variant: Any) -> None:
    for threads in (0, 1, 4):
        pipe = hr.from_dataset(kind(203), variant=variant).batch(8)
        assert _records(pipe, threads=threads, on_error="skip") == [(i, float(i * i)) for i in range(203)]


def test_tables_are_no_sequences_of_rows() -> None:
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    for returns in (
        lambda ii: pa.table({str(i): ii for i in range(len(ii))}),
        lambda ii: pd.Series(ii, index=ii[::-1]),
        lambda ii: np.array([(i,) for i in ii], [("x", "i8")]),
    ):
        with pytest.warns(RuntimeWarning, match="read one by one"):
            assert _left(Numbers(50, returns), 1) == [i for i in range(50) if i != 37]


def test_several_records_have_no_generator() -> None:
    """A fallback to single items hides the error of rng(), so it is asked for by hand."""
    data = Drawing(500)
    assert [x for x, _ in _records(hr.from_dataset(data).batch(100), threads=1)] == list(range(500))
    call = DatasetCall(data, None).several
    assert call is not None
    with pytest.raises(hr.CodeError, match="works inside a function that a pipeline calls"):
        call([1, 2])


def test_ctrl_c_in_several_ends_the_run() -> None:
    with pytest.raises(KeyboardInterrupt):
        _records(hr.from_dataset(Stopping(500)).batch(100), threads=1)


def test_single_items_keep_their_seeds() -> None:
    data = Several(300)
    _records(hr.from_dataset(data, seed_globals=True, variant="inline").batch(50), threads=1)
    assert data.asked == []


def test_a_loader_inside_several_is_another_pipeline() -> None:
    class Nested(Several):
        def __getitems__(self, indices: list[int]) -> Any:
            inner = _records(hr.from_dataset(Several(len(indices))).batch(4), threads=0)
            assert [x for x, _ in inner] == list(range(len(indices)))
            return super().__getitems__(indices)

    got = _records(hr.from_dataset(Nested(400)).batch(64), threads=0)
    assert [x for x, _ in got] == list(range(400))


def test_a_state_continues() -> None:
    pipe = hr.from_dataset(Several(1000)).shuffle().batch(16)
    loader = pipe.loader(output="numpy", seed=3, threads=2)
    batches = iter(loader)
    for _ in range(20):
        next(batches)
    state = loader.state_dict()
    rest = [x for x, _ in batches]
    again = pipe.loader(output="numpy", seed=3, threads=1)
    again.load_state_dict(state)
    assert np.array_equal(np.concatenate([x for x, _ in again]), np.concatenate(rest))


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_hugging_face_datasets_have_it(variant: Any) -> None:
    datasets = pytest.importorskip("datasets")
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"ids": [[i, i + 1, i + 2] for i in range(500)], "text": [f"line {i}" for i in range(500)]})
    data = datasets.Dataset(datasets.table.InMemoryTable(table), fingerprint="test")
    got = list(hr.from_dataset(data, variant=variant).shuffle().batch(50).loader(output="numpy", seed=1))
    rows = [row for batch in got for row in zip(batch["ids"].tolist(), batch["text"], strict=True)]
    assert sorted(rows) == [([i, i + 1, i + 2], f"line {i}") for i in range(500)]
    assert rows != sorted(rows)
