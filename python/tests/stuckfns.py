"""Functions that do not return, or not soon, for worker processes."""

from __future__ import annotations

import time


def hang(value: int) -> int:
    if value > 0:  # the first record is tried out in the parent
        time.sleep(100_000)
    return value
