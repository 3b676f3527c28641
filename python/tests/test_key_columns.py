"""What columns and data sets in memory are known by before their records are made."""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

RECORDS = 90


def columns() -> dict[str, Any]:
    numbers = np.arange(RECORDS)
    return {
        "x": numbers,
        "who": np.array([f"patient {i % 11}" for i in range(RECORDS)]),
        "note": np.array([f"{'long ' * 80}{i % 5}" for i in range(RECORDS)], object),
        "weight": np.where(numbers < 60, 0.0, 0.25),
        "even": numbers % 2 == 0,
        "image": np.zeros((RECORDS, 4, 4, 3), np.uint8),
    }


def arrow() -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({name: list(column) for name, column in columns().items() if name != "image"})


def stored(folder: pathlib.Path) -> Any:
    dataset = pytest.importorskip("pyarrow.dataset")
    dataset.write_dataset(arrow(), folder, format="parquet")
    return dataset.dataset(folder)


SOURCES: dict[str, Callable[[pathlib.Path], Any]] = {
    "arrays": lambda _: columns(),
    "structured": lambda _: np.array(
        list(zip(*(columns()[name] for name in ("x", "who", "weight", "even")), strict=True)),
        [("x", "i8"), ("who", "U12"), ("weight", "f4"), ("even", "?")],
    ),
    "pandas": lambda _: pytest.importorskip("pandas").DataFrame({k: v for k, v in columns().items() if k != "image"}),
    "arrow": lambda _: arrow(),
    "stored": stored,
}


@pytest.fixture(params=SOURCES)
def pipe(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> hr.Pipeline:
    return hr.from_columns(SOURCES[request.param](tmp_path))


def numbers(pipe: hr.Pipeline, **options: Any) -> list[int]:
    return [x for batch in pipe.batch(7).loader(output="numpy", **options) for x in batch["x"].tolist()]


@pytest.mark.parametrize(("by", "values"), [("who", 11), ("even", 2)])
def test_rows_of_a_group_stay_together(pipe: hr.Pipeline, rng: random.Random, by: str, values: int) -> None:
    wanted = columns()[by].tolist()
    for _ in range(40):
        try:
            parts = [numbers(part) for part in hr.split(pipe, [0.5, 0.5], by=by, seed=rng.randrange(1000))]
        except hr.ArgumentError as error:
            assert "by a key that differs between more records" in str(error)  # all groups are in one part
            continue
        assert sorted(parts[0] + parts[1]) == list(range(RECORDS))
        groups = [{wanted[x] for x in part} for part in parts]
        assert not groups[0] & groups[1] and len(groups[0] | groups[1]) == values
        return
    raise AssertionError("every split failed")


def test_the_kind_of_columns_does_not_decide_the_parts(tmp_path: pathlib.Path) -> None:
    """Keys are texts that all sources write alike, those of files too."""
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"x": columns()["x"], "who": columns()["who"]}).to_csv(tmp_path / "t.csv", index=False)
    for by in ("x", "who"):
        parts = [numbers(hr.split(hr.csv(tmp_path / "t.csv"), [0.6, 0.4], by=by, seed=5)[0])]
        for name in ("arrays", "structured", "pandas", "arrow", "stored"):
            made = hr.from_columns(SOURCES[name](tmp_path / by / name))
            parts.append(numbers(hr.split(made, [0.6, 0.4], by=by, seed=5)[0]))
        assert all(part == parts[0] for part in parts) and 0 < len(parts[0]) < RECORDS


def test_long_texts_are_keys() -> None:
    pipe = hr.from_columns({k: v for k, v in columns().items() if k in ("x", "note")})
    parts = [numbers(part) for part in hr.split(pipe, [0.4, 0.6], by="note", seed=1)]
    assert sorted(parts[0] + parts[1]) == list(range(RECORDS))
    assert not {x % 5 for x in parts[0]} & {x % 5 for x in parts[1]}


def test_columns_are_weights_and_balance_draws(pipe: hr.Pipeline) -> None:
    drawn = numbers(pipe.sample(weight="weight", count=400), seed=2)
    assert min(drawn) >= 60 and len(set(drawn)) > 20
    assert 1 / 3 < np.mean([x % 2 for x in numbers(pipe.sample(balance="even", count=600), seed=2)]) < 2 / 3


@pytest.mark.parametrize("kind", ["parquet", "npz", "hdf5", "records", "csv"])
def test_floats_of_files_are_weights(tmp_path: pathlib.Path, command: str, kind: str) -> None:
    rows = {name: columns()[name] for name in ("x", "weight")}
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(arrow().select(list(rows)), tmp_path / "t.parquet")
        pipe = hr.parquet(tmp_path / "t.parquet")
    elif kind == "npz":
        np.savez(tmp_path / "t.npz", **rows)
        pipe = hr.npy(tmp_path / "t.npz", arrays=list(rows))
    elif kind == "hdf5":
        with pytest.importorskip("h5py").File(tmp_path / "t.h5", "w") as file:
            for name, values in rows.items():
                file[name] = values
        pipe = hr.hdf5(tmp_path / "t.h5", fields={name: name for name in rows})
    else:
        lines = [f"{x},{w}" for x, w in zip(rows["x"], rows["weight"], strict=True)]
        (tmp_path / "t.csv").write_text("\n".join(["x,weight", *lines]))
        pipe = hr.csv(tmp_path / "t.csv")
        if kind == "records":
            pipe.save(tmp_path / "pack.yaml")
            subprocess.run([command, "pack", tmp_path / "pack.yaml", "-o", tmp_path / "t", "-q"], check=True)
            pipe = hr.records(tmp_path / "t")
    drawn = numbers(pipe.sample(weight="weight", count=300), seed=2)
    assert min(drawn) >= 60 and len(set(drawn)) > 20


def test_files_join_a_frame(tmp_path: pathlib.Path) -> None:
    for i in range(8):
        (tmp_path / f"{i:02}.bin").write_bytes(bytes([i]))
    names = {"name": np.array([f"{i:02}" for i in (7, 1, 5, 3)]), "age": np.array([70, 10, 50, 30])}
    files = hr.files(tmp_path, suffixes=[".bin"], field="data")
    joined = hr.join(files, hr.from_columns(names), left_on="stem", right_on="name").batch(3)
    seen = [
        (d[0], age) for b in joined.loader(output="numpy") for d, age in zip(b["data"], b.age.tolist(), strict=True)
    ]
    assert seen == [(1, 10), (3, 30), (5, 50), (7, 70)]


def test_fields_of_tuples_are_named_before_they_are_keys() -> None:
    pairs = (columns()["image"], columns()["who"], columns()["x"])
    named = hr.from_columns(pairs, names=["picture", "who", "x"])
    parts = [numbers(part) for part in hr.split(named, [0.5, 0.5], by="who", seed=3)]
    assert sorted(parts[0] + parts[1]) == list(range(RECORDS)) and len(parts[0]) > 0
    with pytest.raises(hr.ArgumentError, match=r'its "picture" is not known; known are: who, x, index'):
        hr.split(named, [0.5, 0.5], by="picture")[0].record_count  # noqa: B018


def test_a_data_set_that_knows_no_field_says_so() -> None:
    pipe = hr.from_dataset([{"x": i, "who": i % 3} for i in range(30)])
    with pytest.raises(hr.ArgumentError, match=r'its "who" is not known; known are: index'):
        hr.split(pipe, [0.5, 0.5], by="who")[0].record_count  # noqa: B018


def test_hugging_face_columns_are_keys() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"x": datasets.Value("int64"), "who": datasets.Value("string"), "label": datasets.ClassLabel(names=["a", "b"])}
    )
    rows = {"x": list(range(RECORDS)), "who": columns()["who"].tolist(), "label": [x % 2 for x in range(RECORDS)]}
    whole = datasets.Dataset.from_dict(rows, features)
    pictures = whole.add_column("image", [np.full((2, 2, 3), x, np.uint8).tolist() for x in range(RECORDS)])
    for dataset in (whole, pictures, whole.select(range(RECORDS - 1, -1, -1))):
        parts = [numbers(part) for part in hr.split(hr.from_dataset(dataset), [0.5, 0.5], by="who", seed=3)]
        assert sorted(parts[0] + parts[1]) == list(range(RECORDS))
        assert not {x % 11 for x in parts[0]} & {x % 11 for x in parts[1]}
    drawn = numbers(hr.from_dataset(pictures).sample(balance="label", count=600), seed=2)
    assert 1 / 3 < np.mean([x % 2 for x in drawn]) < 2 / 3


def test_what_is_neither_a_number_nor_a_text_is_no_key() -> None:
    lists = np.empty(4, object)
    lists[:] = [[1], [2, 3], [4], [5]]
    with pytest.raises(hr.ArgumentError, match="a key is a number or a text, and this is list"):
        hr.split(hr.from_columns({"x": np.arange(4), "ids": lists}), [0.5, 0.5], by="ids")[0].record_count  # noqa: B018


def test_what_a_column_raises_is_told(rng: random.Random) -> None:
    class Broken:
        key_columns = (rng,)  # a generator has no items

        def __len__(self) -> int:
            return 4

        def __getitem__(self, at: int) -> int:
            return at

    with pytest.raises(hr.ArgumentError, match="TypeError: 'Random' object is not subscriptable"):
        hr.split(hr.from_dataset(Broken()), [0.5, 0.5], by="value")[0].record_count  # noqa: B018


def test_an_interrupt_while_keys_are_read_is_one() -> None:
    script = """
        import _thread
        import headrace as hr

        class Column:
            def __getitem__(self, at):
                if at == 3:
                    _thread.interrupt_main()
                return at

        class Rows:
            key_columns = (Column(),)
            def __len__(self):
                return 100000
            def __getitem__(self, at):
                return at

        try:
            hr.split(hr.from_dataset(Rows()), [0.5, 0.5], by="value")[0].record_count
        except KeyboardInterrupt:
            print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr
