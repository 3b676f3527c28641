"""source.records: what headrace pack has written, whole, damaged, in few files and in many."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess

import numpy as np
import pytest

import headrace as hr


def pack(command: str, pipe: hr.Pipeline, folder: pathlib.Path, *options: object) -> None:
    graph = folder.with_suffix(".yaml")
    pipe.save(graph)
    subprocess.run([command, "pack", graph, "-o", folder, "-q", *map(str, options)], check=True)


def lines(path: pathlib.Path, rng: random.Random, count: int) -> tuple[hr.Pipeline, list[str]]:
    """Texts of all sizes, those included that are too large for a window."""
    sizes = [rng.choice([0, 1, 63, 64, 65, rng.randrange(3000), rng.randrange(100_000)]) for _ in range(count)]
    made = [bytes(rng.choices(range(97, 123), k=size)).decode() for size in sizes]
    path.write_text("\n".join(made) + "\n")
    return hr.zip(hr.lines(path), hr.range(count)), made


def read(path: object, shuffle: bool = False, **options: object) -> list[tuple[str, int]]:
    pipe = hr.records(path)
    batches = (pipe.shuffle() if shuffle else pipe).batch(5, ragged=True).loader(output="numpy", **options)
    return [pair for batch in batches for pair in zip(batch["text"], batch["value"].tolist(), strict=True)]


@pytest.mark.parametrize("threads", [0, 3])
def test_records_come_back_from_few_and_many_files(
    tmp_path: pathlib.Path, rng: random.Random, command: str, threads: int
) -> None:
    pipe, made = lines(tmp_path / "lines.txt", rng, 300)
    wanted = [(text, at) for at, text in enumerate(made)]
    fingerprints = set()
    for name, options in (("one", ()), ("some", ("--shard-bytes", "300k")), ("each", ("--shard-records", 1))):
        folder = tmp_path / name
        pack(command, pipe, folder, *options)
        assert read(folder, threads=threads) == wanted
        assert read(f"{folder}/part-*.records", threads=threads) == wanted
        assert sorted(read(folder, shuffle=True, threads=threads), key=lambda pair: pair[1]) == wanted
        fingerprints.add(hr.records(folder).fingerprint)
    assert len(list((tmp_path / "each").glob("*.records"))) == 300
    assert len(fingerprints) == 1, "the same records are the same data however they are divided"


def test_fields_keep_their_types(tmp_path: pathlib.Path, rng: random.Random, command: str) -> None:
    pipe, _ = lines(tmp_path / "lines.txt", rng, 40)
    pipe = pipe.cast("float32", field="value", scale=False).batch(4, ragged=True)
    pack(command, pipe.unbatch(), tmp_path / "packed")
    assert [(field.name, field.dtype) for field in hr.records(tmp_path / "packed").fields] == [
        ("text", "text"),
        ("value", "float32"),
    ]


def test_ragged_values_come_back(
    tmp_path: pathlib.Path, rng: random.Random, command: str, pictures: pathlib.Path
) -> None:
    whole = hr.files(pictures, labels="folder").decode()
    pack(command, whole, tmp_path / "packed")
    for one, other in zip(
        whole.loader(output="numpy"), hr.records(tmp_path / "packed").loader(output="numpy"), strict=True
    ):
        np.testing.assert_array_equal(one["image"], other["image"])
        assert one["label"] == other["label"]


def labels_of(pipe: hr.Pipeline) -> list[int]:
    return sorted(int(batch["label"][0]) for batch in pipe.loader(output="numpy"))


def test_names_of_classes_come_back(tmp_path: pathlib.Path, command: str, pictures: pathlib.Path) -> None:
    files = hr.files(pictures, labels="folder")
    pack(command, files, tmp_path / "packed", "--zstd", 3, "--shard-bytes", "8kB")
    packed = hr.records(tmp_path / "packed")
    assert len(list((tmp_path / "packed").glob("*.records"))) > 1
    assert packed.fields["label"].classes == files.fields["label"].classes == ("a", "b", "c")
    # Keys are the names, as they are for the files: both have the same parts.
    for seed in (1, 2, 3):
        parts = [hr.split(pipe, [0.5, 0.5], seed=seed, by="label") for pipe in (files, packed)]
        assert labels_of(parts[0][0]) == labels_of(parts[1][0])
        assert labels_of(parts[0][1]) == labels_of(parts[1][1])


def test_many_names_of_classes_come_back(tmp_path: pathlib.Path) -> None:
    names = tuple(f"class {i} of many" for i in range(40_000))  # more than a window reads at once
    hr.range(3).classes("value", names).pack(tmp_path / "packed")
    assert hr.records(tmp_path / "packed").fields["value"].classes == names


def test_files_with_other_names_of_classes_are_refused(
    tmp_path: pathlib.Path, command: str, pictures: pathlib.Path
) -> None:
    numbers = hr.range(3)
    for folder, names in (("one", ["x", "y", "z"]), ("two", ["x", "z", "y"])):
        pack(command, numbers.classes("value", names), tmp_path / folder)
    assert hr.records(tmp_path / "two").fields["value"].classes == ("x", "z", "y")
    with pytest.raises(hr.HeadraceError, match="other names of classes"):
        read(tmp_path / "{one,two}")
    other = numbers.classes("value", ["x", "z", "y"])
    other.save(tmp_path / "other.yaml")
    done = subprocess.run(
        [command, "pack", tmp_path / "other.yaml", "-o", tmp_path / "one", "-q", "--append"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and "other" in done.stderr
    # One data set after the other: equal numbers must mean equal classes.
    with pytest.raises(hr.HeadraceError, match="classes"):
        hr.concat(hr.records(tmp_path / "one"), hr.records(tmp_path / "two")).batch(2).loader().close()


def test_a_file_that_changes_after_it_was_opened_is_named(
    tmp_path: pathlib.Path, rng: random.Random, command: str
) -> None:
    pipe, _ = lines(tmp_path / "lines.txt", rng, 30)
    pack(command, pipe, tmp_path / "packed")
    loader = hr.records(tmp_path / "packed").batch(5, ragged=True).loader(output="numpy")
    assert len(list(loader)) == 6
    path = tmp_path / "packed/part-000000.records"
    os.utime(path, (1, 1))
    with pytest.raises(hr.HeadraceError, match=r"part-000000.records.*changed"):
        list(loader)


def test_other_files_are_refused(tmp_path: pathlib.Path, rng: random.Random, command: str) -> None:
    pipe, _ = lines(tmp_path / "lines.txt", rng, 3)
    pack(command, pipe, tmp_path / "a")
    pack(command, hr.range(3), tmp_path / "b")
    (tmp_path / "c.records").write_bytes(b"text " * 100)
    with pytest.raises(hr.HeadraceError, match="other fields"):
        read(tmp_path / "{a,b}")
    with pytest.raises(hr.HeadraceError, match=r"c\.records.*no file of records"):
        read(tmp_path / "c.records")
    with pytest.raises(hr.HeadraceError, match=r"d\.records"):
        read(tmp_path / "d.records")
