"""A pipeline for people: as lines of text, and as a small drawing for notebooks."""

from __future__ import annotations

import html as escape
import json
import os
from typing import TYPE_CHECKING, Any

from . import fieldspec
from .identity import name_of
from .node import Node

if TYPE_CHECKING:
    from .build import Built

_LONGEST = 60
_BOX = 26  # height of a node in pixels, gap included
_COLOURS = {"source": "#d7e8d0", "order": "#e5e0ee", "batch": "#d3e4f3", "code": "#f6e5c8", "flow": "#eeeeee"}


def _value(value: Any) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    shown = json.dumps(text, default=str) if not isinstance(text, str) else repr(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."


def details(node: Node) -> str:
    """Parameters of a node in one line."""
    parts = []
    if node.code is not None:
        parts.append(name_of(node.code.fn))
        if node.code.fields:
            parts.append(f"fields={_value(list(node.code.fields))}")
        parts.append(f"variant={node.code.variant}")
    parts += [f"{k}={_value(v)}" for k, v in node.params.items() if k != "when"]
    parts += [f"when={_value({str(k): v for k, v in node.params['when'].items()})}"] if "when" in node.params else []
    return " ".join(parts)


def _labels(nodes: list[Node]) -> list[str]:
    seen: dict[str, int] = {}
    made = []
    for node in nodes:
        seen[node.op] = seen.get(node.op, 0) + 1
        made.append(node.name or node.op + (str(seen[node.op]) if seen[node.op] > 1 else ""))
    return made


def text(nodes: list[Node], built: Built | None) -> str:
    """One operator per line; inputs are named unless they are the previous line."""
    labels = _labels(nodes)
    at = {id(n): i for i, n in enumerate(nodes)}
    width = max(len(n.op) for n in nodes)
    lines = [f"Pipeline of {len(nodes)} node{'s' if len(nodes) != 1 else ''}"]
    for i, node in enumerate(nodes):
        inputs = [at[id(n)] for n in node.inputs]
        where = f" <- {', '.join(labels[k] for k in inputs)}" if inputs and inputs != [i - 1] else ""
        name = f" ({labels[i]})" if labels[i] != node.op else ""
        lines.append(f"  {node.op:<{width}}  {details(node)}".rstrip() + name + where)
    if built is not None:
        lines.append(f"gives {fieldspec.show(built.fields)}")
    return "\n".join(lines)


def _levels(nodes: list[Node]) -> dict[int, tuple[int, int]]:
    """{id: (column, row)}: nodes are below their inputs."""
    rows: dict[int, int] = {}
    columns: dict[int, int] = {}
    taken: set[tuple[int, int]] = set()
    waiting = list(nodes)
    while waiting:
        node = next((n for n in waiting if all(id(i) in rows for i in n.inputs)), waiting[0])
        waiting.remove(node)
        row = max((rows.get(id(i), 0) + 1 for i in node.inputs), default=0)
        column = min((columns.get(id(i), 0) for i in node.inputs), default=0)
        while (column, row) in taken:
            column += 1
        taken.add((column, row))
        rows[id(node)], columns[id(node)] = row, column
    return {key: (columns[key], rows[key]) for key in rows}


def html(nodes: list[Node], built: Built | None) -> str:
    """The graph as an inline SVG, with parameters as tooltips and the schema below."""
    places = _levels(nodes)
    labels = _labels(nodes)
    width = 9 * max(len(label) for label in labels) + 24
    step = width + 16
    lines, boxes = [], []  # boxes are drawn over the lines
    for node, label in zip(nodes, labels, strict=True):
        column, row = places[id(node)]
        x, y = column * step + 4, row * (_BOX + 12) + 4
        for one in node.inputs:
            c, r = places[id(one)]
            lines.append(
                f'<line x1="{c * step + 4 + width / 2:g}" y1="{r * (_BOX + 12) + 4 + _BOX}" '
                f'x2="{x + width / 2:g}" y2="{y}" stroke="#888"/>'
            )
        colour = _COLOURS.get(node.op.split(".")[0], "#f4f4f4")
        boxes.append(
            f"<g><title>{escape.escape(f'{node.op} {details(node)}')}</title>"
            f'<rect x="{x}" y="{y}" width="{width}" height="{_BOX}" rx="4" fill="{colour}" stroke="#888"/>'
            f'<text x="{x + width / 2:g}" y="{y + 17}" text-anchor="middle" font-family="monospace" '
            f'font-size="12" fill="#222">{escape.escape(label)}</text></g>'
        )
    columns = 1 + max(c for c, _ in places.values())
    rows = 1 + max(r for _, r in places.values())
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * step + 8}" height="{rows * (_BOX + 12) + 8}">'
        + "".join(lines + boxes)
        + "</svg>"
    )
    gives = f"<div><code>{escape.escape(fieldspec.show(built.fields))}</code></div>" if built is not None else ""
    return f"<div>{drawing}{gives}</div>"
