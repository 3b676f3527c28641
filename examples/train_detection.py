"""Trains a small detector on generated scenes: a network that says at each anchor what it stands for.

    python examples/train_detection.py
    python examples/train_detection.py --data val2017/ --annotations instances_val2017.json --steps 1000

Scenes are rectangles, discs and crosses on noise, written as COCO writes its sets: images and a file of annotations.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

import headrace as hr

try:
    import torch
    from torch import nn
except ImportError as error:
    sys.exit(f"{error}; this example needs PyTorch: pip install torch")

KINDS = ("rectangle", "disc", "cross")
SIZE = 96
MOVED = ["image", "boxes"]


def draw(folder: pathlib.Path, count: int) -> pathlib.Path:
    """Writes `count` scenes as PPM files; returns the file of annotations."""
    rng = np.random.default_rng(3)
    images: list[dict[str, object]] = []
    boxes: list[dict[str, object]] = []
    for i in range(count):
        picture = rng.normal(110, 25, (120, 160, 3))
        for slot in range(int(rng.integers(1, 4))):
            kind, half = int(rng.integers(3)), int(rng.integers(14, 24))
            x, y = 26 + 54 * slot + int(rng.integers(-2, 3)), int(rng.integers(half, 120 - half))
            across, down = (np.abs(np.arange(n) - at) for n, at in ((160, x), (120, y)))
            inside = (down[:, None] < half) & (across < half)
            if kind == 1:
                inside = down[:, None] ** 2 + across**2 < half**2
            elif kind == 2:
                inside &= (down[:, None] < half / 3) | (across < half / 3)
            picture[inside] = rng.choice([0, 255], 3) + rng.normal(0, 10, 3)
            corner = [x - half, y - half, 2 * half, 2 * half]
            boxes.append({"id": len(boxes), "image_id": i, "category_id": kind, "bbox": corner, "iscrowd": 0})
        name = f"{i:05}.ppm"
        (folder / name).write_bytes(b"P6 160 120 255\n" + picture.clip(0, 255).astype(np.uint8).tobytes())
        images.append({"id": i, "file_name": name, "width": 160, "height": 120})
    file = folder / "instances.json"
    names = [{"id": i, "name": name} for i, name in enumerate(KINDS)]
    file.write_text(json.dumps({"images": images, "annotations": boxes, "categories": names}))
    return file


def targets(scenes: hr.Pipeline) -> hr.Pipeline:
    """Images of one size, with the class and the place of the box of each of 144 anchors."""
    return (
        scenes.resize(SIZE, field=MOVED)
        .sanitize()
        .anchors(SIZE, levels=[3, 3], scales=1, ratios=[1], anchor_size=4, unmatched=0.4)
        .normalize("imagenet", "imagenet")
        .layout("chw")
        .select("image", "class_targets", "box_targets")
        .batch(16)
    )


def pipelines(data: str, annotations: str) -> tuple[hr.Pipeline, hr.Pipeline, int]:
    """For training, with SSD's augmentations; for testing; the number of classes."""
    scenes = hr.coco(data, annotations, crowd=False, empty=False)
    train, test = hr.split(scenes, [0.8, 0.2], seed=1, by="image_id")
    augmented = train.shuffle().decode().iou_crop(field=MOVED).sanitize().flip(field=MOVED).photometric_distort()
    classes = scenes.fields["labels"].classes
    assert classes is not None
    return targets(augmented), targets(test.decode()), len(classes)


def network(classes: int) -> nn.Module:
    """Images to classes and background, and four numbers, at each of 12 * 12 cells."""
    layers: list[nn.Module] = []
    for before, after in ((3, 24), (24, 48), (48, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    layers += [nn.Conv2d(64, 64, 3, padding=2, dilation=2), nn.BatchNorm2d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(64, classes + 1 + 4, 3, padding=1), nn.Flatten(2))


def loss_of(said: torch.Tensor, classes: torch.Tensor, boxes: torch.Tensor, count: int) -> torch.Tensor:
    """Cross entropy of all anchors but ignored ones, and the distance of the boxes of those that have one."""
    wanted = torch.where(classes == -1, count, classes)
    weight = torch.ones(count + 1)
    weight[count] = 0.2
    entropy = nn.functional.cross_entropy(said[:, : count + 1], wanted, weight, ignore_index=-2)
    places = said[:, count + 1 :].transpose(1, 2)[classes >= 0]
    return entropy + nn.functional.smooth_l1_loss(places, boxes[classes >= 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder of images; default: generated scenes")
    parser.add_argument("--annotations", help="their annotations, in COCO's form")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--scenes", type=int, default=300, help="how many to generate")
    args = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        file = args.annotations or draw(pathlib.Path(folder), args.scenes)
        train, test, count = pipelines(args.data or folder, str(file))
        model = network(count)
        optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
        for step, batch in enumerate(train.loader(epochs=None, seed=1, output="torch")):
            if step == args.steps:
                break
            loss = loss_of(model(batch["image"]), batch["class_targets"], batch["box_targets"], count)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 10 == 0 or step == args.steps - 1:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
        right = anchors = 0
        model.eval()
        with torch.no_grad():
            for batch in test.loader(eval=True, output="torch"):
                classes = batch["class_targets"]
                said = model(batch["image"])[:, : count + 1].argmax(1)
                right += int((said == classes)[classes >= 0].sum())
                anchors += int((classes >= 0).sum())
    print(f"test: {right} of {anchors} anchors on an object say which ({100 * right / anchors:.0f} %)")


if __name__ == "__main__":
    main()
