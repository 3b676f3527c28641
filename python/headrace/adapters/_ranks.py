"""What adapters share if several ranks train together."""

from __future__ import annotations

from typing import Any

from ..loader import Loader
from ..states import merge_states


def state_of_all(loader: Loader, state: dict[str, Any]) -> dict[str, Any]:
    """The state of this rank, or those of all ranks if they can be at different positions.

    In the latter case it is a collective of torch.distributed, which all ranks must call.
    """
    if not loader.ranks_differ:
        return state
    from torch import distributed

    states: list[Any] = [None] * loader.world
    distributed.all_gather_object(states, state)
    return {"ranks": states}


def state_of_rank(loader: Loader, state: Any) -> Any:
    """This rank's state from the result of `state_of_all`, merged if the number of ranks differs."""
    states = state.get("ranks") if isinstance(state, dict) else None
    if states is None:
        return state
    return states[loader.rank] if len(states) == max(loader.world, 1) else merge_states(states)
