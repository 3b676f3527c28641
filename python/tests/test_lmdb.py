"""source.lmdb: environments as liblmdb writes them, and damaged ones."""

from __future__ import annotations

import pathlib
import random
import shutil
from typing import Any

import pytest

import headrace as hr
from damage import damaged, refused

CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/lmdb"
PAGES = {name: int(name[5:]) for name in ("pages512", "pages8192", "pages16384")}
PLAIN = [(f"{i:03d}".encode(), bytes([i]) * (i * i % 300)) for i in range(100)]


def entries(pipe: Any, **run: Any) -> list[tuple[bytes, bytes]]:
    made: list[tuple[bytes, bytes]] = []
    for batch in pipe.batch(7, ragged=True).loader(output="numpy", **run):
        made += zip(*(map(bytes, batch[name]) for name in batch), strict=True)
    return made


@pytest.mark.parametrize("threads", [0, 3])
def test_a_file_is_read(threads: int) -> None:
    assert entries(hr.lmdb(CORPUS / "plain"), threads=threads) == PLAIN
    assert entries(hr.lmdb(CORPUS / "big")) == [(b"big", b"x" * 9000), (b"small", b"y")]
    assert entries(hr.lmdb(CORPUS / "empty")) == []
    assert entries(hr.lmdb(CORPUS / "named", database="a")) == [(b"k", b"v"), (b"l", b"w")]


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_any_size(name: str, tmp_path: pathlib.Path) -> None:
    many = [(f"{i:03d}".encode(), bytes([i]) * (i * i % 150)) for i in range(100)]
    everything = [*many, (b"big", b"x" * 40000)]
    assert entries(hr.lmdb(CORPUS / name), threads=2) == everything
    whole = (CORPUS / name).read_bytes()
    for at, left in ((PAGES[name], everything), (0, [])):  # the first meta page is the newer one
        (tmp_path / "torn").write_bytes(whole[:at] + b"\0" * 100 + whole[at + 100 :])
        assert entries(hr.lmdb(tmp_path / "torn")) == left
    (tmp_path / "cut").write_bytes(whole[: -PAGES[name]])
    with pytest.raises(hr.HeadraceError, match="it is cut|larger than its pages"):
        entries(hr.lmdb(tmp_path / "cut"))


def test_a_folder_and_names_of_fields(tmp_path: pathlib.Path) -> None:
    shutil.copy(CORPUS / "plain", tmp_path / "data.mdb")
    pipe = hr.lmdb(tmp_path, key="name", value="image")
    assert entries(pipe) == PLAIN
    assert list(next(iter(pipe.batch(1, ragged=True).loader()))) == ["name", "image"]


def test_what_cannot_be_read_is_refused(tmp_path: pathlib.Path) -> None:
    def refused(words: str, path: Any, **options: Any) -> None:
        with pytest.raises(hr.HeadraceError, match=words):
            hr.lmdb(path, **options).batch(1, ragged=True).loader()

    refused("named: it has named databases: say with database which one is meant: a", CORPUS / "named")
    refused('no database is called "b"; there are: a', CORPUS / "named", database="b")
    refused('no database is called "b"', CORPUS / "plain", database="b")
    refused("say with database which one is meant: train$", CORPUS / "mixed")  # beside ordinary entries
    refused('no database is called "aaa"; there are: train$', CORPUS / "mixed", database="aaa")
    assert entries(hr.lmdb(CORPUS / "mixed", database="train")) == [(b"k", b"v")]
    refused("several values for a key", CORPUS / "several", database="a")
    refused("data.mdb", tmp_path)
    refused("must be local", "s3://bucket/data.mdb")
    (tmp_path / "text").write_bytes(b"no LMDB file" * 1000)
    refused("it is no LMDB file", tmp_path / "text")
    (tmp_path / "cut").write_bytes((CORPUS / "plain").read_bytes()[:12000])
    refused("lies outside the file: it is cut", tmp_path / "cut")


def test_shuffle_resume_split_and_ranks(rng: random.Random) -> None:
    pipe = hr.lmdb(CORPUS / "plain").shuffle()
    runs = [entries(pipe, seed=3, epochs=2, threads=threads) for threads in (0, 2)]
    assert runs[0] == runs[1]
    assert sorted(runs[0]) == sorted(PLAIN * 2)
    loader = pipe.batch(7, ragged=True).loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = [bytes(x) for _ in range(rng.randrange(1, 25)) for x in next(run)["key"]]
    again = pipe.batch(7, ragged=True).loader(seed=3, epochs=2, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + [bytes(x) for b in again for x in b["key"]] == [key for key, _ in runs[0]]
    parts = [entries(part) for part in hr.split(hr.lmdb(CORPUS / "plain"), [0.5, 0.5], seed=1, by="key")]
    assert sorted(parts[0] + parts[1]) == PLAIN
    shares = [set(entries(pipe, seed=3, shard=(rank, 4))) for rank in range(4)]
    assert set.union(*shares) == set(PLAIN)
    assert sum(map(len, shares)) == len(PLAIN)


def test_damage_anywhere_does_no_harm(tmp_path: pathlib.Path, rng: random.Random) -> None:
    def version() -> bytes:
        data = (CORPUS / rng.choice(["plain", "big", "named", *PAGES])).read_bytes()
        pages = len(data) // 4096
        return damaged(
            data, rng, lambda: rng.randrange(pages) * 4096 + rng.choice([rng.randrange(40), rng.randrange(4096)])
        )

    path = tmp_path / "a.mdb"
    read = lambda: entries(hr.lmdb(path, database=rng.choice(["", "a"])), on_error="skip")  # noqa: E731
    assert refused(path, (version() for _ in range(150)), read) > 20


def test_environments_of_the_library(tmp_path: pathlib.Path, rng: random.Random) -> None:
    lmdb = pytest.importorskip("lmdb")
    for at in range(8):
        folder = tmp_path / str(at)
        named = rng.random() < 0.3
        with lmdb.open(str(folder), map_size=1 << 28, max_dbs=2, writemap=rng.random() < 0.3) as env:
            database = env.open_db(b"some") if named else env.open_db()
            wanted: dict[bytes, bytes] = {}
            for _ in range(rng.choice([1, 3, 10])):
                with env.begin(write=True, db=database) as txn:
                    for _ in range(rng.choice([0, 1, 20, 1000])):
                        key = rng.randbytes(rng.choice([1, 2, 8, 100, 511]))
                        value = rng.randbytes(rng.choice([0, 1, 100, 2000, 4096, 50_000 if rng.random() < 0.1 else 0]))
                        if rng.random() < 0.2 and wanted:
                            gone = rng.choice(list(wanted))
                            assert txn.delete(gone)
                            del wanted[gone]
                        assert txn.put(key, value)
                        wanted[key] = value
            pipe = hr.lmdb(folder, database="some" if named else "")
            assert entries(pipe, threads=rng.choice([0, 2])) == sorted(wanted.items())
