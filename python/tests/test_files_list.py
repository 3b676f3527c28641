"""`hr.files` of a list of paths."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.jpg", "dog/deep/3.jpg"):
        (tmp_path / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pets" / name).write_bytes(name.encode())
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def rows(pipe: hr.Pipeline, **options: Any) -> list[str]:
    return [item.decode() for batch in pipe.batch(3).loader(output="numpy", **options) for item in batch.data]


def test_files_come_in_the_order_of_the_list(folder: pathlib.Path) -> None:
    names = ["pets/dog/deep/3.jpg", "pets/cat/2.jpg", "pets/cat/2.jpg", "pets/dog/1.jpg"]
    expected = [name.removeprefix("pets/") for name in names]
    assert rows(hr.files(names)) == expected
    assert rows(hr.files([folder / name for name in names])) == expected
    assert rows(hr.files(str(folder / name) for name in names)) == expected
    assert rows(hr.files(["./" + name.encode().decode() for name in names])) == expected
    assert rows(hr.files("pets", files=expected)) == expected
    assert rows(hr.files([names[0]])) == [expected[0]]
    assert rows(hr.files(["pets/cat/2.jpg", "pets/cat/1.jpg"])) == ["cat/2.jpg", "cat/1.jpg"]


def test_a_list_is_the_same_source_wherever_it_lies(folder: pathlib.Path) -> None:
    relative = hr.files(["pets/cat/1.jpg", "pets/dog/1.jpg"])
    absolute = hr.files([folder / "pets/cat/1.jpg", folder / "pets/dog/1.jpg"])
    assert relative == absolute and relative != hr.files(["pets/dog/1.jpg", "pets/cat/1.jpg"])
    assert relative.record_count == 2
    saved = hr.from_yaml(relative.to_yaml())
    assert saved == relative and rows(saved) == ["cat/1.jpg", "dog/1.jpg"]
    whole = hr.files(sorted(str(p) for p in pathlib.Path("pets").rglob("*.jpg")))
    assert whole.fingerprint == hr.files("pets").fingerprint  # the same records
    shuffled = relative.shuffle(seed=2)
    assert sorted(rows(shuffled, epochs=2)) == sorted(2 * ["cat/1.jpg", "dog/1.jpg"])


def test_labels_are_the_folders_of_the_list(folder: pathlib.Path) -> None:
    pipe = hr.files(["pets/dog/deep/3.jpg", "pets/cat/1.jpg"], labels="folder", paths=True)
    assert pipe.fields["label"].classes == ("cat", "dog")
    (batch,) = pipe.batch(2).loader(output="numpy")
    assert batch.label.tolist() == [1, 0] and [p.rpartition("/")[2] for p in batch.path] == ["3.jpg", "1.jpg"]
    given = hr.files(["pets/dog/1.jpg"], labels="none")
    assert "label" not in given.fields
    (batch,) = (
        hr.files("pets", files=["dog/1.jpg"], labels="folder", classes=["ant", "dog"]).batch(1).loader(output="numpy")
    )
    assert batch.label.tolist() == [1]
    with pytest.raises(hr.HeadraceError, match='"1.jpg", lies in no folder below path'):
        hr.files(["pets/dog/1.jpg"], labels="folder").fields  # noqa: B018
    with pytest.raises(hr.HeadraceError, match='"dog" is not among the 1 given classes'):
        hr.files("pets", files=["dog/1.jpg"], labels="folder", classes=["cat"]).fields  # noqa: B018


def test_a_file_that_is_missing_is_a_bad_record(folder: pathlib.Path) -> None:
    pipe = hr.files(["pets/cat/1.jpg", "pets/cat/none.jpg", "pets/dog/1.jpg"])
    with pytest.raises(hr.HeadraceError, match="none.jpg"):
        rows(pipe)
    assert rows(pipe, on_error="skip") == ["cat/1.jpg", "dog/1.jpg"]


def test_wrong_lists_are_refused(folder: pathlib.Path) -> None:
    empty: list[str] = []
    for wrong, words in [
        (empty, "the list of files is empty"),
        (["a.jpg", "/b.jpg"], "mixed"),
        (["s3://a/b.jpg", "c.jpg"], "mixed"),
        (["s3://a/b.jpg", "s3://c/d.jpg"], "one bucket"),
        (["a.jpg", 3], "a path is needed, not 3"),
        ({"a.jpg", "b.jpg"}, "not a dict or a set"),
    ]:
        with pytest.raises(hr.ArgumentError, match=words):
            hr.files(wrong)  # type: ignore[arg-type]
    with pytest.raises(hr.ArgumentError, match="path is a list already"):
        hr.files(["a.jpg"], files=["b.jpg"])
    with pytest.raises(hr.HeadraceError, match='item 2, "/b.jpg", begins with a slash'):
        hr.files("pets", files=["a.jpg", "/b.jpg"]).fields  # noqa: B018
    with pytest.raises(hr.HeadraceError, match="item 1, .*is empty"):
        hr.files("pets", files=[""]).fields  # noqa: B018
    (folder / "t.csv").write_text("path,label\ncat/1.jpg,cat\n")
    with pytest.raises(hr.HeadraceError, match="t.csv lists them, too"):
        hr.files("pets", files=["cat/1.jpg"], labels="t.csv").fields  # noqa: B018
    with pytest.raises(hr.HeadraceError, match="cannot read folder absent"):
        hr.files("absent", files=["cat/1.jpg"]).fields  # noqa: B018
