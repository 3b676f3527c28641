"""Trains a small network on generated scenes to say of each pixel what it belongs to.

    python examples/train_segmentation.py
    python examples/train_segmentation.py --data VOCdevkit/VOC2012 --steps 5000

Scenes are rectangles, discs and crosses on noise, written as Pascal VOC writes its sets: pictures, masks whose pixels
are numbers of a palette, and a list. Outlines have the number 255, which the loss ignores, as does padding.
"""

from __future__ import annotations

import argparse
import pathlib
import struct
import sys
import tempfile
import zlib

import numpy as np

import headrace as hr

try:
    import torch
    from torch import nn
except ImportError as error:
    sys.exit(f"{error}; this example needs PyTorch: pip install torch")

CLASSES = 21  # VOC's 20 and background; generated scenes have 3 of them
IGNORED = 255
SIZE = 96
MOVED = ["image", "mask"]


def png(mask: np.ndarray) -> bytes:
    """A PNG whose pixels are numbers of colours in a palette."""
    height, width = mask.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    palette = bytes(value * step % 256 for value in range(256) for step in (67, 29, 111))
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in mask))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (b"IHDR", header), (b"PLTE", palette), (b"IDAT", rows), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*parts) for parts in chunks)


def inside(kind: int, half: int, across: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Which pixels a rectangle, a disc or a cross covers, by their distances from its middle."""
    covered: np.ndarray = (down[:, None] < half) & (across < half)
    if kind == 1:
        covered = down[:, None] ** 2 + across**2 < half**2
    elif kind == 2:
        covered &= (down[:, None] < half / 3) | (across < half / 3)
    return covered


def draw(folder: pathlib.Path, count: int) -> None:
    """Writes `count` scenes: pictures as PPM files, masks, and the list trainval."""
    for name in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (folder / name).mkdir(parents=True)
    rng = np.random.default_rng(3)
    for i in range(count):
        picture = rng.normal(110, 25, (120, 160, 3))
        mask = np.zeros((120, 160), np.uint8)
        for slot in range(int(rng.integers(1, 4))):
            kind, half = int(rng.integers(3)), int(rng.integers(14, 24))
            x, y = 26 + 54 * slot + int(rng.integers(-2, 3)), int(rng.integers(half, 120 - half))
            across, down = (np.abs(np.arange(n) - at) for n, at in ((160, x), (120, y)))
            mask[inside(kind, half + 1, across, down)] = IGNORED
            here = inside(kind, half - 1, across, down)
            mask[here] = 1 + kind
            picture[here] = 60 + 60 * kind + rng.normal(0, 15, 3)
        name = f"{i:05}"
        ppm = b"P6 160 120 255\n" + picture.clip(0, 255).astype(np.uint8).tobytes()
        (folder / "JPEGImages" / f"{name}.ppm").write_bytes(ppm)
        (folder / "SegmentationClass" / f"{name}.png").write_bytes(png(mask))
    (folder / "ImageSets/Segmentation/trainval.txt").write_text("".join(f"{i:05}\n" for i in range(count)))


def batches(scenes: hr.Pipeline) -> hr.Pipeline:
    """Images as floats, channels first; masks as numbers, as cross entropy takes them."""
    return scenes.normalize("imagenet", "imagenet").layout("chw").cast("int64", field="mask").batch(16)


def pipelines(data: str, suffix: str) -> tuple[hr.Pipeline, hr.Pipeline]:
    """For training, with augmentations; for testing."""
    scenes = hr.voc(data, split="trainval", task="segmentation", suffix=suffix)
    train, test = (
        part.decode().decode(field="mask", to="mask", color="labels")
        for part in hr.split(scenes, [0.8, 0.2], seed=1, by="name")
    )
    augmented = (
        train.shuffle()
        .rotate(10, fill=[124, 116, 104], mask_fill=IGNORED, field=MOVED)
        .random_resized_crop(SIZE, scale=[0.25, 1], field=MOVED)
        .flip(field=MOVED)
        .color_jitter(brightness=0.2, contrast=0.2, saturation=0.2)
    )
    return batches(augmented), batches(test.resize(SIZE, field=MOVED))


def network() -> nn.Module:
    """Images to the classes of their pixels, by way of a quarter of the size."""
    layers: list[nn.Module] = []
    for before, after, stride, dilation in ((3, 24, 2, 1), (24, 48, 2, 1), (48, 48, 1, 2), (48, 48, 1, 4)):
        layers += [nn.Conv2d(before, after, 3, stride=stride, padding=dilation, dilation=dilation)]
        layers += [nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(48, CLASSES, 1), nn.Upsample(scale_factor=4, mode="bilinear"))


def overlaps(model: nn.Module, test: hr.Pipeline) -> torch.Tensor:
    """The intersection over union of each class that is there."""
    both, either = torch.zeros(CLASSES), torch.zeros(CLASSES)
    model.eval()
    with torch.no_grad():
        for batch in test.loader(eval=True, output="torch"):
            mask = batch["mask"][..., 0]
            said = model(batch["image"]).argmax(1)
            counts = mask != IGNORED
            for kind in range(CLASSES):
                is_kind, says_kind = (mask == kind) & counts, (said == kind) & counts
                both[kind] += (is_kind & says_kind).sum()
                either[kind] += (is_kind | says_kind).sum()
    return (both / either)[either > 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder such as VOCdevkit/VOC2012; default: generated scenes")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--scenes", type=int, default=300, help="how many to generate")
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        if args.data is None:
            draw(pathlib.Path(folder), args.scenes)
        train, test = pipelines(args.data or folder, ".jpg" if args.data else ".ppm")
        model = network()
        optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
        for step, batch in enumerate(train.loader(epochs=None, seed=1, output="torch")):
            if step == args.steps:
                break
            said = model(batch["image"])
            loss = nn.functional.cross_entropy(said, batch["mask"][..., 0], ignore_index=IGNORED)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 10 == 0 or step == args.steps - 1:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
        found = overlaps(model, test)
    print(f"test: mean intersection over union {found.mean():.2f} of {len(found)} classes")


if __name__ == "__main__":
    main()
