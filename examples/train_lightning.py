"""Lightning: pipelines as a DataModule. Checkpoints include the position in the data.

headrace synth photos photos/train --count 300          # or your own photos, one folder per class
headrace synth photos photos/val --count 60 --seed 2
python examples/train_lightning.py photos/ runs/        # stop and restart it: resumes, even within an epoch
python examples/train_lightning.py photos/ runs/ --ranks 2
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import headrace as hr

try:
    import lightning as L
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint
    from torch import nn

    from headrace.adapters.lightning import DataModule
except ImportError as error:
    sys.exit(f"{error}; this example needs Lightning: pip install torch lightning")


def finished(images: hr.Pipeline, batch: int) -> hr.Pipeline:
    return images.normalize("imagenet").to("float32", layout="chw").batch(batch)


def data(photos: pathlib.Path, batch: int) -> DataModule:
    train = hr.files(photos / "train", labels="folder").shuffle().decode().random_resized_crop(64).flip()
    val = hr.files(photos / "val", labels="folder").decode().resize_shortest(72).center_crop(64)
    return DataModule(finished(train, batch), finished(val, batch), seed=1)


class Classifier(L.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        layers = nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
        self.model = nn.Sequential(*layers, nn.Linear(256, classes))

    def loss(self, batch: hr.Batch) -> torch.Tensor:
        return nn.functional.cross_entropy(self.model(batch.image), batch.label)

    def training_step(self, batch: hr.Batch, index: int) -> torch.Tensor:
        loss = self.loss(batch)
        self.log("loss", loss, prog_bar=True, batch_size=batch.records)
        return loss

    def validation_step(self, batch: hr.Batch, index: int) -> None:
        self.log("val_loss", self.loss(batch), batch_size=batch.records, sync_dist=True)

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def train(options: argparse.Namespace) -> None:
    L.seed_everything(1)
    module = data(options.photos, options.batch)
    classes = sum(one.is_dir() and not one.name.startswith(".") for one in (options.photos / "train").iterdir())
    trainer = L.Trainer(
        max_epochs=options.epochs,
        accelerator="cpu",
        devices=options.ranks,
        logger=False,
        default_root_dir=options.runs,
        log_every_n_steps=1,
        callbacks=[ModelCheckpoint(options.runs, every_n_train_steps=options.save_every, save_last=True)],
    )
    last = options.runs / "last.ckpt"
    trainer.fit(Classifier(classes), module, ckpt_path=last if last.exists() else None)
    if trainer.interrupted:  # Lightning handles Ctrl-C itself
        raise KeyboardInterrupt
    if trainer.is_global_zero:
        found = trainer.callback_metrics.get("val_loss")
        print(f"validation loss {found:.3f} after" if found is not None else "nothing left to do after", end=" ")
        print(f"{trainer.global_step} steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="folder with train/ and val/, each with one folder per class")
    parser.add_argument("runs", type=pathlib.Path, help="folder for checkpoints; resumes from the last one")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="photos per step and rank")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--ranks", type=int, default=1, help="number of processes that split the photos")
    options = parser.parse_args()
    try:
        train(options)
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"stopped; run the same command again to resume from {options.runs}")


if __name__ == "__main__":
    main()
