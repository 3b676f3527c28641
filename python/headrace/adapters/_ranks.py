"""What adapters share if several ranks train together."""

from __future__ import annotations

from typing import Any

from ..loader import Loader, LoaderOptions, rank_and_world
from ..pipeline import Pipeline
from ..states import merge_states


def even_steps(pipeline: Pipeline, options: LoaderOptions) -> LoaderOptions:
    """`options` with a value of `even` that gives all ranks the same number of steps, unless it is set."""
    rank, world = rank_and_world(options.get("rank"), options.get("world"))
    graph = pipeline._built.graph
    if world < 2 or graph.epoch_size({})["shards"] or "even" in options:
        return options
    size = graph.epoch_size({"rank": rank, "world": world, "on_error": options.get("on_error", "fail")})
    return {**options, "even": "steps" if size["ranks_differ"] else "repeat"}


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
