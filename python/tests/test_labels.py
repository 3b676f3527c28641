"""Labels from CSV and JSON lines: every column as Python's own readers give it, and nothing by guessing."""

from __future__ import annotations

import csv
import io
import json
import math
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], print_blob=True
)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """a.jpg, b.jpg, c.jpg: not pictures, which nobody here decodes."""
    made = tmp_path / "photos"
    made.mkdir()
    for name in "abc":
        (made / f"{name}.jpg").write_bytes(name.encode())
    return made


def records(pipe: hr.Pipeline) -> list[dict[str, Any]]:
    made = []
    for batch in pipe.batch(100).loader(output="numpy"):
        fields = {name: batch[name] for name in batch}
        made += [{k: v[i] for k, v in fields.items()} for i in range(len(fields["data"]))]
    return made


def refused(folder: pathlib.Path, text: str, name: str = "l.csv", **options: Any) -> hr.HeadraceError:
    path = folder.parent / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(hr.HeadraceError) as caught:
        _ = hr.files(folder, labels=path, **options).fields
    return caught.value


# ---- what issue 14, A1 names ----


def test_a_header_with_other_names_is_refused_with_the_candidates(folder: pathlib.Path) -> None:
    error = refused(folder, "path,class\na.jpg,cat\n")
    assert (error.file, error.line, error.column) == (str(folder.parent / "l.csv"), 1, 1)
    assert 'no column is called "label"; the columns are "path", "class": set label_column' in str(error)
    error = refused(folder, "filename,class\na.jpg,cat\n")  # was record 501
    assert 'no column is called "path"; the columns are "filename", "class": set path_column' in str(error)
    assert "did you mean" in str(refused(folder, "path,labels\na.jpg,1\n"))


def test_spaces_around_names_and_values_do_not_count(folder: pathlib.Path) -> None:
    (folder.parent / "l.csv").write_text('path, label\na.jpg, cat\n b.jpg ,dog \nc.jpg, " cat"\n')
    pipe = hr.files(folder, labels=folder.parent / "l.csv")
    assert [r["label"] for r in records(pipe)] == [1, 2, 0]  # " cat", "cat", "dog"


def test_numbers_stay_numbers(folder: pathlib.Path) -> None:
    (folder.parent / "l.csv").write_text("a.jpg,0.0\nb.jpg,3.7\nc.jpg,-1\n")  # were ranks
    pipe = hr.files(folder, labels=folder.parent / "l.csv")
    assert [f.text() for f in pipe.fields] == ["bytes", "float64"]
    assert [r["label"] for r in records(pipe)] == [0.0, 3.7, -1.0]


def test_columns_are_chosen_by_name_and_every_other_one_is_a_field(folder: pathlib.Path) -> None:
    (folder.parent / "l.csv").write_text(
        'class,"file name",weight,fold,caption\ndog,a.jpg,1,0,"one, two"\ncat,b.jpg,2.5,1,""\ndog,c.jpg,3,2,"x\ny"\n'
    )
    chosen: dict[str, Any] = {"labels": folder.parent / "l.csv", "path_column": "file name", "label_column": "class"}
    pipe = hr.files(folder, **chosen)
    assert {f.name: f.text() for f in pipe.fields} == {
        "data": "bytes",
        "label": "int64",
        "weight": "float64",
        "fold": "int64",
        "caption": "text",
    }
    made = records(pipe)
    assert [r["label"] for r in made] == [1, 0, 1]
    assert [r["weight"] for r in made] == [1, 2.5, 3]
    assert [r["fold"] for r in made] == [0, 1, 2]
    assert [r["caption"] for r in made] == ["one, two", "", "x\ny"]
    assert [f.name for f in hr.files(folder, columns="fold", **chosen).fields] == ["data", "label", "fold"]
    assert [f.name for f in hr.files(folder, columns=[], **chosen).fields] == ["data", "label"]
    error = refused(folder, "path,label,wait\na.jpg,1,2\n", columns=["weight"])
    assert 'no column is called "weight"' in str(error)


def test_columns_survive_shuffle_and_resume(folder: pathlib.Path) -> None:
    (folder.parent / "l.csv").write_text(
        "path,label,n\n" + "".join(f"{c}.jpg,{i},{i * 10}\n" for i, c in enumerate("abc"))
    )
    pipe = hr.files(folder, labels=folder.parent / "l.csv").shuffle()
    made = records(pipe)
    assert sorted(r["data"] for r in made) == [b"a", b"b", b"c"]
    assert all(r["n"] == 10 * r["label"] == 10 * b"abc".index(r["data"]) for r in made)


def test_a_missing_value_is_an_error_with_its_place(folder: pathlib.Path) -> None:
    error = refused(folder, "path,label,w\na.jpg,1,2\nb.jpg,,3\n")
    assert (error.line, error.column) == (3, 7)
    assert 'column "label": the value is missing' in str(error)
    error = refused(folder, "path,label,w\na.jpg,1,2\nb.jpg,1,nan\n")
    assert (error.line, error.column) == (3, 9)
    assert 'column "w"' in str(error)
    error = refused(folder, '{"path": "a.jpg", "label": 1}\n{"path": "b.jpg"}\n', "l.jsonl")
    assert error.line == 2
    assert 'column "label": the value is missing' in str(error)


def test_photos_without_a_line_and_lines_without_a_photo(folder: pathlib.Path) -> None:
    error = refused(folder, "a.jpg,1\nb.jpg,2\n")
    assert "c.jpg in" in str(error) and "(1 such files)" in str(error) and "skip: unlisted" in str(error)
    error = refused(folder, "a.jpg,1\nb.jpg,2\nc.jpg,3\nd.jpg,4\n")
    assert error.line == 4 and "d.jpg" in str(error) and "skip: missing" in str(error)
    (folder.parent / "l.csv").write_text("d.jpg,4\nb.jpg,2\na.jpg,1\n")
    pipe = hr.files(folder, labels=folder.parent / "l.csv", skip="both")
    assert [r["label"] for r in records(pipe)] == [2, 1]


def test_no_label_is_ever_minus_one(folder: pathlib.Path) -> None:
    error = refused(folder, "a.jpg\nb.jpg\nc.jpg\n")
    assert "1 columns and no header" in str(error)
    (folder.parent / "l.csv").write_text("path,n\na.jpg,1\nb.jpg,2\nc.jpg,3\n")
    pipe = hr.files(folder, labels=folder.parent / "l.csv", label_column="")
    assert [f.name for f in pipe.fields] == ["data", "n"]
    (folder.parent / "l.csv").write_text("a.jpg\nb.jpg\nc.jpg\n")
    assert [f.name for f in hr.files(folder, labels=folder.parent / "l.csv", label_column="").fields] == ["data"]


def test_inspect_says_what_was_found(folder: pathlib.Path, command: str) -> None:
    (folder.parent / "l.csv").write_text(",filename,class,w\n0,a.jpg,cat,1.5\n1,x.jpg,dog,2\n")
    pipe = hr.files(folder, labels=folder.parent / "l.csv", path_column="filename", label_column="class", skip="both")
    pipe.save(folder.parent / "g.yaml")
    done = subprocess.run(
        [command, "inspect", folder.parent / "g.yaml"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "w float64" in done.stdout
    assert 'header "", "filename", "class", "w"; paths from "filename", labels from "class" (text)' in done.stdout
    assert "columns without a name, left out: 1" in done.stdout
    assert "files without a line, skipped: 2; lines without a file, skipped: 1" in done.stdout


def test_a_column_with_the_name_of_a_field_is_refused(folder: pathlib.Path) -> None:
    error = refused(folder, "path,label,data\na.jpg,1,x\n")
    assert (error.line, error.column) == (1, 12)
    assert "rename that one with field" in str(error)


def test_the_fingerprint_covers_columns(folder: pathlib.Path) -> None:
    prints = []
    for n in (1, 2):
        (folder.parent / "l.csv").write_text(f"path,label,n\na.jpg,1,{n}\n")
        prints.append(hr.files(folder, labels=folder.parent / "l.csv", skip="unlisted").fingerprint)
    assert prints[0] != prints[1]


# ---- what issue 14, A5 names ----


@pytest.fixture
def animals(tmp_path: pathlib.Path) -> pathlib.Path:
    """train/cat, train/dog; val/cat, val/zebra; test/dog."""
    for name in ("train/cat", "train/dog", "val/cat", "val/zebra", "test/dog"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "1.jpg").write_bytes(name.encode())
    return tmp_path


def test_label_folder_and_labels_folders_are_refused_with_the_nearest(animals: pathlib.Path) -> None:
    with pytest.raises(hr.ArgumentError, match="did you mean labels: folder") as caught:
        _ = hr.files(animals / "train", label="folder").fields  # was: no labels
    assert caught.value.param == "label"
    with pytest.raises(hr.ArgumentError, match='no file "folders"; did you mean "folder"') as caught:
        _ = hr.files(animals / "train", labels="folders").fields
    assert caught.value.param == "labels"


def test_classes_are_shown_and_follow_the_field(animals: pathlib.Path, command: str) -> None:
    pipe = hr.files(animals / "train", labels="folder")
    assert pipe.fields["label"].classes == ("cat", "dog")
    assert pipe.fields["data"].classes == ()
    later = pipe.shuffle().rename(fields={"label": "kind"}).batch(2)
    assert later.fields["kind"].classes == ("cat", "dog")
    assert pipe.map(lambda y: y + 1, fields="label").fields["label"].classes == ()  # other numbers
    with pytest.raises(KeyError, match="did you mean 'label'"):
        _ = pipe.fields["lable"]
    pipe.save(animals / "g.yaml")
    args = [command, "inspect", str(animals / "g.yaml"), "--no-records"]
    assert (
        "label int64 (2 classes: cat, dog)"
        in subprocess.run(args, capture_output=True, text=True, check=True, timeout=60).stdout
    )
    shown = json.loads(subprocess.run([*args, "--json"], capture_output=True, check=True, timeout=60).stdout)
    assert shown["nodes"][0]["fields"][1]["classes"] == ["cat", "dog"]


def test_classes_of_numbers_are_named() -> None:
    def numbers(*classes: str) -> hr.Pipeline:
        return hr.from_columns({"x": [0.5, 1.5, 2.5], "kind": [1, 0, -1]}).classes("kind", classes)

    pipe = numbers("cat", "dog")
    assert pipe.fields["kind"].classes == pipe.batch(2).fields["kind"].classes == ("cat", "dog")
    assert pipe.where("x < 2").rename(fields={"kind": "animal"}).fields["animal"].classes == ("cat", "dog")
    (batch,) = pipe.batch(9).loader(output="numpy")
    assert batch.kind.tolist() == [1, 0, -1]
    assert hr.from_yaml(hr.range(3).classes("value", ["zero", "one"]).to_yaml()).fields["value"].classes == (
        "zero",
        "one",
    )
    assert pipe.fingerprint != numbers("dog", "cat").fingerprint
    assert pipe.batch(2).classes("kind", ["a", "b"]).fields["kind"].classes == ("a", "b")
    with pytest.raises(hr.ArgumentError, match='two classes are called "cat"'):
        _ = numbers("dog", "cat", "emu", "cat").fields
    with pytest.raises(hr.DtypeError, match='field "x" is float64'):
        _ = pipe.classes("x", ["cat"]).fields
    with pytest.raises(hr.HeadraceError, match="classes"):
        _ = hr.concat(pipe, numbers("dog", "cat")).fields
    run = pipe.batch(1).loader()
    next(iter(run))
    other = numbers("cat", "emu").batch(1).loader()
    with pytest.raises(hr.StateMismatchError, match="class 1 was 'dog' then, and is 'emu' now"):
        other.load_state_dict(run.state_dict())
        list(other)


def test_a_validation_set_never_gets_other_numbers(animals: pathlib.Path) -> None:
    train = hr.files(animals / "train", labels="folder")
    classes = train.fields["label"].classes
    with pytest.raises(hr.ArgumentError, match='class "zebra" is not among the 2 given classes'):
        _ = hr.files(animals / "val", labels="folder", classes=classes).fields
    test = hr.files(animals / "test", labels="folder", classes=classes)
    assert [r["label"] for r in records(test)] == [1]  # 0 without classes
    (animals / "v.csv").write_text("path,label\ncat/1.jpg,cat\nzebra/1.jpg,zebra\n")
    with pytest.raises(hr.ArgumentError, match='v.csv:3: class "zebra"'):
        _ = hr.files(animals / "val", labels=animals / "v.csv", classes=classes).fields
    turned = hr.files(animals / "train", labels="folder", classes=["dog", "cat"])
    assert [r["label"] for r in records(turned)] == [1, 0]
    assert turned.fingerprint != train.fingerprint
    assert hr.files(animals / "train", labels="folder", classes=classes).fingerprint == train.fingerprint


def test_a_saved_graph_has_the_classes(animals: pathlib.Path) -> None:
    pipe = hr.files(animals / "train", labels="folder").batch(1)
    text = pipe.to_yaml()
    assert "classes" in text and "cat" in text and "dog" in text
    again = hr.from_yaml(text)
    assert again.fingerprint == pipe.fingerprint
    assert again.to_yaml() == text
    with pytest.raises(hr.ArgumentError, match='"zebra" is not among the 2 given classes'):
        _ = hr.from_yaml(text.replace(str(animals / "train"), str(animals / "val"))).fields


def test_a_state_of_other_classes_is_refused_by_name(animals: pathlib.Path) -> None:
    def loader(folder: str) -> hr.Loader:
        return hr.files(animals / folder, labels="folder").repeat(4).batch(1).loader()

    run = loader("train")
    for _ in zip(range(3), run, strict=False):
        pass
    state = run.state_dict()
    resumed = loader("train")
    resumed.load_state_dict(state)
    assert len(list(resumed)) == 5
    other = loader("val")
    with pytest.raises(hr.HeadraceError) as caught:
        other.load_state_dict(state)
        list(other)
    assert "other classes of field 'label': class 1 was 'dog' then, and is 'zebra' now" in str(caught.value)
    (animals / "train/emu").mkdir()
    with pytest.raises(hr.HeadraceError, match="class 2 did not exist then, and is 'emu' now .2 classes then, 3 now"):
        more = loader("train")
        more.load_state_dict(state)
        list(more)


def test_any_number_of_classes(animals: pathlib.Path) -> None:
    names = [f"class {i:05}" for i in range(3000)]
    (animals / "l.csv").write_text("path,label\n" + "".join(f"cat/1.jpg,{name}\n" for name in names[::-1]))
    pipe = hr.files(animals / "train", labels=animals / "l.csv", skip="unlisted")
    assert list(pipe.fields["label"].classes) == names
    assert [r["label"] for r in records(pipe)] == list(range(2999, -1, -1))
    again = hr.from_yaml(
        hr.files(animals / "train", labels=animals / "l.csv", skip="unlisted", classes=names).to_yaml()
    )
    assert again.fingerprint == pipe.fingerprint


def test_given_classes_and_a_saved_index(animals: pathlib.Path) -> None:
    """What is saved with given classes is not taken for what the folders give."""
    options: dict[str, Any] = {"labels": "folder", "index": animals / "i.index"}
    plain = hr.files(animals / "train", labels="folder").fingerprint
    turned = hr.files(animals / "train", labels="folder", classes=["dog", "cat"]).fingerprint
    for _ in range(2):
        assert hr.files(animals / "train", classes=["dog", "cat"], **options).fingerprint == turned
        assert hr.files(animals / "train", **options).fingerprint == plain


# ---- what Python writes, Headrace reads ----

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
numbers = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1),
)


def same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return bool(got == wanted)
    if isinstance(wanted, float):
        return float(got) == wanted and math.copysign(1, got) == math.copysign(1, wanted)
    return bool(np.asarray(got) == wanted)


def read_back(folder: pathlib.Path, name: str, text: str, **options: Any) -> list[dict[str, Any]]:
    (folder.parent / name).write_bytes(text.encode())
    return records(hr.files(folder, labels=folder.parent / name, skip="unlisted", **options))


@SETTINGS
@given(
    column=st.one_of(numbers, st.lists(texts.map("x".__add__), min_size=1)),  # "x": never a number
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    terminator=st.sampled_from(["\r\n", "\n"]),
    mark=st.booleans(),
)
def test_what_csv_writer_writes(
    folder: pathlib.Path, column: list[Any], quoting: Any, terminator: str, mark: bool
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=terminator)
    writer.writerow(["path", "label", "value"])
    writer.writerows(["a.jpg", i, value] for i, value in enumerate(column))
    made = read_back(folder, "l.csv", ("\ufeff" if mark else "") + text.getvalue())
    assert [r["label"] for r in made] == list(range(len(column)))
    assert all(same(r["value"], v) for r, v in zip(made, column, strict=True))


@SETTINGS
@given(st.lists(st.text('ab,"\r\n .x', min_size=1, max_size=8).map(str.strip).filter(bool), min_size=1))
def test_what_csv_writer_leaves_unquoted(folder: pathlib.Path, column: list[str]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["path", "label", "value"])
    writer.writerows(["a.jpg", 0, value] for value in column)
    assert [r["value"] for r in read_back(folder, "l.csv", text.getvalue())] == column


@SETTINGS
@given(
    column=st.one_of(numbers, st.lists(texts, min_size=1), st.lists(st.booleans(), min_size=1)),
    ascii_only=st.booleans(),
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12).filter(
        lambda n: n.lower() not in ("path", "label", "data")
    ),
)
def test_what_json_dumps_writes(folder: pathlib.Path, column: list[Any], ascii_only: bool, name: str) -> None:
    lines = [{"path": "a.jpg", name: value, "label": i} for i, value in enumerate(column)]
    text = "\n".join(json.dumps(line, ensure_ascii=ascii_only) for line in lines)
    made = read_back(folder, "l.jsonl", text)
    assert [r["label"] for r in made] == list(range(len(column)))
    assert all(same(r[name], v) for r, v in zip(made, column, strict=True))
