"""hr.from_columns: arrays, tables and frames in memory, row by row."""

from __future__ import annotations

import pathlib
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import arrow_rows, structure
from headrace import columns as columns_module


def values(pipe: hr.Pipeline, **options: Any) -> dict[str, Any]:
    """All records of a pipeline of named fields, in order of the field `row`."""
    parts: dict[str, list[Any]] = {}
    for batch in pipe.batch(7).loader(output="numpy", **options):
        for name in batch:
            parts.setdefault(name, []).extend(batch[name])
    order = np.argsort(parts["row"])
    return {name: [part[i] for i in order] for name, part in parts.items()}


def columns(rng: random.Random, rows: int) -> dict[str, Any]:
    draw = np.random.default_rng(rng.randrange(2**32))
    return {
        "row": np.arange(rows),
        "image": draw.integers(0, 256, (rows, 3, 5)).astype(np.uint8),
        "weight": draw.normal(size=rows).astype(np.float32),
        "flag": draw.integers(0, 2, rows).astype(bool),
        "text": [f"é{i}" for i in draw.integers(0, 1000, rows)],
    }


def equal(got: dict[str, Any], want: dict[str, Any]) -> None:
    assert list(got) == list(want)
    for name, column in want.items():
        assert len(got[name]) == len(column)
        assert all(np.array_equal(a, b) for a, b in zip(got[name], column, strict=True)), name


@pytest.mark.parametrize("threads", [0, 2])
def test_a_dict_of_arrays(threads: int, rng: random.Random) -> None:
    given = columns(rng, rng.randrange(1, 60))
    pipe = hr.from_columns(given)
    assert pipe.record_count == len(given["row"])
    assert [f.text() for f in pipe.fields] == ["int64", "uint8[3, 5]", "float32", "bool", "text"]
    equal(values(pipe.shuffle(), threads=threads, seed=rng.randrange(100)), given)


def test_a_tuple_gives_pairs_and_names_make_fields() -> None:
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6)
    (a, b), *_ = hr.from_columns((x, y)).batch(4).loader(output="numpy")
    assert a.tolist() == x[:4].tolist() and b.tolist() == [0, 1, 2, 3]
    assert [f.name for f in hr.from_columns([x, y], names=["x", "y"]).fields] == ["x", "y"]
    only = next(iter(hr.from_columns((x,)).batch(2).loader(output="numpy")))
    assert only.tolist() == x[:2].tolist()


def test_a_structured_array() -> None:
    rows = np.array([(i, i / 2, f"n{i}") for i in range(9)], [("row", "i4"), ("half", "f8"), ("text", "U4")])
    got = values(hr.from_columns(rows))
    equal(got, {"row": rows["row"], "half": rows["half"], "text": [f"n{i}" for i in range(9)]})
    assert hr.from_columns(rows).fields["row"].dtype == "int32"
    assert list(values(hr.from_columns(rows, names=["half", "row"]))) == ["half", "row"]


def test_a_memory_map_is_not_read_before_it_is_used(tmp_path: pathlib.Path) -> None:
    big = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(1 << 20, 64))
    big[5] = 3
    big.flush()
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert (next(iter(hr.from_columns((mapped,)).batch(8).loader(output="numpy")))[5] == 3).all()


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.rand(10, 3), torch.arange(10)
    a, b = next(iter(hr.from_columns((x, y)).batch(10).loader(output="torch")))
    assert torch.equal(a, x) and torch.equal(b, y)
    weights = torch.rand(10, requires_grad=True)
    (batch,) = hr.from_columns({"w": weights}).batch(10).loader(output="torch")
    assert torch.equal(batch["w"], weights.detach())
    with pytest.raises(hr.DtypeError, match=r"column w is of bfloat16.*column\.float\(\)"):
        hr.from_columns({"w": weights.bfloat16()})


def test_views_of_torch_tensors() -> None:
    """Conjugated and negated when they are read."""
    torch = pytest.importorskip("torch")
    values = torch.arange(6) * 1j
    for column in (torch._neg_view(torch.arange(6.0)), values.conj().imag):
        (batch,) = hr.from_columns({"x": column}).batch(6).loader(output="numpy")
        assert batch["x"].tolist() == [0, -1, -2, -3, -4, -5]


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_torch_tensors_that_are_no_arrays_are_named() -> None:
    torch = pytest.importorskip("torch")
    for column, words in (
        (torch.eye(3).to_sparse(), r"to_dense\(\)"),
        (torch.eye(3).to_sparse_csr(), r"to_dense\(\)"),
        (torch.ones(3, device="meta"), "no data"),
        (torch.ones(3, dtype=torch.float8_e5m2), "Float8"),
    ):
        for given, name in (({"w": column}, "w"), ((np.ones(3), column), "1")):
            with pytest.raises(
                hr.ArgumentError, match=rf"from_columns\(.*: column {name} cannot be read as an array: .*{words}"
            ):
                hr.from_columns(given)


@pytest.mark.parametrize("how", ["table", "batch", "chunks"])
def test_arrow_tables_are_read_in_place(how: str, rng: random.Random) -> None:
    pa = pytest.importorskip("pyarrow")
    given = columns(rng, 40)
    given |= {
        "image": [row[:2, 0].astype(np.float32).tolist() for row in given["image"]],
        "short": np.arange(40, dtype=np.int16),
    }
    table = pa.table({**given, "image": pa.array(given["image"], pa.list_(pa.float32()))})
    if how == "chunks":
        table = pa.concat_tables([table.slice(0, 13), table.slice(13)])
    pipe = hr.from_columns(table.to_batches()[0] if how == "batch" else table)
    assert {f.name: f.dtype for f in pipe.fields} == {
        "row": "int64", "image": "float32", "weight": "float32", "flag": "bool", "text": "text", "short": "int16",
    }  # fmt: skip
    assert arrow_rows.of(columns_module._columns(table, None, ""), structure.named(table.column_names)) is not None
    equal(values(pipe.shuffle(), seed=1), given)


def test_polars_and_pandas_frames(rng: random.Random) -> None:
    given = columns(rng, 30)
    del given["image"]
    frames: list[Any] = []
    try:
        import pandas as pd

        frames.append(pd.DataFrame(given, index=np.arange(30)[::-1]))  # rows count, not labels
    except ImportError:
        pass
    try:
        import polars as pl
        import pyarrow  # noqa: F401

        frames.append(pl.DataFrame(given))
    except ImportError:
        pass
    if not frames:
        pytest.skip("neither pandas nor polars is installed")
    for frame in frames:
        equal(values(hr.from_columns(frame).shuffle(), seed=2), given)
        assert list(values(hr.from_columns(frame, names=["row", "text"]))) == ["row", "text"]


def test_missing_values_are_refused_by_column() -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(hr.ArgumentError, match="column 'b' has no value in 1 rows"):
        hr.from_columns(pa.table({"a": [1, 2], "b": ["x", None]}))
    pd = pytest.importorskip("pandas")
    with pytest.raises(hr.ArgumentError, match=r"column 'b' has no value in 2 rows.*dropna"):
        hr.from_columns(pd.DataFrame({"a": [1.0, float("nan"), 2], "b": ["x", None, None]}))
    assert np.isnan(values(hr.from_columns(pd.DataFrame({"row": [0, 1], "b": [1.0, float("nan")]})))["b"][1])


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(hr.ArgumentError, match=r"column 'b' has 1 masked values.*filled"):
        hr.from_columns({"a": np.arange(3), "b": masked})
    assert values(hr.from_columns({"row": np.ma.array([4, 5])}))["row"] == [4, 5]  # nothing is masked
    with pytest.raises(hr.DtypeError, match="'value' is a masked array"):
        hr.from_dataset([masked, masked]).fields  # noqa: B018
    with pytest.raises(hr.ArgumentError, match="column 'b' has no value in 1 rows"):
        hr.from_columns({"a": [1, 2], "b": [1, None]})


def test_columns_without_rows_keep_their_types() -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    arrays = {"row": np.zeros(0, "i2"), "image": np.zeros((0, 3, 5), "u1"), "text": np.zeros(0, "U3")}
    lists = pa.array([], pa.list_(pa.float32()))
    table = pa.table({"n": pa.array([], pa.int8()), "s": pa.array([], pa.string()), "b": pa.array([], pa.binary())})
    for given, types in (
        (arrays, ["int16", "uint8[3, 5]", "text"]),
        (tuple(arrays.values()), ["int16", "uint8[3, 5]", "text"]),
        (table.append_column("x", lists), ["int8", "text", "bytes", "float32[-1]"]),
        (pd.DataFrame({"a": pd.Series([], dtype="f4"), "c": pd.Series([], dtype="str")}), ["float32", "text"]),
    ):
        pipe = hr.from_columns(given)
        assert [field.text() for field in pipe.fields] == types
        assert list(pipe.shuffle().batch(2).loader()) == []
    some = hr.from_columns({name: np.zeros((2, *one.shape[1:]), one.dtype) for name, one in arrays.items()})
    (batch,) = hr.concat(hr.from_columns(arrays), some).batch(9).loader(output="numpy")
    assert batch.image.shape == (2, 3, 5) and batch.row.dtype == np.int16


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros(3), r"one column: give a tuple of it"),
        ({"a": np.zeros(3, "u4")}, r"convert it, for example with \.astype\('int64'\)$"),
        ({"a": np.zeros(3, np.longdouble)}, r"convert it, for example with \.astype\('float64'\)$"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, "a has 3, b has 4"),
        ((np.zeros(3), np.zeros(2)), "0 has 3, 1 has 2"),
        ({"a": 1}, "column a is a single value"),
        ({}, "there is no column"),
        ((), "needs a tuple, list or dict"),
        (7, "hr.from_dataset"),
        ({"a": np.zeros(3, complex)}, "complex"),
        ({"a": np.zeros(3, "M8[s]")}, "datetime64"),
    ],
)
def test_what_are_no_columns_is_refused(given: Any, words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words) as caught:
        hr.from_columns(given).fields  # noqa: B018
    assert "from_columns(" in str(caught.value)


def test_columns_that_cannot_be_arrays_are_named() -> None:
    for given in ({"x": [1, 2], "ids": [[1, 2], [3]]}, ([1, 2], [[1, 2], [3]])):
        with pytest.raises(hr.ArgumentError, match=r"column (ids|1) is no array: .* hr\.from_dataset"):
            hr.from_columns(given)
    pd = pytest.importorskip("pandas")
    with pytest.raises(hr.ArgumentError, match="two columns are called 'a'"):
        hr.from_columns(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))


@pytest.mark.parametrize("given", [[b"\x01\0\0\0", b"a\0", b"b", b""], ["a\0", "\0\0", "é", ""], ("a", "b\0")])
def test_lists_of_text_and_bytes_keep_their_nuls(given: Any) -> None:
    pipe = hr.from_columns({"row": np.arange(len(given)), "text": given, "image": np.zeros((len(given), 3), "u1")})
    assert values(pipe.shuffle(), seed=1)["text"] == list(given)
    assert [f.text() for f in pipe.fields] == ["int64", "bytes" if type(given[0]) is bytes else "text", "uint8[3]"]


@pytest.mark.parametrize(
    ("given", "value", "row"),
    [
        ([5, 2**63, 2**53 + 1], 2**63, 1),
        ([2**63, -1], 2**63, 0),
        ((2**64,), 2**64, 0),
        ([1, -(2**63) - 1], -(2**63) - 1, 1),
        ([[1, 2], [3, 4], [5, 2**63]], 2**63, 2),
        ([np.uint64(2**63), np.int64(1)], 2**63, 0),
    ],
)
def test_lists_of_numbers_beyond_int64_are_refused(given: Any, value: int, row: int) -> None:
    words = f"from_columns.*: column 'id' has {value} in row {row}, which does not fit into int64: give floats"
    with pytest.raises(hr.DtypeError, match=words):
        hr.from_columns({"x": [1] * len(given), "id": given})


@pytest.mark.parametrize(
    ("given", "dtype", "got"),
    [
        ([2**63 - 1, -(2**63)], "int64", [2**63 - 1, -(2**63)]),
        ([np.uint64(2**53 + 1), np.int64(1)], "int64", [2**53 + 1, 1]),
        ([1, 2.5, True], "float64", [1.0, 2.5, 1.0]),
        ([True, 2], "int64", [1, 2]),
        ([True, False], "bool", [True, False]),
        ([0.5, 2**63], "float64", [0.5, 2.0**63]),
    ],
)
def test_lists_of_numbers_are_floats_if_one_is(given: Any, dtype: str, got: list[Any]) -> None:
    pipe = hr.from_columns({"x": given})
    (batch,) = pipe.batch(9).loader(output="numpy")
    assert pipe.fields["x"].dtype == dtype and batch.x.tolist() == got


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([b"a", "b"], r"has b'a' \(bytes\) in row 0 and 'b' \(str\) in row 1"),
        ([1, 2, "a"], r"has 1 \(int\) in row 0 and 'a' \(str\) in row 2"),
        ((b"a", 0.5), r"has b'a' \(bytes\) in row 0 and 0\.5 \(float\) in row 1"),
        ([np.zeros(2), "a"], r"has array\(\[0\., 0\.\]\) \(ndarray\) in row 0 and 'a' \(str\) in row 1"),
        (["a", [1, 2]], r"has 'a' \(str\) in row 0 and \[1, 2\] \(list\) in row 1"),
    ],
)
def test_lists_of_several_kinds_are_refused(given: Any, words: str) -> None:
    with pytest.raises(hr.DtypeError, match=f"from_columns.*: column 'd' {words}: a list holds"):
        hr.from_columns({"d": given})
    with pytest.raises(hr.ArgumentError, match="column 'd' has no value in 1 rows"):
        hr.from_columns({"d": [*given, None]})


@pytest.mark.parametrize("how", ["table", "batch", "stored"])
def test_two_columns_of_one_name(how: str) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])], names=["a", "a", "b"])
    given = {
        "table": lambda: table,
        "batch": lambda: table.to_batches()[0],
        "stored": lambda: pytest.importorskip("pyarrow.dataset").dataset(table),
    }[how]()
    for names in (None, ["b", "a"]):
        with pytest.raises(hr.ArgumentError, match="two columns are called 'a'; rename one"):
            hr.from_columns(given, names=names)
    if how == "table":
        (batch,) = hr.from_columns(given, names=["b"]).batch(2).loader(output="numpy")
        assert batch["b"].tolist() == [5, 6]


def test_keys_of_a_dict_that_are_one_name() -> None:
    with pytest.raises(hr.ArgumentError, match="two columns are called '1'"):
        hr.from_columns({1: np.ones(3), "1": np.zeros(3)})


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(hr.ArgumentError, match="no column 'lable'; did you mean 'label'"):
        hr.from_columns({"label": np.zeros(3)}, names=["lable"])


@pytest.mark.parametrize(
    "given",
    [{"a": np.zeros(3)}, (np.zeros((3, 2)), np.zeros(3)), (np.zeros(3), np.ones(3)), np.zeros(3, [("a", "i4")])],
    ids=["dict", "tuple", "equal", "structured"],
)
def test_from_dataset_points_to_it(given: Any) -> None:
    with pytest.raises(hr.ArgumentError, match=r"hr\.from_columns reads its rows"):
        hr.from_dataset(given)


def test_fingerprints_cover_names_types_and_length() -> None:
    def of(**columns: Any) -> str:
        return str(hr.from_columns(columns).fingerprint)

    same = of(a=np.zeros(3, "f4"))
    assert same == of(a=np.ones(3, "f4"))
    assert (
        len({same, of(b=np.zeros(3, "f4")), of(a=np.zeros(3)), of(a=np.zeros(4, "f4")), of(a=np.zeros((3, 1), "f4"))})
        == 5
    )


def test_a_state_resumes() -> None:
    pipe = hr.from_columns({"row": np.arange(50)}).shuffle().batch(4)
    whole = [batch.row.tolist() for batch in pipe.loader(seed=3, output="numpy")]
    loader = pipe.loader(seed=3, output="numpy")
    run = iter(loader)
    for _ in range(5):
        next(run)
    again = pipe.loader(seed=3, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert [batch.row.tolist() for batch in again] == whole[5:]
