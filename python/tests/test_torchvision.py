"""Images, masks and boxes move as torchvision's v2 transforms move its tv_tensors.

Each op draws; the corners of the image, which move along as points, say what it drew. The same
parameters are given to torchvision. Skipped where torchvision is not installed or does not load.
"""

from __future__ import annotations

import inspect
import itertools
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import vision
from voc import Voc

try:
    import torch
    import torchvision.transforms.v2 as v2
    import torchvision.transforms.v2.functional as tv
    from PIL import Image
    from torchvision import tv_tensors
except (ImportError, RuntimeError) as error:  # RuntimeError: its extension does not fit torch
    pytest.skip(f"torchvision cannot be imported: {error}", allow_module_level=True)

torch.set_num_threads(1)  # the images are small

MOVED = ["image", "mask", "boxes", "points"]
Record = dict[str, Any]


class Scenes:
    """Images of smooth colours, with a mask, boxes, labels and the image's corners."""

    def __init__(self, seed: int, count: int = 40) -> None:
        rng = np.random.default_rng(seed)
        self.items: list[Record] = []
        for _ in range(count):
            height, width = rng.integers(40, 120, 2)
            y, x = np.mgrid[0:height, 0:width]
            image = np.stack([2 * x, 2 * y, x + y], axis=2) % 256
            low = rng.uniform(0, 0.7, (6, 2)) * (width, height)
            high = low + rng.uniform(0.05, 0.3, (6, 2)) * (width, height)
            self.items.append(
                {
                    "image": image.astype(np.uint8),
                    "mask": (1 + x // 8 + 5 * (y // 8 % 3))[:, :, None].astype(np.uint8),
                    "boxes": np.concatenate([low, high], axis=1).astype(np.float32),
                    "labels": np.arange(6),
                    "points": np.array([[0, 0], [width, height]], np.float32),
                }
            )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: int) -> Record:
        return self.items[at]


def pipeline(scenes: Scenes, *fields: str) -> hr.Pipeline:
    """The scenes; `fields` of those that move with an image are declared, by default all."""
    pipe = hr.from_dataset(scenes)
    for field in fields or MOVED:
        pipe = pipe.kind(field, field)  # type: ignore[arg-type]
    return pipe


def moved(pipe: hr.Pipeline, seed: int) -> list[Record]:
    loader = pipe.batch(1, ragged=True).loader(output="numpy", seed=seed, threads=1)
    return [{k: v.item(0) if isinstance(v, hr.Ragged) else v[0] for k, v in batch.items()} for batch in loader]


def theirs(item: Record) -> Record:
    size = item["image"].shape[:2]
    return {
        "image": tv_tensors.Image(torch.from_numpy(item["image"]).permute(2, 0, 1)),
        "mask": tv_tensors.Mask(torch.from_numpy(item["mask"]).permute(2, 0, 1)),
        "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(item["boxes"]), format="XYXY", canvas_size=size),
        "labels": torch.from_numpy(item["labels"]),
    }


def each(function: Any, item: Record, *args: Any, **named: Any) -> Record:
    return {k: v if k == "labels" else function(v, *args, **named) for k, v in item.items()}


def resized(item: Record, size: list[int], place: list[int] | None = None) -> Record:
    """Cropped at `place` (top, left, height, width) and resized.

    torchvision takes a mask's pixels at the left edge of each new pixel (NEAREST), which moves it
    by up to half a pixel against the image; here they come from the middle (NEAREST_EXACT).
    """
    cut = each(tv.crop, item, *place) if place else item
    mask = tv.resize_image(torch.as_tensor(cut["mask"]), size, interpolation=v2.InterpolationMode.NEAREST_EXACT)
    old, new = cut["mask"].shape[1:], mask.shape[1:]
    down, across = (between(*sides) for sides in zip(old, new, strict=True))
    ties = (down[:, None] | across)[:, :, None]
    return {**each(tv.resize, cut, size, antialias=True), "mask": mask, "ties": ties}


def between(old: int, new: int) -> Any:
    """Which new pixels have their middle between two old ones: either will do."""
    middle = (np.arange(new) + 0.5) * old / new
    return np.abs(middle - middle.round()) < 1e-3


def compare(ours: Record, other: Record, levels: float = 0, beyond: float = 0) -> None:
    """Boxes within half a pixel; images within `levels` but for a fraction `beyond` of them; masks equal."""
    boxes = np.asarray(other["boxes"])
    assert ours["boxes"].shape == boxes.shape and ours["labels"].tolist() == other["labels"].tolist()
    assert np.abs(ours["boxes"] - boxes).max(initial=0) <= 0.5
    for key in ("image", "mask"):
        array = other[key].permute(1, 2, 0).numpy()
        assert ours[key].shape == array.shape
        differs = np.abs(ours[key].astype(int) - array.astype(int)) > (levels if key == "image" else 0)
        if key == "mask":
            assert not (differs & ~other.get("ties", np.False_)).any()
        else:
            assert differs.mean() <= beyond


def window(record: Record) -> tuple[int, int, int, int]:
    """left, top, width, height of the result in the image, from the corner that was at (0, 0)."""
    (x, y), _ = record["points"]
    height, width = record["image"].shape[:2]
    return round(-x), round(-y), width, height


@pytest.fixture
def seed() -> int:
    made = random.SystemRandom().randrange(1 << 32)
    print(f"seed {made}")
    return made


def test_zoom_out(seed: int) -> None:
    scenes = Scenes(seed)
    fill = [123, 117, 104]
    pipe = pipeline(scenes).zoom_out(fill=fill, mask_fill=255, p=0.8, field=MOVED)
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        left, top, width, height = window(ours)
        old_height, old_width = item["image"].shape[:2]
        padding = [-left, -top, width - old_width + left, height - old_height + top]
        other = {
            k: tv.pad(v, padding, fill={"image": fill, "mask": 255}.get(k, 0)) if k != "labels" else v
            for k, v in theirs(item).items()
        }
        compare(ours, other)


def test_iou_crop_and_sanitize(seed: int) -> None:
    scenes = Scenes(seed)
    cropped, dropped = 0, 0
    for item, ours in zip(scenes.items, moved(pipeline(scenes).iou_crop(field=MOVED).sanitize(), seed), strict=True):
        left, top, width, height = window(ours)
        other = each(tv.crop, theirs(item), top, left, height, width)
        if (height, width) != item["image"].shape[:2]:
            x, y = (item["boxes"][:, :2] + item["boxes"][:, 2:]).T / 2
            inside = (x > left) & (x < left + width) & (y > top) & (y < top + height)
            other["boxes"][~torch.from_numpy(inside)] = 0  # as RandomIoUCrop does
            cropped += 1
        compare(ours, v2.SanitizeBoundingBoxes()(other))
        dropped += len(ours["boxes"]) < 6
    assert cropped > 10 and dropped > 5


@pytest.mark.parametrize("size", [20, (30, 25)])
def test_crops(seed: int, size: Any) -> None:
    scenes = Scenes(seed)
    sides = list(size) if isinstance(size, tuple) else [size, size]
    pipe = pipeline(scenes)
    for item, ours in zip(scenes.items, moved(pipe.random_crop(size, field=MOVED).sanitize(), seed), strict=True):
        left, top, width, height = window(ours)
        assert [height, width] == sides
        compare(ours, v2.SanitizeBoundingBoxes()(each(tv.crop, theirs(item), top, left, height, width)))
    for item, ours in zip(scenes.items, moved(pipe.center_crop(size, field=MOVED), seed), strict=True):
        compare(ours, each(tv.center_crop, theirs(item), sides))


def test_flips(seed: int) -> None:
    scenes = Scenes(seed)
    for direction, function in (("horizontal", tv.horizontal_flip), ("vertical", tv.vertical_flip)):
        pipe = pipeline(scenes).flip(p=0.5, direction=direction, field=MOVED)
        for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
            flipped = (ours["points"][0] != item["points"][0]).any()
            compare(ours, each(function, theirs(item)) if flipped else theirs(item))


def test_resizes(seed: int) -> None:
    """uint8 images are rounded between passes there, so some levels differ."""
    scenes = Scenes(seed)
    pipe = pipeline(scenes)
    for item, ours in zip(scenes.items, moved(pipe.resize([50, 71], field=MOVED), seed), strict=True):
        compare(ours, resized(theirs(item), [50, 71]), levels=1, beyond=0.01)
    for item, ours in zip(scenes.items, moved(pipe.resize_shortest(33, field=MOVED), seed), strict=True):
        compare(ours, resized(theirs(item), [33]), levels=1, beyond=0.01)
    for item, ours in zip(scenes.items, moved(pipe.scale_jitter(60, scale=[0.5, 1.5], field=MOVED), seed), strict=True):
        size = list(ours["image"].shape[:2])
        compare(ours, resized(theirs(item), size), levels=1, beyond=0.01)


def test_random_resized_crop(seed: int) -> None:
    scenes = Scenes(seed)
    for item, ours in zip(
        scenes.items, moved(pipeline(scenes).random_resized_crop([48, 40], field=MOVED), seed), strict=True
    ):
        old_height, old_width = item["image"].shape[:2]
        (x, y), (right, bottom) = ours["points"]
        across, down = old_width / (right - x), old_height / (bottom - y)  # old pixels per new one
        place = [round(-y * down), round(-x * across), round(48 * down), round(40 * across)]
        compare(ours, resized(theirs(item), [48, 40], place), levels=1, beyond=0.01)


def test_fixed_size_crop(seed: int) -> None:
    scenes = Scenes(seed)
    pipe = pipeline(scenes).fixed_size_crop([70, 80], fill=7, mask_fill=254, field=MOVED)
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        left, top, _, _ = window(ours)
        old_height, old_width = item["image"].shape[:2]
        height, width = min(old_height, 70), min(old_width, 80)
        other = each(tv.crop, theirs(item), top, left, height, width)
        for key in ("image", "mask", "boxes"):
            fill = {"image": 7, "mask": 254}.get(key, 0)
            other[key] = tv.pad(other[key], [0, 0, 80 - width, 70 - height], fill=fill)
        compare(ours, other)


@pytest.mark.parametrize("angle", [-90, 17, 33.5, 180])
def test_rotations_move_boxes_within_half_a_pixel(seed: int, angle: float) -> None:
    scenes = Scenes(seed)
    pipe = pipeline(scenes, "image", "boxes").rotate([angle, angle], field=["image", "boxes"])
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        other = tv.rotate(theirs(item)["boxes"], angle)
        assert np.abs(ours["boxes"] - np.asarray(other)).max() <= 0.5


@pytest.mark.parametrize("angle", [-90, 90, 180])
def test_right_angles_turn_masks_and_what_is_around_them(seed: int, angle: int) -> None:
    """Other angles sample between pixels, where a rounding decides on a label."""
    scenes = Scenes(seed)
    pipe = pipeline(scenes).rotate([angle, angle], expand=angle == 90, mask_fill=255, field=MOVED)
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        fill = {tv_tensors.Image: 0, tv_tensors.Mask: 255, tv_tensors.BoundingBoxes: 0}
        turn = v2.RandomRotation([angle, angle], expand=angle == 90, fill=fill)
        height, width = item["image"].shape[:2]
        if angle == -90 and (height - width) % 2 != 0:
            continue  # turned about its middle, its pixels fall between pixels
        compare(ours, turn(theirs(item)))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_elastic(seed: int, interpolation: Any) -> None:
    """Points at all pixels, which move along, say how far each was shifted."""
    scenes = Scenes(seed, 20)
    for item in scenes.items:
        height, width = item["image"].shape[:2]
        item["points"] = (
            np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1).reshape(-1, 2).astype(np.float32)
        )
        item["boxes"] = np.floor(item["boxes"] * 0.9)
    pipe = pipeline(scenes).elastic(
        alpha=[300, 200], sigma=[4, 6], fill=77, interpolation=interpolation, mask_fill=255, field=MOVED
    )
    mode = v2.InterpolationMode(interpolation)
    spread: list[list[float]] = [[], []]
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        height, width = item["image"].shape[:2]
        shifts = (item["points"] - ours["points"]).reshape(height, width, 2)
        grid = torch.from_numpy(shifts * 2 / np.array([width, height], np.float32))[None]
        other = theirs(item)
        array = tv.elastic(other["image"], grid, mode, fill=77).permute(1, 2, 0).numpy().astype(int)
        differs = np.abs(ours["image"].astype(int) - array).max(axis=2) > (0 if interpolation == "nearest" else 1)
        if interpolation == "bilinear":  # on the border torchvision takes the share of the image twice
            share = tv.elastic(torch.ones(1, height, width), grid, mode, fill=0)
            differs &= (share[0] == 0).numpy() | (share[0] > 0.9999).numpy()
        assert differs.mean() < 0.005, differs.mean()
        mask = tv.elastic(other["mask"], grid, fill=255).permute(1, 2, 0).numpy()
        assert (ours["mask"] != mask).mean() < 0.005
        boxes = tv.elastic(other["boxes"], grid)
        assert np.abs(ours["boxes"] - np.asarray(boxes)).max() <= 0.5
        drawn = v2.ElasticTransform([300, 200], [4, 6]).make_params([other["image"]])["displacement"][0]
        for found, one in zip(spread, (grid[0], drawn), strict=True):
            found.append(float((one.double() ** 2).mean()))
    assert 0.6 < sum(spread[0]) / sum(spread[1]) < 1.65  # of random draws: 6 % are beyond 0.8 to 1.25


def perspective_ties(height: int, width: int, start: Any, end: Any) -> Any:
    """Which pixels of the result have their middle between two of the image: nearest may take either."""
    rows, values = [], []
    for (x, y), (u, v) in zip(end, start, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    a, b, c, d, e, f, g, h = np.linalg.solve(np.array(rows, float), np.array(values, float))
    y, x = np.mgrid[0:height, 0:width] + 0.5
    places = np.stack([a * x + b * y + c, d * x + e * y + f]) / (g * x + h * y + 1)
    return (np.abs(places - places.round()) < 1e-3).any(axis=0)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_perspective(seed: int, interpolation: Any) -> None:
    """The corners, which move along, say where each was drawn."""
    scenes = Scenes(seed)
    for item in scenes.items:
        height, width = item["image"].shape[:2]
        item["points"] = np.array([[0.5, 0.5], [width, 0.5], [width, height], [0.5, height]], np.float32) - 0.5
    pipe = pipeline(scenes).perspective(
        distortion_scale=0.5, p=1, fill=77, interpolation=interpolation, mask_fill=255, field=MOVED
    )
    mode = v2.InterpolationMode(interpolation)
    distances = []
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        height, width = item["image"].shape[:2]
        start = item["points"].tolist()
        other = theirs(item)
        image = tv.perspective(other["image"], start, ours["points"].tolist(), mode, fill=77)
        array = image.permute(1, 2, 0).numpy().astype(int)
        differs = np.abs(ours["image"].astype(int) - array).max(axis=2) > (0 if interpolation == "nearest" else 1)
        ties = perspective_ties(height, width, start, ours["points"].tolist())
        if interpolation == "nearest":
            differs &= ~ties
        else:  # on the border torchvision takes the share of the image twice
            share = tv.perspective(torch.ones(1, height, width), start, ours["points"].tolist(), mode, fill=0)
            differs &= (share[0] == 0).numpy() | (share[0] > 0.9999).numpy()
        assert differs.mean() < 0.005, differs.mean()
        mask = tv.perspective(other["mask"], start, ours["points"].tolist(), fill=255).permute(1, 2, 0).numpy()
        assert ((ours["mask"] != mask)[:, :, 0] & ~ties).mean() < 0.005
        boxes = tv.perspective(other["boxes"], start, ours["points"].tolist())
        assert np.abs(ours["boxes"] - np.asarray(boxes)).max() <= 0.5
        assert np.abs(ours["points"] - start).max() <= max(height, width) / 4 + 1
        distances.append(float(np.abs(ours["points"] - start).max()))
    assert len(set(distances)) > 10


@pytest.mark.parametrize("vertical", [False, True])
def test_five_and_ten_crops(seed: int, vertical: bool) -> None:
    scenes = Scenes(seed)
    five = moved(pipeline(scenes).five_crop([33, 27]), seed)
    ten = moved(pipeline(scenes).ten_crop(30, vertical=vertical), seed)
    for at, item in enumerate(scenes.items):
        image = theirs(item)["image"]
        wanted = [*tv.five_crop(image, [33, 27]), *tv.ten_crop(image, [30, 30], vertical_flip=vertical)]
        ours = [*five[5 * at : 5 * at + 5], *ten[10 * at : 10 * at + 10]]
        for crop, record in zip(wanted, ours, strict=True):
            assert np.array_equal(record["image"], crop.permute(1, 2, 0).numpy())
            assert np.array_equal(record["boxes"], item["boxes"])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_gaussian_noise_has_the_distribution_of_torchvision(seed: int, dtype: Any) -> None:
    scenes = Scenes(seed, 20)
    pipe = pipeline(scenes).cast(dtype)
    torch.manual_seed(seed)
    one = 1 if dtype == "float32" else 255
    for item, ours in zip(scenes.items, moved(pipe.gaussian_noise(mean=0.1, sigma=0.2), seed), strict=True):
        image = torch.from_numpy(item["image"].astype(np.float32) / 255 if one == 1 else item["image"])
        other = tv.gaussian_noise(image, mean=0.1, sigma=0.2).numpy().astype(np.float64) / one
        made = ours["image"].astype(np.float64) / one
        spread = 5 * 0.2 / made.size**0.5
        assert abs(made.mean() - other.mean()) < 2 * spread and abs(made.std() - other.std()) < 2 * spread


def test_formats(seed: int) -> None:
    scenes = Scenes(seed)
    for name in ("xywh", "cxcywh"):
        for item, ours in zip(scenes.items, moved(pipeline(scenes).convert_boxes(name), seed), strict=True):
            other = tv.convert_bounding_box_format(theirs(item)["boxes"], new_format=name.upper())
            assert np.abs(ours["boxes"] - np.asarray(other)).max() <= 1e-3


def test_photometric_distort(seed: int) -> None:
    """Two draws remain with fixed factors: the place of contrast and the order of the channels."""
    scenes = Scenes(seed)
    pipe = (
        pipeline(scenes)
        .cast("float32")
        .photometric_distort(brightness=[0.9, 0.9], contrast=[1.3, 1.3], saturation=[0.6, 0.6], hue=[0.04, 0.04], p=1)
    )
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    drawn = set()
    for item, ours in zip(scenes.items, moved(pipe, seed), strict=True):
        image = theirs(item)["image"].float() / 255
        found = []
        for before in (False, True):
            made = tv.adjust_brightness(image, 0.9)
            made = tv.adjust_contrast(made, 1.3) if before else made
            made = tv.adjust_hue(tv.adjust_saturation(made, 0.6), 0.04)
            made = made if before else tv.adjust_contrast(made, 1.3)
            for order in orders:
                other = tv.permute_channels(made, list(order)).permute(1, 2, 0).numpy()
                if np.abs(ours["image"] - other).max() < 2e-3:
                    found.append((before, order))
        assert len(found) == 1
        drawn.add(found[0])
    assert len(drawn) > 5


LEVELS: list[tuple[Callable[[hr.Pipeline], hr.Pipeline], Callable[[Any], Any]]] = [
    (lambda p: p.invert(p=1), tv.invert),
    (lambda p: p.solarize(threshold=100, p=1), lambda image: tv.solarize(image, 100)),
    (lambda p: p.posterize(bits=3, p=1), lambda image: tv.posterize(image, 3)),
    (lambda p: p.posterize(bits=8, p=1), lambda image: tv.posterize(image, 8)),
    (lambda p: p.autocontrast(p=1), tv.autocontrast),
    (lambda p: p.equalize(p=1), tv.equalize),
    (lambda p: p.sharpness(0.3, p=1), lambda image: tv.adjust_sharpness(image, 0.3)),
    (lambda p: p.sharpness(1.9, p=1), lambda image: tv.adjust_sharpness(image, 1.9)),
]


@pytest.mark.parametrize("ours,other", LEVELS)
def test_levels(ours: Callable[[hr.Pipeline], hr.Pipeline], other: Callable[[Any], Any], seed: int) -> None:
    scenes = Scenes(seed)
    rng = np.random.default_rng(seed)
    for item in scenes.items:  # of any range and contrast
        low = rng.integers(0, 200)
        noise = rng.integers(low, rng.integers(low + 1, 257), item["image"].shape)
        item["image"] = noise.astype(np.uint8)
    for item, made in zip(scenes.items, moved(ours(pipeline(scenes)), seed), strict=True):
        wanted = other(torch.from_numpy(item["image"]).permute(2, 0, 1)).permute(1, 2, 0).numpy()
        assert np.array_equal(made["image"], wanted)


@pytest.mark.parametrize("ours,other", [*LEVELS[:1], *LEVELS[2:]])
def test_levels_of_floats(ours: Callable[[hr.Pipeline], hr.Pipeline], other: Callable[[Any], Any], seed: int) -> None:
    scenes = Scenes(seed)
    made = moved(ours(pipeline(scenes).cast("float32")), seed)
    for item, image in zip(scenes.items, made, strict=True):
        wanted = other(torch.from_numpy(item["image"]).permute(2, 0, 1).float() / 255).permute(1, 2, 0).numpy()
        assert np.abs(image["image"] - wanted).max() <= 1e-6


class Labelled:
    """Pairs of an image and its own class."""

    def __init__(self, seed: int, count: int) -> None:
        self.images = np.random.default_rng(seed).integers(0, 256, (count, 19, 23, 3), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, at: int) -> Record:
        return {"image": self.images[at], "label": at}


def batches(pipe: hr.Pipeline, seed: int) -> list[Record]:
    loader = pipe.loader(output="numpy", seed=seed, threads=1)
    return [{k: np.array(v) for k, v in batch.items()} for batch in loader]


def test_mixup(seed: int) -> None:
    """The labels say which share was drawn; MixUp mixes by it."""
    data = hr.from_dataset(Labelled(seed, 30)).kind("image", "image").cast("float32").batch(4)
    shares = set()
    for before, ours in zip(batches(data, seed), batches(data.mixup(num_classes=30), seed), strict=True):
        share = float(ours["label"][0, before["label"][0]])
        method = v2.MixUp(num_classes=30)
        params = {"lam": share, "labels": torch.from_numpy(before["label"]), "batch_size": len(before["label"])}
        image = method.transform(torch.from_numpy(before["image"]), params)
        label = method.transform(params["labels"], params)
        assert np.abs(ours["image"] - image.numpy()).max() <= 1e-6
        assert np.abs(ours["label"] - label.numpy()).max() <= 1e-6 and label.dtype == torch.float32
        shares.add(share)
    assert len(shares) == 8


@pytest.mark.parametrize("order", ["hwc", "chw"])
def test_cutmix(seed: int, order: Any) -> None:
    """The rectangle is where the images differ; CutMix copies it and mixes labels by its area."""
    data = hr.from_dataset(Labelled(seed, 62)).kind("image", "image").layout(order).batch(4)
    mixed = 0
    for before, ours in zip(batches(data, seed), batches(data.cutmix(num_classes=62), seed), strict=True):
        old, new = (b["image"] if order == "chw" else b["image"].transpose(0, 3, 1, 2) for b in (before, ours))
        down, across = np.nonzero((old != new).any(axis=(0, 1)))
        box = (across.min(), down.min(), across.max() + 1, down.max() + 1) if len(down) else (0, 0, 0, 0)
        share = float(1.0 - (box[2] - box[0]) * (box[3] - box[1]) / (19 * 23))
        method = v2.CutMix(num_classes=62)
        labels = torch.from_numpy(before["label"])
        params = {"box": box, "lam_adjusted": share, "labels": labels, "batch_size": len(labels)}
        assert np.array_equal(new, method.transform(torch.from_numpy(old.copy()), params).numpy())
        assert np.abs(ours["label"] - method.transform(labels, params).numpy()).max() <= 1e-6
        mixed += 0 < share < 1
    assert mixed > 8


def test_permute_channels(seed: int) -> None:
    scenes = Scenes(seed)
    drawn = set()
    for item, made in zip(scenes.items, moved(pipeline(scenes).permute_channels(), seed), strict=True):
        orders = [o for o in itertools.permutations(range(3)) if np.array_equal(made["image"], item["image"][:, :, o])]
        assert len(orders) == 1
        drawn.add(orders[0])
    assert len(drawn) > 3


def test_sets_of_pascal_voc(seed: int, tmp_path: pathlib.Path) -> None:
    """VOCDetection gives the numbers of the file, as texts; VOCSegmentation the numbers of the palette."""
    from torchvision.datasets import VOCDetection, VOCSegmentation

    voc = Voc(tmp_path / "VOCdevkit/VOC2012")
    ours = moved(hr.voc(voc.folder, raw=True).decode(), seed)
    for (image, target), record in zip(VOCDetection(str(tmp_path)), ours, strict=True):
        things = target["annotation"].get("object", [])
        corners = [[float(thing["bndbox"][key]) for key in ("xmin", "ymin", "xmax", "ymax")] for thing in things]
        assert record["boxes"].tolist() == corners
        assert np.array_equal(record["image"], np.asarray(image))
    masks = hr.voc(voc.folder, task="segmentation").decode(field="mask", to="mask", color="labels")
    for (_, mask), record in zip(VOCSegmentation(str(tmp_path)), moved(masks, seed), strict=True):
        assert np.array_equal(record["mask"][:, :, 0], np.asarray(mask))


Choice = tuple[str, float]  # what a step did, as torchvision's private method takes it


def spaced(magnitudes: Any) -> list[float]:
    """torch.linspace by its formula for one number; its vectors differ from that by a rounding."""
    if not magnitudes.is_floating_point():
        return magnitudes.tolist()  # type: ignore[no-any-return]
    first, last = magnitudes.numpy()[[0, -1]]
    count = len(magnitudes)
    step, at = (last - first) / np.float32(count - 1), np.arange(count, dtype=np.float32)
    ahead, back = first + step * at, last - step * at[::-1]
    return np.where(at < count // 2, ahead, back).tolist()  # type: ignore[no-any-return]


def choices(method: Any, height: int, width: int, bins: int, bin_: int | None = None) -> list[Choice]:
    """Every step that the method can draw: with magnitude `bin_`, or any."""
    found = []
    for name, (magnitudes_of, signed) in method._AUGMENTATION_SPACE.items():
        magnitudes = magnitudes_of(bins, height, width)
        values = [0.0] if magnitudes is None else spaced(magnitudes)
        values = values if magnitudes is None or bin_ is None else [values[bin_]]
        found += [(name, value * sign) for value in values for sign in ((1, -1) if signed else (1,))]
    return list(dict.fromkeys(found))


GEOMETRIC = ("ShearX", "ShearY", "Rotate")


def stepped(method: Any, image: Any, choice: Choice) -> Any:
    return method._apply_image_or_video_transform(image, *choice, method.interpolation, method._fill)


def agrees(ours: Any, other: Any, choice: Choice) -> bool:
    """Equal to the bit; but positions between two pixels may be rounded to either of them, and torch
    rounds the last few numbers of a tensor once more than the others."""
    differs = (ours != other).any(axis=0)
    return bool(differs.sum() <= (0.05 * differs.numel() if choice[0] in GEOMETRIC else 3))


def noisy(seed: int, count: int, side: int = 60) -> Scenes:
    """Images on which every step shows: smooth colours with noise, of less than the whole range.

    Sides are even, so that no pixel of a right angle falls between pixels.
    """
    scenes = Scenes(seed, count)
    rng = np.random.default_rng(seed)
    for item in scenes.items:
        height, width = 2 * rng.integers(side // 4, side // 2, 2)
        y, x = np.mgrid[0:height, 0:width]
        smooth = np.stack([40 + 2 * x, 200 - 2 * y, 60 + x + y], axis=2)
        item["image"] = np.clip(smooth + rng.integers(-20, 21, smooth.shape), 10, 245).astype(np.uint8)
    return scenes


def chw(image: np.ndarray[Any, Any]) -> Any:
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


def test_every_step_of_rand_augment(seed: int) -> None:
    scenes = noisy(seed, 200)
    method = v2.RandAugment(num_ops=1, magnitude=11, fill=[10.0, 20.0, 30.0])
    pipe = pipeline(scenes, "image").rand_augment(num_ops=1, magnitude=11, fill=[10, 20, 30])
    drawn: dict[str, int] = {}
    for item, made in zip(scenes.items, moved(pipe, seed), strict=True):
        image, ours = chw(item["image"]), chw(made["image"])
        fits = [c for c in choices(method, *image.shape[1:], 31, 11) if agrees(ours, stepped(method, image, c), c)]
        assert fits
        drawn[fits[0][0]] = drawn.get(fits[0][0], 0) + 1
    assert set(drawn) == set(method._AUGMENTATION_SPACE)


def test_two_steps_of_rand_augment(seed: int) -> None:
    """Tables are joined where they can be; the levels are those of two steps."""
    scenes = noisy(seed, 8, side=40)
    method = v2.RandAugment(fill=[10.0, 20.0, 30.0])
    pipe = pipeline(scenes, "image").rand_augment(fill=[10, 20, 30])
    for item, made in zip(scenes.items, moved(pipe, seed), strict=True):
        image, ours = chw(item["image"]), chw(made["image"])
        found = False
        for first in choices(method, *image.shape[1:], 31, 9):
            between_ = stepped(method, image, first)
            for second in choices(method, *image.shape[1:], 31, 9):
                other = stepped(method, between_, second)
                limit = 0.1 if {first[0], second[0]} & set(GEOMETRIC) else 0.01
                found = found or bool((ours != other).any(axis=0).float().mean() <= limit)
        assert found


def test_trivial_augment_wide(seed: int) -> None:
    scenes = noisy(seed, 40)
    method = v2.TrivialAugmentWide(fill=[7.0])
    pipe = pipeline(scenes, "image").trivial_augment_wide(fill=7)
    drawn = set()
    for item, made in zip(scenes.items, moved(pipe, seed), strict=True):
        image, ours = chw(item["image"]), chw(made["image"])
        fits = [c for c in choices(method, *image.shape[1:], 31) if agrees(ours, stepped(method, image, c), c)]
        assert fits
        drawn.add(fits[0][0])
    assert len(drawn) > 6


@pytest.mark.parametrize("policy", list(v2.AutoAugmentPolicy))
def test_auto_augment(seed: int, policy: Any) -> None:
    """A result is that of a pair of the policy, or of one of its steps, or the image."""
    scenes = noisy(seed, 24, side=40)
    method = v2.AutoAugment(policy, fill=[9.0])
    pipe = pipeline(scenes, "image").auto_augment(policy=policy.value, fill=9)
    unchanged = 0
    for item, made in zip(scenes.items, moved(pipe, seed), strict=True):
        image, ours = chw(item["image"]), chw(made["image"])
        results = [image]
        for pair in method._policies:
            steps: list[list[Choice]] = []
            for name, _, at in pair:
                magnitudes_of, signed = method._AUGMENTATION_SPACE[name]
                magnitudes = magnitudes_of(10, *image.shape[1:])
                value = 0.0 if magnitudes is None else spaced(magnitudes)[at]
                steps.append([(name, value * sign) for sign in ((1, -1) if signed else (1,))])
            ones = [stepped(method, image, c) for step in steps for c in step]
            results += ones
            results += [stepped(method, one, c) for one in ones[: len(steps[0])] for c in steps[1]]
        # pixels from between two others differ, and what is equalized after them differs a little
        assert min((ours.int() - other.int()).abs().float().mean() for other in results) < 8
        unchanged += bool((ours == image).all())
    assert unchanged < 16


def test_aug_mix_of_one_step(seed: int) -> None:
    """The result lies between the image and what a step of AugMix makes of it, truncated.

    Torch and we round what a bilinear step gives, sometimes to different levels; so its step is made of
    floats here, and half a level is allowed for rounding, beside half a level for truncation. On the border
    torchvision takes the share of the image twice.
    """
    scenes = noisy(seed, 20, side=40)
    method = v2.AugMix()
    pipe = pipeline(scenes, "image").aug_mix(mixture_width=1, chain_depth=1)
    for item, made in zip(scenes.items, moved(pipe, seed), strict=True):
        image, ours = chw(item["image"]), chw(made["image"]).double()
        misses = []
        for choice in (c for at in range(3) for c in choices(method, *image.shape[1:], 10, at)):
            old = image.double()
            new = stepped(method, old if choice[0] in GEOMETRIC else image, choice).double()
            cover = stepped(method, torch.ones_like(old), choice) if choice[0] in GEOMETRIC else torch.ones_like(old)
            whole = (cover == 0) | (cover > 0.9999)
            spread = ((old - new) ** 2)[whole].sum()
            share = ((ours + 0.5 - new) * (old - new))[whole].sum() / spread if spread else 1.0
            misses.append((ours + 0.5 - share * old - (1 - share) * new)[whole].abs().quantile(0.99))
        assert min(misses) < 1.1


def test_what_belongs_to_the_image_follows_an_augmentation(seed: int) -> None:
    """The corners say how the image moved; masks and boxes moved alike."""
    scenes = Scenes(seed)
    pipe = pipeline(scenes).rand_augment(num_ops=1, mask_fill=255, field=MOVED)
    turned = 0
    for item, made in zip(scenes.items, moved(pipe, seed), strict=True):
        parts = theirs(item)
        _, height, width = parts["image"].shape
        (left, top), _ = made["points"]
        if (made["points"] == item["points"]).all():
            assert np.array_equal(made["mask"], item["mask"]) and np.array_equal(made["boxes"], item["boxes"])
            continue
        turned += 1
        if (made["points"][1] - made["points"][0] == (width, height)).all():  # a shift
            shift = [round(float(left)), round(float(top))]
            other = each(tv.affine, parts, angle=0, translate=shift, scale=1, shear=[0, 0])
            other["mask"] = tv.affine(parts["mask"], angle=0, translate=shift, scale=1, shear=[0, 0], fill=255)
            compare(made, other)
    assert turned > 5


def test_vision_has_torchvisions_arguments() -> None:
    shown = {torch.float32: "float32", v2.AutoAugmentPolicy.IMAGENET: "imagenet"}

    def default(value: Any) -> Any:  # InterpolationMode is a str in newer versions
        return value.value if isinstance(value, v2.InterpolationMode) else shown.get(value, value)

    def arguments(kind: type) -> list[Any]:
        return [(p.name, default(p.default)) for p in inspect.signature(kind).parameters.values()]

    ours = {
        name: kind
        for name, kind in vars(hr.vision).items()
        if isinstance(kind, type) and issubclass(kind, hr.vision.Transform) and kind is not hr.vision.Transform
    }
    assert len(ours) > 40
    assert arguments(ours.pop("Lambda")) == arguments(v2.Lambda)[:1]  # further ones are types of tv_tensors
    for name, kind in ours.items():
        assert arguments(kind) == arguments(getattr(v2, name)), name
    for enum in ("InterpolationMode", "AutoAugmentPolicy"):
        there = {mode.value for mode in getattr(v2, enum)} - {"hamming"}
        assert {mode.value for mode in getattr(hr.vision, enum)} == there


# (name, arguments, levels that a pixel may differ, share of pixels that may differ more)
FIXED: list[tuple[str, tuple[Any, ...], float, float]] = [
    ("Resize", (24,), 1, 0),
    ("Resize", ([30, 17], v2.InterpolationMode.BICUBIC), 1, 0),
    ("Resize", (30, v2.InterpolationMode.BILINEAR, 40), 1, 0),
    ("Resize", (24, v2.InterpolationMode.NEAREST_EXACT), 0, 0.07),
    ("CenterCrop", (31,), 0, 0),
    ("CenterCrop", (150,), 0, 0),
    ("Pad", ([1, 2, 3, 4], 7), 0, 0),
    ("Pad", (3, 0, "edge"), 0, 0),
    ("RandomHorizontalFlip", (1.0,), 0, 0),
    ("RandomVerticalFlip", (1.0,), 0, 0),
    ("Grayscale", (), 1, 0),
    ("Grayscale", (3,), 1, 0),
    ("RandomGrayscale", (1.0,), 1, 0),
    ("GaussianBlur", ([9, 3], (1.5, 1.5)), 1, 0),
    ("JPEG", (20,), 1, 0),
    ("JPEG", ((75, 75),), 1, 0),
    ("RandomInvert", (1.0,), 0, 0),
    ("RandomPosterize", (3, 1.0), 0, 0),
    ("RandomSolarize", (100, 1.0), 0, 0),
    ("RandomAdjustSharpness", (1.7, 1.0), 1, 0),
    ("RandomAutocontrast", (1.0,), 1, 0),
    ("RandomEqualize", (1.0,), 0, 0),
    ("RandomRotation", ((30, 30),), 0, 0.02),
    ("RandomRotation", ((30, 30), v2.InterpolationMode.NEAREST, False, (11.0, 40.0)), 0, 0.02),
    ("RandomAffine", ((15, 15), None, None, None, v2.InterpolationMode.NEAREST, 0, (60, 3)), 0, 0.02),
    ("RandomAffine", ((15, 15), None, (1.2, 1.2), (5, 5)), 0, 0.02),
]


@pytest.mark.parametrize(("name", "given", "levels", "beyond"), FIXED)
def test_vision_without_chance_gives_torchvisions_pixels(
    name: str, given: tuple[Any, ...], levels: float, beyond: float, seed: int
) -> None:
    for item in Scenes(seed, 5).items:
        image = torch.from_numpy(item["image"]).permute(2, 0, 1)
        ours, other = getattr(hr.vision, name)(*given)(image), getattr(v2, name)(*given)(image)
        assert ours.shape == other.shape
        differs = (ours.int() - other.int()).abs() > levels
        assert differs.float().mean() <= beyond


def test_vision_draws_torchvisions_shortest_sizes(seed: int) -> None:
    """Within a pixel: torchvision makes 29 of a side of 44 that is to be 30."""
    for item in Scenes(seed, 20).items:
        image = torch.from_numpy(item["image"]).permute(2, 0, 1)
        ours, other = hr.vision.RandomShortestSize(30, 40)(image), v2.RandomShortestSize(30, 40)(image)
        assert all(a - b in (0, 1) for a, b in zip(ours.shape, other.shape, strict=True))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Resize", (24,)),
        ("Pad", (3, 0.5)),
        ("Grayscale", (3,)),
        ("GaussianBlur", (5, (1.5, 1.5))),
        ("RandomInvert", (1.0,)),
        ("RandomSolarize", (0.4, 1.0)),
        ("RandomAdjustSharpness", (1.7, 1.0)),
        ("RandomAutocontrast", (1.0,)),
        ("Normalize", ([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])),
    ],
)
def test_vision_of_floats_is_torchvisions(name: str, given: tuple[Any, ...], seed: int) -> None:
    for item in Scenes(seed, 5).items:
        image = torch.from_numpy(item["image"]).permute(2, 0, 1) / 255
        ours, other = getattr(hr.vision, name)(*given)(image), getattr(v2, name)(*given)(image)
        assert ours.shape == other.shape
        assert (ours - other).abs().max() < 1e-3


def test_levels_of_a_pil_image_are_not_cut_off() -> None:
    image_of = Image.fromarray
    identity = vision.Identity()
    deep = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    for image in (image_of(deep), image_of(deep.astype(np.int32)), image_of(deep.astype(np.float32))):
        with pytest.raises(hr.DtypeError, match=f"of mode {image.mode} has levels beyond"):
            identity(image)
    bits = image_of(np.uint8(deep % 7 > 2) * 255).convert("1")
    assert torch.equal(identity(bits)[0], torch.from_numpy(np.uint8(deep % 7 > 2) * 255))
    assert identity(bits).shape == (1, 8, 8)
