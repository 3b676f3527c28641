"""Equal steps for ranks that cannot know in advance how many they have.

After a filter, or with skipped records, a rank may have one batch fewer than others, which then
wait for it in the gradients' all-reduce forever. Here the ranks exchange before each step the
epoch of their next batch: one number each, through torch.distributed, in a separate gloo group,
so that the model's collectives do not interfere. The first rank without a batch ends the epoch
for all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .errors import ArgumentError

if TYPE_CHECKING:
    from . import _headrace
    from .loader_run import Run

_END = 1 << 62  # the epoch of a rank that has no batch left


class EqualSteps:
    """The ranks of torch.distributed. All must run their loaders in the same order."""

    def __init__(self) -> None:
        torch: Any = sys.modules.get("torch")  # not imported: not initialised either
        dist = torch and torch.distributed
        if not (dist and dist.is_available() and dist.is_initialized()):
            raise ArgumentError(
                "ranks cannot know in advance that they make equal steps (a filter, an iterable, skipped records), and "
                "to agree in each step they need torch.distributed, which is not initialised: call "
                "torch.distributed.init_process_group() first, or accept unequal steps with even='none'",
                param="even",
            )
        self._torch, self._dist = torch, dist
        self._group: Any = None

    def steps(self, run: Run) -> Iterator[_headrace.Batch]:
        """The batches of `run` for which every rank has one of the same epoch."""
        if self._group is None:
            self._group = self._dist.new_group(backend="gloo")
        while True:
            batch = _take(run)
            first, last = self._meet(batch)
            while first < last < _END:  # others are in a later epoch: skip the rest of this one
                while batch is not None and batch.epoch < last:
                    batch = _take(run)
                first, last = self._meet(batch)
            if batch is None or last == _END:
                run.close(finished=True)
                return
            yield batch

    def _meet(self, batch: _headrace.Batch | None) -> tuple[int, int]:
        """The lowest and the highest epoch among the ranks."""
        mine = batch.epoch if batch is not None else _END
        epochs = self._torch.tensor([-mine, mine], dtype=self._torch.int64)
        self._dist.all_reduce(epochs, op=self._dist.ReduceOp.MAX, group=self._group)
        return -int(epochs[0]), int(epochs[1])


def _take(run: Run) -> _headrace.Batch | None:
    """The next batch; None at the end."""
    try:
        return run.take()
    except StopIteration:
        return None
