"""COCO data sets, boxes and the ops of detection, from Python."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import numpy as np
import pytest

import headrace as hr

NAMES = {5: "dog", 90: "cat", 17: "wheel"}


class Scenes:
    """Synthesised photos in a folder, and their annotations."""

    def __init__(self, folder: pathlib.Path, command: str, count: int = 24) -> None:
        self.folder, self.file = folder / "the photos", folder / "instances of it.json"
        size = ["--width", "96", "--height", "72"]
        subprocess.run(
            [command, "synth", "photos", str(self.folder), "--count", str(count), *size, "--quiet"], check=True
        )
        paths = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.jpg"))
        self.images: list[dict[str, Any]] = [{"id": 1000 - 7 * i, "file_name": path} for i, path in enumerate(paths)]
        self.boxes: list[dict[str, Any]] = [
            {
                "id": 10 * i + k,
                "image_id": self.images[i]["id"],
                "category_id": list(NAMES)[(i + k) % 3],
                "bbox": [3 + k, 5.5 * k, 30.25 + i, 20],
                "area": 600 + i,
                "iscrowd": int(k == 2),
            }
            for i in range(count)
            for k in range(i % 4)
        ]
        self.write()

    def write(self) -> None:
        names = [{"id": key, "name": name} for key, name in NAMES.items()]
        self.file.write_text(json.dumps({"images": self.images, "annotations": self.boxes, "categories": names}))

    def pipe(self, **options: Any) -> hr.Pipeline:
        return hr.coco(self.folder, self.file, **options)


@pytest.fixture
def scenes(tmp_path: pathlib.Path, command: str) -> Scenes:
    return Scenes(tmp_path, command)


def rows(pipe: hr.Pipeline, **options: Any) -> list[dict[str, Any]]:
    """The records, in batches of one."""
    return [
        {key: value.item(0) if isinstance(value, hr.Ragged) else value[0] for key, value in batch.items()}
        for batch in pipe.batch(1, ragged=True).loader(output="numpy", **options)
    ]


def test_records_are_images_in_order_of_id_with_their_boxes(scenes: Scenes) -> None:
    pipe = scenes.pipe(columns=["path", "area", "iscrowd", "annotation_id"])
    assert pipe.fields["labels"].classes == ("dog", "wheel", "cat")
    got = rows(pipe)
    assert len(got) == 24
    number = {"dog": 0, "wheel": 1, "cat": 2}
    for record, image in zip(got, sorted(scenes.images, key=lambda image: image["id"]), strict=True):
        boxes = [box for box in scenes.boxes if box["image_id"] == image["id"]]
        corners = [[x, y, x + w, y + h] for x, y, w, h in (box["bbox"] for box in boxes)]
        assert record["image_id"] == image["id"]
        assert record["path"] == image["file_name"]
        assert bytes(record["data"]) == (scenes.folder / image["file_name"]).read_bytes()
        assert np.array_equal(record["boxes"], np.array(corners, np.float32).reshape(-1, 4))
        assert record["labels"].tolist() == [number[NAMES[box["category_id"]]] for box in boxes]
        assert record["labels"].dtype == np.int64 and record["boxes"].dtype == np.float32
        assert record["area"].tolist() == [box["area"] for box in boxes]
        assert record["iscrowd"].tolist() == [box["iscrowd"] for box in boxes]
        assert record["annotation_id"].tolist() == [box["id"] for box in boxes]


def test_crowds_and_empty_images_are_left_out(scenes: Scenes) -> None:
    assert len(rows(scenes.pipe(empty=False))) == 18
    assert sum(len(record["boxes"]) for record in rows(scenes.pipe(crowd=False))) == 30
    assert len(rows(scenes.pipe(crowd=False))) == 24
    for box in scenes.boxes:
        box["iscrowd"] = 1
    scenes.write()
    assert len(rows(scenes.pipe())) == 24
    assert rows(scenes.pipe(crowd=False, empty=False)) == []


def test_a_validation_set_has_the_numbers_of_the_training_set(scenes: Scenes, tmp_path: pathlib.Path) -> None:
    classes = scenes.pipe().fields["labels"].classes
    assert hr.from_yaml(scenes.pipe().to_yaml()).to_yaml().count("- wheel") == 1  # saved with the graph
    scenes.boxes = [box for box in scenes.boxes if NAMES[box["category_id"]] == "cat"]
    names = [{"id": 1, "name": "cat"}]
    for box in scenes.boxes:
        box["category_id"] = 1
    scenes.file.write_text(json.dumps({"images": scenes.images, "annotations": scenes.boxes, "categories": names}))
    assert {number for record in rows(scenes.pipe()) for number in record["labels"].tolist()} == {0}
    pipe = scenes.pipe(classes=classes)
    assert pipe.fields["labels"].classes == classes
    assert {number for record in rows(pipe) for number in record["labels"].tolist()} == {2}
    pipe.save(tmp_path / "graph.yaml")
    assert hr.load(tmp_path / "graph.yaml").fingerprint == pipe.fingerprint
    with pytest.raises(hr.FormatError, match=r"annotation \d+ of image \d+: its category is not among `classes`"):
        rows(scenes.pipe(classes=["dog", "bird"]))


def test_a_bad_annotation_is_named_and_costs_its_image(scenes: Scenes) -> None:
    bad = next(box for box in scenes.boxes if box["id"] == 111)
    bad["bbox"] = [1, 2, -3, 4]
    scenes.write()
    words = rf"instances of it.json: annotation 111 of image {bad['image_id']}: the width and height"
    with pytest.raises(hr.FormatError, match=words):
        rows(scenes.pipe())
    got = rows(scenes.pipe(), on_error="skip")
    assert len(got) == 23 and bad["image_id"] not in [record["image_id"] for record in got]
    bad["image_id"] = 5
    scenes.write()
    with pytest.raises(hr.FormatError, match="annotation 111 is of image 5, which is not listed"):
        rows(scenes.pipe())


def test_a_missing_image_and_a_damaged_file_are_named(scenes: Scenes) -> None:
    (scenes.folder / scenes.images[3]["file_name"]).unlink()
    with pytest.raises(hr.MissingFileError, match=pathlib.Path(scenes.images[3]["file_name"]).name):
        rows(scenes.pipe())
    assert len(rows(scenes.pipe(), on_error="skip")) == 23
    text = scenes.file.read_text()
    scenes.file.write_text(text[:500])
    with pytest.raises(hr.FormatError, match=r"instances of it.json:1:\d+: "):
        rows(scenes.pipe())
    scenes.file.write_text("")
    with pytest.raises(hr.FormatError, match="unexpected end of text"):
        rows(scenes.pipe())
    with pytest.raises(hr.MissingFileError):
        rows(hr.coco(scenes.folder, scenes.folder / "none.json"))
    scenes.file.write_text(text)
    with pytest.raises(hr.ArgumentError, match='no column "areas".*did you mean area'):
        rows(scenes.pipe(columns=["areas"]))


def trained(scenes: Scenes) -> hr.Pipeline:
    return (
        scenes.pipe()
        .shuffle()
        .decode()
        .zoom_out(fill=[123, 117, 104], field=["image", "boxes"])
        .iou_crop(field=["image", "boxes"])
        .sanitize()
        .flip(field=["image", "boxes"])
        .photometric_distort()
        .resize([60, 80], field=["image", "boxes"])
        .convert_boxes("cxcywh")
    )


def same(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(np.array_equal(x[key], y[key]) for key in x) for x, y in zip(a, b, strict=True)
    )


def test_an_epoch_of_scenes_is_the_same_in_every_variant(scenes: Scenes) -> None:
    pipe = trained(scenes)
    whole = rows(pipe, seed=5, epochs=2, threads=0)
    assert len(whole) == 48 and not same(whole[:24], whole[24:])
    assert sorted(record["image_id"] for record in whole[:24]) == sorted(image["id"] for image in scenes.images)
    for record in whole:
        assert len(record["boxes"]) == len(record["labels"])
        assert record["image"].shape == (60, 80, 3)
        assert (record["boxes"][:, 2:] > 0).all()
    assert same(whole, rows(pipe, seed=5, epochs=2, threads=3))
    assert not same(whole, rows(pipe, seed=6, epochs=2))
    shares = [rows(pipe, seed=5, shard=(rank, 2), even="drop") for rank in range(2)]
    assert sorted(record["image_id"] for share in shares for record in share) == sorted(
        record["image_id"] for record in whole[:24]
    )


def test_a_loop_over_scenes_resumes(scenes: Scenes) -> None:
    pipe = trained(scenes).batch(5, ragged=True)
    loader = pipe.loader(seed=5, epochs=2, output="numpy")
    boxes = []
    for i, batch in enumerate(loader):
        boxes.append(batch["boxes"].items())
        if i == 2:
            state = loader.state_dict()
    again = pipe.loader(seed=5, epochs=2, output="numpy")
    again.load_state_dict(state)
    rest = [batch["boxes"].items() for batch in again]
    assert len(rest) == len(boxes) - 3
    for one, other in zip(boxes[3:], rest, strict=True):
        assert len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_images_are_split_by_their_id(scenes: Scenes) -> None:
    parts = hr.split(scenes.pipe(), [0.75, 0.25], seed=1, by="image_id")
    ids = [{int(record["image_id"]) for record in rows(part)} for part in parts]
    assert not ids[0] & ids[1] and len(ids[0] | ids[1]) == 24
    scenes.images.append({"id": 1, "file_name": scenes.images[0]["file_name"]})
    scenes.write()
    more = [
        {int(record["image_id"]) for record in rows(part)}
        for part in hr.split(scenes.pipe(), [0.75, 0.25], seed=1, by="image_id")
    ]
    assert ids[0] <= more[0] and ids[1] <= more[1]


def test_boxes_without_labels_and_further_fields(scenes: Scenes) -> None:
    pipe = scenes.pipe(columns=["area"]).decode().center_crop(40, field=["image", "boxes"])
    alone = rows(pipe.sanitize(rows=[]))
    assert any(len(record["boxes"]) < len(record["labels"]) for record in alone)
    for record, lonely in zip(rows(pipe.sanitize(rows=["labels", "area"])), alone, strict=True):
        assert len(record["boxes"]) == len(record["labels"]) == len(record["area"]) == len(lonely["boxes"])
    with pytest.raises(hr.HeadraceError, match="no field"):
        rows(pipe.drop("labels").sanitize())
    with pytest.raises(hr.HeadraceError, match=r"field: \[image, boxes\]"):
        rows(pipe.iou_crop())


def test_a_random_move_of_the_image_alone_is_refused(tmp_path: pathlib.Path) -> None:
    """flip() left the boxes where they were, without a word."""
    (tmp_path / "1.ppm").write_bytes(b"P6 10 8 255\n" + bytes(240))
    told = {
        "images": [{"id": 1, "file_name": "1.ppm", "width": 10, "height": 8}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 3]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(told))
    scenes = hr.coco(tmp_path, tmp_path / "a.json").decode()
    for refused in (scenes.flip(), scenes.random_resized_crop(4), scenes.rotate(10)):
        with pytest.raises(hr.ArgumentError, match=r'"boxes" would stay where it is .* field: \[image, boxes\]'):
            refused.fields  # noqa: B018
    (moved,) = scenes.flip(p=1, field=["image", "boxes"]).batch(1).loader(output="numpy")
    assert moved.boxes.tolist() == [[[6, 1, 9, 4]]]
    assert scenes.drop(["boxes", "labels"]).flip().record_count == 1
    alone = scenes.resize([16, 20])
    assert alone.record_count == 1
    with pytest.raises(hr.ArgumentError, match=r'"boxes" is where it was before image\.resize moved the image alone'):
        alone.flip(p=1, field=["image", "boxes"]).fields  # noqa: B018
    both = scenes.resize([16, 20], field=["image", "boxes"]).flip(p=1, field=["image", "boxes"])
    (batch,) = both.batch(1).loader(output="numpy")
    assert batch.boxes.tolist() == [[[12, 2, 18, 8]]]


def test_what_is_nearly_of_a_kind_is_refused_with_what_to_do() -> None:
    item = {"boxes": [[1.0, 2, 3, 4]], "mask": np.zeros((6, 8), np.uint8), "deep": np.zeros((6, 8, 1), np.int64)}
    pipe = hr.from_dataset([item])
    with pytest.raises(hr.DtypeError, match=r"wants float32 \[n, 4\]: tensor.cast to float32 before"):
        pipe.kind("boxes", "boxes").fields  # noqa: B018
    with pytest.raises(hr.DtypeError, match=r"lacks the channels; of a NumPy array, array\[..., None\]"):
        pipe.kind("mask", "mask").fields  # noqa: B018
    with pytest.raises(hr.DtypeError, match="tensor.cast to uint8 before"):
        pipe.kind("deep", "mask").fields  # noqa: B018
    made = pipe.cast("float32", field="boxes").kind("boxes", "boxes").cast("uint8", field="deep").kind("deep", "mask")
    assert made.fields["boxes"].dtype == "float32"
    assert made.fields["deep"].dtype == "uint8"
