"""source.arrow: files and streams as pyarrow writes them, and damaged ones."""

from __future__ import annotations

import pathlib
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.batch import Ragged

CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/arrow"


def rows(pipe: Any, **run: Any) -> list[dict[str, Any]]:
    """The records, with arrays as lists."""
    made = []
    for batch in pipe.batch(5, ragged=True).loader(output="numpy", **run):
        for at in range(batch.records):
            row = {name: v.item(at) if isinstance(v := batch[name], Ragged) else v[at] for name in batch}
            made.append({name: v.tolist() if hasattr(v, "tolist") else v for name, v in row.items()})
    return made


def plain(index: int) -> dict[str, Any]:
    """Row `index` of the file that needs no pyarrow."""
    return {
        "id": index,
        "text": "ü" * (index % 5) + str(index),
        "ids": [*range(index % 4)],
        "half": index / 2,
        "class": "cat" if index % 3 else "dog",
        "odd": index % 2 == 1,
        "image.bytes": bytes([index] * index),
        "image.path": f"{index}.png",
    }


@pytest.mark.parametrize("threads", [0, 3])
def test_a_stream_is_read(threads: int) -> None:
    assert rows(hr.arrow(CORPUS / "plain"), threads=threads) == [plain(i) for i in range(24)]


def test_columns_are_chosen() -> None:
    assert list(rows(hr.arrow(CORPUS / "plain", columns=["image", "id"]))[3]) == ["image.bytes", "image.path", "id"]
    assert list(rows(hr.arrow(CORPUS / "plain", columns=["image.path"]))[3]) == ["image.path"]
    with pytest.raises(hr.ArgumentError, match='no column is called "txt"; did you mean "text"'):
        rows(hr.arrow(CORPUS / "plain", columns=["txt"]))
    with pytest.raises(hr.HeadraceError, match='did you mean "text"'):
        rows(hr.arrow(CORPUS / "plain", fill={"tex": "="}))
    with pytest.raises(hr.HeadraceError, match='"x" is no value of column "id"'):
        rows(hr.arrow(CORPUS / "plain", fill={"id": "x"}))
    with pytest.raises(hr.HeadraceError, match='column "m" is a list of what is not a number'):
        rows(hr.arrow(CORPUS / "nested"))
    assert rows(hr.arrow(CORPUS / "nested", columns=["i"])) == [{"i": 1}, {"i": 2}]


def test_shuffle_resume_split_and_ranks(rng: random.Random) -> None:
    pipe = hr.arrow(CORPUS / "plain").shuffle().batch(5, ragged=True)
    runs = [
        [x for b in pipe.loader(seed=3, epochs=3, output="numpy", threads=threads) for x in b["text"]]
        for threads in (0, 2)
    ]
    assert runs[0] == runs[1]
    assert sorted(runs[0][:24]) == sorted(plain(i)["text"] for i in range(24))
    loader = pipe.loader(seed=3, epochs=3, threads=2, output="numpy")
    run = iter(loader)
    head = [x for _ in range(rng.randrange(1, 14)) for x in next(run)["text"]]
    again = pipe.loader(seed=3, epochs=3, threads=0, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + [x for b in again for x in b["text"]] == runs[0]
    for by in ("id", "text", "image.path"):
        parts = hr.split(hr.arrow(CORPUS / "plain"), [0.5, 0.5], seed=4, by=by)
        keys = [{row[by] for row in rows(part)} for part in parts]
        assert not keys[0] & keys[1]
        assert keys[0] | keys[1] == {plain(i)[by] for i in range(24)}
    shares = [
        {x for b in pipe.loader(seed=3, output="numpy", shard=(rank, 3), eval=True) for x in b["id"]}
        for rank in range(3)
    ]
    assert set.union(*shares) == set(range(24))


def test_damage_anywhere_is_found_or_costs_a_value(tmp_path: pathlib.Path, rng: random.Random) -> None:
    """Metadata that lie are refused or cost records; bytes of values have no checksum."""
    whole = (CORPUS / "plain").read_bytes()
    path = tmp_path / "a.arrow"
    for _ in range(150):
        damaged = bytearray(whole)
        at = rng.randrange(len(whole))
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            made = rows(hr.arrow(path, columns=["id", "ids", "image.bytes"]), on_error="skip")
        except hr.HeadraceError as error:
            assert "a.arrow" in str(error)
            continue
        assert len(made) <= 24
    damaged = bytearray(whole)
    at = whole.index(b"\xff\xff\xff\xff", len(whole) // 2)  # a message in the second half
    damaged[at] = 0
    path.write_bytes(damaged)
    made = rows(hr.arrow(path), on_error="skip")
    assert made == [plain(i) for i in range(len(made))]
    assert 7 <= len(made) < 24
    with pytest.raises(hr.HeadraceError, match=rf"a\.arrow: byte {at}: "):
        rows(hr.arrow(path))


def test_a_name_that_is_not_utf8_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes((CORPUS / "plain").read_bytes().replace(b"half", b"h\xaelf"))
    with pytest.raises(hr.HeadraceError, match="not UTF-8"):
        rows(hr.arrow(path))
    assert rows(hr.arrow(path, columns=["id"]))[7] == {"id": 7}


def test_a_file_that_is_cut_is_read_up_to_there(tmp_path: pathlib.Path, rng: random.Random) -> None:
    whole = (CORPUS / "plain").read_bytes()
    path = tmp_path / "a.arrow"
    for _ in range(40):
        path.write_bytes(whole[: rng.randrange(1, len(whole) - 8)])
        try:
            made = rows(hr.arrow(path), on_error="skip")
        except hr.HeadraceError as error:
            assert "a.arrow" in str(error)
        else:
            assert made == [plain(i) for i in range(len(made))]
            assert len(made) in (0, 7, 14, 21, 24)
    for data, words in (
        (b"", "no Arrow file"),
        (b"ARROW1", "a.arrow"),
        (b"id,text\n1,2\n3,4\n", "no mark|its mark|a.arrow"),
    ):
        path.write_bytes(data)
        with pytest.raises(hr.HeadraceError, match=words):
            rows(hr.arrow(path))
    with pytest.raises(hr.HeadraceError, match="none"):
        rows(hr.arrow(tmp_path / "none.arrow"))


# ---- with pyarrow ----

STRINGS = ["", "a", "ü€𝄞", "x" * 300, "two\nlines"]


def drawn(pa: Any, rng: random.Random, count: int) -> tuple[Any, list[dict[str, Any]]]:
    """A table of every type that is read, and its rows."""
    ints = {
        f"{kind}{bits}": [
            rng.randrange(-(2 ** (bits - 1)) if kind == "int" else 0, 2 ** (bits - 1)) for _ in range(count)
        ]
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
    }
    columns: dict[str, Any] = {name: (values, getattr(pa, name)()) for name, values in ints.items()}
    columns["bool"] = ([rng.random() < 0.5 for _ in range(count)], pa.bool_())
    columns["float16"] = ([np.float16(rng.randrange(100) / 4) for _ in range(count)], pa.float16())
    columns["float32"] = ([rng.randrange(100) / 8 for _ in range(count)], pa.float32())
    columns["float64"] = ([rng.random() for _ in range(count)], pa.float64())
    for name in ("string", "large_string"):
        columns[name] = ([rng.choice(STRINGS) for _ in range(count)], getattr(pa, name)())
    for name in ("binary", "large_binary"):
        columns[name] = ([rng.randbytes(rng.choice([0, 1, 50])) for _ in range(count)], getattr(pa, name)())
    columns["fixed"] = ([rng.randbytes(3) for _ in range(count)], pa.binary(3))
    lists = [[rng.randrange(100) for _ in range(rng.choice([0, 1, 9]))] for _ in range(count)]
    columns["list"] = (lists, pa.list_(pa.int16()))
    columns["large_list"] = (lists, pa.large_list(pa.uint32()))
    columns["bools"] = ([[v % 2 == 1 for v in values] for values in lists], pa.list_(pa.bool_()))
    columns["vector"] = ([[rng.random() for _ in range(4)] for _ in range(count)], pa.list_(pa.float64(), 4))
    columns["date32"] = ([rng.randrange(20000) for _ in range(count)], pa.date32())
    columns["time64"] = ([rng.randrange(10**9) for _ in range(count)], pa.time64("us"))
    columns["timestamp"] = ([rng.randrange(2**50) for _ in range(count)], pa.timestamp("ns", tz="Europe/Rome"))
    columns["duration"] = ([rng.randrange(2**50) for _ in range(count)], pa.duration("ms"))
    table = {}
    for name, (values, kind) in columns.items():
        bare = {"date32": pa.int32(), "time64": pa.int64(), "timestamp": pa.int64(), "duration": pa.int64()}.get(name)
        table[name] = pa.array(values, kind) if bare is None else pa.array(values, bare).view(kind)
    words = [rng.choice(STRINGS) for _ in range(count)]
    table["dictionary"] = pa.array(words, pa.string()).dictionary_encode()
    columns["dictionary"] = (words, None)
    wanted = [{name: values[i] for name, (values, _) in columns.items()} for i in range(count)]
    return pa.table(table), wanted


def write(pa: Any, path: pathlib.Path, table: Any, kind: str, chunk: int, compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as file, make(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=chunk)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_every_type(tmp_path: pathlib.Path, rng: random.Random, kind: str, compression: str | None) -> None:
    pa = pytest.importorskip("pyarrow")
    for at in range(4):
        count = rng.choice([1, 8, 9, 100])
        table, wanted = drawn(pa, rng, count)
        order = rng.sample(table.column_names, len(table.column_names))
        write(pa, tmp_path / f"{at}.arrow", table.select(order), kind, rng.choice([1, 3, 1000]), compression)
        made = rows(hr.arrow(tmp_path / f"{at}.arrow"), threads=rng.randrange(4))
        assert [{name: row[name] for name in wanted[0]} for row in made] == wanted


def test_several_files(tmp_path: pathlib.Path, rng: random.Random) -> None:
    pa = pytest.importorskip("pyarrow")
    parts = [drawn(pa, rng, count) for count in (5, 0, 30)]
    for at, (table, _) in enumerate(parts):
        names = rng.sample(table.column_names, len(table.column_names))
        write(pa, tmp_path / f"data {at:05d}.arrow", table.select(names), rng.choice(["file", "stream"]), 4)
    wanted = [row for _, part in parts for row in part]
    for path in ("data {00000..00002}.arrow", "data *.arrow", ""):
        made = rows(hr.arrow(tmp_path / path))
        assert [{name: row[name] for name in wanted[0]} for row in made] == wanted
    write(
        pa, tmp_path / "data 00001.arrow", parts[0][0].rename_columns(["x", *parts[0][0].column_names[1:]]), "file", 4
    )
    with pytest.raises(hr.HeadraceError, match=r'data 00001\.arrow: no column is called "'):
        rows(hr.arrow(tmp_path))


def test_splits_of_a_saved_dataset_dict_are_never_mixed(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        write(pa, tmp_path / split / "data-00000-of-00001.arrow", pa.table({"split": [split]}), "stream", 4)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for path in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(hr.ArgumentError, match=r"has several splits .* name the folder of one, such as .*/train"):
            rows(hr.arrow(path))
    assert rows(hr.arrow(tmp_path / "test")) == [{"split": "test"}]


def test_nulls(tmp_path: pathlib.Path, rng: random.Random) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "a.arrow"
    table = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int16()),
            "f": pa.array([0.5, 1, None], pa.float32()),
            "t": ["a", None, ""],
            "l": pa.array([None, [], [1]], pa.list_(pa.int64())),
            "d": pa.array(["x", None, "y"]).dictionary_encode(),
            "s": pa.array([{"bytes": b"1", "path": None}, None, {"bytes": b"3", "path": "p"}]),
        }
    )
    write(pa, path, table, rng.choice(["file", "stream"]), 2)
    for name, wanted in (("n", [1, 3]), ("f", [0.5, 1]), ("t", ["a", ""]), ("l", [[], [1]]), ("d", ["x", "y"])):
        with pytest.raises(
            hr.HeadraceError, match=f'column "{name}": row . of the batch at byte .* is null: say with fill'
        ):
            rows(hr.arrow(path, columns=[name]))
        assert [row[name] for row in rows(hr.arrow(path, columns=[name]), on_error="skip")] == wanted
    fill = {"n": "-1", "f": "2.5", "t": "none", "l": "=", "d": "= z", "s.bytes": "=", "s.path": "-"}
    made = rows(hr.arrow(path, fill=fill))
    assert [list(row.values()) for row in made] == [
        [1, 0.5, "a", [], "x", b"1", "-"],
        [-1, 1.0, "none", [], "z", b"", "-"],
        [3, 2.5, "", [1], "y", b"3", "p"],
    ]


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "a.arrow"
    for values, words in (
        (pa.array(["a"], pa.string_view()), "of views of strings"),
        (pa.array([["a"]]), "a list of what is not a number"),
        (pa.array([{"a": {"b": 1}}]), '"x.a" is a nested struct'),
        (pa.nulls(1), "of nulls only"),
        (pa.array([1], pa.decimal128(5)), "decimal"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "a map"),
        (pa.array([1]).dictionary_encode(), "a dictionary of what is neither text nor bytes"),
    ):
        table = pa.table({"x": values, "after": [7]})
        write(pa, path, table, "file", 10)
        with pytest.raises(hr.HeadraceError, match=words):
            rows(hr.arrow(path))
        assert rows(hr.arrow(path, columns=["after"])) == [{"after": 7}]
    write(pa, path, pa.table({"x": [*range(1000)]}), "file", 10, "lz4")
    with pytest.raises(hr.HeadraceError, match="compressed by LZ4"):
        rows(hr.arrow(path))
    write(pa, path, pa.table({"x": pa.array([], pa.int64())}), "file", 10)
    assert rows(hr.arrow(path)) == []
    write(pa, path, pa.table({"x": [*range(100000)]}), "file", 100000, "zstd")
    with pytest.raises(hr.HeadraceError, match="batch_max"):
        rows(hr.arrow(path, batch_max="100kB"))
    write(pa, path, pa.table({"x": [[1, None]]}), "file", 10)
    with pytest.raises(hr.HeadraceError, match="a list with a null in it"):
        rows(hr.arrow(path))
