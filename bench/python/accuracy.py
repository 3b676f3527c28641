"""make bench B=accuracy: networks trained with and without relaxed reorders reach the same accuracy.

LeNet on MNIST's digits, and a small CNN on drawn shapes and on photos (which of them are upside down), each
with five seeds. `relaxed` may crop and interpolate before levels are clipped, which gives other levels of the
same record; what may not change is what a network learns. Needs PyTorch ($TORCH_PYTHON has it) and the extension.

    accuracy.py MNIST [--json] [--seeds N] [--epochs N]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

import headrace as hr

SHAPES, SIDE, SMALL, SMALL_DIGIT = 6, 48, 24, 20
PHOTO, SMALL_PHOTO, PHOTOS_TEST = 96, 32, 100
TRAIN, TEST = 3000, 1200  # shapes
DIGITS_TRAIN = 8000  # of the 10,000 digits; the others are for the test
BATCH = 64
T_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}  # by number of seeds


@dataclass
class Task:
    """A data set, a network, and what runs of both orders reached."""

    name: str
    train: hr.Pipeline
    test: hr.Pipeline
    channels: int
    side: int
    classes: int
    epochs: int
    moved: str = ""
    gain: float = 1.0
    written: list[float] = field(default_factory=list)  # accuracy by seed
    relaxed: list[float] = field(default_factory=list)

    def difference(self) -> tuple[float, float]:
        """Mean difference of accuracy, relaxed - written with one seed, and half of its 95 % interval."""
        pairs = [b - a for a, b in zip(self.written, self.relaxed, strict=True)]
        width = T_95[len(pairs)] * statistics.stdev(pairs) / len(pairs) ** 0.5
        return statistics.mean(pairs), width


def levels(pipe: hr.Pipeline, channels: int) -> hr.Pipeline:
    """Numbers of -1 to 1, of which the darkest and the brightest are equal."""
    half = [0.5] * channels
    pipe = pipe.op("tensor.cast", dtype="float32").op("image.normalize", mean=half, std=half)
    return pipe.op("image.clip", min=-0.8, max=0.8)


def batches(pipe: hr.Pipeline) -> hr.Pipeline:
    """What networks take: channels first."""
    return pipe.op("tensor.layout", order="chw").batch(BATCH)


def learnt(pipe: hr.Pipeline, channels: int, size: int) -> hr.Pipeline:
    """Cropped last: cheaper before levels become numbers."""
    pipe = pipe.op("image.rotate", degrees=15.0, interpolation="bilinear")
    pipe = levels(pipe, channels).op("image.random_resized_crop", size=size, scale=[0.6, 1.0])
    return batches(pipe)


def asked(pipe: hr.Pipeline, channels: int, size: int) -> hr.Pipeline:
    """Whole images."""
    return batches(levels(pipe.op("image.resize", size=size), channels))


def digits(folder: pathlib.Path, epochs: int) -> Task:
    """The 10,000 digits of MNIST's test set, four fifths of them to train with."""
    path, labels = (str(folder / f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
    whole = hr.idx(path, labels=labels)
    train = learnt(whole.take(DIGITS_TRAIN).shuffle(), 1, SMALL_DIGIT)
    test = asked(whole.skip(DIGITS_TRAIN), 1, SMALL_DIGIT)
    return Task("LeNet, MNIST", train, test, 1, SMALL_DIGIT, 10, epochs)


def draw(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A shape in a random colour, place and size, on a noisy ground."""
    y, x = np.mgrid[:SIDE, :SIDE]
    cy, cx = rng.uniform(SIDE * 0.4, SIDE * 0.6, 2)
    r = rng.uniform(SIDE * 0.18, SIDE * 0.3)
    dy, dx = y - cy, x - cx
    far = np.hypot(dy, dx)
    masks = [
        far < r,
        (far < r) & (far > r * 0.55),
        (abs(dy) < r * 0.85) & (abs(dx) < r * 0.85),
        (dy > -r) & (dy < r * 0.8) & (abs(dx) < (dy + r) * 0.6),
        (abs(dy) < r * 0.28) & (abs(dx) < r) | (abs(dx) < r * 0.28) & (abs(dy) < r),
        (far < r) & (np.sin((dx + dy) * 1.3) > 0),
    ]
    ground, colour = rng.uniform(40, 215, (2, 3))
    image = np.where(masks[kind][..., None], colour, ground) + rng.normal(0, 25, (SIDE, SIDE, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def saved(path: pathlib.Path, images: np.ndarray, labels: np.ndarray) -> hr.Pipeline:
    """A pipeline that reads them from a .npz file."""
    np.savez(path, image=images, label=labels.astype(np.int32))
    return hr.npy(path).op("record.kind", field="image", kind="image")


def shapes(folder: pathlib.Path, epochs: int) -> Task:
    """Drawn shapes."""
    rng = np.random.default_rng(1)
    parts = []
    for part, count in (("train", TRAIN), ("test", TEST)):
        labels = rng.integers(0, SHAPES, count)
        parts.append(saved(folder / f"{part}.npz", np.stack([draw(rng, int(label)) for label in labels]), labels))
    train, test = learnt(parts[0].shuffle(), 3, SMALL), asked(parts[1], 3, SMALL)
    return Task("small CNN, drawn shapes", train, test, 3, SMALL, SHAPES, epochs)


def photos(found: pathlib.Path, folder: pathlib.Path, epochs: int) -> Task:
    """Photos, and the same upside down."""
    small = hr.files(str(found)).decode().op("image.resize", size=[PHOTO, PHOTO]).batch(50)
    upright = np.concatenate([batch.image for batch in small.loader(output="numpy")])
    parts = []
    for part, images in (("known", upright[:-PHOTOS_TEST]), ("new", upright[-PHOTOS_TEST:])):
        both = np.concatenate([images, images[:, ::-1]])
        parts.append(saved(folder / f"{part}.npz", both, np.arange(len(both)) // len(images)))
    train, test = learnt(parts[0].shuffle(), 3, SMALL_PHOTO), asked(parts[1], 3, SMALL_PHOTO)
    return Task("small CNN, photos", train, test, 3, SMALL_PHOTO, 2, epochs)


def network(task: Task) -> nn.Module:
    """LeNet for one channel; for three, the same with more filters and a mean over the places."""
    if task.channels == 1:
        left = (task.side // 2 - 2 - 2) // 2
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(16 * left * left, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(),
            nn.Linear(84, task.classes),
        )  # fmt: skip
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 48)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, task.classes))


def train(task: Task, pipe: hr.Pipeline, seed: int) -> float:
    """Trains a network and returns its accuracy on the test set."""
    torch.manual_seed(seed)
    net = network(task)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    loader = pipe.loader(epochs=task.epochs, seed=seed, output="torch")
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.02, len(loader))  # runs of a seed end close together
    for batch in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch["image"]), batch["label"].long())
        loss.backward()
        optimizer.step()
        slower.step()
    net.eval()
    right = seen = 0
    with torch.no_grad():
        for batch in task.test.loader(output="torch"):
            right += int((net(batch["image"]).argmax(1) == batch["label"]).sum())
            seen += len(batch["label"])
    return right / seen


def measure(task: Task, seeds: int) -> None:
    """Trains with both orders, in turns."""
    fast = task.train.optimize(strictness="relaxed", seconds=1.0, fresh=True)
    report = fast.report
    if report is None or not report.moved:
        sys.exit(f"{task.name}: nothing moves, so nothing is compared: {report}")
    task.moved = ", ".join(f"{move.node} {move.was} -> {move.now}" for move in report.moved)
    task.gain = report.measured
    for seed in range(seeds):
        began = time.monotonic()
        for pipe, accuracies in ((task.train, task.written), (fast, task.relaxed)):
            accuracies.append(train(task, pipe, seed))
        sys.stderr.write(
            f"{task.name}, seed {seed}: {task.written[-1]:.4f} written, {task.relaxed[-1]:.4f} relaxed, "
            f"{time.monotonic() - began:.0f} s\n"
        )


def table(tasks: list[Task]) -> str:
    """The result for people."""
    lines = ["accuracy: relaxed reorders against the written order"]
    for task in tasks:
        mean, width = task.difference()
        lines += [
            f"\n  {task.name}: {task.moved or 'nothing moved'}; {task.gain:.2f}x as fast",
            f"    written  {statistics.mean(task.written):.4f} +- {statistics.stdev(task.written):.4f}",
            f"    relaxed  {statistics.mean(task.relaxed):.4f} +- {statistics.stdev(task.relaxed):.4f}",
            f"    difference {100 * mean:+.2f} points, 95 % interval +-{100 * width:.2f}: "
            f"{'within noise' if abs(mean) <= width else 'better' if mean > 0 else 'WORSE'}",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("mnist", type=pathlib.Path, help="the folder of MNIST's test set")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=5, choices=sorted(T_95))
    parser.add_argument("--epochs", type=int, default=4, help="of the digits; shapes get 2 and photos 6 times as many")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        tasks = [digits(args.mnist, args.epochs), shapes(pathlib.Path(folder), 2 * args.epochs)]
        found = args.mnist.parent / "images"
        if found.is_dir():
            tasks.append(photos(found, pathlib.Path(folder), 6 * args.epochs))
        else:
            sys.stderr.write(f"no photos in {found}: left out\n")
        for task in tasks:
            measure(task, args.seeds)
    made: list[dict[str, Any]] = [
        {
            "task": task.name,
            "moved": task.moved,
            "gain": task.gain,
            "written": task.written,
            "relaxed": task.relaxed,
            "difference": task.difference(),
        }
        for task in tasks
    ]
    sys.stdout.write(json.dumps(made) + "\n" if args.json else table(tasks))


if __name__ == "__main__":
    main()
