"""Counts all references around rounds of what the extension does: count_refs.py FOLDER.

FOLDER has the extension, built for an interpreter that counts references, which runs this
(tools/debug-python). NumPy's wheels are built for release and change counts unseen: 1000
rounds of `a.reshape(2, 3)` and `np.asarray(b)` are 1000 references too many. So the package,
which imports NumPy, stays away, and a few lines of Python stand in for what the extension
takes from NumPy.
"""

from __future__ import annotations

import array
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

TIMES = 20
# A reference lost in each round would be TIMES. What the interpreter keeps for itself (caches
# that fill up) comes once.
SLACK = TIMES // 2
WINDOWS = 5


class Dtype:
    def __init__(self, letter: str) -> None:
        self.name = self.char = letter
        self.kind = {"f": "f", "d": "f", "e": "f", "?": "b", "B": "u", "H": "u"}.get(letter, "i")

    def newbyteorder(self, order: str) -> Dtype:
        return self


class Array(array.array):  # type: ignore[type-arg]
    """What asarray makes: a list of numbers. Anything else is no array."""

    @property
    def dtype(self) -> Dtype:
        return Dtype(self.typecode)

    def astype(self, dtype: Dtype, *how: str) -> Array:
        return Array(dtype.char, [int(x) if dtype.kind in "iu" else x for x in self])


def asarray(value: Any, dtype: Dtype | None = None) -> Array:
    return Array(dtype.char if dtype else "d", value)


def ndarray(shape: tuple[int, ...], dtype: Dtype, data: bytes) -> memoryview:
    return memoryview(data).cast("B").cast(dtype.char, shape)  # type: ignore[call-overload,no-any-return]


def stand_in(folder: str) -> None:
    """The package with nothing but the extension, and NumPy as far as that needs it."""
    package, numpy = types.ModuleType("headrace"), types.ModuleType("numpy")
    package.__path__ = [folder]
    vars(numpy).update(ndarray=ndarray, asarray=asarray, dtype=Dtype)
    sys.modules.update(headrace=package, numpy=numpy)


def lost(path: Callable[[], None]) -> float:
    """References that a round loses, or gains when below 0; at its end the caches are full."""
    total = sys.gettotalrefcount  # type: ignore[attr-defined]
    change = 0
    for _ in range(WINDOWS):
        gc.collect()
        before = total()
        for _ in range(TIMES):
            path()
        gc.collect()
        change = total() - before
        if abs(change) < SLACK:
            return 0.0
    return change / TIMES


def main(folder: str) -> int:
    stand_in(folder)
    sys.dont_write_bytecode = True
    import extfns

    gc.disable()
    failed = 0
    for name, path in extfns.ROUNDS.items():
        before = extfns.ext.live_objects()
        change = lost(path)
        handles = {k: v - before[k] for k, v in extfns.ext.live_objects().items() if v != before[k]}
        failed += bool(change or handles)
        print(f"{name}: {change:+.1f} references in each round, {handles} left" if change or handles else f"{name}: ok")
    print(f"{len(extfns.ROUNDS) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
