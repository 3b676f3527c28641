"""The plot of make bench B=plan: what each rule's order gains over the written one, predicted and measured.

    plan_plot.py RESULT.json PLOT.svg        RESULT.json is what plan.py --json printed

One panel for each strictness, one group for each pipeline, one bar for each rule: its length is the
measured gain in CPU time, with the spread of the rounds; a diamond is the prediction. The line at 1 is
the written order.
"""

from __future__ import annotations

import json
import math
import pathlib
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

RULES = {"headrace": "#0072b2", "pecan": "#e69f00", "cedar": "#999999"}  # told apart in grey and by the colour-blind
BAR, GAP, LEFT, WIDTH, TOP = 9, 9, 150, 300, 64
PANEL = LEFT + WIDTH + 70
STEPS = (0.25, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 4, 8, 16, 32)


@dataclass
class Bar:
    """A rule's order of a pipeline. Gains are over the written order."""

    predicted: float
    measured: float
    low: float
    high: float
    written: bool  # the rule moves nothing


def quartiles(values: list[float]) -> tuple[float, float]:
    """The middle half."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def bar_of(row: dict[str, Any], base: dict[str, Any]) -> Bar:
    """Ratios of rounds, as plan.py takes them."""
    ratios = [a / b for a, b in zip(base["cpu_ns"], row["cpu_ns"], strict=True)]
    low, high = quartiles(ratios)
    return Bar(base["predicted_ns"] / row["predicted_ns"], row["gain"], low, high, row["as_written"])


class Scale:
    """Gains to pixels, by their logarithm."""

    def __init__(self, bars: list[Bar]) -> None:
        all_gains = [g for bar in bars for g in (bar.predicted, bar.measured, bar.low, bar.high)] + [0.9, 1.6]
        self.low, self.high = math.log(min(all_gains) * 0.96), math.log(max(all_gains) * 1.04)

    def at(self, gain: float) -> float:
        """The place of a gain."""
        return LEFT + WIDTH * (math.log(gain) - self.low) / (self.high - self.low)

    def steps(self) -> list[float]:
        """Gains with a line."""
        return [s for s in STEPS if self.low <= math.log(s) <= self.high]


def draw_bar(scale: Scale, bar: Bar, colour: str, y: float) -> Iterator[str]:
    """A bar, its spread, and its prediction."""
    one, end = scale.at(1), scale.at(bar.measured)
    middle = y + BAR / 2
    if bar.written:
        yield f'<circle cx="{one:.1f}" cy="{middle}" r="2.5" fill="{colour}"/>'
        return
    x, width = min(one, end), max(abs(end - one), 1)
    yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
    yield f'<path d="M{scale.at(bar.low):.1f} {middle}H{scale.at(bar.high):.1f}" stroke="#000" stroke-width="1"/>'
    p = scale.at(bar.predicted)
    yield f'<path d="M{p:.1f} {middle - 4}l4 4-4 4-4-4z" fill="#fff" stroke="#000"/>'
    text = max(end, p, scale.at(bar.high)) + 7
    yield f'<text x="{text:.1f}" y="{y + BAR - 1}" class="n">{bar.measured:.2f}</text>'


def draw_panel(title: str, groups: dict[str, dict[str, Bar]], scale: Scale, x: float, bottom: float) -> Iterator[str]:
    """All pipelines with one strictness."""
    yield f'<g transform="translate({x} 0)"><text x="{LEFT}" y="{TOP - 12}" class="t">{escape(title)}</text>'
    for step in scale.steps():
        at = scale.at(step)
        yield f'<path d="M{at:.1f} {TOP}V{bottom}" stroke="{"#000" if step == 1 else "#ddd"}"/>'
        yield f'<text x="{at:.1f}" y="{bottom + 13}" class="m">{step:g}x</text>'
    y = float(TOP + GAP / 2)
    for pipeline, bars in groups.items():
        yield f'<text x="{LEFT - 8}" y="{y + len(RULES) * BAR / 2 + 4}" class="e">{escape(pipeline)}</text>'
        for rule, colour in RULES.items():
            if rule in bars:
                yield from draw_bar(scale, bars[rule], colour, y)
            y += BAR
        y += GAP
    yield "</g>"


def legend(y: float) -> Iterator[str]:
    """What colours and marks are."""
    x = LEFT
    for rule, colour in RULES.items():
        yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 15}" y="{y}">{rule}</text>'
        x += 85
    for mark, text, width in (
        ('<path d="M{x} {m}l4 4-4 4-4-4z" fill="#fff" stroke="#000"/>', "predicted", 85),
        ('<path d="M{x} {y}h12" stroke="#000"/>', "middle half of the rounds", 170),
        ('<circle cx="{x}" cy="{y}" r="2.5"/>', "as written", 80),
    ):
        yield mark.format(x=x, m=y - 8, y=y - 4) + f'<text x="{x + 17}" y="{y}">{text}</text>'
        x += width


def svg(result: dict[str, Any]) -> str:
    """The plot of what plan.py --json printed."""
    rows = result["rows"]
    bases = {row["pipeline"]: row for row in rows if row["rule"] == "written"}
    panels: dict[str, dict[str, dict[str, Bar]]] = {}
    for row in rows:
        if row["strictness"] and row["rule"] in RULES:
            group = panels.setdefault(row["strictness"], {}).setdefault(row["pipeline"], {})
            group[row["rule"]] = bar_of(row, bases[row["pipeline"]])
    scale = Scale([bar for groups in panels.values() for group in groups.values() for bar in group.values()])
    bottom = TOP + len(bases) * (len(RULES) * BAR + GAP)
    width, height = PANEL * max(len(panels), 1), bottom + 56
    facts = result["facts"]
    about = f"{facts['headrace']}, {facts['machine']}, {facts['rounds']} rounds"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<style>text{font:11px sans-serif}.t{font-weight:bold}.e{text-anchor:end}.m{text-anchor:middle}"
        ".n{font-size:9px;fill:#444}.h{font:bold 14px sans-serif}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="12" y="20" class="h">CPU time of the written order by that of each rule\'s order</text>',
        f'<text x="12" y="36" fill="#444">{escape(about)}</text>',
    ]
    for at, (strictness, groups) in enumerate(panels.items()):
        parts += draw_panel(f"strictness {strictness}", groups, scale, at * PANEL, bottom)
    parts += legend(bottom + 40)
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Reads the result, writes the plot."""
    if len(sys.argv) != 3:
        sys.exit((__doc__ or "").partition("\n\n")[2])
    result = json.loads(pathlib.Path(sys.argv[1]).read_text())
    pathlib.Path(sys.argv[2]).write_text(svg(result))


if __name__ == "__main__":
    main()
