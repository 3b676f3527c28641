"""Data sets in worker processes: what they hold there, and that nothing of it changes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import headrace as hr
import picklefns
import reportfns
from headrace import pickling

COUNT = 3000
LISTS: dict[str, list[Any]] = {
    "numbers": list(range(-7, COUNT)),
    "floats": [i / 3 for i in range(COUNT)],
    "texts": [f"é{'x' * (i % 5)}" for i in range(COUNT)],
    "lone surrogates": ["\ud800" * (i % 3) for i in range(COUNT)],
    "bytes": [b"\x00" * (i % 4) for i in range(COUNT)],
    "bools": [i % 3 == 0 for i in range(COUNT)],
    "large numbers": [1 << (i % 90) for i in range(COUNT)],
    "mixed": [i if i % 2 else None for i in range(COUNT)],
    "tuples": [(i, [f"{i}", 1.5], {"a": (None, b"x")}) for i in range(COUNT)],
}


def shipped(value: Any) -> tuple[Any, int, int]:
    """What arrives, the bytes of its pickle, and those beside it."""
    memory = pickling.Memory()
    data, spans = pickling.dumps(value, memory)
    there = pickling.mapped(memory.descriptors()[0]) if spans else memoryview(b"")
    buffers = [there[at : at + length] for at, length in spans]
    return pickle.loads(data, buffers=buffers), len(data), sum(length for _, length in spans)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("kind", [list, tuple])
def test_items_arrive_as_they_were(name: str, kind: Any) -> None:
    values = kind(LISTS[name])
    get, inside, beside = shipped(values.__getitem__)
    assert [get(i) for i in range(len(values))] == list(values)
    assert {type(get(i)) for i in range(len(values))} == set(map(type, values))
    assert type(get.__self__) is not kind and (beside > 8 * COUNT or inside < 9 * COUNT)
    with pytest.raises(IndexError):
        get(len(values))


def test_lists_of_other_things_stay_lists() -> None:
    one = object_in_many_places = ("x" * 100, [1])
    for values in ([one, *range(9)], [object_in_many_places] * COUNT, [np.zeros(3)] * COUNT):
        get, _, _ = shipped(values.__getitem__)
        assert type(get.__self__) is list and len(get.__self__) == len(values)


def test_arrays_lie_beside_the_pickle_and_may_be_written_to() -> None:
    array = np.arange(100_000)
    there, inside, beside = shipped({"a": array, "b": array[::2], "c": np.broadcast_to(array, (2, 100_000))})
    assert beside == array.nbytes and inside < 2.6 * array.nbytes
    there["a"][0] = 7
    assert array[0] == 0 and np.array_equal(there["a"][1:], array[1:]) and np.array_equal(there["b"], array[::2])


@pytest.mark.parametrize("name", ["numbers", "texts", "bytes", "bools", "floats"])
def test_a_list_reads_the_same_in_processes(name: str, children: Any) -> None:
    values = [v for v in LISTS[name] if not isinstance(v, int) or abs(v) < 1 << 62]
    made: list[list[Any]] = []
    for variant in ("processes", "inline"):
        pipe = hr.from_dataset(values, variant=variant).shuffle(seed=3).batch(100)
        with pipe.loader(threads=2 if variant == "processes" else 0, output="numpy") as loader:
            made.append([x for batch in loader for x in batch])
    assert made[0] == made[1]


def test_records_of_dicts_and_arrays_of_a_class_read_the_same_in_processes(children: Any) -> None:
    rows = [{"name": f"{i}", "size": i} for i in range(2000)]
    sets: list[Any] = [rows, picklefns.Rows(2000)]
    for data in sets:
        got = []
        for batch in hr.from_dataset(data, variant="processes").batch(100).loader(threads=2, output="numpy"):
            got += list(zip(batch.name, batch["size"].tolist(), strict=True))
        assert got == [(f"{i}", i) for i in range(2000)]


def test_statistics_count_what_workers_share(children: Any) -> None:
    pipe = hr.range(40).map(reportfns.large, variant="processes").map(reportfns.first).batch(4)
    with pipe.loader(threads=1, output="numpy") as loader:
        assert [x for batch in loader for x in batch.value.tolist()] == list(range(40))
        assert 4 << 20 < loader.stats()["memory_bytes"] < 40 << 20
        node = loader.node_stats()[1]
        assert {node[f"kept_{what}"] for what in ("entries", "bytes", "hits", "misses")} == {0}


def test_two_large_batches_are_in_memory_where_processes_are(children: Any) -> None:
    """The loop has one, the other is ready or in the making. A busy machine may be late to see that one has
    come back."""
    peaks: list[int] = []
    while len(peaks) < 4 and (not peaks or peaks[-1] > 160 << 20):
        with (
            hr.range(96).map(reportfns.large, variant="processes").batch(16).loader(threads=2, output="numpy") as loader
        ):
            for i, batch in enumerate(loader):
                assert batch.value[0, 0] == 16 * i and batch.value[15, -1] == 16 * i + 15
            peaks.append(loader.stats()["memory_peak_bytes"])
    assert peaks[-1] < 170 << 20
