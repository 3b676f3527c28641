"""Lightning: pipelines as a DataModule. A checkpoint holds the place in the data.

headrace synth photos photos/train --count 300
headrace synth photos photos/val --count 60 --seed 2
python examples/train_lightning.py photos/ runs/
python examples/train_lightning.py photos/ runs/ runs/last.ckpt     # goes on, also within an epoch
"""

from __future__ import annotations

import sys
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn

import headrace as hr
from headrace.adapters.lightning import DataModule


def finished(images: hr.Pipeline) -> hr.Pipeline:
    return images.normalize("imagenet").to("float32", layout="chw").batch(32)


def photos(folder: str) -> DataModule:
    train = hr.files(f"{folder}/train", labels="folder").shuffle().decode().random_resized_crop(64).flip()
    val = hr.files(f"{folder}/val", labels="folder").decode().resize_shortest(72).center_crop(64)
    return DataModule(finished(train), finished(val), seed=1)


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
        )

    def loss(self, batch: hr.Batch) -> torch.Tensor:
        return nn.functional.cross_entropy(self.model(batch.image), batch.label.long())

    def training_step(self, batch: hr.Batch, index: int) -> torch.Tensor:
        return self.loss(batch)

    def validation_step(self, batch: hr.Batch, index: int) -> None:
        self.log("val_loss", self.loss(batch), batch_size=batch.records)

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main(folder: str, runs: str, checkpoint: str | None = None) -> None:
    L.seed_everything(1)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        default_root_dir=runs,
        callbacks=[ModelCheckpoint(runs, every_n_train_steps=2, save_last=True)],
    )
    trainer.fit(Classifier(), photos(folder), ckpt_path=checkpoint)
    print(f"validation loss {trainer.callback_metrics['val_loss']:.3f} after {trainer.global_step} steps")


if __name__ == "__main__":
    main(*sys.argv[1:])
