"""hr.from_columns of tables on disk: Lance and pyarrow.dataset."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import columns

pa = pytest.importorskip("pyarrow")

ROWS = 500


def table() -> Any:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "index": pa.array(numbers, pa.int64()),
            "weight": pa.array(numbers / 4, pa.float32()),
            "even": pa.array(numbers % 2 == 0),
            "data": pa.array([b"%d" % n * (n % 3) for n in numbers], pa.binary()),
            "name": pa.array([f"row {n}" for n in numbers]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 3, dtype=np.float32)), 3),
            "items": pa.array([list(range(n % 4)) for n in numbers], pa.list_(pa.int32())),
        }
    )


def stored(kind: str, folder: pathlib.Path) -> Any:
    if kind == "lance":
        lance = pytest.importorskip("lance")
        return lance.write_dataset(table(), str(folder / "t.lance"), max_rows_per_file=200)
    import pyarrow.dataset

    for at in range(0, ROWS, 200):
        pyarrow.feather.write_feather(table().slice(at, 200), folder / f"{at}.arrow", compression="uncompressed")
    return pyarrow.dataset.dataset(sorted(map(str, folder.glob("*.arrow"))), format="feather")


@pytest.fixture(params=["lance", "pyarrow"])
def dataset(request: Any, tmp_path: pathlib.Path) -> Any:
    pytest.importorskip("pyarrow.feather")
    return stored(request.param, tmp_path)


def values(column: Any) -> list[Any]:
    items = column.items() if hasattr(column, "splits") else column
    return [item.tolist() if hasattr(item, "tolist") else item for item in items]


def outcome(pipe: hr.Pipeline, **options: Any) -> list[dict[str, Any]]:
    """The records, as plain objects."""
    records = []
    for batch in pipe.batch(16, ragged=True).loader(output="numpy", seed=3, **options):
        fields = {name: values(column) for name, column in batch.items()}
        records += [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
    return records


def expected(rows: list[int]) -> list[dict[str, Any]]:
    return table().take(rows).to_pylist()


def test_rows_in_order_and_shuffled(dataset: Any) -> None:
    assert outcome(hr.from_columns(dataset)) == expected(list(range(ROWS)))
    one = outcome(hr.from_columns(dataset).shuffle(), threads=1)
    rows = [row["index"] for row in one]
    assert rows != sorted(rows) and sorted(rows) == list(range(ROWS))
    assert one == expected(rows)
    assert one == outcome(hr.from_columns(dataset).shuffle(), threads=3)


def test_columns_are_chosen(dataset: Any) -> None:
    pipe = hr.from_columns(dataset, names=["vector", "index"]).skip(490)
    first = next(iter(pipe.batch(10).loader(output="numpy")))
    assert list(first) == ["vector", "index"]
    assert first["vector"].shape == (10, 3) and first["index"][0] == 490
    with pytest.raises(hr.ArgumentError, match="there is no column 'vektor', did you mean 'vector'|vektor"):
        hr.from_columns(dataset, names=["vektor"])


def test_many_rows_are_taken_in_one_call(dataset: Any) -> None:
    class Counted:
        schema, count_rows = dataset.schema, dataset.count_rows
        calls = 0

        def take(self, rows: Any, columns: Any = None) -> Any:
            Counted.calls += 1
            return dataset.take(rows, columns=columns)

    rows = [499, 3, 3, 250]
    made = columns._columns(Counted(), None, "test").__getitems__(rows)  # type: ignore[attr-defined]
    assert Counted.calls == 1
    assert [dict(zip(row, values(list(row.values())), strict=True)) for row in made] == expected(rows)


def test_a_data_set_of_records_it_is_not(dataset: Any) -> None:
    with pytest.raises(hr.ArgumentError, match=r"hr\.from_columns reads its rows"):
        hr.from_dataset(dataset)


def test_a_missing_value_is_a_bad_record(tmp_path: pathlib.Path) -> None:
    import pyarrow.dataset

    rows = pyarrow.dataset.dataset(pa.table({"x": pa.array([1, None, 3], pa.int64())}))
    pipe = hr.from_columns(rows).batch(1)
    with pytest.raises(hr.HeadraceError):
        list(pipe.loader())
    assert [int(b["x"][0]) for b in pipe.loader(on_error="skip", errors_max=5, output="numpy")] == [1, 3]
