"""Batches made on the idle CPUs of a Ray cluster for two trainers, and the same records as a Ray dataset.

    headrace synth photos photos/ --count 300       # or your own photos, one folder per class
    python examples/ray_workers.py photos/          # a cluster of its own, or that of RAY_ADDRESS

The trainers are plain Ray actors; in Ray Train's loops `headrace.adapters.ray.shard(pipe, ray=True)` does the same.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np

import headrace as hr

try:
    import ray
    import ray.data
except ImportError as error:
    sys.exit(f"{error}; this example needs Ray: pip install 'ray[data]'")


def pipeline(photos: str) -> hr.Pipeline:
    return hr.files(photos, labels="folder").shuffle().decode().random_resized_crop(64).flip().batch(16)


class Trainer:
    """Would train a model; here it adds up what it is given."""

    def epoch(self, photos: str, rank: int) -> tuple[int, float]:
        with pipeline(photos).loader(seed=1, shard=(rank, 2), even="none", ray=True, output="numpy") as loader:
            sums = [(len(batch["image"]), float(np.sum(batch["image"], dtype=np.float64))) for batch in loader]
        return sum(records for records, _ in sums), sum(total for _, total in sums)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: ray_workers.py PHOTOS")
    photos = str(pathlib.Path(sys.argv[1]).resolve())
    ray.init(log_to_driver=False)
    trainers = [ray.remote(Trainer).options(num_cpus=0.5).remote() for _ in range(2)]
    shares = ray.get([trainer.epoch.remote(photos, rank) for rank, trainer in enumerate(trainers)])
    for rank, (records, _) in enumerate(shares):
        print(f"trainer {rank}: {records} records")
    for trainer in trainers:
        ray.kill(trainer)
    dataset = hr.to_ray_dataset(pipeline(photos), seed=1, blocks=4)
    total = sum(float(np.sum(batch["image"], dtype=np.float64)) for batch in dataset.iter_batches())
    print("the dataset has the same pixels" if total == sum(sums for _, sums in shares) else "the pixels differ")


if __name__ == "__main__":
    try:
        main()
    except (hr.HeadraceError, OSError) as error:
        sys.exit(f"ray_workers.py: {error}")
