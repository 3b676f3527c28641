"""Ray Train: each worker reads its own share of the photos.

    headrace synth photos photos/ --count 300               # or your own photos, one folder per class
    python examples/train_ray.py photos/ model.pt --workers 2   # stop and restart it: resumes

A different number of workers can resume as well.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import Any

import headrace as hr

try:
    import ray.train
    import torch
    from ray.train.torch import TorchTrainer, prepare_model
    from torch import nn

    from headrace.adapters.ray import shard
except ImportError as error:
    sys.exit(f"{error}; this example needs Ray: pip install torch 'ray[train]'")


def pipeline(photos: pathlib.Path, batch: int) -> hr.Pipeline:
    images = hr.files(photos, labels="folder").shuffle().decode().random_resized_crop(64).flip()
    return images.normalize("imagenet").to("float32", layout="chw").batch(batch)


def network(classes: int) -> nn.Module:
    layers = nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(256, classes))


def train_loop(config: dict[str, Any]) -> None:
    """Runs in each worker. The checkpoint is a file visible to all of them."""
    checkpoint: pathlib.Path = config["checkpoint"]
    batches = shard(pipeline(config["photos"], config["batch"]), seed=1, threads=1)
    model = network(config["classes"])
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = 0
    if checkpoint.exists():
        parts = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(parts["model"])
        optimiser.load_state_dict(parts["optimiser"])
        batches.load_state_dict(parts["loader"])
        begin = parts["epoch"]
    first = ray.train.get_context().get_world_rank() == 0
    replica = prepare_model(model)

    def keep(epoch: int) -> None:
        if first:
            parts = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "epoch": epoch}
            temporary = checkpoint.with_name(checkpoint.name + ".new")
            torch.save({**parts, "loader": batches.state_dict()}, temporary)
            os.replace(temporary, checkpoint)

    for epoch in range(begin, config["epochs"]):
        loss = torch.zeros(())
        batches.loader.set_epoch(epoch)  # keeps a loaded position in that epoch
        for step, batch in enumerate(batches.iter_torch_batches(), 1):
            loss = nn.functional.cross_entropy(replica(batch["image"]), batch["label"])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % config["save_every"] == 0:
                keep(epoch)
        keep(epoch + 1)
        ray.train.report({"epoch": epoch, "loss": loss.item()})
        if first:
            print(f"epoch {epoch}  {len(batches)} steps on each worker  loss {loss.item():.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="a folder of photos, one folder per class")
    parser.add_argument("checkpoint", type=pathlib.Path, help="saved here; resumes from it if it exists")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16, help="photos per step and worker")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    options = parser.parse_args()
    config = {**vars(options), "photos": options.photos.resolve(), "checkpoint": options.checkpoint.resolve()}
    try:
        pipeline(options.photos, options.batch).record_count  # noqa: B018 (reports problems with the photos here)
        config["classes"] = sum(one.is_dir() and not one.name.startswith(".") for one in options.photos.iterdir())
        TorchTrainer(
            train_loop, train_loop_config=config, scaling_config=ray.train.ScalingConfig(num_workers=options.workers)
        ).fit()
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"stopped; run the same command again to resume from {options.checkpoint}")
    print(f"{options.epochs} epochs completed; the model is in {options.checkpoint}")


if __name__ == "__main__":
    main()
