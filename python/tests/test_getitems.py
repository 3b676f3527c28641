"""Issue 14 F: __getitems__ of a data set reads several items at once, and nothing else changes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.dataset_call import DatasetCall
from severalfns import Columns, Damaged, Drawing, Several, Short, Stopping


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


@pytest.mark.parametrize("variant", ["threads", "processes"])
@pytest.mark.parametrize("kind", [Short, Columns])
def test_anything_but_one_item_for_each_is_an_error(variant: Any, kind: Any) -> None:
    with pytest.raises(TypeError, match=r"__getitems__ was asked for \d+ items, and returned"):
        _records(hr.from_dataset(kind(500), variant=variant).batch(100), threads=1)


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
