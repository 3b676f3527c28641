"""examples/papers: a graph and its Python form output the same bytes, on synthesised data."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import pathlib
import random
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
import sounds
from conftest import ROOT
from test_tfrecord import packed

PAPERS = ROOT / "examples/papers"
NAMES = sorted(file.stem for file in PAPERS.glob("*.yaml"))
Params = dict[str, Any]


def photos(folder: pathlib.Path, command: str) -> Params:
    size = ["--width", "96", "--height", "72"]
    run(command, "synth", "photos", str(folder), "--count", "9", "--classes", "3", *size, "--quiet")
    return {"data": str(folder)}


def labelled_photos(folder: pathlib.Path, command: str) -> Params:
    return {**photos(folder, command), "classes": 3}


def scenes(folder: pathlib.Path, command: str) -> Params:
    photos(folder, command)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.jpg"))
    images = [{"id": 5 + 2 * i, "file_name": file} for i, file in enumerate(files)]
    boxes = [
        {
            "id": 10 * i + k,
            "image_id": 5 + 2 * i,
            "category_id": 3 + k,
            "bbox": [4 * k, 3 + 5 * k, 30 + i, 20],
            "iscrowd": int(k == 2),
        }
        for i in range(len(files))
        for k in range(i % 4)
    ]
    names = [{"id": 3 + k, "name": name} for k, name in enumerate(("dog", "cat", "wheel"))]
    (folder / "instances.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": names}))
    return {"data": str(folder), "annotations": str(folder / "instances.json")}


def small_scenes(folder: pathlib.Path, command: str) -> Params:
    return {**scenes(folder, command), "size": 128}


def speech(folder: pathlib.Path, command: str) -> Params:
    folder.mkdir()
    for i, rate in enumerate((44100, 22050, 8000, 16000, 48000)):
        sound = sounds.chirp(rate, rate // 4 + 37 * i)
        sounds.write(folder / f"{i} spoken.wav", rate, np.stack([sound, -sound]) if i % 2 else sound)
    return {"data": str(folder)}


def digits(folder: pathlib.Path, command: str) -> Params:
    folder.mkdir()
    pixels = bytes((7 * i) % 256 for i in range(20 * 28 * 28))
    for name, head, items in (
        ("t10k-images-idx3-ubyte", struct.pack(">IIII", 0x803, 20, 28, 28), pixels),
        ("t10k-labels-idx1-ubyte", struct.pack(">II", 0x801, 20), bytes(i % 10 for i in range(20))),
    ):
        (folder / f"{name}.gz").write_bytes(gzip.compress(head + items))
    return {"data": str(folder), "part": "t10k"}


def tfrecords(folder: pathlib.Path, command: str) -> Params:
    folder.mkdir()
    rng = random.Random(1)
    for i in range(2):
        (folder / f"{i}.tfrecord").write_bytes(b"".join(packed(rng.randbytes(n)) for n in (0, 1, 300, 7000)))
    return {"data": str(folder)}


def text(folder: pathlib.Path, command: str) -> Params:
    files = pathlib.Path(os.environ.get("HEADRACE_DATA", ROOT.parent / "shared/data")) / "tokenizer"
    if not files.is_dir():
        pytest.skip(f"GPT-2's tokenizer is not in {files}")
    folder.mkdir()
    lines = [f"The {'very ' * i}long line {i}, isn't it?" for i in range(30)]
    (folder / "some text.txt").write_text("\n".join(["", *lines, "", " = Heading = ", "déjà vu " * 200]))
    rows = np.arange(50257 * 3, dtype=np.float32).reshape(-1, 3)
    np.save(folder / "rows.npy", rows)
    names = {"encoder": "gpt2-encoder.json", "merges": "gpt2-vocab.bpe"}
    return {
        "data": str(folder / "some text.txt"),
        "table": str(folder / "rows.npy"),
        **{key: str(files / name) for key, name in names.items()},
    }


def pieces(folder: pathlib.Path, command: str) -> Params:
    folder.mkdir()
    lines = [f"the water {'wheel ' * (i * 9 % 70)}turns in a mill" for i in range(30)]
    (folder / "some text.txt").write_text("\n".join(["", *lines, "", " = Heading = ", "the water " * 200]))
    np.save(folder / "rows.npy", np.arange(52 * 3, dtype=np.float32).reshape(-1, 3))
    model = ROOT / "fuzz/corpus/sentencepiece/bpe"
    return {"data": str(folder / "some text.txt"), "model": str(model), "table": str(folder / "rows.npy")}


def messages(folder: pathlib.Path, command: str) -> Params:
    for group in ("alt.atheism", "sci.space"):
        (folder / "20 news" / group).mkdir(parents=True)
        for i in range(7):
            body = "From: someone\n\n" + "The  moon\tis\r\nfar " * (i * 60) + "\xff Away"
            (folder / "20 news" / group / f"5{i}").write_text(body, encoding="latin-1")
    (folder / "words.txt").write_text("<padding>\nthe\nmoon\nfar\naway\n")
    np.save(folder / "vectors.npy", np.arange(5 * 4, dtype=np.float32).reshape(-1, 4))
    files = {"words": "words.txt", "table": "vectors.npy"}
    return {"data": str(folder / "20 news"), **{key: str(folder / name) for key, name in files.items()}}


DATA: dict[str, Callable[[pathlib.Path, str], Params]] = {
    "asr": speech,
    "asr_transformer": speech,
    "cv_tf": photos,
    "cv_torch": photos,
    "inflate": tfrecords,
    "lenet": digits,
    "news20": messages,
    "nlp_hf_tf": text,
    "nlp_tf": pieces,
    "nlp_torch": text,
    "resnet50": labelled_photos,
    "retinanet": small_scenes,
    "simclr": photos,
    "ssd_tf": scenes,
    "ssd_torch": scenes,
}


def run(*args: str) -> str:
    return subprocess.run(args, check=True, capture_output=True, text=True, timeout=300).stdout


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"papers_{name}", PAPERS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def arrays(pipe: hr.Pipeline, **options: Any) -> list[dict[str, Any]]:
    return [dict(batch.items()) for batch in pipe.loader(output="numpy", **options)]


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, hr.Ragged):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b if isinstance(a, list) else a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_every_pipeline_has_two_forms_and_a_row() -> None:
    assert sorted(file.stem for file in PAPERS.glob("*.py")) == NAMES == sorted(DATA)
    table = (PAPERS / "README.md").read_text()
    assert [name for name in NAMES if f"| `{name}` |" not in table] == []


@pytest.mark.parametrize("name", NAMES)
def test_yaml_and_python_output_the_same_bytes(name: str, command: str, tmp_path: pathlib.Path) -> None:
    params = {**DATA[name](tmp_path / "the data", command), "batch": 4}
    graph, made = hr.load(PAPERS / f"{name}.yaml", **params), module(name).pipeline(**params)
    assert graph == made and graph.fingerprint == made.fingerprint
    batches, others = arrays(graph, seed=3, epochs=2), arrays(made, seed=3, epochs=2, threads=0)
    assert len(batches) == len(others) > 1
    for batch, other in zip(batches, others, strict=True):
        assert batch.keys() == other.keys() and all(equal(batch[key], other[key]) for key in batch)
    made.save(tmp_path / "made.yaml")
    given = [word for key, value in params.items() for word in ("-p", f"{key}={value}")]
    report = ["--digest", "--json", "--seed", "3", "--epochs", "2"]
    written = json.loads(run(command, "run", str(PAPERS / f"{name}.yaml"), *given, *report))
    saved = json.loads(run(command, "run", str(tmp_path / "made.yaml"), *report))
    assert written["digest"] == saved["digest"] and written["records"] == saved["records"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_of_the_paper_is_the_default(name: str, command: str, tmp_path: pathlib.Path) -> None:
    params = DATA[name](tmp_path / "data", command)
    assert hr.load(PAPERS / f"{name}.yaml", **params) == module(name).pipeline(**params)


def test_text_becomes_the_rows_of_its_ids(command: str, tmp_path: pathlib.Path) -> None:
    """Rows hold 3 * id, 3 * id + 1, 3 * id + 2; RoBERTa's begin and end are 0 and 2."""
    params = text(tmp_path / "data", command)
    tokenizer = hr.Tokenizer.from_gpt2(params["encoder"], params["merges"])
    lines = pathlib.Path(params["data"]).read_text().split("\n")
    plain, added = (arrays(module(name).pipeline(**params)) for name in ("nlp_hf_tf", "nlp_torch"))
    assert len(lines) == len(plain) == len(added)
    for line, one, other in zip(lines, plain, added, strict=True):
        ids = tokenizer.encode(line)[:254].tolist()
        assert list(one) == list(other) == ["embeddings"]
        assert (one["embeddings"][0, :, 0] / 3).tolist() == ids
        assert (other["embeddings"][0, :, 2] / 3 - 2 / 3).round().tolist() == [0, *ids, 2]


def test_pieces_become_the_rows_of_their_ids(command: str, tmp_path: pathlib.Path) -> None:
    params = pieces(tmp_path / "data", command)
    tokenizer = hr.Tokenizer.from_sentencepiece(params["model"])
    lines = pathlib.Path(params["data"]).read_text().split("\n")
    for line, batch in zip(lines, arrays(module("nlp_tf").pipeline(**params)), strict=True):
        assert (batch["embeddings"][0, :, 0] / 3).tolist() == tokenizer.encode(line)[:254].tolist()


def test_messages_become_vectors_of_their_last_words(command: str, tmp_path: pathlib.Path) -> None:
    params = messages(tmp_path / "data", command)
    (batch,) = arrays(module("news20").pipeline(**params), seed=5)
    assert batch["embeddings"].shape == (14, 500, 4) and sorted(batch["label"].tolist()) == [0] * 7 + [1] * 7
    got = sorted((row[:, 0] / 4).astype(int).tolist() for row in batch["embeddings"])
    ids = [([1, 2, 3] * 60 * i + [4])[-500:] for i in range(7)]
    assert got == sorted((one + [0] * 500)[:500] for one in ids * 2)


def test_images_are_turned_one_by_one(command: str, tmp_path: pathlib.Path) -> None:
    """Each photo of a batch has its own angle, shear and window (one photo, several times)."""
    folder = tmp_path / "photos"
    params = labelled_photos(folder, command)
    for other in sorted(folder.rglob("*.jpg"))[1:]:
        other.write_bytes(sorted(folder.rglob("*.jpg"))[0].read_bytes())
    (batch,) = arrays(module("resnet50").pipeline(**params, batch=9))
    assert batch["image"].dtype == np.float16 and batch["image"].shape == (9, 224, 224, 3)
    assert len({image.tobytes() for image in batch["image"]}) == 9
    assert batch["label"].shape == (9, 3)


def test_scenes_keep_their_labels_with_their_boxes(command: str, tmp_path: pathlib.Path) -> None:
    params = scenes(tmp_path / "data", command)
    for name, shape in (("ssd_torch", None), ("ssd_tf", (1333, 1333, 3))):
        batches = arrays(module(name).pipeline(**params), seed=2)
        assert len(batches) == 6  # with annotations
        for batch in batches:
            image, boxes = batch["image"].item(0) if shape is None else batch["image"][0], batch["boxes"].item(0)
            assert len(boxes) == len(batch["labels"].item(0)) and image.dtype == np.float32
            height, width = image.shape[1:] if shape is None else image.shape[:2]
            assert image.shape == (shape or (3, height, width))
            assert (boxes[:, 2:] - boxes[:, :2] >= 1).all() and (boxes >= 0).all()
            assert (boxes[:, 2] <= width).all() and (boxes[:, 3] <= height).all()


def test_anchors_stand_for_the_boxes_of_their_image(command: str, tmp_path: pathlib.Path) -> None:
    params = small_scenes(tmp_path / "data", command)
    (batch,) = arrays(module("retinanet").pipeline(**params), seed=4)
    assert batch["image"].shape == (6, 128, 128, 3) and len(set(batch["image_id"].tolist())) == 6
    anchors = 9 * (16**2 + 8**2 + 4**2 + 2**2 + 1)
    assert batch["class_targets"].shape == (6, anchors) and batch["box_targets"].shape == (6, anchors, 4)
    for classes, targets in zip(batch["class_targets"], batch["box_targets"], strict=True):
        assert set(classes.tolist()) <= {-2, -1, 0, 1} and (classes >= 0).any()  # 2 is the label of crowds
        assert (targets[classes < 0] == 0).all() and (abs(targets[classes >= 0]).max(axis=1) > 0).all()
