"""Nodes of a pipeline as immutable Python values, and their numbering.

A random operator's draws are keyed by its number in the graph, so the order in which
nodes are numbered is part of what a pipeline means. Nodes that came from one file keep
the order of the file; all others are numbered inputs first, in the order of the inputs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _headrace
from ._numpy import np
from .errors import ArgumentError, translated

if TYPE_CHECKING:
    from .code import Code


class Origin:
    """A file that nodes came from; they are numbered in its order."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: list[Node] = []


class Node:
    """An operator with its parameters in a pipeline. Never changed once made."""

    __slots__ = ("code", "inputs", "name", "op", "origin", "params", "resolved")

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
        self.name = name
        self.code = code
        self.origin = origin
        self.resolved: Any = None  # what code.resolve found out, once

    def params_text(self) -> str:
        """Parameters as JSON."""
        return to_json(self.params, self.op)


def to_json(params: Mapping[str, Any], op: str) -> str:
    """`params` as JSON text; ArgumentError names a value that JSON has no form for."""

    def other(value: object) -> Any:
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, (np.ndarray, np.generic)):
            return value.tolist()
        raise TypeError

    for key, value in params.items():
        try:
            json.dumps(value, default=other, allow_nan=True)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"{op}: {key} cannot be a {type(value).__name__} ({value!r:.60})", op=op, param=key
            ) from None
    return json.dumps(params, default=other)


def checked_params(op: str, params: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were given, without None and defaults, checked by the op's table."""
    given = {
        k: v
        for k, v in params.items()
        if v is not None and not (k in defaults and type(v) is type(defaults[k]) and v == defaults[k])
    }
    with translated():
        _headrace.Graph().add(op, None, [], to_json(given, op))
    return given


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
    """All nodes that `output` needs, itself included, in the order of their numbers."""
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
