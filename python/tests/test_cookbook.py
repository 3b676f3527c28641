"""The scripts of examples/cookbook run as their first lines say, and print what they are about."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from conftest import ROOT
from voc import Voc

FOLDER = ROOT / "examples/cookbook"
SCRIPTS = sorted(file.name for file in FOLDER.glob("*.py"))
LINES_MAX = 40
PHOTOS, MORE = 60, 40


@pytest.fixture(scope="module")
def folder(command: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Photos in two folders, a table of labels, sets like Pascal VOC's and COCO's."""
    made = tmp_path_factory.mktemp("cookbook")
    for name, count in (("photos", PHOTOS), ("more", MORE)):
        subprocess.run(
            [command, "synth", "photos", str(made / name), "--count", str(count)], check=True, capture_output=True
        )
    files = sorted((made / "photos").rglob("*.jpg"))
    rows = [f"{file.relative_to(made / 'photos')},{file.parent.name},{1 + i % 5 / 2}" for i, file in enumerate(files)]
    (made / "train.csv").write_text("\n".join(["path,species,weight", *rows, ""]))
    notes = [f'"{file.stem}",note {i}' for i, file in enumerate(files) if i % 4 != 0]
    (made / "notes.csv").write_text("\n".join(["id,note", *notes, *notes[:5], '"nobody",none', ""]))
    voc = Voc(made / "VOC2012")
    images = [{"id": i, "file_name": name + ".jpg"} for i, name in enumerate(voc.names)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [3, 4, 30, 20]} for i in range(len(images))]
    file = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "dog"}]}
    (made / "instances.json").write_text(json.dumps(file))
    return made


def run(folder: pathlib.Path, *args: str, given: str | None = None, **environment: str) -> str:
    """What a script prints; `given`: its text, for one that is given as text."""
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    script = ["-"] if given is not None else [str(FOLDER / args[0]), *args[1:]]
    done = subprocess.run(
        [sys.executable, *script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **environment},
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def folders(folder: pathlib.Path) -> None:
    out = run(folder, "folders.py", "photos")
    train, val = map(int, re.findall(r"(\d+) photos to train on, (\d+) to validate", out)[0])
    assert train + val == PHOTOS and "batch 0: float32 (32, 3, 64, 64), first label " in out


def labels_csv(folder: pathlib.Path) -> None:
    out = run(folder, "labels_csv.py", "photos", "train.csv")
    weights = {float(w) for w in re.findall(r"^[a-z]+ of (\S+) kg$", out, re.MULTILINE)}
    assert weights <= {2.5, 3.0} and weights and re.search(r"^float64 +weight$", out, re.MULTILINE)


def join_table(folder: pathlib.Path) -> None:
    out = run(folder, "join_table.py", "photos", "notes.csv")
    notes = PHOTOS * 3 // 4 + 5
    assert f"{PHOTOS} photos and {notes + 1} notes give {notes} pairs" in out
    found = re.findall(r"^(\d+) pictures, the first one note \d+$", out, re.MULTILINE)
    assert sum(map(int, found)) == notes


def two_views(folder: pathlib.Path) -> None:
    ((count, difference),) = re.findall(
        r"^(\d+) pairs of \(3, 96, 96\), mean difference (\S+)$", run(folder, "two_views.py", "photos"), re.MULTILINE
    )
    assert int(count) == PHOTOS and float(difference) > 0.1


def numpy_transform(folder: pathlib.Path) -> None:
    out = run(folder, "numpy_transform.py", "photos")
    found = re.findall(r"^(\d+) photos, (\S+)% white", out, re.MULTILINE)
    assert sum(int(count) for count, _ in found) == PHOTOS and all(0.5 < float(white) < 20 for _, white in found)
    assert run(folder, "numpy_transform.py", "photos") == out


def detection(folder: pathlib.Path) -> None:
    out = run(folder, "detection.py", "VOC2012/JPEGImages", "instances.json")
    assert re.findall(r"^(\d+) pictures of \(3, 300, 300\)$", out, re.MULTILINE) == ["8", "4"]
    assert re.search(r"^  dog from \(\d+, \d+\) to \(\d+, \d+\)$", out, re.MULTILINE)


def segmentation(folder: pathlib.Path) -> None:
    out = run(folder, "segmentation.py", "VOC2012")
    assert out.count("images (4, 3, 96, 96), masks (4, 96, 96, 1)") == 3 and "255" not in out


def weighted_mix(folder: pathlib.Path) -> None:
    mixed, balanced = re.findall(r"^.*: ({.*})$", run(folder, "weighted_mix.py", "photos", "more"), re.MULTILINE)
    counts, labels = (json.loads(text.replace("'", '"')) for text in (mixed, balanced))
    assert counts["ours"] == PHOTOS and abs(counts["theirs"] - PHOTOS / 3) <= 2
    assert sum(labels.values()) == 400 and len(labels) == 10


def cached(folder: pathlib.Path) -> None:
    out = run(folder, "cached.py", "photos", "cache")
    assert len(re.findall(r"^epoch \d: \d+ photos per second$", out, re.MULTILINE)) == 3
    assert any(file.stat().st_size > PHOTOS * 224 * 224 for file in (folder / "cache").rglob("*"))


def two_ranks(folder: pathlib.Path) -> None:
    outs = [run(folder, "two_ranks.py", "photos", RANK=str(rank), WORLD_SIZE="2") for rank in range(2)]
    steps = [re.findall(r"(\d+) steps", out) for out in outs]
    assert steps[0] == steps[1] and len(steps[0]) == 2
    counts = [re.findall(r"validates with (\d+) of (\d+)", out)[0] for out in outs]
    assert sum(int(count) for count, _ in counts) == int(counts[0][1])


def resume(folder: pathlib.Path) -> None:
    first, rest = run(folder, "resume.py", "photos", "state.json"), run(folder, "resume.py", "photos", "state.json")
    lines = re.findall(r"^epoch 0: (.*) and (\d+) more$", first + rest, re.MULTILINE)
    assert first.count("epoch 0: ") == 1 and "stopped" in first and "the epoch is complete" in rest
    assert sum(1 + int(more) for _, more in lines) == PHOTOS and len({name for name, _ in lines}) == len(lines)


def hf_dataset(folder: pathlib.Path) -> None:
    rows = [file.read_bytes() for file in sorted((folder / "photos").rglob("*.jpg"))]
    make = """
import datasets, pathlib
files = sorted(pathlib.Path("photos").rglob("*.jpg"))
rows = [{"img": {"bytes": file.read_bytes(), "path": None}, "label": i} for i, file in enumerate(files)]
features = datasets.Features({"img": datasets.Image(), "label": datasets.Value("int64")})
pathlib.Path("hub").mkdir()
datasets.Dataset.from_list(rows, features=features).to_parquet("hub/train.parquet")
"""
    run(folder, given=make, HF_HOME=str(folder / "hf"))
    out = run(folder, "hf_dataset.py", "hub", HF_HOME=str(folder / "hf"))
    assert f"pixels ({len(rows)}, 3, 32, 32)" in out and f"{len(rows)} pictures in 1 batches" in out


def in_notebook(folder: pathlib.Path) -> None:
    """As text, which like cells has no module that worker processes could import."""
    out = run(folder, given=(FOLDER / "in_notebook.py").read_text(), PHOTOS="photos")
    assert re.search(r"^16 photos of \d+ classes, mean \d+$", out, re.MULTILINE)


def with_asyncio(folder: pathlib.Path) -> None:
    out = run(folder, "with_asyncio.py", "photos")
    assert "0 photos so far" in out and out.endswith(f"{PHOTOS} photos in all\n")


def typed(folder: pathlib.Path) -> None:
    out = run(folder, "typed.py", "photos")
    counts = re.findall(r"^of (\d+) photos the brightest is a [a-z]+$", out, re.MULTILINE)
    assert sum(map(int, counts)) == PHOTOS


CHECKS: dict[str, Callable[[pathlib.Path], Any]] = {
    f"{check.__name__}.py": check
    for check in (
        *(folders, labels_csv, join_table, two_views, numpy_transform, detection, segmentation, weighted_mix, cached),
        *(two_ranks, resume, hf_dataset, in_notebook, with_asyncio, typed),
    )
}
NEEDS = {"hf_dataset.py": ("datasets", "pyarrow", "PIL"), "in_notebook.py": ("cloudpickle",)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs(name: str, folder: pathlib.Path) -> None:
    absent = [package for package in NEEDS.get(name, ()) if importlib.util.find_spec(package) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed")
    CHECKS[name](folder)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_says_how_it_is_run(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text.count("\n") < LINES_MAX
    assert (
        f"python examples/cookbook/{name} " in text or f" examples/cookbook/{name} " in text or text.startswith("# %%")
    )


def test_a_notebook_runs_the_cells(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    for package in ("ipykernel", "cloudpickle"):
        pytest.importorskip(package)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("PHOTOS", "photos")
    cells = re.split(r"^# %%\n", (FOLDER / "in_notebook.py").read_text(), flags=re.MULTILINE)[1:]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [set(output.get("data", ())) for cell in notebook.cells for output in cell.outputs]
    assert any("text/html" in kinds for kinds in shown)  # the pipeline
    assert any("image/png" in kinds for kinds in shown)  # the contact sheet
