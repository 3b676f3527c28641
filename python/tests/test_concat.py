"""Issue 14 B2: pipelines one after the other, as one source."""

from __future__ import annotations

import pathlib
import random

import numpy as np
import pytest

import headrace as hr


def values(pipe: hr.Pipeline, **options: object) -> list[int]:
    return [int(n) for b in pipe.batch(4).loader(output="numpy", **options) for n in b.value]  # type: ignore[call-overload]


def plus(amount: int, n: int) -> hr.Pipeline:
    return hr.range(n).map(lambda value: value + amount, fields="value", outputs={"value": hr.spec("int64", [])})


def test_records_come_in_turn_and_steps_run_for_their_own_input_only() -> None:
    pipe = hr.concat(hr.range(5), plus(100, 3), hr.concat(plus(200, 2), hr.range(0), plus(300, 2)).skip(1))
    assert pipe.record_count == 11
    expected = [0, 1, 2, 3, 4, 100, 101, 102, 201, 300, 301]
    assert values(pipe) == expected
    assert values(pipe.skip(4).take(3)) == [4, 100, 101]
    assert sorted(values(pipe.shuffle())) == expected
    parts = hr.split(pipe, [0.5, 0.5], by="index")
    assert sorted(values(parts[0]) + values(parts[1])) == expected


def test_shuffled_records_resume_and_are_divided_over_ranks_with_any_number_of_threads(rng: random.Random) -> None:
    seed = rng.randrange(2**40)
    pipe = hr.concat(hr.range(40).shuffle(), plus(100, 17)).shuffle()
    whole = values(pipe, seed=seed, epochs=2)
    assert sorted(whole) == sorted([*range(40), *range(100, 117)] * 2)
    assert values(pipe, seed=seed, epochs=2, threads=rng.randint(2, 4)) == whole
    loader = pipe.batch(4).loader(seed=seed, epochs=2, output="numpy")
    steps, seen = iter(loader), []
    for _ in range(rng.randint(1, 20)):
        seen += next(steps).value.tolist()
    again = pipe.batch(4).loader(seed=seed, epochs=2, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert seen + [int(n) for b in again for n in b.value] == whole
    ranks = [values(pipe, seed=seed, shard=(r, 3), even="none") for r in range(3)]
    assert sorted(n for one in ranks for n in one) == sorted(whole[:57])


def test_records_of_two_inputs_draw_different_numbers() -> None:
    draw = {"value": hr.spec("float64", [])}
    pipe = hr.concat(hr.range(20), hr.range(20)).map(lambda value: hr.rng().random(), fields="value", outputs=draw)
    drawn = [float(x) for b in pipe.batch(8).loader(output="numpy") for x in b.value]
    assert len(set(drawn)) == 40


class Pairs:
    """(i, 2 i), from `first` on."""

    def __init__(self, first: int, count: int) -> None:
        self.first, self.count = first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> tuple[int, int]:
        return self.first + at, 2 * (self.first + at)


@pytest.mark.parametrize("join", ["concat", "mix"])
def test_joined_datasets_of_pairs_give_pairs(join: str) -> None:
    inputs = [hr.from_dataset(Pairs(0, 6)), hr.from_dataset(Pairs(100, 6))]
    pipe = hr.concat(*inputs) if join == "concat" else hr.mix(inputs, until="all")
    seen = []
    for x, y in pipe.map(lambda pair: (pair[0] + 1, pair[1])).batch(5).loader(output="numpy"):
        assert (2 * (x - 1) == y).all()
        seen += x.tolist()
    assert sorted(seen) == [*range(1, 7), *range(101, 107)]


def test_joined_datasets_of_other_structures_give_fields_by_name() -> None:
    named = hr.from_dataset([{"field0": 1, "field1": 2}])
    batches = list(hr.concat(hr.from_dataset(Pairs(0, 1)), named).batch(2).loader(output="numpy"))
    assert [sorted(b) for b in batches] == [["field0", "field1"]]


def test_errors_name_the_file_of_the_right_input(tmp_path: pathlib.Path) -> None:
    for folder, count in (("a", 3), ("b", 4)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            (tmp_path / folder / f"{i}.ppm").write_bytes(b"P6 1 1 255\nabc" if (folder, i) != ("b", 2) else b"bad")
    pipe = hr.concat(hr.files(tmp_path / "a"), hr.files(tmp_path / "b")).decode().batch(1)
    with pytest.raises(hr.HeadraceError, match=r"b/2\.ppm"):
        list(pipe.loader(output="numpy"))
    loader = pipe.loader(output="numpy", on_error="skip")
    assert sum(len(b.image) for b in loader) == 6
    before = hr.concat(hr.files(tmp_path / "a").decode(), hr.files(tmp_path / "b").decode()).batch(1)
    with pytest.raises(hr.HeadraceError, match=r"b/2\.ppm"):
        list(before.loader(output="numpy"))


def test_inputs_that_differ_are_refused_by_field_and_input(tmp_path: pathlib.Path) -> None:
    for name in ("x/cat", "x/dog", "y/cat", "y/zebra"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "1.ppm").write_bytes(b"P6 1 1 255\nabc")
    np.save(tmp_path / "f.npy", np.zeros(3, np.float32))
    with pytest.raises(hr.GraphError, match="'source.files' and of 'source.files2' number different classes"):
        x, y = (hr.files(tmp_path / n, labels="folder") for n in "xy")
        values(hr.concat(x, y))
    with pytest.raises(hr.GraphError, match='input 1 has a field "value", and input 2 has none'):
        values(hr.concat(hr.range(3), hr.files(tmp_path)))
    with pytest.raises(hr.HeadraceError, match='field "value" of input 1 is int64.*they differ in dtype'):
        values(hr.concat(hr.range(3), hr.npy(tmp_path / "f.npy", field="value")))
    with pytest.raises(hr.GraphError, match="put 'record.filter' after 'flow.concat'"):
        values(hr.concat(hr.range(3), hr.range(3).where("value > 1")))
    with pytest.raises(hr.GraphError, match="mispaired"):
        left = hr.concat(hr.range(3), hr.range(4).shuffle()).rename({"value": "left"})
        values(hr.zip(left, hr.concat(hr.range(3), hr.range(4))))


def test_functions_in_worker_processes_before_it() -> None:
    a = hr.range(9).map(abs, fields="value", outputs={"value": hr.spec("int64", [])}, variant="processes")
    assert values(hr.concat(a, hr.range(4))) == [*range(9), *range(4)]
