"""A plain PyTorch loop over photos, with a checkpoint that includes the position in the data.

    headrace synth photos photos/ --count 300               # or your own photos, one folder per class
    python examples/train_torch.py photos/ model.pt         # stop and restart it: resumes
    torchrun --nproc-per-node 2 examples/train_torch.py photos/ model.pt

torchrun's ranks split each epoch and take equal numbers of steps; one rank can resume from two, or two from one.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

import headrace as hr

try:
    import torch
    from torch import distributed, nn
except ImportError as error:
    sys.exit(f"{error}; this example needs PyTorch: pip install torch")


def pipeline(photos: pathlib.Path, batch: int) -> hr.Pipeline:
    images = hr.files(photos, labels="folder").shuffle().decode().random_resized_crop(64).flip()
    return images.normalize("imagenet").to("float32", layout="chw").batch(batch)


def network(classes: int) -> nn.Module:
    layers = nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(256, classes))


def save(path: pathlib.Path, parts: dict[str, object]) -> None:
    """Saves atomically: a run that is killed while saving keeps its last checkpoint."""
    temporary = path.with_name(path.name + ".new")
    torch.save(parts, temporary)
    os.replace(temporary, path)


def train(options: argparse.Namespace) -> None:
    loader = pipeline(options.photos, options.batch).loader(seed=1, device="cpu", progress=sys.stderr.isatty())
    torch.manual_seed(1)
    classes = sum(one.is_dir() and not one.name.startswith(".") for one in options.photos.iterdir())
    model = network(classes)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = 0
    if options.checkpoint.exists():
        parts = torch.load(options.checkpoint, weights_only=True)
        model.load_state_dict(parts["model"])
        optimiser.load_state_dict(parts["optimiser"])
        loader.load_state_dict(parts["loader"])
        begin = parts["epoch"]
        if loader.rank == 0 and begin < options.epochs:
            print(f"resuming in epoch {begin}", flush=True)
    replica = nn.parallel.DistributedDataParallel(model) if loader.world > 1 else model

    def keep(epoch: int) -> None:
        if loader.rank == 0:
            model_and_place = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "epoch": epoch}
            save(options.checkpoint, {**model_and_place, "loader": loader.state_dict()})

    for epoch in range(begin, options.epochs):
        loader.set_epoch(epoch)  # keeps a loaded position in that epoch
        for step, batch in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(replica(batch.image), batch.label)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % options.save_every == 0:
                keep(epoch)
            if step % options.log_every == 0 and loader.rank == 0:
                print(f"epoch {epoch}  {batch.records} photos  loss {loss.item():.3f}", flush=True)
        keep(epoch + 1)
    if loader.rank == 0:
        print(f"{options.epochs} epochs completed; the model is in {options.checkpoint}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="a folder of photos, one folder per class")
    parser.add_argument("checkpoint", type=pathlib.Path, help="saved here; resumes from it if it exists")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="photos per step and rank")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--log-every", type=int, default=1, metavar="STEPS")
    options = parser.parse_args()
    if "RANK" in os.environ:  # torchrun
        distributed.init_process_group("gloo")
    try:
        train(options)
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"stopped; run the same command again to resume from {options.checkpoint}")
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


if __name__ == "__main__":
    main()
