"""Ray Train: each worker reads its own share of the photos.

headrace synth photos photos/ --count 300
python examples/train_ray.py photos/ 2                  # workers
"""

from __future__ import annotations

import sys
from typing import Any

import ray.train
import torch
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn

import headrace as hr
from headrace.adapters.ray import shard


def train_loop(config: dict[str, Any]) -> None:
    train = (
        hr.files(config["photos"], labels="folder")
        .shuffle()
        .decode()
        .random_resized_crop(64)
        .flip()
        .normalize("imagenet")
        .to("float32", layout="chw")
        .batch(16)
    )
    batches = shard(train, seed=1, threads=1)
    model = prepare_model(
        nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
        )
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.tensor(0.0)
    for epoch in range(2):
        for batch in batches.iter_torch_batches():
            loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"].long())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        ray.train.report({"epoch": epoch, "loss": loss.item()})
        if ray.train.get_context().get_world_rank() == 0:
            print(f"epoch {epoch}  {len(batches)} steps on each worker  loss {loss.item():.3f}", flush=True)


def main(photos: str, workers: int) -> None:
    TorchTrainer(
        train_loop,
        train_loop_config={"photos": photos},
        scaling_config=ray.train.ScalingConfig(num_workers=workers),
    ).fit()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
