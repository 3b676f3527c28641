"""States of loaders: their content, checks, and merging those of all ranks.

A state is a dict for json, smaller than 1 kB: the pipeline's fingerprint and a few digits per
operator, so that an error can name the one that differs; the seed; the epochs of the run; and
the engine's own state, as text. `engine` is None between epochs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _headrace
from .errors import ArgumentError, FormatError, StateError, StateMismatchError, translated
from .identity import identity
from .node import named_params

if TYPE_CHECKING:
    from .build import Built

VERSION = 2
KEYS = ("fingerprint", "nodes", "records", "seed", "first", "at", "epochs", "engine")
_NODES_MAX = 320  # bytes of text about the operators
_NUMBER_MAX = (1 << 63) - 1  # the engine's own numbers have closer limits, which it checks


def about(built: Built) -> dict[str, Any]:
    """The part of a state that identifies the pipeline."""
    return {"fingerprint": built.fingerprint, "nodes": _nodes(built), "records": built.record_count}


def _nodes(built: Built) -> str:
    """ "source.range:3f02 batch.stack:9a7e", the digits being a hash of parameters and code."""
    import hashlib

    parts = []
    for node, given in zip(built.nodes, named_params(built.nodes), strict=True):
        params = {k: v for k, v in given.items() if k not in ("rank", "world")}
        code = identity(node.code.fn, node.code.version) if node.code is not None else ""
        digest = hashlib.blake2b(f"{json.dumps(params, default=str, sort_keys=True)} {code}".encode(), digest_size=2)
        parts.append((node.op, digest.hexdigest()))
    text = " ".join(f"{op}:{digits}" for op, digits in parts)
    return text if len(text) <= _NODES_MAX else " ".join(f":{digits}" for _, digits in parts)[:_NODES_MAX]


def check(state: object) -> Mapping[str, Any]:
    """Returns `state` if it is well formed, else raises FormatError."""
    if not isinstance(state, Mapping) or "headrace" not in state:
        raise FormatError("this is not a state of a headrace loader: it has no key 'headrace'")
    if state["headrace"] != VERSION or isinstance(state["headrace"], bool):
        raise FormatError(f"the state is of version {state['headrace']!r}; this package reads {VERSION}")
    missing = [k for k in KEYS if k not in state]
    if missing:
        raise FormatError(f"the state is damaged: keys are missing: {', '.join(missing)}")
    for key in ("fingerprint", "nodes"):
        if not isinstance(state[key], str):
            raise _damaged(key, state)
    for key in ("seed", "first", "at"):
        if not _is_number(state[key]):
            raise _damaged(key, state)
    for key in ("records", "epochs"):
        if state[key] is not None and not _is_number(state[key]):
            raise _damaged(key, state)
    if state["epochs"] == 0 or state["at"] < state["first"]:
        raise _damaged("epochs" if state["epochs"] == 0 else "at", state)
    if state["engine"] is not None:
        _check_engine(state)
    return state


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _NUMBER_MAX


def _damaged(key: str, state: Mapping[str, Any]) -> FormatError:
    return FormatError(f"the state is damaged: {key} is {state[key]!r:.80}", param=key)


def _check_engine(state: Mapping[str, Any]) -> None:
    try:
        engine = json.loads(state["engine"])
    except (TypeError, ValueError):
        raise FormatError("the state is damaged: its engine part does not parse", param="engine") from None
    if not isinstance(engine, dict) or engine.get("fingerprint") != state["fingerprint"]:
        raise FormatError("the state is damaged: its engine part belongs to another state", param="engine")
    if "headrace_consumer" in engine:
        return
    for key in ("even", "moves"):
        if not isinstance(engine.get(key), bool):
            raise FormatError(f"the state is damaged: {key} is {engine.get(key)!r:.80}", param="engine")
    for key in ("epoch", "base", "position", "world", "rank", "records"):
        if not _is_number(engine.get(key)):
            raise FormatError(f"the state is damaged: {key} is {engine.get(key)!r:.80}", param="engine")


def is_consumers(state: Mapping[str, Any]) -> bool:
    """Whether it is of one of several consumers of a run."""
    return state["engine"] is not None and "headrace_consumer" in json.loads(state["engine"])


def refuse_others(state: Mapping[str, Any], built: Built, seed: int) -> None:
    """Raises StateMismatchError unless it is a state of this pipeline and seed."""
    if state["fingerprint"] != built.fingerprint:
        raise StateMismatchError(
            "the state belongs to another pipeline or data set: "
            f"{_class_difference(state, built) or _difference(state, about(built))} "
            f"(fingerprint {state['fingerprint']}, here {built.fingerprint})",
            param="fingerprint",
        )
    if state["seed"] != seed:
        raise StateMismatchError(
            f"the state was saved with seed {state['seed']}, this loader has seed {seed}", param="seed"
        )


def refuse_ranks(state: Mapping[str, Any], rank: int, world: int) -> None:
    """Raises StateMismatchError if only another rank can load it."""
    if state["engine"] is None:
        return
    engine = json.loads(state["engine"])
    if is_consumers(state):
        raise StateMismatchError(
            "the state belongs to one of several consumers: load it with the same service_job= and service_consumer=",
            param="service_consumer",
        )
    if engine["world"] == 0 or engine["even"] or (engine["rank"], engine["world"]) == (rank, world):
        return
    raise StateMismatchError(
        f"the state belongs to rank {engine['rank']} of {engine['world']}, this is rank {rank} of {world}. "
        + (
            "A filter, flat_map or on_error='skip' leaves ranks at different positions: save the states of all ranks, "
            "and load each rank's own, or hr.merge_states(states) for another number of ranks"
            if engine["moves"]
            else "window(), bucketed_batch(), and a window shuffle, take or skip after a filter or an iterable, tie a "
            "state to its rank: save the states of all ranks, and load each rank's own; a shuffle before the filter "
            "allows any number of ranks"
        ),
        param="rank",
    )


def _class_difference(state: Mapping[str, Any], built: Built) -> str:
    """The first class of a source that had another number or name when the state was saved, or ""."""
    saved = json.loads(state["engine"]).get("classes", []) if state["engine"] is not None else []
    here = {
        (info["name"], field["name"]): field["classes"]
        for at, info in enumerate(built.graph.nodes())
        for field in built.graph.fields(at)
    }
    for item in saved:
        then, now = item["names"], here.get((item["node"], item["field"]))
        if now is None or then == now:
            continue
        at = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
        was = f"was '{then[at]}'" if at < len(then) else "did not exist"
        is_ = f"is '{now[at]}'" if at < len(now) else "does not exist"
        return (
            f"other classes of field '{item['field']}': class {at} {was} then, and {is_} now ({len(then)} classes "
            f"then, {len(now)} now); give {item['node']} those of then (classes=)"
        )
    return ""


def _difference(state: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    then, now = state["nodes"].split(" "), here["nodes"].split(" ")
    for at, (old, new) in enumerate(zip(then, now, strict=False)):
        (was, _, _), (is_, _, _) = old.partition(":"), new.partition(":")
        if was != is_:
            return f"its operator {at + 1} is {was}, here it is {is_}"
        if old != new:
            return f"operator {at + 1}{', ' + is_ if is_ else ''}, has other parameters or other code here"
    if len(then) != len(now):
        return f"it has {len(then)} operators, here are {len(now)}"
    if state["records"] != here["records"]:
        return f"its data had {state['records']} records per epoch, here are {here['records']}"
    return "the operators are the same, but the data are others: the list of files, or the identity of a dataset"


def merge_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the states that all ranks saved at the same step, for any number of ranks.

        states = [json.loads(p.read_text()) for p in sorted(folder.glob("loader-*.json"))]
        loader.load_state_dict(hr.merge_states(states))

    Not needed if each step takes the same number of records on every rank: then the state of
    any rank will do. It is needed if ranks are at different positions: after a filter or
    `flat_map`, or if bad records were skipped. Records that faster ranks have already consumed
    are not repeated.

    Args:
        states: of all ranks, in any order. The result may be longer than 1 kB: some bytes
            per rank, until all have passed its position.

    Raises:
        StateError: they do not belong together: a rank is missing, or the steps differ; or a
            window shuffle after a filter ties each state to its rank.
        FormatError: a state is damaged.
    """
    if isinstance(states, Mapping) or not isinstance(states, Sequence) or not states:
        raise ArgumentError("merge_states() takes a list of the states of all ranks", param="states")
    checked = [check(state) for state in states]
    for key in ("fingerprint", "seed", "first", "epochs", "at"):
        values = [state[key] for state in checked]
        if any(value != values[0] for value in values):
            raise StateError(f"the states were not saved together: {key} is {values[0]!r} and {_other(values)!r}")
    engines = [state["engine"] for state in checked]
    if all(engine is None for engine in engines):
        return dict(checked[0])
    if any(engine is None for engine in engines):
        raise StateError("the states were not saved together: some ranks are between epochs, others within one")
    with translated():
        return {**checked[0], "engine": _headrace.merge_states(engines)}


def _other(values: list[Any]) -> Any:
    return next(value for value in values if value != values[0])
