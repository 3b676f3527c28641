"""Issue 14 B2: pipelines in turns, and records out of lists."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy
import pytest

import headrace as hr


def values(pipe: hr.Pipeline, **options: object) -> list[int]:
    return [int(n) for b in pipe.batch(4).loader(output="numpy", **options) for n in b.value]  # type: ignore[call-overload]


def turns(inputs: list[list[int]], block: int) -> list[int]:
    inputs, out = [list(each) for each in inputs], []
    while any(inputs):
        for each in inputs:
            out += each[:block]
            del each[:block]
    return out


def test_interleave_takes_turns_and_passes_over_what_is_exhausted(rng: random.Random) -> None:
    for _ in range(5):
        counts, block = [rng.randint(0, 30) for _ in range(rng.randint(2, 8))], rng.randint(1, 9)
        pipe = hr.interleave(*(hr.range(n, start=1000 * i) for i, n in enumerate(counts)), block=block)
        expected = turns([list(range(1000 * i, 1000 * i + n)) for i, n in enumerate(counts)], block)
        assert pipe.record_count == len(expected)
        assert values(pipe) == expected


def test_interleave_resumes_exactly_with_any_threads_and_ranks(rng: random.Random) -> None:
    seed = rng.randrange(2**40)
    inner = hr.interleave(hr.range(7).shuffle(), hr.range(9, start=100), block=2)
    pipe = hr.interleave(inner, hr.range(24, start=200).shuffle(), block=3)
    whole = values(pipe, seed=seed, epochs=3)
    assert len(whole) == 120 and sorted(whole[:40]) == sorted(whole[40:80]) and whole[:40] != whole[40:80]
    assert values(pipe, seed=seed, epochs=3, threads=rng.randint(2, 4)) == whole
    loader = pipe.batch(4).loader(seed=seed, epochs=3, output="numpy")
    steps, seen = iter(loader), []
    for _ in range(rng.randint(1, 29)):
        seen += next(steps).value.tolist()
    again = pipe.batch(4).loader(seed=seed, epochs=3, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert seen + [int(n) for b in again for n in b.value] == whole
    ranks = [values(pipe, seed=seed, shard=(r, 3), even="none") for r in range(3)]
    assert [ranks[i % 3][i // 3] for i in range(40)] == whole[:40]


def test_flat_gives_a_record_for_each_item_of_lists_in_step(rng: random.Random) -> None:
    lists = [[rng.randrange(100) for _ in range(size)] for size in rng.choices(range(6), k=20)]
    spec = {"id": hr.spec("int64", []), "n": hr.spec("int64", [None]), "t": hr.spec("int64", [None])}
    pipe = hr.range(20).map(
        lambda i: (i, numpy.array(lists[i], "i8"), -numpy.array(lists[i], "i8")), fields="value", outputs=spec
    )
    expected = [(i, n, -n) for i, each in enumerate(lists) for n in each]

    def rows(batches: Iterable[Any]) -> list[tuple[int, ...]]:
        return [row for b in batches for row in zip(b.id.tolist(), b.n.tolist(), b.t.tolist(), strict=True)]

    assert rows(pipe.flat(["n", "t"]).batch(3).loader(output="numpy")) == expected
    shuffled = pipe.shuffle().flat(["t", "n"]).batch(3)
    seed = rng.randrange(2**40)
    whole = rows(shuffled.loader(output="numpy", seed=seed, threads=3))
    assert sorted(whole) == sorted(expected)
    loader = shuffled.loader(seed=seed, output="numpy")
    steps = iter(loader)
    seen = rows(next(steps) for _ in range(rng.randint(1, 5)))
    again = shuffled.loader(seed=seed, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert seen + rows(again) == whole


def test_lists_that_differ_in_length_are_a_bad_record() -> None:
    spec = {"a": hr.spec("int64", [None]), "b": hr.spec("int64", [None])}
    pipe = (
        hr.range(5)
        .map(lambda i: (numpy.ones(i, "i8"), numpy.ones(i - i % 2, "i8")), fields="value", outputs=spec)
        .flat(["a", "b"])
    )
    with pytest.raises(hr.ShapeError, match='"a" has 1 items and "b" 0'):
        list(pipe.batch(2).loader())
    loader = pipe.batch(2).loader(on_error="skip")
    assert sum(b.records for b in loader) == 0 + 2 + 4
    with pytest.raises(hr.HeadraceError, match='field "value" is a number, not a list'):
        print(hr.range(3).flat("value").fields)


def test_windows_overlap_resume_and_are_divided_over_ranks(rng: random.Random) -> None:
    n, size, stride = rng.randint(30, 60), rng.randint(1, 6), rng.randint(1, 8)  # windows for each rank
    expected = [list(range(i, i + size)) for i in range(0, n - size + 1, stride)]
    pipe = hr.range(n).window(size, stride=stride)

    def rows(pipe: hr.Pipeline, **options: Any) -> list[list[int]]:
        return [w.tolist() for b in pipe.batch(2).loader(output="numpy", **options) for w in b.value]

    assert rows(pipe) == rows(pipe, threads=3) == expected
    assert sorted(rows(pipe.shuffle(window=5))) == expected
    loader = pipe.batch(2).loader(output="numpy")
    steps, seen = iter(loader), []
    for _ in range(rng.randint(1, (len(expected) + 1) // 2)):
        seen += [w.tolist() for w in next(steps).value]
    again = pipe.batch(2).loader(output="numpy")
    again.load_state_dict(loader.state_dict())
    assert seen + [w.tolist() for b in again for w in b.value] == expected
    assert [rows(pipe.shard(r, 3)) for r in range(3)] == [expected[r::3] for r in range(3)]
    ranks = [pipe.batch(2).loader(output="numpy", shard=(r, 3), even="none") for r in range(3)]
    for rank, loader in enumerate(ranks):
        assert rows(pipe, shard=(rank, 3), even="none") == expected[rank::3]
        seen = [w.tolist() for w in next(iter(loader)).value]
        again = pipe.batch(2).loader(output="numpy", shard=(rank, 3), even="none", threads=2)
        again.load_state_dict(loader.state_dict())
        assert seen + [w.tolist() for b in again for w in b.value] == expected[rank::3]
    with pytest.raises(hr.StateError, match="rank 2 of 3, this is rank 0 of 1"):
        pipe.batch(2).loader().load_state_dict(ranks[2].state_dict())
    with pytest.raises(hr.UnsupportedError, match="shares cannot be even"):
        rows(pipe, shard=(0, 3), even="repeat")
