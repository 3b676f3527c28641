"""The Python in docs and README.md runs as it is written, over small folders of photos and masks.

Blocks of guides run by themselves. Pages that are read from top to bottom run as one program, with the lines
that start `headrace` in their shell blocks.
"""

from __future__ import annotations

import ast
import inspect
import json
import operator
import pathlib
import re
import shlex
import subprocess
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from conftest import ROOT, run_script
from voc import Voc

BLOCKS = [
    pytest.param(text, id=f"{page}-{number}")
    for page in ("README.md", "docs/python.md", "docs/detection.md")
    for number, text in enumerate(
        re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    )
]

PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/coming-from/*.md"))
    if page.name in ("index.md", "start.md", "tutorial.md", "debugging.md", "performance.md")
    or page.parent.name == "coming-from"
)


def masked(image: np.ndarray, label: int) -> tuple[np.ndarray, int]:
    return np.zeros((224, 224), np.uint8), label


def labelled() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((40, 60, 3), np.uint8), np.zeros((40, 60, 1), np.uint8), np.array([[5, 5, 20, 30]], np.float32)


def mixup(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"image": batch["image"] * 0.5 + batch["image"][::-1] * 0.5, "label": batch["label"]}


def scenes(folder: pathlib.Path) -> None:
    """Sets as docs/detection.md names them."""
    voc = Voc(folder / "VOCdevkit/VOC2012")
    for name, part in (("val2017", "JPEGImages"), ("photos", "JPEGImages"), ("masks", "SegmentationClass")):
        (folder / name).symlink_to(voc.folder / part)
    images = [{"id": i, "file_name": name + ".jpg"} for i, name in enumerate(voc.names)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [3, 4, 30, 20]} for i in range(len(images))]
    file = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "dog"}]}
    (folder / "instances_val2017.json").write_text(json.dumps(file))


def names(pictures: pathlib.Path, folder: pathlib.Path) -> dict[str, Any]:
    """What the pages take for granted."""
    photos = hr.files(pictures, labels="folder").decode().resize((24, 24))
    numbers = hr.range(8)
    for rank in range(2):
        loader = numbers.batch(2).loader(shard=(rank, 2))
        next(iter(loader))
        (folder / f"loader-{rank}.json").write_text(json.dumps(loader.state_dict()))
    letters = [chr(b) for b in (*range(33, 127), *range(161, 173), *range(174, 256))]
    letters += [chr(256 + i) for i in range(256 - len(letters))]
    (folder / "encoder.json").write_text(json.dumps({letter: i for i, letter in enumerate([*letters, "he", "hel"])}))
    (folder / "vocab.bpe").write_text("h e\nhe l\n")
    return {
        "hr": hr,
        "np": np,
        "json": json,
        "folder": folder,
        "numbers": numbers,
        "lines": hr.from_iterable(["a b", "c d e"]),
        "photos": photos,
        "pipe": photos.batch(8),
        "dataset": [(np.zeros((3, 4, 4), "float32"), label) for label in range(64)],
        "labelled": hr.from_dataset([labelled(), labelled()], names=["image", "mask", "boxes"]),
        "augment": userfns.brighten,
        "masked": masked,
        "mixup": mixup,
        "loader": numbers.batch(2).loader(),
    }


@pytest.mark.parametrize("text", BLOCKS)
def test_blocks_run_as_written(
    text: str, pictures: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any, request: pytest.FixtureRequest
) -> None:
    if "hr.voc(" in text or '"masks"' in text:
        scenes(tmp_path)
    else:
        (tmp_path / "photos").symlink_to(pictures)
    monkeypatch.chdir(tmp_path)
    if "device=" in text or "hr.DataLoader(" in text:
        pytest.importorskip("torch")
    if "workers=" in text or "ray=" in text:
        monkeypatch.setenv("HEADRACE_COMMAND", request.getfixturevalue("command"))
    if "import ray" in text:
        pytest.importorskip("ray")
        # By itself: a process that has run Ray has threads of Ray's, beside which Python 3.11 may fail to parse.
        begin = 'import headrace as hr\npipe = hr.files("photos", labels="folder").decode().resize((24, 24)).batch(8)\n'
        done = run_script(tmp_path, begin + text, seconds=600)
        assert done.returncode == 0, done.stderr
        return
    known = names(pictures, tmp_path)
    for statement in ast.parse(text.replace("epochs=90", "epochs=2")).body:
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), "block", "eval"), known)
            if isinstance(value, hr.Pipeline):
                assert len(next(iter(value.loader(output="numpy", threads=1)))) > 0
        else:
            exec(compile(ast.Module([statement], []), "block", "exec"), known)


@pytest.mark.parametrize("page", PAGES)
def test_pages_run_from_top_to_bottom(
    page: str, command: str, pictures: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any, capsys: Any
) -> None:
    text = (ROOT / page).read_text()
    if "import torch" in text:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    if "synth photos" not in text:
        (tmp_path / "photos").symlink_to(pictures)
    known = names(pictures, tmp_path)
    ran = 0
    for kind, block in re.findall(r"^```(python|sh)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if kind == "python":
            exec(compile(block, page, "exec"), known)
            ran += 1
        for line in block.splitlines() if kind == "sh" else ():
            if line.startswith("headrace "):
                subprocess.run([command, *shlex.split(line, comments=True)[1:]], check=True, capture_output=True)
                ran += 1
    assert ran > 0
    if page == "docs/tutorial.md":
        assert known["last"] < known["first"] and 0 < known["rest"] < known["train"].record_count


@pytest.mark.parametrize("page", [page for page in PAGES if "coming-from" in page])
def test_tables_name_what_there_is(page: str) -> None:
    """Functions, methods and options of loaders in the columns that say how it is done here."""
    rows = re.findall(r"^\|.*?\|(.*)\|$", (ROOT / page).read_text(), re.MULTILINE)[2:]
    codes = [code for row in rows for code in re.findall(r"`([^`]+)`", row)]
    assert len(rows) > 10 and len(codes) > 10
    options = inspect.signature(hr.Pipeline.loader).parameters
    for code in codes:
        for name in re.findall(r"\bhr\.(\w+)", code):
            assert name in hr.__all__ or name == "DataLoader", code
        for name in re.findall(r"(?:^|\)|pipe)\.(\w+)\(?", code):
            assert hasattr(hr.Pipeline, name), code
        for given in re.findall(r"\bloader\((.*)\)", code):
            assert set(re.findall(r"(\w+)=", given)) <= set(options), code


def test_names_within_sentences_exist() -> None:
    """Imports in backticks and names such as hr.Pipeline.loader in docs/python.md."""
    page = (ROOT / "docs/python.md").read_text()
    imports = re.findall(r"`(from headrace[\w.]* import \w+)`", page)
    for line in imports:
        exec(line, {})
    for path in re.findall(r"\bhr\.(\w+\.\w+)", page):
        assert operator.attrgetter(path)(hr) is not None, path
    assert imports
