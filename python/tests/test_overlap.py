"""Records that wait in a worker process while others are put away: the results do not show it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import pytest

import headrace as hr
import overlapfns
from conftest import descendants


def run(variant: str, threads: int, on_error: str, kills: tuple[int, ...] = ()) -> tuple[list[int], int]:
    """All values of two epochs, and the bad records: through two visits to processes with work between."""
    before = descendants()
    other: Any = "threads" if variant == "processes" else variant
    pipe = hr.range(700).shuffle(seed=5).map(overlapfns.mostly, variant=variant)  # type: ignore[arg-type]
    pipe = pipe.map(overlapfns.add, variant=other).filter(overlapfns.keep, variant=variant).batch(16)  # type: ignore[arg-type]
    seen: list[int] = []
    loader = pipe.loader(threads=threads, epochs=2, on_error=on_error, errors_max=1000, output="numpy")  # type: ignore[arg-type]
    for i, batch in enumerate(loader):
        seen += batch.value.tolist()
        if i in kills:
            for pid in descendants() - before - overlapfns.nurseries():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    return seen, int(loader.stats()["errors"])


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_bad_records_and_their_substitutes_are_those_of_one_thread(on_error: str, threads: int, children: Any) -> None:
    assert run("processes", threads, on_error) == run("inline", 0, on_error)


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_killed_workers_change_nothing(on_error: str, children: Any) -> None:
    """Twice: a third death at one record would be the record's fault."""
    assert run("processes", 2, on_error, kills=(10, 50)) == run("inline", 0, on_error)


def test_a_loop_that_is_left_leaves_no_process(children: Any) -> None:
    for threads in (0, 2):
        for i, _ in enumerate(
            hr.range(10_000).map(overlapfns.add, variant="processes").batch(4).loader(threads=threads)
        ):
            if i == 20:
                break


def test_the_error_that_ends_a_run_is_the_first_in_the_order_of_records(children: Any) -> None:
    for threads in (0, 1, 3):
        got: list[int] = []
        with pytest.raises(hr.CodeError, match="three hundred"):
            for batch in (
                hr.range(700)
                .map(overlapfns.until_300, variant="processes")
                .batch(10)
                .loader(threads=threads, output="numpy")
            ):
                got += batch.value.tolist()
        assert got == list(range(300))
