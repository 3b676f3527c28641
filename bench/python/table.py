"""The table that the package's benchmark prints: bench/measure.h in Python.

Contenders alternate in every round, and a ratio is the median over rounds of the ratio within a
round, so that interference affects both sides alike. Claims are printed with the measurements
and never affect the exit status.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field


@dataclass
class Claim:
    """The project's claim, printed with the measurement."""

    what: str
    values: list[float]
    at_least: bool
    limit: float

    @property
    def value(self) -> float:
        """The median over rounds."""
        return statistics.median(self.values)

    @property
    def reached(self) -> bool:
        """True if the median meets the claim."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        """The line in the format of the C programs."""
        spread = f"({min(self.values):.4g} to {max(self.values):.4g})"
        word = "reached" if self.reached else "NOT REACHED"
        sign = ">=" if self.at_least else "<="
        return f"  {self.what:<62} {self.value:8.4g} {spread}, claim {sign} {self.limit:g}: {word}"


@dataclass
class Table:
    """Figures by group and row, one per round."""

    rows: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def add(self, group: str, unit: str, row: str, value: float) -> None:
        """A figure of one round; rows appear in the order of their first figure."""
        self.units[group] = unit
        self.rows.setdefault(group, {}).setdefault(row, []).append(value)

    def ratios(self, group: str, row: str, base: str) -> list[float]:
        """row / base within each round."""
        of = self.rows.get(group, {})
        return [a / b for a, b in zip(of.get(row, []), of.get(base, []), strict=False)]

    def claim(self, what: str, values: list[float], limit: float, at_least: bool = True) -> None:
        """Claims that the median of `values` is at least, or at most, `limit`."""
        if values:
            self.claims.append(Claim(what, values, at_least, limit))

    def show(self) -> str:
        """The table as text."""
        lines = [f"  {key:<16} {text}" for key, text in self.facts.items()]
        for group, rows in self.rows.items():
            lines.append(f"\n  {group:<42} {self.units[group]:>10}  {'min to max':<20}  ratio")
            first = next(iter(rows))
            for row, values in rows.items():
                spread = f"{min(values):.4g} to {max(values):.4g}"
                ratio = statistics.median(self.ratios(group, row, first))
                lines.append(f"  {row:<42} {statistics.median(values):>10.5g}  {spread:<20} {ratio:>6.2f}")
        lines.append("  medians over rounds; ratios to the first row of each group, within rounds\n")
        return "\n".join([*lines, *(claim.line() for claim in self.claims)])

    def json(self) -> str:
        """The table as JSON."""
        made = {
            "facts": self.facts,
            "groups": [
                {
                    "group": group,
                    "unit": self.units[group],
                    "row": row,
                    "rounds": values,
                    "median": statistics.median(values),
                }
                for group, rows in self.rows.items()
                for row, values in rows.items()
            ],
            "claims": [
                {
                    "claim": c.what,
                    "value": c.value,
                    "rounds": c.values,
                    "at_least" if c.at_least else "at_most": c.limit,
                    "reached": c.reached,
                }
                for c in self.claims
            ],
        }
        return json.dumps(made)
