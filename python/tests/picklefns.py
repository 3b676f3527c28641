"""Data sets that test_pickling.py sends to worker processes."""

from __future__ import annotations

from typing import Any

import numpy as np


class Rows:
    """Counts what it was asked for in an array of its own, as a cache would."""

    def __init__(self, count: int) -> None:
        self.sizes = np.arange(count)
        self.asked = np.zeros(count, np.uint8)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, at: int) -> dict[str, Any]:
        self.asked[at] += 1
        return {"name": f"{at}", "size": self.sizes[at]}
