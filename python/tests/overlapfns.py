"""What test_overlap.py ships to worker processes."""

from __future__ import annotations

import os
import pathlib


def mostly(x: int) -> int:
    """Fails for some."""
    if x % 13 == 4:
        raise ValueError(f"{x}")
    return x * 10


def add(x: int) -> int:
    """One more."""
    return x + 1


def keep(x: int) -> bool:
    """Fails for some, drops some."""
    if x % 170 == 31:
        raise ValueError(f"{x}")
    return x % 40 != 11


def until_300(x: int) -> int:
    """Fails from there on, each time with another text."""
    if x >= 300:
        raise ValueError("three hundred" if x == 300 else f"{x}")
    return x


def _parent(process: pathlib.Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:  # it has just ended
        return ""


def nurseries() -> set[int]:
    """The processes that start workers: children of this one."""
    mine = str(os.getpid())
    return {int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and _parent(p) == mine}
