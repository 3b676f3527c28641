"""Nodes of a pipeline as immutable Python values, and their numbering.

A random operator's draws are keyed by its node's name. A node without a name is identified by
its operator and its place among the nodes of that operator, so the order of these is part
of what a pipeline means. Nodes that came from one file keep the order of the file; all
others are numbered inputs first, in the order of the inputs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _headrace
from ._numpy import np
from .errors import ArgumentError, GraphError, translated

if TYPE_CHECKING:
    from .user_code import Code


class Origin:
    """A file that nodes came from; they are numbered in its order."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: list[Node] = []


class Draw:
    """A draw that decides which steps of a group run (Pipeline.apply, Pipeline.one_of).

    Without a name it is called by its kind and its place among the draws of that kind, when
    the pipeline is complete: two groups never share a draw.
    """

    __slots__ = ("kind", "name")

    def __init__(self, kind: str, name: str | None = None) -> None:
        self.kind, self.name = kind, checked_name(name, kind)

    def __repr__(self) -> str:
        return self.name or self.kind


class Node:
    """An operator with its parameters in a pipeline. Immutable."""

    __slots__ = ("batched", "code", "inputs", "name", "op", "origin", "params", "ran", "resolved", "service")

    def __init__(
        self,
        op: str,
        params: Mapping[str, Any],
        inputs: tuple[Node, ...] = (),
        name: str | None = None,
        code: Code | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.op = op
        self.params = dict(params)
        self.inputs = inputs
        self.name = checked_name(name, op)
        self.code = code
        self.origin = origin
        self.resolved: Any = None  # the result of build.resolve
        self.batched: bool | None = None  # the result of build.is_batched
        self.ran: set[tuple[int, ...]] = set()  # first epochs that were run to their end; see hints.py
        self.service: str | None = None  # whose workers run the pipeline up to here


def distributed(node: Node, service: str | None) -> Node:
    """A copy up to which a service's workers run. The nodes of its file are copied with it, since they are
    numbered together."""
    nodes = [node] if node.origin is None else node.origin.nodes
    origin = None if node.origin is None else Origin()
    copies: dict[int, Node] = {}
    for old in nodes:
        params = {**old.params, "distribute": True} if old is node else old.params
        inputs = tuple(copies.get(id(one), one) for one in old.inputs)
        copy = copies[id(old)] = Node(old.op, params, inputs, old.name, old.code, origin)
        copy.service = service if old is node else old.service
        if origin is not None:
            origin.nodes.append(copy)
    return copies[id(node)]


def checked_name(name: str | None, op: str) -> str | None:
    """`name`; ArgumentError if it cannot name a node."""
    if name is not None and (not isinstance(name, str) or not name or not is_text(name)):
        raise ArgumentError(
            f"{op}: name is a text that names the node, or None, not {name!r:.60}", node=op, op=op, param="name"
        )
    return name


def is_text(value: str) -> bool:
    """Whether the library can represent it: no surrogates (UTF-8), no NUL (C)."""
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _plain(value: object) -> Any:
    """Converts a value that json does not support; TypeError if it cannot."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if hasattr(value, "detach") and hasattr(value, "tolist"):  # a torch tensor
        return value.detach().tolist()
    if str(value).startswith("torch.") or isinstance(value, (np.dtype, type)):
        from .fieldspec import dtype_name

        return dtype_name(value)
    raise TypeError


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _texts(pair)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)


def to_json(params: Mapping[str, Any], op: str) -> str:
    """`params` as JSON text; ArgumentError names a value that cannot be represented."""
    for key, value in params.items():
        why = ""
        try:
            text = json.dumps(value, default=_plain, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            why = "must be finite" if isinstance(value, float) else f"cannot be a {type(value).__name__}"
        else:
            if "\\u" in text and not all(map(is_text, _texts(json.loads(text)))):
                why = "is not valid UTF-8 text"
        if why:
            raise ArgumentError(f"{op}: {key} {why} ({value!r:.60})", node=op, op=op, param=key)
    return json.dumps(params, default=_plain)


def checked_params(
    op: str, params: Mapping[str, Any], defaults: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """The parameters that were given, without None and defaults, checked against the op's table.

    They are plain values, copied from the lists and arrays that were given.
    """
    given = {
        k: v
        for k, v in params.items()
        if v is not None and not (k in defaults and type(v) is type(defaults[k]) and v == defaults[k])
    }
    text = to_json(given, op)
    with translated():
        _headrace.Graph().add(op, checked_name(name, op), [], text)
    made: dict[str, Any] = json.loads(text)
    return made


def draw_names(nodes: list[Node]) -> dict[Draw, str]:
    """The names of the draws of a graph's nodes (their parameter `when`); GraphError if two have the same."""
    draws = list(dict.fromkeys(key for node in nodes for key in node.params.get("when", {})))
    taken = {key for key in draws if isinstance(key, str)}
    made: dict[Draw, str] = {}
    for draw in draws:
        if isinstance(draw, Draw) and draw.name is not None:
            if draw.name in taken:
                raise GraphError(f"two groups have the name '{draw.name}', and groups draw by their names: rename one")
            taken.add(draw.name)
            made[draw] = draw.name
    counts = {"apply": 0, "one_of": 0}
    for draw in draws:
        if isinstance(draw, Draw) and draw.name is None:
            name = ""
            while not name or name in taken:
                counts[draw.kind] += 1
                name = draw.kind + (str(counts[draw.kind]) if counts[draw.kind] > 1 else "")
            taken.add(name)
            made[draw] = name
    return made


def named_params(nodes: list[Node]) -> list[dict[str, Any]]:
    """The parameters of each node, with the names of its draws."""
    names = draw_names(nodes)
    made = []
    for node in nodes:
        params = dict(node.params)
        if "when" in params:
            params["when"] = {names.get(key, key): part for key, part in params["when"].items()}
        made.append(params)
    return made


def _needed(output: Node) -> set[int]:
    found = {id(output)}
    waiting = [output]
    while waiting:
        for one in waiting.pop().inputs:
            if id(one) not in found:
                found.add(id(one))
                waiting.append(one)
    return found


def numbered(output: Node) -> list[Node]:
    """All nodes that `output` depends on, including itself, in order of their numbers."""
    needed = _needed(output)
    done: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(output, False)]
    while stack:
        node, entered = stack.pop()
        if id(node) in done:
            continue
        if node.origin is not None:
            for one in node.origin.nodes:
                if id(one) in needed:
                    done.setdefault(id(one), one)
        elif entered:
            done[id(node)] = node
        else:
            stack.append((node, True))
            stack.extend((i, False) for i in reversed(node.inputs))
    return list(done.values())
