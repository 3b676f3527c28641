"""pipe.cache(): later epochs skip what is before it, with the same records."""

from __future__ import annotations

import pathlib
import warnings

import numpy as np
import pytest

import headrace as hr

calls: list[int] = []


def slow(value: np.ndarray) -> np.ndarray:
    calls.append(int(value))
    return value * value


def values(loader: hr.Loader) -> list[int]:
    return [int(v) for batch in loader for v in batch["value"]]


def test_a_cache_in_memory_lives_as_long_as_the_loader() -> None:
    loader = hr.range(50).map(slow, fields="value").cache(random="freeze").shuffle().batch(10).loader(threads=2)
    calls.clear()
    epochs = [values(loader) for _ in range(3)]
    assert sorted(calls) == list(range(50))
    assert [sorted(e) for e in epochs] == [[i * i for i in range(50)]] * 3
    assert epochs[0] != epochs[1]  # the shuffle is not kept
    stats = {node["node"]: node for node in loader.node_stats()}["flow.cache"]
    assert (stats["kept_entries"], stats["kept_hits"], stats["note"]) == (50, 100, "")


def test_a_cache_in_a_folder_outlives_the_loader(tmp_path: pathlib.Path) -> None:
    pipe = hr.range(50).map(slow, fields="value").cache(tmp_path / "kept", random="freeze").batch(10)
    first = values(pipe.loader(threads=2))
    calls.clear()
    assert values(pipe.loader(threads=2)) == first
    assert calls in ([], [0])  # a record is tried to find out the types


def test_a_full_cache_is_said_once(tmp_path: pathlib.Path) -> None:
    pipe = hr.range(200).cache(tmp_path / "kept", budget=4000).batch(50)
    loader = pipe.loader()
    with pytest.warns(UserWarning, match=r"'flow.cache': it keeps \d+ records and no more, because its budget"):
        whole = values(loader)
    assert whole == list(range(200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(loader) == whole


def test_random_work_before_a_cache_is_refused_with_both_ways_out(pictures: pathlib.Path) -> None:
    pipe = hr.files(pictures).decode().random_resized_crop(32)
    with pytest.raises(hr.GraphError) as caught:
        pipe.cache().batch(4).loader()
    message = str(caught.value)
    assert "'image.random_resized_crop'" in message
    assert "before 'image.random_resized_crop'" in message and "`random: freeze`" in message
    frozen = pipe.cache(random="freeze").batch(4).loader()
    one, two = ([np.array(b["image"]) for b in frozen] for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, two, strict=True))


def test_your_code_before_a_cache_must_be_vouched_for() -> None:
    with pytest.raises(hr.GraphError, match="is your code, which may draw random numbers"):
        hr.range(5).map(slow, fields="value").cache().batch(5).loader()


def test_photos_are_the_same_with_a_cache(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    base = hr.files(pictures).shuffle().decode().resize(32)
    plain = base.flip().batch(3).loader(threads=2)
    cached = base.cache(tmp_path / "kept").flip().batch(3).loader(threads=2)
    for _ in range(2):
        for a, b in zip(plain, cached, strict=True):
            assert (np.array(a["image"]) == np.array(b["image"])).all()


def test_a_cache_of_files_gives_what_its_first_epoch_gave(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    small = hr.files(pictures).decode(mode="exact").resize_shortest(32).center_crop(24)
    sizes = []
    for name, encoded in ("kept", small), ("files", small.encode(quality=90)):
        pipe = encoded.cache(tmp_path / name)
        pipe = (pipe.decode(mode="exact") if name == "files" else pipe).batch(4)
        with pipe.loader(epochs=3, seed=1, output="numpy") as loader:
            found = [batch.image.copy() for batch in loader]
        each = len(found) // 3
        assert each > 0 and all((a == b).all() for a, b in zip(found[:each], found[-each:], strict=True))
        sizes.append(sum(file.stat().st_size for file in (tmp_path / name).rglob("*") if file.is_file()))
    assert sizes[1] < sizes[0]


def test_a_run_with_a_cache_resumes(tmp_path: pathlib.Path) -> None:
    pipe = hr.range(60).where("value % 3 != 1").cache(tmp_path / "kept").shuffle(window=8).batch(4)
    loader = pipe.loader(seed=5)
    whole = [values(loader), values(loader)]
    loader = pipe.loader(seed=5)
    run = iter(loader)
    begun = [int(v) for _ in range(3) for v in next(run)["value"]]
    state = loader.state_dict()
    again = pipe.loader(seed=5)
    again.load_state_dict(state)
    assert begun + values(again) == whole[0]
    assert values(again) == whole[1]


def test_worker_processes_fill_and_skip(tmp_path: pathlib.Path) -> None:
    pipe = (
        hr.range(40).map(slow, fields="value", variant="processes").cache(tmp_path / "kept", random="freeze").batch(8)
    )
    loader = pipe.loader(threads=1)
    calls.clear()
    first = values(loader)
    assert first == [i * i for i in range(40)]
    assert values(loader) == first
    assert calls == []  # in the worker
    entry = {node["node"]: node for node in loader.node_stats()}
    assert entry["flow.cache"]["kept_hits"] == 40
