"""Warnings of loops that would go wrong without an error."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from . import build

if TYPE_CHECKING:
    from .build import Built
    from .node import Node


def of_changing_part(built: Built, stacklevel: int) -> None:
    """A take or skip after a shuffle, in a loop over several epochs."""
    if built.changing_part is None:
        return
    part, shuffle = built.changing_part
    warnings.warn(
        f"'{part}' comes after '{shuffle}', which has another order in every epoch, so it selects other "
        "records in every epoch: a training and a validation set made like this overlap. To select the same "
        f"records, put '{part}' before '{shuffle}', or make both sets with hr.split()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def of_repeated_epoch(node: Node, engine: dict[str, Any], stacklevel: int) -> None:
    """A first epoch that another loader of the same pipeline has finished with the same seed, as a new loader for
    each epoch does."""
    if _key(engine) in node.ran:
        warnings.warn(
            "another loader of this pipeline has run epoch 0 with the same seed, so this one repeats its order and "
            "its random draws. Make one loader before the loop over epochs: each `for` over it is the next epoch. To "
            "repeat an epoch, give seed= or call set_epoch(0)",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def note_first_epoch(node: Node, built: Built, engine: dict[str, Any]) -> None:
    """The first epoch of a pipeline was run to its end."""
    ops = {info["op"] for info in built.graph.nodes()}
    if any(op.startswith("order.") and "random" in build.op_infos()[op]["traits"] for op in ops):
        node.ran.add(_key(engine))


def _key(engine: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(engine.get(name, 0)) for name in ("seed", "rank", "world"))
