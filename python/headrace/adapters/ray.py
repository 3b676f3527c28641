"""Ray Train: the equivalent of `ray.train.get_dataset_shard` for a pipeline.

    def train_loop_per_worker(config):
        shard = headrace.adapters.ray.shard(config["train"])
        for epoch in range(10):
            for batch in shard.iter_torch_batches():
                ...

Send the pipeline as a graph file (`to_yaml`), or make it in the worker. Each
worker reads its own share from the files; nothing goes through Ray's object store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from ..loader import Loader, LoaderOptions
from ..pipeline import Pipeline
from ..structure import mapped


class Shard:
    """One worker's share of a pipeline's batches; each iteration is one epoch."""

    def __init__(self, loader: Loader, device: str | None = None) -> None:
        self.loader = loader
        self._device = device

    def iter_torch_batches(self, *, device: Any = None) -> Iterator[Any]:
        """The next epoch as torch tensors on `device`, by default the worker's: dicts of fields, or
        what the items of the data set are.

        Batches are as large as the pipeline makes them.
        """
        device = device if device is not None else self._device

        def moved(value: Any) -> Any:
            stays = device in (None, "cpu") or not hasattr(value, "to")
            return value if stays else value.to(device, non_blocking=True)

        for batch in self.loader:
            yield mapped(moved, batch)

    def iter_batches(self) -> Iterator[Any]:
        """The same as NumPy arrays."""
        for batch in self.loader:
            yield mapped(lambda value: value.numpy() if hasattr(value, "numpy") else value, batch)

    def __len__(self) -> int:
        return len(self.loader)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch, for the checkpoint; the same on all workers unless
        a filter leaves them at different positions."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state, with any number of workers."""
        self.loader.load_state_dict(state)


def shard(pipeline: Pipeline, **options: Unpack[LoaderOptions]) -> Shard:
    """The share of the calling Ray Train worker; the whole pipeline outside of Ray Train.

    All workers make the same number of steps, unless `even` is given. `options` are those of
    `Pipeline.loader`.
    """
    rank, world, device = _worker()
    given: LoaderOptions = {"output": "torch", "shard": (rank, world), **options}
    return Shard(pipeline.loader(**given), device)


def _worker() -> tuple[int, int, str | None]:
    """(rank, world, device) of this worker."""
    try:
        from ray import train
        from ray.train.torch import get_device

        context = train.get_context()
        rank, world = context.get_world_rank(), context.get_world_size()
        return rank or 0, world or 1, str(get_device())
    except (ImportError, RuntimeError):  # RuntimeError: not in a training run
        return 0, 1, None
