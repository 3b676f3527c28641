"""Functions that do not return, for worker processes; code that they never finish to import."""

from __future__ import annotations

import time


def hang(value: int) -> int:
    if value > 0:  # the first record is tried out in the parent
        time.sleep(100_000)
    return value


class HangsInWorkers:
    """Its pickle hangs where it is loaded."""

    def __call__(self, value: int) -> int:
        return value

    def __reduce__(self) -> object:
        return time.sleep, (100_000,)


def stays_at_37(value: int) -> int:
    """Interruptible, so that its thread ends with the run. At 36 other threads have time to queue up for inline code."""
    if value == 36:
        time.sleep(0.3)
    while value == 37:
        time.sleep(0.01)
    return value


def slow(value: int) -> int:
    time.sleep(0.05)
    return value
