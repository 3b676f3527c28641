"""Issue 14 B2: pipelines interleaved by weights, exactly and reproducibly."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import headrace as hr


def plus(amount: int, n: int) -> hr.Pipeline:
    return hr.range(n).map(lambda value: value + amount, fields="value", outputs={"value": hr.spec("int64", [])})


def values(pipe: hr.Pipeline, **options: object) -> list[int]:
    return [int(n) for b in pipe.batch(4).loader(output="numpy", **options) for n in b.value]  # type: ignore[call-overload]


def test_proportions_are_exact_in_every_stretch(rng: random.Random) -> None:
    weights = [rng.uniform(0.2, 5) for _ in range(3)]
    pipe = hr.mix([hr.range(40_000), plus(10**6, 39_999), plus(2 * 10**6, 39_998)], weights=weights, until="first")
    seen = values(pipe.take(12288), seed=rng.randrange(2**40))
    assert pipe.record_count is not None and len(seen) == 12288
    for first in range(0, 12288, 4096):
        counts = Counter(n // 10**6 for n in seen[first : first + 4096])
        for i, weight in enumerate(weights):
            assert abs(counts[i] - 4096 * weight / sum(weights)) < i + 2
    assert seen != sorted(seen)


def test_first_ends_before_a_repeat_and_all_covers_everything(rng: random.Random) -> None:
    small, large = rng.randint(3, 60), rng.randint(61, 300)
    weights = {"a": rng.uniform(0.3, 3), "b": rng.uniform(0.3, 3)}
    pipes = {"a": hr.range(small), "b": plus(1000, large)}
    everything = {*range(small), *range(1000, 1000 + large)}
    first = values(hr.mix(pipes, weights=weights, until="first"))
    assert len(first) == len(set(first)) and set(first) <= everything
    used = sum(n < 1000 for n in first)
    assert used == small or len(first) - used == large
    pipe = hr.mix(pipes, weights=weights, until="all")
    last = values(pipe)
    assert set(last) == everything and len(last) == pipe.record_count
    counts = Counter(last)
    for group in (range(small), range(1000, 1000 + large)):
        times = [counts[n] for n in group]
        assert max(times) - min(times) <= 1
    assert 1 in (max(counts[n] for n in range(small)), max(counts[n] for n in range(1000, 1000 + large)))


def test_a_mix_resumes_exactly_with_any_threads_and_ranks(rng: random.Random) -> None:
    seed = rng.randrange(2**40)
    inner = hr.mix([hr.range(7).shuffle(), plus(100, 9)], until="first")
    pipe = hr.mix({"x": inner, "y": plus(200, 30).shuffle()}, weights={"x": 1, "y": 2}, until="all").take(40)
    whole = values(pipe, seed=seed, epochs=3)
    assert whole[:40] != whole[40:80]
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


def test_repeated_records_draw_again() -> None:
    draw = {"value": hr.spec("float64", [])}
    pipe = hr.mix([hr.range(3), hr.range(50)], until="all")
    drawn = pipe.map(lambda value: hr.rng().random(), fields="value", outputs=draw)
    seen = [float(x) for b in drawn.batch(8).loader(output="numpy") for x in b.value]
    assert len(seen) == len(set(seen)) == pipe.record_count


def test_wrong_weights_and_inputs_are_refused() -> None:
    two = [hr.range(2), hr.range(3)]
    for weight in (0, -1, float("nan"), float("inf")):
        with pytest.raises(hr.HeadraceError, match="weight"):
            values(hr.mix(two, weights=[1, weight], until="all"))
    with pytest.raises(hr.HeadraceError, match="3 weights for 2 inputs"):
        values(hr.mix(two, weights=[1, 2, 3], until="all"))
    with pytest.raises(hr.ArgumentError, match="give each pipeline one weight"):
        hr.mix({"a": two[0], "b": two[1]}, weights={"a": 1, "c": 2}, until="all")
    with pytest.raises(hr.GraphError, match="input 2 has no records"):
        values(hr.mix([hr.range(2), hr.range(0)], until="first"))
