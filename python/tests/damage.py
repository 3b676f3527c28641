"""Damaged files: each is read or refused by name, and nothing else happens."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable, Iterable

import headrace as hr


def damaged(data: bytes, rng: random.Random, place: Callable[[], int]) -> bytes:
    """The data with one or 20 bits flipped, in bytes that `place` chooses."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 20])):
        changed[place()] ^= 1 << rng.randrange(8)
    return bytes(changed)


def refused(path: pathlib.Path, versions: Iterable[bytes], read: Callable[[], object]) -> int:
    """Writes each version to the file and reads it. Returns how many are refused, which is to name the file."""
    count = 0
    for version in versions:
        path.write_bytes(version)
        try:
            read()
        except hr.HeadraceError as error:
            count += 1
            assert path.name in str(error)
    return count
