"""Trains LeNet on digits, with a checkpoint of model, optimiser and loader.

    python examples/train_lenet.py --data mnist/ --checkpoint lenet.pt
    python examples/train_lenet.py --data mnist/ --checkpoint lenet.pt     # resumes where it stopped

DIR has t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, as published by MNIST: 9,000 of its digits are for
training, 1,000 for testing. Without --data, digits are generated. A run that is killed at any moment and restarted ends
with exactly the weights of an uninterrupted one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import struct
import sys
import tempfile

import numpy as np

import headrace as hr

try:
    import torch
    from torch import nn
except ImportError as error:
    sys.exit(f"{error}; this example needs PyTorch: pip install torch")

TEST = 1_000
IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"

# Digits of 5 rows of 3 pixels, for machines without MNIST.
ROWS = {
    0: "75557", 1: "26227", 2: "71747", 3: "71717", 4: "55711",
    5: "74717", 6: "74757", 7: "71222", 8: "75757", 9: "75717",
}  # fmt: skip


def draw_digits(folder: pathlib.Path, count: int) -> None:
    """Writes IDX files of `count` generated digits: shifted, of various sizes, strokes and noise."""
    rng = np.random.default_rng(7)
    glyphs = np.array([[[int(row, 8) >> (2 - x) & 1 for x in range(3)] for row in ROWS[d]] for d in range(10)])
    images = np.zeros((count, 28, 28), np.float64)
    labels = rng.integers(0, 10, count, np.uint8)
    for image, label in zip(images, labels, strict=True):
        high, wide = rng.integers(13, 21), rng.integers(9, 17)
        y, x = rng.integers(2, 27 - high), rng.integers(2, 27 - wide)
        rows = np.arange(high) * 5 // high
        columns = np.arange(wide) * 3 // wide
        image[y : y + high, x : x + wide] = glyphs[label][np.ix_(rows, columns)] * rng.uniform(0.6, 1.0)
    images += rng.normal(0, 0.08, images.shape)
    pixels = (np.clip(images, 0, 1) * 255).astype(np.uint8)
    (folder / IMAGES).write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, *pixels.shape) + pixels.tobytes())
    (folder / LABELS).write_bytes(struct.pack(">4BI", 0, 0, 8, 1, count) + labels.tobytes())


def digits(folder: pathlib.Path) -> hr.Pipeline:
    """All digits as normalised float32 images [1, 28, 28] with their labels."""
    ending = ".gz" if (folder / (IMAGES + ".gz")).exists() else ""
    return hr.idx(path=folder / (IMAGES + ending), labels=folder / (LABELS + ending))


def prepared(records: hr.Pipeline, batch: int) -> hr.Pipeline:
    return records.to("float32").normalize(mean=[0.1307], std=[0.3081]).layout("chw").batch(batch)


class LeNet(nn.Sequential):
    """LeNet-5 with ReLU and maximum pooling."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip


def accuracy(model: nn.Module, pipeline: hr.Pipeline) -> float:
    right = total = 0
    with torch.no_grad():
        for batch in pipeline.loader(output="torch"):
            right += int((model(batch.image).argmax(1) == batch.label).sum())
            total += batch.records
    return right / total


def weights_digest(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()[:32]


def save(path: pathlib.Path, parts: dict[str, object]) -> None:
    """Saves atomically: a run that is killed while saving keeps its last checkpoint."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        torch.save(parts, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def train(options: argparse.Namespace, folder: pathlib.Path) -> float:
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # another summation order would give different weights
    model = LeNet()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    records = digits(folder)
    count = (records.record_count or 0) - TEST
    loader = prepared(records.take(count).shuffle(), options.batch).loader(
        epochs=options.epochs, seed=options.seed, output="torch"
    )
    plan = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.05, total_steps=len(loader))
    step = 0
    if options.checkpoint is not None and options.checkpoint.exists():
        parts = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(parts["model"])
        optimiser.load_state_dict(parts["optimiser"])
        plan.load_state_dict(parts["plan"])
        loader.load_state_dict(parts["loader"])
        step = parts["step"]
        print(f"resuming after step {step} of {len(loader)}", flush=True)

    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch.image), batch.label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        plan.step()
        step += 1
        if step % 50 == 0:
            print(f"epoch {batch.epoch + 1}  step {step} of {len(loader)}  loss {loss.item():.4f}", flush=True)
        if options.checkpoint is not None and step % options.save_every == 0:
            save(
                options.checkpoint,
                {
                    "model": model.state_dict(),
                    "optimiser": optimiser.state_dict(),
                    "plan": plan.state_dict(),
                    "loader": loader.state_dict(),
                    "step": step,
                },
            )
    reached = accuracy(model, prepared(records.skip(count), 250))
    print(f"accuracy {reached:.4f} on {TEST} unseen digits; weights {weights_digest(model)}")
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=pathlib.Path, metavar="DIR", help="folder of the IDX files; default: generated digits"
    )
    parser.add_argument("--checkpoint", type=pathlib.Path, metavar="FILE", help="save here, and resume from it")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        if options.data is not None:
            return 0 if train(options, options.data) > 0.97 else 1
        with tempfile.TemporaryDirectory() as folder:
            draw_digits(pathlib.Path(folder), 10_000)
            return 0 if train(options, pathlib.Path(folder)) > 0.97 else 1
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped" + (f"; run again to resume from {options.checkpoint}" if options.checkpoint else ""))


if __name__ == "__main__":
    sys.exit(main())
