"""hr.mix: several pipelines interleaved by weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ._check import checked_op
from ._ops import flow_mix
from .errors import ArgumentError
from .pipeline import Pipeline


@checked_op("flow.mix")
def mix(
    pipelines: Mapping[str, Pipeline] | Sequence[Pipeline],
    *,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    until: Literal["first", "all"],
    seed: int = -1,
    name: str | None = None,
) -> Pipeline:
    """Interleave the records of several pipelines in given proportions.

        pipe = hr.mix({"web": web.shuffle(), "books": books.shuffle()}, weights={"web": 3, "books": 1}, until="all")

    Which record comes at which position depends on the run's seed, the epoch and the position alone:
    any number of threads gives the same bytes, ranks divide the mix, and a state resumes exactly.

    Args:
        pipelines: by name, or in order. All must have the same fields.
        weights: how often each is read: by name, or in order; they need not add up to 1. None: equally often.
        until: when an epoch ends: "first", before a pipeline would have to begin again ("first_exhausted" of
            Hugging Face's interleave_datasets), or "all", when every record came at least once and shorter
            pipelines were repeated ("all_exhausted").
        seed: decides the order together with the run's seed; -1: the node's name does.
        name: what the node is called in messages and files.

    Raises:
        ArgumentError: weights are missing, unknown, not positive or not finite.
        GraphError: when the pipeline is used: fields or classes differ, with the field and the input.
    """
    names = list(pipelines) if isinstance(pipelines, Mapping) else None
    inputs = list(pipelines.values()) if isinstance(pipelines, Mapping) else list(pipelines)
    if isinstance(weights, Mapping):
        if names is None or set(weights) != set(names):
            raise ArgumentError(
                f"mix(): weights are named {sorted(weights)}, and the pipelines "
                f"{sorted(names) if names is not None else 'have no names'}: give each pipeline one weight",
                param="weights",
            )
        weights = [weights[n] for n in names]
    return flow_mix(*inputs, weights=list(weights or []), until=until, seed=seed, name=name)
