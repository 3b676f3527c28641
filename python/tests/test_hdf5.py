"""source.hdf5: files as HDF5's library writes them (fuzz/hdf5_corpus.py), and damaged ones."""

from __future__ import annotations

import pathlib
import random
import shutil
from typing import Any

import numpy as np
import pytest

import headrace as hr
from damage import damaged, refused

CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/hdf5"


def number(*shape: int) -> Any:
    return (np.arange(int(np.prod((20, *shape)))) * 7 % 101).reshape(20, *shape)


SOME = np.full(20, 9)
SOME[5:10] = number()[5:10]
PLAIN = {
    "big": number().astype("i8"),
    "good": number() % 2 == 1,
    "half": number(2).astype("f2"),
    "images": number(3, 5).astype("u1"),
    "train_labels": number().astype("i4"),
    "train_weights": number().astype("f8"),
}
CHUNKED = {
    "gzip": number(6, 5).astype("i2"),
    "lzf": number(6).astype("f4"),
    "plain": number(7).astype("i8"),
    "some": SOME.astype("i4"),
}
NEW = {
    **CHUNKED,
    "one": number(4).astype("i4"),
    "single": number(4).astype("i4"),
    "pages": number(200).astype("u1"),
}
GROUPS = {f"group_x{i}": number().astype("i2") + np.int16(i) for i in range(30)}
GROWN = {
    "one": number(6).astype("i2"),
    "last": number(7).astype("i4"),
    "many": number(60).astype("u1"),
    "larger": number(4).astype("i4"),
    "two": number(60).astype("u1"),
    "packed": number(4).astype("u1"),
}
FILES = {
    "plain": PLAIN,
    "plain_new": PLAIN,
    "block": PLAIN,
    "chunked": CHUNKED,
    "chunked_new": NEW,
    "groups": GROUPS,
    "grown": GROWN,
}
STRUCTS = {
    "points.a": number().astype("i4"),
    "points.b": number(2, 3).astype("f8"),
    "points.c": number().astype("u1"),
    "points.n.p": number().astype("i2"),
    "points.n.q": number() % 2 == 1,
    "pairs.u": number(4).astype("f4"),
    "pairs.v": number(4) + 1,
    "grid": number(2, 2).astype("i2"),
    "inner.x": np.zeros(20, "u1"),
}


def rows(pipe: Any, **run: Any) -> list[dict[str, Any]]:
    return [{k: b[k][0] for k in b} for b in pipe.batch(1, ragged=True).loader(output="numpy", **run)]


def columns(pipe: Any, **run: Any) -> dict[str, Any]:
    batches = list(pipe.batch(7).loader(output="numpy", **run))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def same(made: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert list(made) == sorted(wanted)
    for name, array in wanted.items():
        assert made[name].dtype == array.dtype
        assert made[name].shape == array.shape
        assert made[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("name", FILES)
def test_datasets_are_read(name: str, threads: int) -> None:
    pipe = hr.hdf5(CORPUS / name)
    assert pipe.record_count == 20
    same(columns(pipe, threads=threads), FILES[name])


def test_without_a_cache(rng: random.Random) -> None:
    pipe = hr.hdf5(CORPUS / "chunked", unpack_cache=0)
    for threads in (0, 3):
        same(columns(pipe, threads=threads), CHUNKED)
    order = columns(pipe.shuffle(), seed=rng.randrange(100), threads=2)
    for name, wanted in CHUNKED.items():
        assert sorted(x.tobytes() for x in order[name]) == sorted(x.tobytes() for x in wanted)


def test_texts_and_bytes_of_any_length() -> None:
    words = ["é" * (i % 5) + str(i) for i in range(20)]
    for threads in (0, 2):
        made = rows(hr.hdf5(CORPUS / "texts"), threads=threads)
        assert [row["any"] for row in made] == words
        assert [bytes(row["blobs"]) for row in made] == [bytes([i]) * (i * 30) for i in range(20)]
        fixed = rows(hr.hdf5(CORPUS / "texts", fields={"word": "fixed"}))
        assert [row["word"] for row in fixed] == [w.encode()[:6].decode(errors="replace") for w in words]


@pytest.mark.parametrize("name", ["structs", "structs_new"])
def test_members_of_compound_types(name: str, rng: random.Random) -> None:
    fields = {
        member.replace(".", "_"): member for member in sorted(STRUCTS, key=lambda member: member.replace(".", "_"))
    }
    pipe = hr.hdf5(CORPUS / name, fields=fields)
    same(columns(pipe, threads=rng.randrange(3)), {field: STRUCTS[member] for field, member in fields.items()})
    made = rows(hr.hdf5(CORPUS / name))
    assert set(made[0]) == {*STRUCTS, "points.s"}
    assert [row["points.s"] for row in made] == [str(i) for i in range(20)]
    parts = [
        columns(part)["a"]
        for part in hr.split(hr.hdf5(CORPUS / name, fields={"a": "points.n.p"}), [0.5, 0.5], seed=1, by="a")
    ]
    assert sorted(np.concatenate(parts)) == sorted(STRUCTS["points.n.p"])


def test_fields_are_chosen_and_named() -> None:
    pipe = hr.hdf5(CORPUS / "plain", fields={"y": "train/labels", "x": "/images"})
    made = columns(pipe)
    assert list(made) == ["y", "x"]
    assert made["y"].tobytes() == PLAIN["train_labels"].tobytes()
    parts = [columns(part)["y"] for part in hr.split(pipe, [0.5, 0.5], seed=1, by="y")]
    assert sorted(np.concatenate(parts)) == sorted(PLAIN["train_labels"])
    assert not set(parts[0]) & set(parts[1])


def test_several_files(tmp_path: pathlib.Path) -> None:
    for i, name in enumerate(("plain", "plain_new", "block")):
        shutil.copy(CORPUS / name, tmp_path / f"{i}.h5")
    pipe = hr.hdf5(tmp_path)
    assert pipe.record_count == 60
    same(columns(pipe, threads=2), {name: np.concatenate([array] * 3) for name, array in PLAIN.items()})
    shutil.copy(CORPUS / "chunked", tmp_path / "3.h5")
    with pytest.raises(hr.HeadraceError, match='3.h5: no dataset is called "big"'):
        hr.hdf5(tmp_path).batch(1).loader()


@pytest.mark.parametrize("name", ["chunked", "chunked_new"])
def test_shuffle_resume_and_ranks(name: str, rng: random.Random) -> None:
    pipe = hr.hdf5(CORPUS / name, fields={"x": "gzip", "y": "plain"}).shuffle()
    runs = [columns(pipe, seed=3, epochs=2, threads=threads) for threads in (0, 1, 3)]
    for run in runs[1:]:
        assert all(run[k].tobytes() == runs[0][k].tobytes() for k in run)
    loader = pipe.batch(7).loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = [next(run)["x"] for _ in range(rng.randrange(1, 5))]
    again = pipe.batch(7).loader(seed=3, epochs=2, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert np.concatenate([*head, *(b["x"] for b in again)]).tobytes() == runs[0]["x"].tobytes()
    shares = [columns(pipe, seed=3, shard=(rank, 4))["y"] for rank in range(4)]
    assert sorted(map(bytes, np.concatenate(shares))) == sorted(map(bytes, CHUNKED["plain"]))


def test_what_cannot_be_read_is_refused(tmp_path: pathlib.Path) -> None:
    def refused(words: str, path: Any, **options: Any) -> None:
        with pytest.raises(hr.HeadraceError, match=words):
            hr.hdf5(path, **options).batch(1, ragged=True).loader()

    refused('no dataset is called "image"; did you mean "images"', CORPUS / "plain", fields={"x": "image"})
    refused('"opaque" cannot be read: its elements are neither', CORPUS / "structs", fields={"x": "opaque"})
    refused('"points.v" cannot be read: its elements are', CORPUS / "structs_new", fields={"x": "points.v"})
    refused('"inner.many" cannot be read: it is an array of', CORPUS / "structs", fields={"x": "inner.many"})
    refused('no dataset is called "points"', CORPUS / "structs", fields={"x": "points"})
    for name in ("outside", "outside_new"):
        refused('"outside" cannot be read: its data are in other files', CORPUS / name, fields={"x": "outside"})
        assert columns(hr.hdf5(CORPUS / name, fields={"x": "inside"}))["x"].tolist() == number().tolist()
    refused("a chunk has 160 bytes, more than unpacked_max", CORPUS / "chunked", unpacked_max=100)
    (tmp_path / "text").write_bytes(b"no HDF5 file" * 1000)
    refused("it is no HDF5 file", tmp_path / "text")
    (tmp_path / "empty").write_bytes(b"")
    refused("it is no HDF5 file", tmp_path / "empty")
    for name in FILES:
        whole = (CORPUS / name).read_bytes()
        (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
        refused("it is cut or damaged", tmp_path / "cut")


def test_a_damaged_chunk_costs_its_records(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.h5"
    whole = (CORPUS / "chunked").read_bytes()
    wanted = CHUNKED["lzf"]
    found = 0
    for at in range(0, len(whole), 17):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        pipe = hr.hdf5(path, fields={"x": "lzf"})
        try:
            made = columns(pipe, on_error="skip", errors_max=100)["x"]
        except hr.HeadraceError as error:
            assert "a.h5" in str(error)
            continue
        if len(made) < 20:
            found += 1
            assert len(made) in (17, 18)  # a chunk has 3 records, the last one 2
            assert {x.tobytes() for x in made} <= {x.tobytes() for x in wanted}
            with pytest.raises(hr.HeadraceError, match=r"a.h5: byte \d+: a chunk is damaged: its (checksum|LZF)"):
                columns(pipe)
    assert found > 3


def test_damage_anywhere_does_no_harm(tmp_path: pathlib.Path, rng: random.Random) -> None:
    def version() -> bytes:
        data = (CORPUS / rng.choice([*FILES, "texts", "structs", "structs_new", "outside", "outside_new"])).read_bytes()
        return damaged(data, rng, lambda: rng.choice([rng.randrange(2000), rng.randrange(len(data))]))

    path = tmp_path / "a.h5"
    read = lambda: rows(hr.hdf5(path), on_error="skip", errors_max=1000)  # noqa: E731
    assert refused(path, (version() for _ in range(150)), read) > 20


def test_files_of_the_library(tmp_path: pathlib.Path, rng: random.Random) -> None:
    h5py = pytest.importorskip("h5py")
    for at in range(12):
        path, wanted, count = tmp_path / f"{at}.h5", {}, rng.choice([1, 17, 100])
        with h5py.File(
            path, "w", libver=rng.choice(["earliest", "latest"]), userblock_size=rng.choice([0, 512])
        ) as file:
            for i in range(rng.choice([1, 5, 12])):
                dtype, rest = (
                    rng.choice(["<i2", ">f4", "u1", "<f8", ">i8"]),
                    [rng.choice([1, 5, 9]) for _ in range(rng.randrange(4))],
                )
                items = int(np.prod([count, *rest]))
                array = np.array([rng.randrange(100) for _ in range(items)], dtype).reshape(count, *rest)
                chunks = tuple(max(1, min(size, rng.choice([1, 4, 7]))) for size in array.shape)
                grows = tuple(rng.choice([None, size, size + 3, size * 9]) for size in array.shape)
                options = rng.choice(
                    [
                        {},
                        {"chunks": chunks},
                        {"chunks": chunks, "maxshape": grows},
                        {"chunks": chunks, "maxshape": grows, "compression": "gzip"},
                        {"chunks": chunks, "compression": "gzip", "shuffle": True},
                        {"chunks": chunks, "compression": "lzf", "fletcher32": True},
                    ]
                )
                file.create_dataset(f"x{i}", data=array, **options)
                wanted[f"x{i}"] = array.astype(array.dtype.newbyteorder("="))
        same(columns(hr.hdf5(path), threads=rng.randrange(3)), wanted)


def test_members_of_the_library(tmp_path: pathlib.Path, rng: random.Random) -> None:
    h5py = pytest.importorskip("h5py")

    def dtype(depth: int) -> Any:
        kinds = ["<i4", ">f8", "u1", "?", "<f2"] + [None] * (depth < 3)
        members = []
        for i in range(rng.randrange(1, 5)):
            kind = rng.choice(kinds)
            members.append(
                (f"m{i}", dtype(depth + 1)) if kind is None else (f"m{i}", kind, (2,) * rng.choice([0, 0, 1, 2]))
            )
        return np.dtype(members, align=rng.random() < 0.3)

    def flat(prefix: str, array: Any) -> dict[str, Any]:
        if array.dtype.names is None:
            return {prefix: array.astype(array.dtype.newbyteorder("="))}
        return {k: v for name in array.dtype.names for k, v in flat(f"{prefix}.{name}", array[name]).items()}

    for at in range(12):
        path, kind = tmp_path / f"{at}.h5", dtype(0)
        array = np.frombuffer(rng.randbytes(30 * kind.itemsize), kind).copy()
        with h5py.File(path, "w", libver=rng.choice(["earliest", "latest"])) as file:
            file.create_dataset("x", data=array, **rng.choice([{}, {"chunks": (7,), "compression": "gzip"}]))
            array = file["x"][...]
        wanted = flat("x", array)
        fields = {f"f{i}": name for i, name in enumerate(wanted)}
        made = columns(hr.hdf5(path, fields=fields), threads=rng.randrange(3))
        for field, name in fields.items():
            assert made[field].dtype == wanted[name].dtype
            assert made[field].tobytes() == wanted[name].tobytes(), name


@pytest.mark.parametrize("count", [8, 9, 500, 3000])
def test_groups_of_the_library(tmp_path: pathlib.Path, count: int) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for i in range(count):
            file.create_dataset(f"{'long' * (i % 9)}{i}", data=[i, i + 1])
    fields = {f"x{i}": f"{'long' * (i % 9)}{i}" for i in range(0, count, count // 8)}
    made = columns(hr.hdf5(tmp_path / "a.h5", fields=fields))
    assert all(list(made[f"x{i}"]) == [i, i + 1] for i in range(0, count, count // 8))


def test_arrays_of_chunks_in_pages(tmp_path: pathlib.Path) -> None:
    h5py = pytest.importorskip("h5py")
    wanted = np.arange(140_000, dtype="i4")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("grows", data=wanted, chunks=(1,), maxshape=(None,))
        file.create_dataset("fixed", data=wanted, chunks=(20,), maxshape=(200_000,))
    pipe = hr.hdf5(tmp_path / "a.h5").batch(10_000)
    batches = list(pipe.loader(output="numpy"))
    for name in ("grows", "fixed"):
        assert np.array_equal(np.concatenate([batch[name] for batch in batches]), wanted)
