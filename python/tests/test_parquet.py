"""source.parquet: files as pyarrow writes them, and damaged ones."""

from __future__ import annotations

import pathlib
import random
from typing import Any

import pytest

import headrace as hr
from test_arrow import STRINGS, drawn, plain, rows

CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/parquet"
FILL = {"i": "-7", "u": "7", "t": "=", "f": "0.5", "x": "xx", "b": "true", "l": "=", "d": "3"}


def need_zstd(name: str) -> None:
    if name != "zstd":
        return
    try:
        hr.parquet(CORPUS / "zstd", fill=FILL).batch(1).loader()
    except hr.UnsupportedError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("name", ["plain", "snappy"])
def test_a_file_is_read(name: str, threads: int) -> None:
    assert rows(hr.parquet(CORPUS / name), threads=threads) == [plain(i) for i in range(24)]


@pytest.mark.parametrize("name", ["gzip", "lz4", "zstd"])
def test_nulls_are_filled(name: str) -> None:
    wanted = [
        {"i": 1, "u": 0, "t": "abc", "f": 0.5, "x": b"ab", "b": True, "l": [1, 2], "d": 0},
        {"i": -7, "u": 2**32 - 1, "t": "abd", "f": 0.5, "x": b"ac", "b": True, "l": [], "d": 1},
        {"i": 3, "u": 7, "t": "", "f": -2, "x": b"zz", "b": False, "l": [], "d": 3},
        {"i": -4, "u": 7, "t": "", "f": pytest.approx(1e30), "x": b"xx", "b": True, "l": [3], "d": 20000},
        {"i": 5, "u": 9, "t": "abdef", "f": 3, "x": b"\0\0", "b": True, "l": [4, 5, 6], "d": -1},
    ]
    need_zstd(name)
    assert rows(hr.parquet(CORPUS / name, fill=FILL)) == wanted * 3
    with pytest.raises(hr.HeadraceError, match=rf'{name}: column "i": row 1 of row group 0 is null: say with fill'):
        rows(hr.parquet(CORPUS / name, columns=["u", "i"]))
    assert rows(hr.parquet(CORPUS / name), on_error="skip") == [wanted[0], wanted[4]] * 3


@pytest.mark.parametrize(("column", "value"), [("i", 300), ("f", 1e39), ("f", "1e400"), ("b", 2)])
def test_what_a_column_cannot_hold_fills_nothing(column: str, value: float | str) -> None:
    with pytest.raises(hr.ArgumentError, match=f'is no value of column "{column}"'):
        rows(hr.parquet(CORPUS / "gzip", columns=[column], fill={column: value}))


def test_columns_are_chosen() -> None:
    assert list(rows(hr.parquet(CORPUS / "plain", columns=["image", "id"]))[3]) == ["image.bytes", "image.path", "id"]
    assert list(rows(hr.parquet(CORPUS / "plain", columns=["image.path"]))[3]) == ["image.path"]
    with pytest.raises(hr.ArgumentError, match='no column is called "txt"; did you mean "text"'):
        rows(hr.parquet(CORPUS / "plain", columns=["txt"]))
    for name, words in (
        ("m", "a map"),
        ("s", "a list of what is not a number"),
        ("n", "decimal"),
    ):
        with pytest.raises(hr.HeadraceError, match=f'column "{name}" is {words}'):
            rows(hr.parquet(CORPUS / "nested", columns=[name]))
    assert rows(hr.parquet(CORPUS / "nested", columns=["i", "c.x.y"])) == [{"i": 1, "c.x.y": 1}, {"i": 2, "c.x.y": 2}]
    assert rows(hr.parquet(CORPUS / "empty")) == []


def test_several_files_are_one_data_set(tmp_path: pathlib.Path) -> None:
    for name in ("1 a", "2", "3"):
        (tmp_path / f"{name}.parquet").write_bytes((CORPUS / ("empty" if name == "2" else "snappy")).read_bytes())
    whole = [plain(i) for i in range(24)]
    assert rows(hr.parquet(tmp_path)) == whole * 2
    assert rows(hr.parquet(str(tmp_path / "{2,3}.parquet"))) == whole
    (tmp_path / "4.parquet").write_bytes((CORPUS / "gzip").read_bytes())
    with pytest.raises(hr.HeadraceError, match=r'4\.parquet: no column is called "id"'):
        rows(hr.parquet(tmp_path))


def test_shuffle_resume_split_and_ranks(rng: random.Random) -> None:
    pipe = hr.parquet(CORPUS / "snappy", page_cache=rng.choice([0, 1 << 20])).shuffle().batch(5, ragged=True)
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
        parts = hr.split(hr.parquet(CORPUS / "plain"), [0.5, 0.5], seed=4, by=by)
        keys = [{row[by] for row in rows(part)} for part in parts]
        assert not keys[0] & keys[1]
        assert keys[0] | keys[1] == {plain(i)[by] for i in range(24)}
    shares = [
        {x for b in pipe.loader(seed=3, output="numpy", shard=(rank, 3), eval=True) for x in b["id"]}
        for rank in range(3)
    ]
    assert set.union(*shares) == set(range(24))


@pytest.mark.parametrize("name", ["plain", "snappy"])
def test_damage_of_a_page_is_found(name: str, tmp_path: pathlib.Path, rng: random.Random) -> None:
    """Pages have checksums: a record is right, or it is bad, and its page is named."""
    whole = (CORPUS / name).read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    path = tmp_path / "a.parquet"
    bad = 0
    for _ in range(150):
        damaged = bytearray(whole)
        at = rng.randrange(4, footer)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        made = rows(hr.parquet(path), on_error="skip")
        assert all(row == plain(row["id"]) for row in made), at
        assert [row["id"] for row in made] == sorted({row["id"] for row in made}), at
        assert len(made) >= 24 - 10
        if len(made) == 24:
            continue
        bad += 1
        with pytest.raises(hr.HeadraceError, match=r'a\.parquet: row group \d, column "'):
            rows(hr.parquet(path))
    assert bad > 50


def test_damage_anywhere_does_no_harm(tmp_path: pathlib.Path, rng: random.Random) -> None:
    path = tmp_path / "a.parquet"
    for at in range(150):
        damaged = bytearray((CORPUS / rng.choice(["plain", "gzip", "lz4", "zstd", "snappy"])).read_bytes())
        for _ in range(rng.choice([1, 1, 20])):
            damaged[rng.randrange(len(damaged) // 2 * (at % 2), len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            made = rows(hr.parquet(path, page_max=1 << 20), on_error="skip", errors_max=1000)
        except hr.HeadraceError as error:
            assert "a.parquet" in str(error)
            continue
        assert len(made) <= 24


def test_what_is_no_parquet_file_is_refused(tmp_path: pathlib.Path, rng: random.Random) -> None:
    whole = (CORPUS / "plain").read_bytes()
    path = tmp_path / "a.parquet"
    for data, words in (
        (b"", "no Parquet file"),
        (b"PAR1", "no Parquet file"),
        (b"id,text\n1,2\n3,4\n", "another kind of file, or cut"),
        (whole[: rng.randrange(12, len(whole) - 8)], "another kind of file, or cut"),
        (whole[-500:], "a footer of .* cut"),
        (whole[:-4] + b"PARE", "encrypted"),
        (whole[:-6] + b"\xff\x7fPAR1", "a footer of"),
    ):
        path.write_bytes(data)
        with pytest.raises(hr.HeadraceError, match=rf"a\.parquet: .*{words}"):
            rows(hr.parquet(path))


# ---- with pyarrow ----

CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]
INTS = {"int32", "uint32", "int64", "uint64", "date32", "time64", "timestamp", "duration"}


def encodings(rng: random.Random, table: Any) -> dict[str, str]:
    """An encoding for each column, of those that its type may have."""
    chosen = {}
    for name in table.column_names:
        if name in INTS or name in ("int8", "uint8", "int16", "uint16"):
            chosen[name] = rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
        elif name in ("string", "large_string", "binary", "large_binary"):
            chosen[name] = rng.choice(["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
        elif name in ("float32", "float64", "fixed", "float16"):
            chosen[name] = rng.choice(["PLAIN", "BYTE_STREAM_SPLIT"])
        elif name in ("list", "large_list"):
            chosen[f"{name}.list.element"] = rng.choice(["PLAIN", "DELTA_BINARY_PACKED"])
        elif name == "bool":
            chosen[name] = rng.choice(["PLAIN", "RLE"])
    return chosen


def options(rng: random.Random, table: Any, codec: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "compression": codec,
        "row_group_size": rng.choice([3, 100, 10**6]),
        "data_page_size": rng.choice([1, 50, 4000, 10**6]),
        "write_batch_size": rng.choice([1, 7, 1024]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "write_page_checksum": rng.random() < 0.5,
        "write_page_index": rng.random() < 0.5,
        "dictionary_pagesize_limit": rng.choice([10, 10**6]),
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "store_schema": rng.random() < 0.5,
    }
    if rng.random() < 0.5:
        made |= {"use_dictionary": False, "column_encoding": encodings(rng, table)}
    return made


@pytest.mark.parametrize("codec", CODECS)
def test_every_type(tmp_path: pathlib.Path, rng: random.Random, codec: str) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    need_zstd(codec)
    for at in range(5):
        table, wanted = drawn(pa, rng, rng.choice([1, 10, 300]))
        how = options(rng, table, codec)
        if how["version"] != "2.6":  # no nanoseconds
            table, wanted = (
                table.drop(["timestamp"]),
                [{name: v for name, v in row.items() if name != "timestamp"} for row in wanted],
            )
        if how["version"] == "1.0":  # uint32 becomes int64
            table = table.drop(["large_list", "uint32"])
            wanted = [{name: v for name, v in row.items() if name not in ("large_list", "uint32")} for row in wanted]
        how.get("column_encoding", {}).pop("timestamp", None)
        for name in list(how.get("column_encoding", {})):
            if name.split(".")[0] not in table.column_names:
                del how["column_encoding"][name]
        path = tmp_path / f"{at}.parquet"
        pq.write_table(table, path, **how)
        made = rows(hr.parquet(path), threads=rng.choice([0, 3]))
        assert len(made) == len(wanted)
        for got, want in zip(made, wanted, strict=True):
            assert got == want, how


@pytest.mark.parametrize("codec", CODECS)
def test_nulls_and_lists(tmp_path: pathlib.Path, rng: random.Random, codec: str) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    need_zstd(codec)

    def draw(make: Any, share: float, count: int) -> list[Any]:
        return [None if rng.random() < share else make() for _ in range(count)]

    for _ in range(5):
        share, count = rng.choice([0, 0.1, 0.9, 1]), rng.choice([1, 30, 500])
        columns = {
            "i": (draw(lambda: rng.randrange(-100, 100), share, count), pa.int8(), "-7", -7),
            "l": (draw(lambda: rng.randrange(2**62), share, count), pa.int64(), "8", 8),
            "few": (draw(lambda: rng.randrange(3) * 10**12, share, count), pa.int64(), "8", 8),
            "f": (draw(lambda: rng.randrange(100) / 4, share, count), pa.float32(), "0.5", 0.5),
            "b": (draw(lambda: rng.random() < 0.5, share, count), pa.bool_(), "true", True),
            "t": (draw(lambda: rng.choice(STRINGS), share, count), pa.string(), "=", ""),
            "y": (draw(lambda: rng.randbytes(rng.randrange(20)), share, count), pa.binary(), "no", b"no"),
            "x": (draw(lambda: rng.randbytes(2), share, count), pa.binary(2), "xx", b"xx"),
            "n": (
                draw(lambda: [rng.randrange(99) for _ in range(rng.choice([0, 1, 2, 200]))], share, count),
                pa.list_(pa.int16()),
                "=",
                [],
            ),
            "s.a": (draw(lambda: rng.randrange(9), share, count), pa.int32(), "5", 5),
        }
        arrays = {name: pa.array(values, kind) for name, (values, kind, _, _) in columns.items()}
        hidden = [rng.random() < share for _ in range(count)]
        inner = arrays.pop("s.a")
        arrays["s"] = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array(hidden))
        columns["s.a"][0][:] = [None if gone else v for v, gone in zip(columns["s.a"][0], hidden, strict=True)]
        table = pa.table(arrays)
        how = options(rng, table, codec)
        how.pop("column_encoding", None)
        path = tmp_path / "a.parquet"
        pq.write_table(table, path, **how)
        made = rows(
            hr.parquet(path, fill={name: text for name, (_, _, text, _) in columns.items()}), threads=rng.choice([0, 3])
        )
        wanted = [
            {name: fill if values[i] is None else values[i] for name, (values, _, _, fill) in columns.items()}
            for i in range(count)
        ]
        assert made == wanted, how
        whole = [row for i, row in enumerate(wanted) if all(values[i] is not None for values, *_ in columns.values())]
        assert rows(hr.parquet(path), on_error="skip", errors_max=1000) == whole


def test_rows_in_any_order_are_those_in_order(tmp_path: pathlib.Path, rng: random.Random) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    count = 2000
    table = pa.table(
        {
            "id": range(count),
            "text": [str(i) * (i % 9) for i in range(count)],
            "ids": [[*range(i % 5)] for i in range(count)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", **options(rng, table, rng.choice(CODECS)))
    for cache in (0, 4000, 1 << 20):
        pipe = hr.parquet(tmp_path / "a.parquet", page_cache=cache).shuffle()
        made = rows(pipe, seed=rng.randrange(99), threads=rng.choice([0, 2]))
        assert sorted(row["id"] for row in made) == [*range(count)]
        assert all(row["text"] == str(row["id"]) * (row["id"] % 9) for row in made)
        assert all(row["ids"] == [*range(row["id"] % 5)] for row in made)


def test_polars(tmp_path: pathlib.Path, rng: random.Random) -> None:
    pl = pytest.importorskip("polars")
    count = rng.choice([1, 50, 3000])
    columns = {
        "i": [rng.randrange(-(2**31), 2**31) for _ in range(count)],
        "t": [rng.choice(STRINGS) for _ in range(count)],
        "n": [[rng.random() for _ in range(rng.randrange(4))] for _ in range(count)],
        "b": [rng.random() < 0.5 for _ in range(count)],
    }
    kinds = {"n": pl.List(pl.Float64)}
    for codec in ("zstd", "snappy", "gzip", "uncompressed", "lz4"):
        pl.DataFrame(columns, schema_overrides=kinds).write_parquet(
            tmp_path / "a.parquet",
            compression=codec,
            row_group_size=rng.choice([7, 1000]),
            data_page_size=rng.choice([10, 10**6]),
        )
        wanted = [{name: values[i] for name, values in columns.items()} for i in range(count)]
        assert rows(hr.parquet(tmp_path / "a.parquet")) == wanted


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_two_columns_of_one_name_are_refused(tmp_path: pathlib.Path, format: str) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table([[1, 2], [3, 4], [5, 6]], names=["a", "b", "a"])
    path = tmp_path / f"twice.{format}"
    if format == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    read: Any = getattr(hr, format)
    with pytest.raises(hr.UnsupportedError, match='column "a" is there more than once'):
        read(path).batch(2).loader()
    assert rows(read(path, columns=["b"])) == [{"b": 3}, {"b": 4}]
