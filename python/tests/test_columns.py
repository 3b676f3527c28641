"""source.parquet, source.arrow and source.npy make many rows at once where batches follow: the same rows as one by
one, which a filter that keeps all of them asks for."""

from __future__ import annotations

import pathlib
import random
from typing import TYPE_CHECKING, Any

import pytest

import headrace as hr
from test_arrow import plain, rows

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/parquet"


def outcome(pipe: hr.Pipeline, **options: Any) -> list[Any]:
    """Each batch as plain objects; bad records are skipped."""
    return [
        {name: [x.tolist() if hasattr(x, "tolist") else x for x in batch[name]] for name in batch}
        for batch in pipe.loader(output="numpy", seed=3, on_error="skip", errors_max=100000, **options)
    ]


def check(source: Callable[[], hr.Pipeline], true: str, rng: random.Random) -> None:
    for order in (lambda p: p, lambda p: p.shuffle(), lambda p: p.shuffle(window=10)):
        size = rng.choice([1, 7, 100, 1000])
        one_by_one = outcome(order(source()).where(true).batch(size, ragged=True), threads=0)
        for threads in (0, 2):
            assert outcome(order(source()).batch(size, ragged=True), threads=threads) == one_by_one


@pytest.mark.parametrize("name", ["plain", "snappy"])
def test_rows_of_a_file(name: str, rng: random.Random) -> None:
    check(lambda: hr.parquet(CORPUS / name), "id >= 0", rng)
    check(lambda: hr.parquet(CORPUS / name, columns=["id"]), "id >= 0", rng)
    made = rows(hr.parquet(CORPUS / name, columns=["id"]).batch(5, ragged=True).unbatch())
    assert [row["id"] for row in made] == [plain(i)["id"] for i in range(24)]


@pytest.mark.parametrize("name", ["gzip", "lz4"])
def test_nulls(name: str, rng: random.Random) -> None:
    fill = {"i": "-7", "u": "7", "f": "0.5", "b": "true", "d": "3"}
    for fills in (fill, {}, {"i": "1"}):
        check(lambda: hr.parquet(CORPUS / name, columns=list(fill), fill=fills), "d >= -1", rng)  # noqa: B023


def numbers(rng: random.Random, count: int, nulls: float) -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")

    def column(kind: Any, draw: Callable[[], Any], nulls: float = nulls) -> Any:
        return pa.array([None if rng.random() < nulls else draw() for _ in range(count)], kind)

    columns = {
        "key": column(pa.int32(), lambda: rng.randrange(100), 0),
        "i8": column(pa.int8(), lambda: rng.randrange(-128, 128)),
        "u16": column(pa.uint16(), lambda: rng.randrange(1 << 16)),
        "u32": column(pa.uint32(), lambda: rng.randrange(1 << 32)),
        "u64": column(pa.uint64(), lambda: rng.randrange(1 << 20) if rng.random() < 0.99 else 1 << 63),
        "i64": column(pa.int64(), lambda: rng.randrange(-(1 << 63), 1 << 63)),
        "f32": column(pa.float32(), rng.random),
        "f64": column(pa.float64(), rng.random),
        "bit": column(pa.bool_(), lambda: rng.random() < 0.5),
        "text": column(pa.string(), lambda: "x" * rng.randrange(400)),
        "list": column(pa.list_(pa.int16()), lambda: [1] * rng.randrange(200)),
    }
    return {name: columns[name] for name in ["key", *rng.sample(list(columns)[1:], rng.randrange(1, 11))]}


FILL = {"i8": "-3", "u16": "3", "u32": "4", "i64": "5", "f32": "0.5", "f64": "1.5", "bit": "true", "text": "=a"}


def wanted(columns: dict[str, Any], fill: dict[str, str]) -> list[tuple[Any, ...]]:
    made = []
    for row in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        values = []
        for name, value in zip(columns, row, strict=True):
            if value is None and name not in fill:
                break
            if name == "u64" and value is not None and value >= 1 << 63:
                break
            text = fill.get(name, "")
            values.append(
                value
                if value is not None
                else text == "true"
                if name == "bit"
                else text[1:]
                if name == "text"
                else float(text)
            )
        else:
            made.append(tuple(values))
    return made


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables_of_any_kind(form: str, tmp_path: pathlib.Path, rng: random.Random) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for turn in range(8):
        count = rng.choice([1, 40, 700, 3000])
        columns = numbers(rng, count, rng.choice([0, 0, 0.01, 0.3]))
        if form == "arrow" and rng.random() < 0.5:
            flat = pa.array([float(i) for i in range(3 * count)], pa.float32())
            columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, 3)
        table, path = pa.table(columns), tmp_path / f"{turn}.{form}"
        size = rng.choice([1, 17, 500, 5000])
        if form == "parquet":
            parquet.write_table(
                table,
                path,
                row_group_size=max(size, count // 50),
                data_page_size=rng.choice([64, 1000, 1 << 20]),
                write_batch_size=rng.choice([5, 100, 1024]),
                use_dictionary=rng.random() < 0.5,
                compression=rng.choice(["none", "snappy"]),
                data_page_version=rng.choice(["1.0", "2.0"]),
            )
        else:
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=size)
        fill = {name: text for name, text in FILL.items() if name in columns and rng.random() < 0.8}
        source = hr.parquet if form == "parquet" else hr.arrow
        check(lambda: source(path, fill=fill), "key >= 0", rng)  # noqa: B023
        made = rows(source(path, fill=fill), on_error="skip", errors_max=100000)
        assert [tuple(row.values()) for row in made] == wanted(columns, fill)


def test_items_of_arrays(tmp_path: pathlib.Path, rng: random.Random) -> None:
    np = pytest.importorskip("numpy")
    draw = np.random.default_rng(rng.randrange(1 << 30))
    for turn in range(6):
        width = rng.choice([0, 7, 3000, 20000])
        chosen = ["key", *rng.sample(["half", "swapped", "big", "wide"], rng.randrange(1, 5))]
        bad = []
        for shard in range(rng.choice([1, 3])):
            count = rng.choice([1, 30, 1000 if width < 3000 else 50])
            big = draw.integers(0, 1 << 40, count).astype("u8")
            big[draw.random(count) < 0.01] = 1 << 63
            arrays = {
                "key": np.arange(count, dtype="i4"),
                "half": draw.random((count, 3)).astype("f2"),
                "swapped": draw.random(count).astype(">f8"),
                "big": big,
                "wide": draw.integers(0, 100, (count, width)).astype("i2"),
            }
            save = rng.choice([np.savez, np.savez_compressed])
            save(tmp_path / f"{turn}-{shard}.npz", **{name: arrays[name] for name in chosen})
            bad += [x >= 1 << 63 and "big" in chosen for x in big.tolist()]
        pattern = str(tmp_path / f"{turn}-*.npz")
        check(lambda: hr.npy(pattern), "key >= 0", rng)  # noqa: B023
        made = outcome(hr.npy(pattern).batch(100), threads=0)
        assert sum(len(batch["key"]) for batch in made) == bad.count(False)
