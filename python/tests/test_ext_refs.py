"""Reference counts: what the extension does many times leaves counts and blocks as they were.

A release build of CPython has no sys.gettotalrefcount (tools/debug-python has it). Instead:
handles by class, blocks of the allocator (any lost object shows), and the counts of objects
that outlive every call (a lost reference to one of them shows in no other way).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import extfns
from extfns import ROUNDS, Tally
from headrace import _headrace as ext

TIMES = 25
# A reference lost in each round would be TIMES.
SLACK = TIMES // 2
# A block lost with each of a round's 24 records or more would be 24 * TIMES. Where exceptions
# are raised, caches of the interpreter fill up for hundreds of rounds: by 2 to 8 in each of the
# first 50, by 3 in all of the 300 that follow 650.
BLOCKS_SLACK = 12 * TIMES


def lasting() -> list[Any]:
    """What the counts of are looked at."""
    types = [ext.Error, ext.Graph, ext.Iter, ext.Batch, ext.Field, np.ndarray, np.dtype("float32"), np.dtype("int64")]
    functions = [extfns.make, extfns.passed_on, extfns.fail, extfns.children, np.asarray]
    return [*types, *functions, Tally.array, Tally.text, Tally.kind, Tally.options]


@pytest.fixture
def quiet() -> Iterator[None]:
    """The collector runs only when it is called."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("nothing_left", "quiet")
@pytest.mark.parametrize("path", ROUNDS.values(), ids=ROUNDS)
def test_counts_stay_as_they_were(path: Callable[[], None]) -> None:
    def measure() -> tuple[int, list[int], dict[str, int]]:
        gc.collect()
        return sys.getallocatedblocks(), [sys.getrefcount(o) for o in things], ext.live_objects()

    def lost() -> str:
        """What one more window of TIMES rounds loses, or nothing."""
        blocks, counts, handles = measure()
        for _ in range(TIMES):
            path()
        after = measure()
        assert after[2] == handles
        if after[0] - blocks >= BLOCKS_SLACK:
            return f"{(after[0] - blocks) / TIMES:.1f} blocks are lost in each round"
        for thing, before, count in zip(things, counts, after[1], strict=True):
            if abs(count - before) >= SLACK:
                return f"{thing!r}: {(count - before) / TIMES:+.1f} references in each round"
        return ""

    things = lasting()
    for _ in range(5):
        path()
    windows = [lost()]
    while windows[-1] and len(windows) < 4:  # caches fill up; what is lost is lost in every window
        windows.append(lost())
    assert not windows[-1], windows
