"""Which share of the records a loader takes, and how ranks come to make equal steps.

Ranks that train together wait for each other in every step, so a rank with one batch more than
the others would wait forever. Loaders therefore make equal steps unless told otherwise, and say
once which share they took.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import ArgumentError

if TYPE_CHECKING:
    from . import _headrace


class Share(NamedTuple):
    """Number of this consumer, of how many, and who said so."""

    rank: int
    world: int
    why: str


def check(shard: Any) -> None:
    """Raises ArgumentError unless `shard` is a value of the loader's argument."""
    if shard is None or shard == "auto":
        return
    if (
        not isinstance(shard, (tuple, list))
        or len(shard) != 2
        or any(isinstance(n, bool) or not hasattr(n, "__index__") for n in shard)
    ):
        raise ArgumentError(
            f"loader(): shard is 'auto', None (all records) or a pair (rank, world), not {shard!r:.60}", param="shard"
        )
    rank, world = shard
    if world < 1 or not 0 <= rank < world:
        raise ArgumentError(
            f"loader(): shard=({rank}, {world}): rank must be 0 to world - 1, and world at least 1", param="shard"
        )


def find(shard: Any) -> Share:
    """The share that `shard` stands for, here and now."""
    if shard is None:
        return Share(0, 1, "shard=None")
    if shard != "auto":
        return Share(int(shard[0]), int(shard[1]), "shard=")
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return Share(int(torch.distributed.get_rank()), int(torch.distributed.get_world_size()), "torch.distributed")
    said = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if not said[0] and said[1] not in (None, "", "1"):
        raise ArgumentError(
            f"loader(): the environment has WORLD_SIZE={said[1]} and no RANK, so each process would read all records: "
            "set RANK, or give shard=(rank, world), or shard=None for all records",
            param="shard",
        )
    if not said[0] or not said[1]:
        return Share(0, 1, "no ranks found")
    try:
        rank, world = int(said[0]), int(said[1])
    except ValueError:
        rank, world = -1, 0
    if world < 1 or not 0 <= rank < world:
        raise ArgumentError(
            f"loader(): the environment has RANK={said[0]} and WORLD_SIZE={said[1]}; correct it, or give shard=",
            param="shard",
        )
    return Share(rank, world, "RANK and WORLD_SIZE")


def tell(share: Share, even: str, size: _headrace.EpochSize, records: int | None) -> None:
    """Logs the share, if there are several."""
    if share.world == 1:
        return
    import logging  # takes milliseconds, which a program without ranks saves

    steps = f"{size['batches']} steps" if size["batches"] >= 0 else "steps until the first rank has no batch left"
    if even == "none":
        steps += ", which may differ between ranks"
    of = f"{size['records']} of {records} records" if size["records"] >= 0 and records is not None else "its records"
    logging.getLogger("headrace").info(
        "loader: rank %d of %d (from %s) takes %s per epoch, in %s (even='%s')",
        share.rank,
        share.world,
        share.why,
        of,
        steps,
        even,
    )
