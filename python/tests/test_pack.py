"""Pipeline.pack: the same shards as the command, whatever the threads and interruptions."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import run_script


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.suffix != ".json"}


def test_records_keep_their_fields_and_types(tmp_path: pathlib.Path) -> None:
    items: list[dict[str, Any]] = [
        {"text": f"line {i}", "number": i, "values": np.arange(i % 4, dtype=np.float32)} for i in range(50)
    ]
    packed = hr.from_dataset(items).pack(tmp_path / "packed", shard_records=20)
    assert (packed.shards, packed.records, packed.errors, packed.resumed) == (3, 50, 0, False)
    assert packed.bytes == sum(map(len, contents(tmp_path / "packed").values()))
    read = list(hr.records(packed.path).batch(1, ragged=True).loader(output="numpy"))
    assert [b.text[0] for b in read] == [item["text"] for item in items]
    assert [int(b.number[0]) for b in read] == list(range(50))
    assert all(np.array_equal(b["values"][0], item["values"]) for b, item in zip(read, items, strict=True))


@pytest.mark.parametrize("format", ["records", "tar", "tfrecord"])
def test_shards_are_those_of_the_command(
    pictures: pathlib.Path, tmp_path: pathlib.Path, command: str, format: Any
) -> None:
    pipe = hr.files(pictures, labels="folder").op("record.select", fields=["data"])
    (tmp_path / "graph.yaml").write_text(pipe.to_yaml())
    words = [command, "pack", "graph.yaml", "-o", "command", "--format", format, "--shard-records", "7"]
    subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    for threads in (0, 1, 3):
        folder = tmp_path / f"threads {threads}"
        pipe.pack(folder, format=format, shard_records=7, threads=threads)
        assert contents(folder) == contents(tmp_path / "command")
    again = pipe.pack(tmp_path / "command", format=format, shard_records=7)
    assert again.resumed and again.records == pipe.record_count


@pytest.mark.parametrize("how", [{"zstd": 5}, {"lz4": 1}, {"lz4": 9}], ids=str)
def test_compressed_records_are_read_shuffled_and_split(tmp_path: pathlib.Path, how: dict[str, int]) -> None:
    items = [{"text": f"{i} " + "word " * (i % 200), "number": i} for i in range(80)]
    plain = hr.from_dataset(items).pack(tmp_path / "plain")
    small = hr.from_dataset(items).pack(tmp_path / "small", shard_records=30, **how)
    assert small.bytes < plain.bytes
    for threads in (0, 2):
        loader = hr.records(small.path).shuffle(seed=1).batch(7).loader(threads=threads, output="numpy")
        got = {int(n): t for b in loader for n, t in zip(b.number, b.text, strict=True)}
        assert got == {item["number"]: item["text"] for item in items}
    for by in ("text", "number"):
        parts = [hr.split(hr.records(path), [0.5, 0.5], seed=1, by=by) for path in (plain.path, small.path)]
        counts = [[part.record_count for part in two] for two in parts]
        assert counts[0] == counts[1]


def test_a_call_continues_after_an_exception(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken"

    def square(value: int) -> int:
        if value == 95 and broken.exists():
            raise ValueError("not yet")
        return value * value

    pipe = hr.range(200).map(square, version="1")
    pipe.pack(tmp_path / "whole", shard_records=10)
    broken.touch()
    with pytest.raises(ValueError, match="not yet"):
        pipe.pack(tmp_path / "parts", shard_records=10, threads=2)
    done = contents(tmp_path / "parts")
    assert len(done) == 9, "no temporary file stays"
    broken.unlink()
    packed = pipe.pack(tmp_path / "parts", shard_records=10)
    assert packed.resumed and packed.records == 200
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_worker_processes_write_the_same(tmp_path: pathlib.Path) -> None:
    import userfns

    for variant in ("inline", "processes"):
        hr.range(100).map(userfns.double, variant=variant).pack(tmp_path / variant, shard_records=30, threads=2)
    assert contents(tmp_path / "inline") == contents(tmp_path / "processes")


def test_several_epochs_and_ranks(tmp_path: pathlib.Path) -> None:
    pipe = hr.range(10).shuffle()
    packed = pipe.pack(tmp_path / "all", epochs=2, seed=3)
    (batch,) = hr.records(packed.path).batch(20).loader(output="numpy")
    wanted = [v for b in pipe.batch(10).loader(epochs=2, seed=3, output="numpy") for v in b.value.tolist()]
    assert batch.value.tolist() == wanted
    parts = [pipe.pack(tmp_path / "ranks", prefix=f"rank{rank}", shard=(rank, 3)) for rank in range(3)]
    assert sum(part.records for part in parts) == 10


def test_the_environment_makes_no_rank(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert hr.range(10).pack(tmp_path).records == 10


def test_bad_records_are_counted(tmp_path: pathlib.Path) -> None:
    def odd(value: int) -> int:
        if value % 10 == 3:
            raise ValueError("bad")
        return value

    packed = hr.range(50).map(odd).pack(tmp_path, on_error="skip", errors_max=50)
    assert (packed.records, packed.errors) == (45, 5)


def test_an_empty_data_set_is_a_shard_without_records(tmp_path: pathlib.Path) -> None:
    packed = hr.range(10).filter(lambda value: False).pack(tmp_path)
    assert (packed.shards, packed.records) == (1, 0)
    assert list(hr.records(packed.path).batch(2).loader()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shard_bytes": 0}, "shard_bytes is a whole number above 0"),
        ({"shard_records": -1}, "shard_records is a whole number above 0"),
        ({"epochs": None}, "epochs is a whole number above 0"),
        ({"format": "zip"}, "format must be one of"),
        ({"format": "tfrecord"}, "one byte string per record"),
        ({"zstd": 0}, "zstd is a whole number above 0"),
        ({"zstd": 20}, "zstd_level is 1 to 19"),
        ({"lz4": 0}, "lz4 is a whole number above 0"),
        ({"lz4": 13}, "lz4_level is 1 to 12"),
        ({"lz4": 3, "format": "tar"}, "only the container's records"),
        ({"lz4": 3, "zstd": 3}, "not by both"),
        ({"zstd": 3, "format": "tar"}, "only the container's records"),
        ({"prefix": "a/b"}, "contains no slash"),
        ({"thread": 2}, "did you mean 'threads'"),
        ({"ordered": False}, "there is no argument 'ordered'"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: pathlib.Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words):
        hr.range(10).pack(tmp_path, **options)  # type: ignore[arg-type]


def test_batches_and_other_work_are_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(hr.UnsupportedError, match="ends in batches"):
        hr.range(10).batch(2).pack(tmp_path)
    hr.range(10).pack(tmp_path)
    with pytest.raises(hr.StateError, match="belongs to other work"):
        hr.range(11).pack(tmp_path)
    with pytest.raises(hr.ArgumentError, match="a path is needed"):
        hr.range(10).pack(3)  # type: ignore[arg-type]


def test_a_killed_call_is_continued(tmp_path: pathlib.Path) -> None:
    script = (
        "import os, sys, headrace as hr\n"
        "def stop(value):\n"
        "    if value == 70 and len(sys.argv) > 2:\n"
        "        os._exit(9)\n"
        "    return value\n"
        "print(hr.range(100).map(stop, version='1').pack(sys.argv[1], shard_records=8).records)"
    )
    assert run_script(tmp_path, script, str(tmp_path / "killed"), "die").returncode == 9
    out = run_script(tmp_path, script, str(tmp_path / "killed"))
    assert out.stdout.strip() == "100", out.stderr
    (batch,) = hr.records(tmp_path / "killed").batch(100).loader(output="numpy")
    assert batch.value.tolist() == list(range(100))


def numbers(path: Any) -> list[int]:
    return [v for b in hr.records(path).batch(50).loader(output="numpy") for v in b.value.tolist()]


def test_records_are_appended(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "with a space"
    first = hr.range(10).pack(folder, append=True, shard_records=15)
    assert (first.shards, first.records, first.earlier) == (1, 10, 0)
    for times in (2, 3, 4):
        more = hr.range(10).pack(folder, append=True, shard_records=15, zstd=3 if times == 3 else None)
        assert (more.records, more.earlier, more.resumed) == (10 * times, 10 * (times - 1), False)
        assert numbers(more.path) == list(range(10)) * times
        assert more.bytes == sum(map(len, contents(folder).values()))
    assert more.shards == 3
    none = hr.range(10).filter(lambda value: False).pack(folder, append=True, shard_records=15)
    assert (none.shards, none.records) == (3, 40)
    lines = hr.from_dataset([{"value": i, "more": i} for i in range(3)])
    with pytest.raises(hr.HeadraceError, match=r'"value: int64".*"value: int64, more: int64"'):
        lines.pack(folder, append=True)
    with pytest.raises(hr.ArgumentError, match="append is True or False"):
        hr.range(10).pack(folder, append="yes")  # type: ignore[arg-type]
    assert numbers(folder) == list(range(10)) * 4


def test_shards_of_data_sets_of_any_size_are_read_together(tmp_path: pathlib.Path) -> None:
    hr.range(10).pack(tmp_path, prefix="a")
    hr.range(25).pack(tmp_path, prefix="b")
    assert numbers(tmp_path) == [*range(10), *range(25)]


@pytest.mark.parametrize("format", ["tar", "tfrecord"])
def test_archives_take_further_shards(tmp_path: pathlib.Path, format: Any) -> None:
    def pipe(n: int) -> hr.Pipeline:
        return hr.from_dataset([{"data": b"%d" % i} for i in range(n)])

    pipe(10).pack(tmp_path, format=format, shard_records=4)
    packed = pipe(3).pack(tmp_path, format=format, shard_records=4, append=True)
    assert (packed.shards, packed.records, packed.earlier) == (4, 13, 10)
    read = hr.tar(packed.path, fields={"data": "data"}) if format == "tar" else hr.tfrecord(packed.path)
    got = [bytes(v) for b in read.batch(20, ragged=True).loader(output="numpy") for v in b.data]
    assert got == [b"%d" % i for i in [*range(10), *range(3)]]


def test_an_append_that_failed_continues_or_makes_place_for_another(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken"

    def check(value: int) -> int:
        if value >= 25 and broken.exists():
            raise ValueError("not yet")
        return value

    pipe = hr.range(40).map(check, version="1")
    hr.range(10).pack(tmp_path / "set")
    broken.touch()
    with pytest.raises(ValueError, match="not yet"):  # in the shard that was there
        pipe.pack(tmp_path / "set", append=True)
    assert numbers(tmp_path / "set") == list(range(10))
    other = hr.range(5).pack(tmp_path / "set", append=True)
    assert numbers(other.path) == [*range(10), *range(5)]
    with pytest.raises(ValueError, match="not yet"):
        pipe.pack(tmp_path / "set", append=True, shard_records=20)
    with pytest.raises(hr.StateError, match=r"not finished.*run that again"):
        hr.range(5).pack(tmp_path / "set", append=True)
    broken.unlink()
    pipe.pack(tmp_path / "set", append=True, shard_records=20)
    assert numbers(tmp_path / "set") == [*range(10), *range(5), *range(40)]
