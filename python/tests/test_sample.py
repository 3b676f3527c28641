"""Issue 14 B2: draws with and without replacement follow their weights, and resume exactly."""

from __future__ import annotations

import pathlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import headrace as hr


def draws(pipe: hr.Pipeline, field: str = "value", **options: Any) -> list[int]:
    return [int(n) for batch in pipe.batch(50).loader(output="numpy", **options) for n in batch[field]]


def chi_square_limit(freedom: int) -> float:
    """Exceeded with a probability of 1e-6 (Wilson and Hilferty)."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + 4.753 * part**0.5) ** 3)


def check(counts: Mapping[int, int], weights: Sequence[float]) -> None:
    total, drawn = sum(weights), sum(counts.values())
    expected = [drawn * w / total for w in weights]
    assert all(counts.get(i, 0) == 0 for i, e in enumerate(expected) if e == 0)
    positive = [i for i, e in enumerate(expected) if e > 0]
    distance = sum((counts.get(i, 0) - expected[i]) ** 2 / expected[i] for i in positive)
    assert distance < chi_square_limit(len(positive) - 1)


def test_draws_follow_weights_from_a_file(tmp_path: pathlib.Path, rng: random.Random) -> None:
    weights = [0.0, 0.5, 1.0, 3.0, 0.0, 7.5, *(rng.uniform(0.2, 4) for _ in range(rng.randint(1, 60)))]
    seed, count = rng.randrange(2**40), 1000 * len(weights)
    np.save(tmp_path / "w.npy", np.array(weights))
    file = hr.range(len(weights)).sample(count=count, weights=tmp_path / "w.npy")
    check(Counter(draws(file, seed=seed)), weights)
    np.save(tmp_path / "half.npy", np.array(weights, dtype=np.float32))
    check(Counter(draws(hr.range(len(weights)).sample(count=count, weights=tmp_path / "half.npy"))), weights)
    check(Counter(draws(hr.range(40).sample(count=40_000), seed=seed)), [1.0] * 40)


def test_files_are_balanced_by_label_and_weighted_by_a_column(tmp_path: pathlib.Path, rng: random.Random) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    labels = [rng.choice("aaaab") for _ in range(30)] + ["a", "b"]
    weights = [rng.choice([0, 0.5, 2]) for _ in labels[:-1]] + [1]
    lines = ["path,label,w,index"]
    for i, (label, weight) in enumerate(zip(labels, weights, strict=True)):
        (photos / f"{i:02}.bin").write_bytes(b"x")
        lines.append(f"{i:02}.bin,{label},{weight},{i}")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    files = hr.files(photos, suffixes=[], labels=tmp_path / "labels.csv")
    seed = rng.randrange(2**40)
    even = [1 / labels.count(label) for label in labels]
    check(Counter(draws(files.sample(count=20_000, balance="label"), "index", seed=seed)), even)
    check(Counter(draws(files.sample(count=20_000, weight="w"), "index", seed=seed)), weights)


def test_weights_and_balance_are_by_what_steps_before_make(tmp_path: pathlib.Path) -> None:
    rows = [("a", 1, 0), (" A", 0, 1), ("b", 3, 4)]
    (tmp_path / "t.csv").write_text("name,w,other\n" + "".join(f"{n},{w},{o}\n" for n, w, o in rows))
    table = hr.csv(tmp_path / "t.csv")
    swapped = table.rename({"w": "other", "other": "w"}).cast("float32", field="w", scale=False)
    check(Counter(draws(swapped.sample(count=5000, weight="w"), "other")), [1, 0, 0, 4])
    clean = table.strip_text(field="name").lower_text(field="name").sample(count=9000, balance="name")
    check(Counter(draws(clean, "w")), [1, 1, 0, 2])


def test_a_record_without_a_weight_is_refused(tmp_path: pathlib.Path) -> None:
    """A parquet source knows such a record by its number, which is no weight."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"w": pa.array([1, 2, None, 4]), "x": [0, 1, 2, 3]}), tmp_path / "t.parquet")
    table = hr.parquet(tmp_path / "t.parquet")
    with pytest.raises(hr.HeadraceError, match='record 2 of .* has no "w": give it a weight, 0 to leave it out'):
        draws(table.sample(weight="w"), "x")
    with pytest.raises(hr.HeadraceError, match='record 2 of .* has no "w"'):
        draws(table.cast("float32", field="w", scale=False).sample(weight="w"), "x")


def test_draws_resume_and_are_divided_over_ranks(rng: random.Random) -> None:
    seed, threads = rng.randrange(2**40), rng.randint(1, 4)
    pipe = hr.range(37).sample(count=200).batch(8)
    whole = [b.value.tolist() for b in pipe.loader(seed=seed, epochs=2, output="numpy")]
    assert whole[:25] != whole[25:]
    first = pipe.loader(seed=seed, epochs=2, output="numpy", threads=threads)
    cut = rng.randint(1, 49)
    steps = iter(first)
    seen = [next(steps).value.tolist() for _ in range(cut)]
    again = pipe.loader(seed=seed, epochs=2, output="numpy")
    again.load_state_dict(first.state_dict())
    assert seen + [b.value.tolist() for b in again] == whole
    ranks: list[int] = []
    for rank in range(3):
        ranks += draws(hr.range(37).sample(count=200, seed=5), seed=seed, shard=(rank, 3), even="none")
    assert Counter(ranks) == Counter(draws(hr.range(37).sample(count=200, seed=5), seed=seed))


def test_each_draw_of_a_record_is_changed_differently() -> None:
    pipe = hr.range(2).sample(count=100).map(lambda value: hr.rng().random(), outputs={"x": hr.spec("float64", [])})
    values = [float(x) for batch in pipe.batch(10).loader(output="numpy") for x in batch.x]
    assert len(set(values)) == 100


def test_wrong_weights_are_refused_by_name(tmp_path: pathlib.Path) -> None:
    def save(*weights: float) -> pathlib.Path:
        np.save(tmp_path / "w.npy", np.array(weights))
        return tmp_path / "w.npy"

    two = hr.range(2)
    with pytest.raises(hr.HeadraceError, match="record 1 is -1: weights are finite and not negative"):
        draws(two.sample(weights=save(1, -1)))
    with pytest.raises(hr.HeadraceError, match="record 0 is nan"):
        draws(two.sample(weights=save(float("nan"), 1)))
    with pytest.raises(hr.HeadraceError, match="one weight for each of the 2 records"):
        draws(two.sample(weights=save(1, 2, 3)))
    with pytest.raises(hr.HeadraceError, match="all weights are 0"):
        draws(two.sample(weights=save(0, 0)))
    with pytest.raises(hr.HeadraceError, match="give one of weight, balance and weights"):
        draws(two.sample(weights=save(1, 1), weight="x"))
    with pytest.raises(hr.HeadraceError, match="known are: index"):
        draws(two.sample(balance="label"))
    with pytest.raises(hr.GraphError, match=r"put it before 'order\.shuffle'"):
        draws(two.shuffle().sample())


def test_draws_without_replacement_come_once_and_follow_weights(tmp_path: pathlib.Path, rng: random.Random) -> None:
    """The first draw of every epoch has the chances of its weights; no record comes twice in an epoch."""
    weights = [rng.choice([0, 0.5, 1, 3]) for _ in range(8)] + [2.0, 1.0, 4.0]
    np.save(tmp_path / "w.npy", np.array(weights))
    count, epochs = rng.randint(1, 3), 4000
    pipe = hr.range(len(weights)).sample(count=count, weights=tmp_path / "w.npy", replacement=False)
    values = draws(pipe, seed=rng.randrange(2**40), epochs=epochs)
    samples = [values[i : i + count] for i in range(0, len(values), count)]
    assert len(samples) == epochs and all(len(set(sample)) == count for sample in samples)
    check(Counter(sample[0] for sample in samples), weights)


def test_a_subset_without_weights_differs_between_epochs(rng: random.Random) -> None:
    seed, epochs = rng.randrange(2**40), 3
    values = draws(hr.range(500).sample(count=120, replacement=False), seed=seed, epochs=epochs)
    subsets = [values[i : i + 120] for i in range(0, 360, 120)]
    assert all(len(set(s)) == 120 for s in subsets) and len({tuple(sorted(s)) for s in subsets}) == epochs
    assert sorted(draws(hr.range(50).sample(replacement=False), seed=seed)) == list(range(50))


def test_draws_without_replacement_resume_and_are_divided_over_ranks(rng: random.Random) -> None:
    seed, world = rng.randrange(2**40), rng.randint(2, 4)
    pipe = hr.range(300).sample(count=200, replacement=False, seed=5).batch(8)
    whole = [b.value.tolist() for b in pipe.loader(seed=seed, epochs=6, output="numpy")]
    first = pipe.loader(seed=seed, epochs=6, output="numpy", threads=rng.randint(1, 4))
    steps = iter(first)
    seen = [next(steps).value.tolist() for _ in range(rng.randint(1, 149))]
    again = pipe.loader(seed=seed, epochs=6, output="numpy")
    again.load_state_dict(first.state_dict())
    assert seen + [b.value.tolist() for b in again] == whole
    one = hr.range(300).sample(count=200, replacement=False, seed=5)
    ranks = [draws(one, seed=seed, shard=(rank, world), even="none") for rank in range(world)]
    assert sorted(n for rank in ranks for n in rank) == sorted(draws(one, seed=seed))


def test_files_are_sampled_by_a_column_and_repeated_passes_differ(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.csv").write_text("n,w\n" + "".join(f"{i},{i % 3}\n" for i in range(30)))
    pipe = hr.csv(tmp_path / "t.csv").sample(count=20, weight="w", replacement=False)
    assert sorted(draws(pipe, "n")) == [i for i in range(30) if i % 3]
    passes = draws(pipe.repeat(3).shuffle(), "n", seed=3)
    assert Counter(passes) == Counter({i: 3 for i in range(30) if i % 3})


def test_more_draws_than_weights_are_refused(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "w.npy", np.array([0.0, 1.0, 2.0]))
    three = hr.range(3)
    with pytest.raises(hr.HeadraceError, match="3 different records are to be drawn, and 2 have a weight above 0"):
        draws(three.sample(weights=tmp_path / "w.npy", replacement=False))
    assert sorted(draws(three.sample(count=2, weights=tmp_path / "w.npy", replacement=False))) == [1, 2]
    with pytest.raises(hr.HeadraceError, match="set count to at most 3, or replacement to true"):
        draws(three.sample(count=4, replacement=False))
