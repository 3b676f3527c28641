"""A plain PyTorch loop over photos, with a checkpoint that knows its place in the data.

headrace synth photos photos/ --count 300
python examples/train_torch.py photos/ model.pt        # stop it, start it again: it goes on
"""

from __future__ import annotations

import os
import sys

import torch
from torch import nn

import headrace as hr


def main(photos: str, checkpoint: str, epochs: int = 2) -> None:
    train = (
        hr.files(photos, labels="folder")
        .shuffle()
        .decode()
        .random_resized_crop(64)
        .flip()
        .normalize("imagenet")
        .to("float32", layout="chw")
        .batch(32)
    )
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = train.loader(epochs=epochs, seed=1, output="torch")
    if os.path.exists(checkpoint):
        parts = torch.load(checkpoint)
        model.load_state_dict(parts["model"])
        optimiser.load_state_dict(parts["optimiser"])
        loader.load_state_dict(parts["loader"])

    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch.image), batch.label.long())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        parts = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "loader": loader.state_dict()}
        torch.save(parts, checkpoint + ".new")
        os.replace(checkpoint + ".new", checkpoint)
        print(f"epoch {batch.epoch}  {batch.records} photos  loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
