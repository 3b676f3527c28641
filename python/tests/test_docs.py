"""The Python in docs/*.md and README.md runs as it is written, over small folders of photos and masks."""

from __future__ import annotations

import ast
import json
import pathlib
import re
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from conftest import ROOT
from voc import Voc

BLOCKS = [
    pytest.param(text, id=f"{page}-{number}")
    for page in ("README.md", "docs/python.md", "docs/detection.md")
    for number, text in enumerate(
        re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    )
]


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
        "dataset": [(np.zeros((3, 4, 4), "float32"), label) for label in range(64)],
        "labelled": hr.from_dataset([labelled(), labelled()], names=["image", "mask", "boxes"]),
        "augment": userfns.brighten,
        "masked": masked,
        "mixup": mixup,
        "loader": numbers.batch(2).loader(),
    }


@pytest.mark.parametrize("text", BLOCKS)
def test_blocks_run_as_written(text: str, pictures: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    if "hr.voc(" in text or '"masks"' in text:
        scenes(tmp_path)
    else:
        (tmp_path / "photos").symlink_to(pictures)
    monkeypatch.chdir(tmp_path)
    if "device=" in text or "hr.DataLoader(" in text:
        pytest.importorskip("torch")
    known = names(pictures, tmp_path)
    for statement in ast.parse(text.replace("epochs=90", "epochs=2")).body:
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), "block", "eval"), known)
            if isinstance(value, hr.Pipeline):
                assert len(next(iter(value.loader(output="numpy", threads=1)))) > 0
        else:
            exec(compile(ast.Module([statement], []), "block", "exec"), known)
