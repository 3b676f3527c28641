"""Hugging Face datasets in their Arrow memory: the items that the dataset gives."""

from __future__ import annotations

import pathlib
import pickle
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import arrow_rows, structure
from headrace.batch import Ragged

datasets = pytest.importorskip("datasets")
pa = pytest.importorskip("pyarrow")
datasets.disable_progress_bars()


def made(rng: random.Random, count: int) -> Any:
    features = datasets.Features(
        {
            "id": datasets.Value("int32"),
            "big": datasets.Value("uint64"),
            "text": datasets.Value("string"),
            "data": datasets.Value("binary"),
            "x": datasets.Value("float32"),
            "y": datasets.Value("float64"),
            "flag": datasets.Value("bool"),
            "label": datasets.ClassLabel(names=["a", "b", "c"]),
            "ids": datasets.List(datasets.Value("int64")),
            "point": datasets.List(datasets.Value("float32"), length=2),
            "at": {"row": datasets.Value("int8"), "name": datasets.Value("string")},
        }
    )
    return datasets.Dataset.from_dict(
        {
            "id": [rng.randrange(-(2**31), 2**31) for _ in range(count)],
            "big": [rng.randrange(2**63) for _ in range(count)],
            "text": [rng.choice(["", "ü€", "word " * 50]) for _ in range(count)],
            "data": [rng.randbytes(rng.randrange(20)) for _ in range(count)],
            "x": [rng.random() for _ in range(count)],
            "y": [rng.random() for _ in range(count)],
            "flag": [rng.random() < 0.5 for _ in range(count)],
            "label": [rng.randrange(3) for _ in range(count)],
            "ids": [[rng.randrange(99) for _ in range(rng.randrange(1, 9))] for _ in range(count)],
            "point": [[rng.random(), rng.random()] for _ in range(count)],
            "at": [{"row": rng.randrange(100), "name": rng.choice("abc")} for _ in range(count)],
        },
        features=features,
    )


def saved(folder: pathlib.Path, dataset: Any) -> Any:
    """The same from files, which are mapped."""
    dataset.save_to_disk(folder, num_shards=2)
    return datasets.load_from_disk(folder)


def in_place(dataset: Any) -> bool:
    return arrow_rows.of(dataset, structure.of(dataset[0], "test")) is not None


def flat(item: Any, prefix: str = "") -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in item.items():
        if isinstance(value, dict):
            fields |= flat(value, f"{prefix}{name}.")
        else:
            fields[prefix + name] = value
    return fields


def items(dataset: Any, **run: Any) -> list[dict[str, Any]]:
    """The items that the library gives, in order."""
    got = []
    names = structure.leaves(structure.of(dataset[0], "test"))
    for batch in hr.from_dataset(dataset, names=None).batch(7, ragged=True).loader(output="numpy", **run):
        columns = flat({name: batch[name] for name in batch})
        size = next(c.records if isinstance(c, Ragged) else len(c) for c in columns.values())
        for at in range(size):
            got.append({name: c.item(at) if isinstance(c := columns[name], Ragged) else c[at] for name in names})
    return got


def check(dataset: Any, **run: Any) -> None:
    got = items(dataset, **run)
    assert len(got) == len(dataset)
    for at in range(len(dataset)):
        wanted = flat(dataset[at])
        assert list(got[at]) == list(wanted)
        for name, value in wanted.items():
            assert np.array_equal(np.asarray(got[at][name]), np.asarray(value)), (at, name)


@pytest.mark.parametrize("kind", [None, "numpy"])
def test_items_are_those_of_the_dataset(tmp_path: pathlib.Path, rng: random.Random, kind: str | None) -> None:
    whole = made(rng, 60)
    for dataset in (whole, saved(tmp_path / "a", whole)):
        if kind is not None:
            dataset = dataset.with_format(kind).remove_columns(["big", "data"])
        forms = [
            dataset,
            dataset.select([5, 3, 3, 59]),
            dataset.select(range(10, 40)),
            dataset.shuffle(seed=rng.randrange(1000)),
            dataset.shard(4, 1),
            dataset.filter(lambda item: item["label"] == 1),
            dataset.rename_column("id", "number").rename_column("y", "id"),
            dataset.remove_columns(["ids", "at"]),
            dataset.select_columns(["x", "label"]),
            dataset.cast_column("id", datasets.Value("int64")),
            dataset.sort("y"),
            datasets.concatenate_datasets([dataset, dataset.select([1, 2])]),
            dataset.train_test_split(0.3, seed=2)["test"],
        ]
        if kind is None:
            forms.append(dataset.map(lambda item: {"x": item["x"] + 1}))
            forms.append(dataset.shuffle(seed=1).select(range(20)).flatten_indices())
        for form in forms:
            assert in_place(form)
        for form in rng.sample(forms, 5):
            check(form, threads=rng.choice([0, 2]))
    check(dataset.with_format(kind, columns=["text", "id"]))


def test_what_python_must_read_is_left_to_it(rng: random.Random) -> None:
    dataset = made(rng, 20)
    other = dataset.with_transform(lambda batch: {"id": [i + 1 for i in batch["id"]]}, columns=["id"])
    assert not in_place(other)
    check(other)
    nulls = datasets.Dataset.from_dict({"id": [1, 2], "text": ["a", None]})
    assert not in_place(nulls)
    assert not in_place(datasets.Dataset.from_dict({"x": [[[1]], [[2]]]}))
    assert not in_place(datasets.Dataset.from_dict({"x": [["a"], ["b"]]}))

    class Own(datasets.Dataset):  # type: ignore[misc]
        def __getitem__(self, key: Any) -> Any:
            return super().__getitem__(key)

    assert not in_place(Own(dataset.data))
    assert arrow_rows.of([{"a": 1}], structure.of({"a": 1}, "test")) is None
    declared = hr.from_dataset(dataset.select_columns(["id"]), outputs={"id": hr.spec("float32")})
    assert next(iter(declared.batch(2).loader(output="numpy")))["id"].dtype == np.float32


def test_a_number_that_is_too_large_is_a_bad_record() -> None:
    dataset = datasets.Dataset(pa.table({"n": pa.array([1, 2**63, 3], pa.uint64())}))
    assert in_place(dataset)
    with pytest.raises(hr.HeadraceError, match='column "n": a uint64 that is larger than an int64'):
        list(hr.from_dataset(dataset).batch(1).loader())
    got = [int(batch["n"][0]) for batch in hr.from_dataset(dataset).batch(1).loader(on_error="skip", output="numpy")]
    assert got == [1, 3]


def test_pictures_are_decoded_by_the_library(tmp_path: pathlib.Path) -> None:
    """Image(decode=False) gives bytes."""
    pixels = [np.full((4, 6, 3), 40 * i, np.uint8) for i in range(5)]
    data = [b"P6 6 4 255\n" + p.tobytes() for p in pixels]
    dataset = datasets.Dataset.from_dict(
        {"image": [{"bytes": d, "path": f"{i}.ppm"} for i, d in enumerate(data)], "label": [*range(5)]}
    ).cast_column("image", datasets.Image(decode=False))
    dataset = saved(tmp_path / "a", dataset)
    assert in_place(dataset)
    pipe = hr.from_dataset(dataset).decode(field="image.bytes", to="pixels")
    for batch in pipe.batch(1).loader(output="numpy"):
        fields = flat({name: batch[name] for name in batch})
        assert np.array_equal(fields["pixels"][0], pixels[int(fields["label"][0])])


def test_what_is_none_in_all_items_is_left_out() -> None:
    """Embedded pictures have no path."""
    data = [b"P6 1 1 255\n" + bytes([i] * 3) for i in range(9)]
    columns = {"image": [{"bytes": d, "path": None} for d in data], "label": [*range(9)], "note": [None] * 9}
    dataset = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image(decode=False)).shuffle(seed=1)
    pipe = hr.from_dataset(dataset)
    assert [field.name for field in pipe.fields] == ["image.bytes", "label"]
    batch = next(iter(pipe.decode(field="image.bytes", to="pixels").batch(9).loader(output="numpy")))
    fields = flat({name: batch[name] for name in batch})
    assert fields["pixels"][:, 0, 0, 0].tolist() == fields["label"].tolist() == dataset["label"][:]
    halves = dataset.add_column("half", [0.5] * 9, feature=datasets.Value("float16"))  # read by Python
    batch = next(iter(hr.from_dataset(halves).batch(9).loader(output="numpy")))
    assert [*flat({name: batch[name] for name in batch})] == ["image.bytes", "label", "half"]
    some = datasets.Dataset.from_dict({"x": [1, 2], "note": [None, "a"]})
    with pytest.raises(hr.DtypeError, match="field 'note' is None, and batches hold none"):
        next(iter(hr.from_dataset(some).batch(2).loader()))


def test_shuffle_resume_ranks_and_processes(rng: random.Random) -> None:
    dataset = made(rng, 101).select_columns(["id", "text"])
    pipe = hr.from_dataset(dataset).shuffle().batch(4)
    runs = [[int(x) for b in pipe.loader(seed=3, epochs=2, output="numpy", threads=t) for x in b["id"]] for t in (0, 2)]
    assert runs[0] == runs[1]
    assert sorted(runs[0][:101]) == sorted(dataset["id"])
    loader = pipe.loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = [int(x) for _ in range(rng.randrange(1, 50)) for x in next(run)["id"]]
    again = pickle.loads(pickle.dumps(pipe)).loader(seed=3, epochs=2, threads=0, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + [int(x) for b in again for x in b["id"]] == runs[0]
    shares = [
        [int(x) for b in pipe.loader(seed=3, output="numpy", shard=(r, 2), eval=True) for x in b["id"]] for r in (0, 1)
    ]
    assert set(shares[0]) | set(shares[1]) == set(dataset["id"])
    with hr.from_dataset(dataset, variant="processes").batch(4).loader(output="numpy") as loader:
        assert [int(x) for b in loader for x in b["id"]] == dataset["id"]


def test_the_memory_outlives_the_dataset(rng: random.Random) -> None:
    dataset = made(rng, 50)
    wanted = list(dataset["text"])
    run = iter(hr.from_dataset(dataset.select_columns(["text", "id"])).batch(1).loader(output="numpy", threads=0))
    got = [next(run)["text"][0]]
    del dataset
    got += [batch["text"][0] for batch in run]
    assert got == wanted


def test_class_labels_keep_their_names(tmp_path: pathlib.Path) -> None:
    label = datasets.ClassLabel(names=["cat", "dog"])
    features = datasets.Features(
        {
            "label": label,
            "tags": datasets.List(datasets.ClassLabel(names=["small", "old", "wet"])),
            "at": {"place": datasets.ClassLabel(names=["in", "out"]), "x": datasets.Value("int64")},
            "none": label,
            "x": datasets.Value("int64"),
        }
    )
    rows = [{"label": i % 2, "tags": [i % 3, 1], "at": {"place": 1, "x": i}, "none": None, "x": i} for i in range(6)]
    data = datasets.Dataset.from_list(rows, features=features)
    named = {"label": ("cat", "dog"), "tags": ("small", "old", "wet"), "at.place": ("in", "out")}

    def classes(dataset: Any, **options: Any) -> dict[str, tuple[str, ...]]:
        return {field.name: field.classes for field in hr.from_dataset(dataset, **options).fields if field.classes}

    assert classes(data) == classes(saved(tmp_path / "data", data)) == named
    assert classes(data.with_format("numpy", columns=["x", "label"])) == {"label": named["label"]}
    assert classes(data, names=["x", "tags"]) == {"tags": named["tags"]}
    assert classes(data.select_columns(["label", "x"]), outputs={"label": hr.spec("float32"), "x": "int64"}) == {}
    assert classes(data.with_transform(lambda batch: {"y": batch["x"]})) == {}
    pipe = hr.from_dataset(data.select_columns(["label", "x"])).batch(4)
    assert [batch["label"].tolist() for batch in pipe.loader(output="numpy")] == [[0, 1, 0, 1], [0, 1]]
    assert [list(batch) for batch in pipe.loader(output="numpy")] == [["label", "x"]] * 2
