"""Masks from PNG files, Pascal VOC data sets, and what is padded with the label that a loss ignores."""

from __future__ import annotations

import pathlib
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from voc import COLOURS, GRAY, GRAY_ALPHA, PALETTE, RGB, Voc, png, thing

MOVED = ["image", "mask"]


def rows(pipe: hr.Pipeline, **options: Any) -> list[dict[str, Any]]:
    """The records, in batches of one."""
    return [
        {key: value.item(0) if isinstance(value, hr.Ragged) else value[0] for key, value in batch.items()}
        for batch in pipe.batch(1, ragged=True).loader(output="numpy", **options)
    ]


def same(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(np.array_equal(x[key], y[key]) for key in x) for x, y in zip(a, b, strict=True)
    )


@pytest.fixture
def voc(tmp_path: pathlib.Path) -> Voc:
    return Voc(tmp_path / "VOC of it")


@pytest.fixture
def seed() -> int:
    made = random.SystemRandom().randrange(1 << 32)
    print(f"seed {made}")
    return made


# ---- masks from PNG ----


def decoded(tmp_path: pathlib.Path, data: bytes, **options: Any) -> np.ndarray[Any, Any]:
    folder = tmp_path / "png"
    folder.mkdir(exist_ok=True)
    (folder / "a.png").write_bytes(data)
    (record,) = rows(hr.files(folder).decode(to="mask", color="labels", **options))
    made: np.ndarray[Any, Any] = record["mask"]
    return made


@pytest.mark.parametrize(("colour", "depth"), [(c, d) for c in (GRAY, PALETTE) for d in (1, 2, 4, 8)])
def test_labels_are_the_numbers_in_the_file(tmp_path: pathlib.Path, seed: int, colour: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    for shape in ((1, 1), (7, 13), (33, 64)):
        pixels = rng.integers(0, 1 << depth, shape).astype(np.uint8)
        got = decoded(tmp_path, png(pixels, depth, colour))
        assert got.dtype == np.uint8 and got.shape == (*shape, 1)
        assert np.array_equal(got[:, :, 0], pixels)


def test_a_palette_is_expanded_only_for_images(tmp_path: pathlib.Path) -> None:
    pixels = np.arange(256).reshape(16, 16)
    folder = tmp_path / "png"
    folder.mkdir()
    (folder / "a.png").write_bytes(png(pixels))
    (record,) = rows(hr.files(folder).decode())
    assert np.array_equal(record["image"], COLOURS[pixels])
    (folder / "a.png").write_bytes(png(pixels, 8, GRAY))
    (record,) = rows(hr.files(folder).decode(to="mask", color="gray").kind("mask", "mask"))
    assert np.array_equal(record["mask"][:, :, 0], pixels)


def test_files_without_labels_are_refused(tmp_path: pathlib.Path) -> None:
    pixels = np.arange(12).reshape(3, 4)
    for data, words in (
        (png(np.stack([pixels] * 3, 2), colour=RGB), "PNG file has colours or transparency"),
        (png(np.stack([pixels] * 2, 2), colour=GRAY_ALPHA), "has colours or transparency"),
        (png(pixels, 16, GRAY), "has 16 bits per pixel"),
        (b"P5 4 3 255\n" + bytes(12), "is no PNG: labels are read from PNG files with a palette"),
    ):
        with pytest.raises(hr.UnsupportedError, match=words):
            decoded(tmp_path, data)
    for data in (b"", png(pixels)[:60], png(pixels).replace(b"IDAT", b"IDAX")):
        with pytest.raises(hr.HeadraceError, match=r"a\.png"):
            decoded(tmp_path, data)


def test_a_decoded_mask_is_of_kind_mask(voc: Voc) -> None:
    pipe = hr.voc(voc.folder, task="segmentation").decode().decode(field="mask", to="mask", color="labels")
    with pytest.raises(hr.HeadraceError, match="kind mask"):
        rows(pipe.color_jitter(brightness=0.5, field="mask"))
    for record in rows(pipe.resize([17, 23], field=MOVED)):
        assert set(np.unique(record["mask"])) <= {0, 1, 12, 20, 255}
        assert record["image"].shape == (17, 23, 3) and record["mask"].shape == (17, 23, 1)
    for record, name in zip(rows(pipe.cast("int64", field="mask")), voc.names, strict=True):
        assert record["mask"].dtype == np.int64 and np.array_equal(record["mask"][:, :, 0], voc.masks[name])


def test_padding_is_the_label_that_a_loss_ignores(voc: Voc) -> None:
    pipe = hr.voc(voc.folder, task="segmentation").decode().decode(field="mask", to="mask", color="labels")
    for record, name in zip(rows(pipe.pad([1, 2, 3, 4], mask_fill=255, field=MOVED)), voc.names, strict=True):
        assert np.array_equal(record["mask"][2:-4, 1:-3, 0], voc.masks[name])
        around = np.ones(record["mask"].shape[:2], bool)
        around[2:-4, 1:-3] = False
        assert (record["mask"][around] == 255).all() and (record["image"][around] == 0).all()
    turned = rows(pipe.rotate([45, 45], expand=True, mask_fill=254, field=MOVED))
    assert all((record["mask"] == 254).mean() > 0.3 for record in turned)
    assert all(not (record["mask"] == 254).any() for record in rows(pipe.rotate([45, 45], field=MOVED)))
    with pytest.raises(hr.RangeError, match="mask_fill"):
        rows(pipe.pad(1, mask_fill=256, field=MOVED))
    assert pipe.pad(1).fingerprint != pipe.pad(1, mask_fill=7).fingerprint


# ---- Pascal VOC ----


def test_detection_has_boxes_that_count_from_0(voc: Voc) -> None:
    pipe = hr.voc(voc.folder, columns=["name"])
    classes = pipe.fields["labels"].classes
    assert classes is not None and len(classes) == 20 and classes[11] == "dog" and classes[-1] == "tvmonitor"
    got = rows(pipe)
    assert [record["name"] for record in got] == voc.names
    for i, record in enumerate(got):
        boxes = np.array([[0, 0, 60, 40], [2 + i, 3, 20 + i, 9.5]], np.float32)[: i % 3].reshape(-1, 4)
        assert record["boxes"].dtype == np.float32 and np.array_equal(record["boxes"], boxes)
        assert record["labels"].dtype == np.int64 and record["labels"].tolist() == [11, 19][: i % 3]
        assert record["difficult"].tolist() == record["truncated"].tolist() == [0, 1][: i % 3]
        assert bytes(record["data"]) == voc.path("JPEGImages", voc.names[i], ".jpg").read_bytes()
    assert [record["labels"].tolist() for record in rows(hr.voc(voc.folder, difficult=False))[:3]] == [[], [11], [11]]
    assert rows(hr.voc(voc.folder, raw=True))[2]["boxes"].tolist() == [[1, 1, 60, 40], [5, 4, 22, 9.5]]


def test_a_box_covers_the_pixels_that_voc_names(voc: Voc) -> None:
    """A box of VOC's first two rows and last three columns, cut out."""
    voc.objects[voc.names[0]] = [thing("cat", (58, 1, 60, 2))]
    voc.annotate(voc.names[0], "")
    record = rows(hr.voc(voc.folder, split="val").decode())[0]
    x1, y1, x2, y2 = record["boxes"][0].astype(int)
    assert np.array_equal(record["image"][y1:y2, x1:x2], record["image"][:2, -3:])


def test_segmentation_has_the_files_of_masks(voc: Voc) -> None:
    for record, name in zip(
        rows(hr.voc(voc.folder, task="segmentation", columns=["instances", "name"])), voc.names, strict=True
    ):
        assert record["name"] == name
        for field, part in (("mask", "SegmentationClass"), ("instances", "SegmentationObject")):
            assert bytes(record[field]) == voc.path(part, name, ".png").read_bytes()


def test_lists_of_pictures(voc: Voc, tmp_path: pathlib.Path) -> None:
    def names(**options: Any) -> list[str]:
        return [record["name"] for record in rows(hr.voc(voc.folder, columns=["name"], **options))]

    assert names(split="val") == voc.names[:2]
    mine = tmp_path / "my list.txt"
    mine.write_bytes(b"\xef\xbb\xbf" + f"{voc.names[3]}\r\n\r\n {voc.names[1]} ".encode())
    assert names(split=mine) == [voc.names[3], voc.names[1]]
    assert names(split=str(mine), task="segmentation") == [voc.names[3], voc.names[1]]
    voc.write_list("ImageSets/Main/cat_train.txt", [f"{voc.names[0]} -1", f"{voc.names[1]}  1", f"{voc.names[2]}  0"])
    assert names(split="cat_train") == voc.names[1:3]
    mine.write_text("")
    assert names(split=mine) == []
    with pytest.raises(hr.MissingFileError, match=r"ImageSets/Main/tarin\.txt.*`path` is the folder with JPEGImages"):
        names(split="tarin")
    voc.add("a picture ü 1", [])
    mine.write_text("a picture ü 1\n", encoding="utf-8")
    assert names(split=mine) == ["a picture ü 1"]


def test_classes_are_given_or_found(voc: Voc, tmp_path: pathlib.Path) -> None:
    voc.objects[voc.names[0]] = [thing("zebra", (1, 1, 2, 2)), thing("ant &amp; bee", (1, 1, 2, 2))]
    voc.annotate(voc.names[0], "")
    words = rf"{voc.names[0]}\.xml:4:\d+: object 1: \"zebra\" is not among the 20 given classes"
    with pytest.raises(hr.FormatError, match=words):
        rows(hr.voc(voc.folder))
    assert len(rows(hr.voc(voc.folder), on_error="skip")) == 11
    pipe = hr.voc(voc.folder, find_classes=True)
    assert pipe.fields["labels"].classes == ("ant & bee", "dog", "tvmonitor", "zebra")
    assert rows(pipe)[0]["labels"].tolist() == [3, 0]
    pipe.save(tmp_path / "graph.yaml")
    voc.path("Annotations", voc.names[0], ".xml").write_text("<annotation/>")
    assert hr.load(tmp_path / "graph.yaml").fields["labels"].classes == ("ant & bee", "dog", "tvmonitor", "zebra")
    given = hr.voc(voc.folder, classes=["tvmonitor", "dog"])
    assert rows(given)[2]["labels"].tolist() == [1, 0] and given.fields["labels"].classes == ("tvmonitor", "dog")
    with pytest.raises(hr.ArgumentError, match='"dog" is given twice'):
        rows(hr.voc(voc.folder, classes=["dog", "cat", "dog"]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"no element found"),
        ("<annotation>\n <object>", r"\.xml:2:\d+: .*no element found"),
        (
            "<annotation>\n<object><name>cat</name></object></annotation>",
            r"\.xml:2:\d+: object 1 \(\"cat\"\) has no <bndbox>",
        ),
        (
            f"<annotation>\n\n{thing('cat', (9, 1, 8, 2))}</annotation>",
            r"\.xml:3:\d+: .*a xmax of 8, which is less than its xmin of 9",
        ),
        (
            '<!DOCTYPE a [<!ENTITY x0 "ha">'
            + "".join(f'<!ENTITY x{i} "&x{i - 1};&x{i - 1};">' for i in range(1, 40))
            + "]><annotation>&x39;</annotation>",
            "a document type",
        ),
        ("<annotation>" + "<a>" * 100000, "nested more than 64 deep"),
        ("<annotation><object><name>" + "a" * 10**6, "the text of an element is longer"),
    ],
)
def test_bad_annotations_are_named_and_cost_their_picture(voc: Voc, text: str, words: str) -> None:
    voc.path("Annotations", voc.names[4], ".xml").write_text(text)
    with pytest.raises(hr.HeadraceError, match=words) as caught:
        rows(hr.voc(voc.folder))
    assert voc.names[4] + ".xml" in str(caught.value)
    assert len(rows(hr.voc(voc.folder), on_error="skip")) == 11


def test_missing_files_and_sizes_that_disagree_are_bad_records(voc: Voc) -> None:
    voc.path("Annotations", voc.names[1], ".xml").unlink()
    voc.path("SegmentationClass", voc.names[2], ".png").unlink()
    voc.annotate(voc.names[5], "<size><width>60</width><height>41</height></size>")
    voc.path("SegmentationClass", voc.names[6], ".png").write_bytes(png(np.zeros((40, 61))))
    with pytest.raises(hr.MissingFileError, match=rf"Annotations/{voc.names[1]}\.xml"):
        rows(hr.voc(voc.folder))
    with pytest.raises(hr.ShapeError, match=rf"Annotations/{voc.names[5]}\.xml is of 60x41, and the picture is 60x40"):
        rows(hr.voc(voc.folder).skip(2))
    assert len(rows(hr.voc(voc.folder), on_error="skip")) == 10
    masks = hr.voc(voc.folder, task="segmentation")
    with pytest.raises(hr.MissingFileError, match=rf"SegmentationClass/{voc.names[2]}\.png"):
        rows(masks)
    with pytest.raises(
        hr.ShapeError, match=rf"SegmentationClass/{voc.names[6]}\.png is of 61x40, and the picture is 60x40"
    ):
        rows(masks.skip(3))
    assert len(rows(masks, on_error="skip")) == 10
    for size in ("", "<size/>", "<size><width>0</width><height>0</height></size>"):
        voc.annotate(voc.names[5], size)
        assert len(rows(hr.voc(voc.folder), on_error="skip")) == 11


def test_wrong_parameters_are_refused(voc: Voc) -> None:
    for options, words in (
        ({"columns": ["instances"]}, "needs task: segmentation"),
        ({"columns": ["nam"]}, 'no column "nam": name and instances can be fields'),
        ({"task": "segmentaton"}, "segmentation"),
    ):
        with pytest.raises(hr.HeadraceError, match=words):
            rows(hr.voc(voc.folder, **options))  # type: ignore[arg-type]


def trained(voc: Voc, task: str) -> hr.Pipeline:
    pipe = hr.voc(voc.folder, task=task, columns=["name"]).shuffle().decode()  # type: ignore[arg-type]
    if task == "detection":
        moved = ["image", "boxes"]
    else:
        pipe, moved = pipe.decode(field="mask", to="mask", color="labels"), MOVED
    pipe = pipe.zoom_out(mask_fill=255, field=moved).random_resized_crop(24, field=moved).flip(field=moved)
    return pipe.color_jitter(brightness=0.4, hue=0.1)


@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_an_epoch_is_the_same_in_every_variant(voc: Voc, task: str) -> None:
    pipe = trained(voc, task)
    whole = rows(pipe, seed=5, epochs=2, threads=0)
    assert len(whole) == 24 and not same(whole[:12], whole[12:])
    assert sorted(record["name"] for record in whole[:12]) == sorted(voc.names)
    assert same(whole, rows(pipe, seed=5, epochs=2, threads=3))
    shares = [rows(pipe, seed=5, shard=(rank, 2), even="drop") for rank in range(2)]
    assert sorted(record["name"] for share in shares for record in share) == sorted(voc.names)
    loader = pipe.batch(5, ragged=True).loader(seed=5, epochs=2, output="numpy")
    for i, _batch in enumerate(loader):
        if i == 1:  # 10 of 12 records
            state = loader.state_dict()
            break
    again = pipe.batch(5, ragged=True).loader(seed=5, epochs=2, output="numpy")
    again.load_state_dict(state)
    rest = [name for batch in again for name in batch["name"]]
    assert rest == [record["name"] for record in whole[10:]]


def test_pictures_are_split_by_name(voc: Voc) -> None:
    pipe = hr.voc(voc.folder, columns=["name"])
    parts = hr.split(pipe, [0.7, 0.3], seed=1, by="name")
    names = [{record["name"] for record in rows(part)} for part in parts]
    assert not names[0] & names[1] and names[0] | names[1] == set(voc.names)
    halves = hr.split(hr.voc(voc.folder, columns=["name"]), [0.5, 0.5], seed=1, by="path")
    assert sum(len(rows(part)) for part in halves) == len(voc.names)
    voc.add("2012_000001", [])
    voc.write_list("ImageSets/Main/train.txt", [*voc.names, "2012_000001"])
    more = [
        {record["name"] for record in rows(part)}
        for part in hr.split(hr.voc(voc.folder, columns=["name"]), [0.7, 0.3], seed=1, by="name")
    ]
    assert names[0] <= more[0] and names[1] <= more[1]


def test_the_list_and_the_classes_are_the_identity(voc: Voc, tmp_path: pathlib.Path) -> None:
    pipe = hr.voc(voc.folder)
    mine = tmp_path / "mine.txt"
    mine.write_text("\n".join(voc.names))
    assert hr.voc(voc.folder, split=mine).fingerprint == pipe.fingerprint
    assert hr.voc(voc.folder, classes=list(pipe.fields["labels"].classes or ())).fingerprint == pipe.fingerprint
    others = [
        hr.voc(voc.folder, split="val"),
        hr.voc(voc.folder, classes=["dog", "tvmonitor"]),
        hr.voc(voc.folder, raw=True),
        hr.voc(voc.folder, difficult=False),
        hr.voc(voc.folder, task="segmentation"),
    ]
    assert len({pipe.fingerprint, *(other.fingerprint for other in others)}) == 6


def test_the_example_in_a_file(voc: Voc) -> None:
    pipe = hr.load(pathlib.Path(__file__).parents[2] / "examples/segmentation.yaml", data=voc.folder, size=32, batch=4)
    seen = 0
    for batch in pipe.loader(output="numpy", seed=3):
        assert batch["image"].shape == (4, 3, 32, 32) and batch["image"].dtype == np.float32
        assert batch["mask"].shape == (4, 32, 32, 1) and batch["mask"].dtype == np.int64
        assert set(np.unique(batch["mask"])) <= {0, 1, 12, 20, 255}
        seen += 4
    assert seen == 12
