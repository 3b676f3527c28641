"""close() returns whatever user code does, and names the thread that is stuck in it.

No test measures time: the code waits for a gate that only the test opens, so a close that
waited for the code would hang, and the test would fail by its own limit.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import select
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headrace as hr
import stuckfns
from conftest import run_script
from headrace import _headrace, dataset

pytestmark = pytest.mark.usefixtures("nothing_left")

LIMIT = 60.0  # seconds after which something hangs


class Flag:
    """Like threading.Event, whose lock an exception raised in a thread may leave locked."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._set and time.monotonic() < until:
            time.sleep(0.005)
        return self._set


class Gate:
    """User code waits at record 20 until the gate is open, whatever is raised in it."""

    def __init__(self) -> None:
        self.reached = Flag()
        self._read, self._write = os.pipe()

    def __del__(self) -> None:
        os.close(self._read)
        os.close(self._write)

    def open(self) -> None:
        os.write(self._write, b"x")  # and never read: the pipe stays readable

    def wait(self, layers: int = 8) -> None:
        """close() raises KeyboardInterrupt in its thread a few times: each ends a layer or two."""
        with contextlib.suppress(KeyboardInterrupt):
            if layers > 0:
                self.wait(layers - 1)
            self.reached.set()
            select.select([self._read], [], [])

    def record(self, value: int) -> int:
        if value == 20:
            self.wait()
        return value

    def records(self) -> Iterator[int]:
        for value in range(100):
            yield self.record(value)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


def mapped(gate: Gate, variant: Any) -> hr.Pipeline:
    return hr.range(100).map(gate.record, variant=variant).batch(4)


def generated(gate: Gate) -> hr.Pipeline:
    return hr.from_generator(gate.records).batch(4)


def iterated(gate: Gate) -> hr.Pipeline:
    return hr.from_iterable(gate.records()).batch(4)


class Consumer:
    """A loop over `loader` in a thread of its own.

    Free-threaded CPython keeps filters of warnings by context, which a thread gets when it starts.
    """

    def __init__(self, loader: hr.Loader) -> None:
        self.error: BaseException | None = None
        self.started = threading.Event()
        self._loader = loader
        self.thread = threading.Thread(target=self._run, name="consumer", daemon=True)
        self.thread.start()
        assert self.started.wait(LIMIT)

    def _run(self) -> None:
        try:
            run = iter(self._loader)
            self.started.set()
            for _ in run:
                pass
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            self.started.set()
        del self._loader

    def join(self) -> None:
        self.thread.join(LIMIT)
        assert not self.thread.is_alive()


def in_thread(call: Callable[[], Any]) -> None:
    """Run `call` in another thread; fail when it hangs."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()


# A pipeline, and what the warning says of its function and node.
PIPELINES = {
    "threads": (lambda gate: mapped(gate, "threads"), "'record-1' of node 'code.map' (code.map) at record 20"),
    "one at a time": (lambda gate: mapped(gate, "inline"), "'record-1' of node 'code.map' (code.map) at record 20"),
    "generator": (generated, "'records-1' of node 'code.source' (code.source) at record"),
    "iterator": (iterated, "'generator-1' of node 'code.source' (code.source) at record"),
}


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("kind", PIPELINES)
def test_close_from_another_thread_returns(gate: Gate, kind: str, threads: int) -> None:
    make, where = PIPELINES[kind]
    loader = make(gate).loader(threads=threads)
    with pytest.warns(RuntimeWarning) as caught:
        consumer = Consumer(loader)  # its thread may be the one that warns
        assert gate.reached.wait(LIMIT)
        in_thread(loader.close)
    said = str(caught[0].message)
    assert "thread '" in said and where in said
    gate.open()
    consumer.join()
    assert isinstance(consumer.error, hr.CancelledError)


def test_the_loop_ends_before_the_stuck_thread_does(gate: Gate) -> None:
    """It waits for a batch, so nothing keeps it."""
    loader = hr.range(100).map(gate.record).batch(100).loader(threads=2)
    with pytest.warns(RuntimeWarning, match="hr-thread-.* at record 20"):
        consumer = Consumer(loader)
        assert gate.reached.wait(LIMIT)
        in_thread(loader.close)
        consumer.join()
    assert isinstance(consumer.error, hr.CancelledError)
    assert loader.stats()["batches"] == 0 and loader.node_stats()


def test_the_consumer_is_named_as_threading_names_it(gate: Gate) -> None:
    loader = mapped(gate, "threads").loader(threads=0)
    consumer = Consumer(loader)
    assert gate.reached.wait(LIMIT)
    with pytest.warns(RuntimeWarning, match=r"next\(\) was called in thread 'consumer'"):
        in_thread(loader.close)
    gate.open()
    consumer.join()


def test_looks_at_a_loop_that_is_stuck_and_closed_do_not_wait(gate: Gate) -> None:
    loader = mapped(gate, "threads").loader(threads=0)
    consumer = Consumer(loader)
    assert gate.reached.wait(LIMIT)
    with pytest.warns(RuntimeWarning):
        in_thread(loader.close)
    for look in (loader.stats, loader.node_stats, loader.state_dict, loader.close):
        in_thread(look)
    gate.open()
    consumer.join()


def test_code_in_processes_ends_with_its_process(children: Callable[[], set[int]]) -> None:
    loader = hr.range(100).map(stuckfns.hang, variant="processes").batch(4).loader(threads=2)
    consumer = Consumer(loader)
    until = time.monotonic() + LIMIT
    while len(children()) < 2 and time.monotonic() < until:  # the nursery, a worker
        time.sleep(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_thread(loader.close)
    consumer.join()
    assert isinstance(consumer.error, hr.CancelledError)


def test_a_loop_between_two_batches_is_told_that_another_thread_closed_it() -> None:
    with hr.range(100).batch(4).loader() as loader:
        run = iter(loader)
        next(run)
        in_thread(loader.close)
        with pytest.raises(hr.CancelledError, match="another thread"):
            next(run)
    with hr.range(100).batch(4).loader() as loader:
        for _ in loader:
            loader.close()  # its own thread may


def test_a_loop_that_begins_while_the_loader_is_closed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """close() returns when the run that another thread was starting has ended, too."""
    loader = hr.range(100).batch(4).loader()
    opened = _headrace.Iter
    made: list[_headrace.Iter] = []
    ended: list[bool] = []

    def close() -> None:
        loader.close()
        with pytest.raises(_headrace.Error, match="closed"):
            made.pop().next()
        ended.append(True)

    closer = threading.Thread(target=close, daemon=True)

    def open_and_close(graph: _headrace.Graph, options: dict[str, Any]) -> _headrace.Iter:
        run = opened(graph, options)
        made.append(run)
        closer.start()
        closer.join(0.3)
        return run

    monkeypatch.setattr(_headrace, "Iter", open_and_close)
    with pytest.raises(hr.ClosedError):
        iter(loader)
    closer.join(LIMIT)
    assert ended


@pytest.mark.parametrize("threads", [1, 3])
def test_a_with_block_ends(gate: Gate, threads: int) -> None:
    def loop() -> None:
        with generated(gate).loader(threads=threads) as loader:
            for _ in loader:
                gate.reached.wait(LIMIT)
                break

    with pytest.warns(RuntimeWarning, match="'records-1' of node"):
        in_thread(loop)
    gate.open()


def test_a_record_that_was_read_does_not_wait_for_the_next(gate: Gate) -> None:
    """A thread is in the generator at record 20. Others get what was read before, whether
    they asked before or after."""
    read = dataset.Stream(gate.records, once=False, name="records").reader()
    started = Gate()
    wanted = {index: Flag() for index in (3, 19)}

    def slow_start() -> Iterator[int]:
        started.wait()
        yield from gate.records()

    early = dataset.Stream(slow_start, once=False, name="slow_start").reader()
    threading.Thread(target=early, args=(20,), daemon=True).start()
    assert started.reached.wait(LIMIT)
    for index, got in wanted.items():
        threading.Thread(target=lambda i, g: early(i) == i and g.set(), args=(index, got), daemon=True).start()
    time.sleep(0.05)
    started.open()
    assert all(got.wait(LIMIT) for got in wanted.values())
    gate.reached = Flag()
    threading.Thread(target=read, args=(20,), daemon=True).start()
    assert gate.reached.wait(LIMIT)
    in_thread(lambda: [read(i) for i in range(20)])


@pytest.mark.parametrize("threads", [0, 1, 3, 8])
def test_batches_arrive_while_a_later_record_is_awaited(threads: int) -> None:
    for _ in range(20):
        gate = Gate()
        with generated(gate).loader(threads=threads) as loader:
            run = iter(loader)
            in_thread(lambda run=run: [next(run) for _ in range(5 if threads > 0 else 1)])
            gate.open()


def test_the_collector_ends_a_loop(gate: Gate) -> None:
    loader = mapped(gate, "threads").loader(threads=2)
    run = [iter(loader)]
    run.append(run)  # type: ignore[arg-type]
    next(run[0])
    assert gate.reached.wait(LIMIT)
    with pytest.warns(RuntimeWarning, match="at record 20"):
        del run, loader
        in_thread(gc.collect)
    gate.open()


def test_a_loop_that_replaces_a_stuck_one_begins(gate: Gate) -> None:
    def once(value: int) -> int:
        return gate.record(value) if not gate.reached.is_set() else value

    loader = hr.range(100).map(once).batch(4).loader(threads=2)
    stuck = iter(loader)
    next(stuck)
    assert gate.reached.wait(LIMIT)
    with pytest.warns(RuntimeWarning, match="at record 20"):
        assert sum(batch.records for batch in loader) == 100
    gate.open()
    loader.close()


def test_warnings_that_are_errors_still_close(gate: Gate) -> None:
    loader = mapped(gate, "threads").loader(threads=2)
    run = iter(loader)
    next(run)
    assert gate.reached.wait(LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="at record 20"):
            loader.close()
    with pytest.raises(hr.ClosedError):
        iter(loader)
    gate.open()


def test_many_stuck_loops_outlive_their_loaders() -> None:
    """What the threads use must not be freed before them; ASan looks, too."""
    gates = [Gate() for _ in range(4)]
    for gate in gates:

        def wait(value: int, gate: Gate = gate) -> int:
            if threading.current_thread() is not threading.main_thread():  # which tries out the first record
                gate.wait()
            return value

        loader = hr.range(10**6).shuffle().map(wait).filter(lambda x: x % 3 != 1).batch(5).loader(threads=2)
        run = iter(loader)
        assert gate.reached.wait(LIMIT)
        with pytest.warns(RuntimeWarning):
            loader.close()
        del loader, run, wait
    gc.collect()
    assert _headrace.live_objects()["iter"] == 0
    for gate in gates:
        gate.open()


SCRIPT = """
import contextlib, os, sys, threading, time
import headrace as hr

reached, never = threading.Event(), threading.Event()

def stuck(layers=8):
    # An interrupt that comes before it waits ends a layer; see Gate.wait.
    with contextlib.suppress(KeyboardInterrupt):
        if layers > 0:
            stuck(layers - 1)
        reached.set()
        never.wait()

def wait(value):
    if value == 20:
        stuck()
    return value

loader = hr.range(100).map(wait).batch(4).loader(threads=int(sys.argv[2]))
"""
ENDS = {
    "the end of the program": "run = iter(loader); next(run); reached.wait()",
    "a loop in a daemon thread": ("threading.Thread(target=lambda: list(loader), daemon=True).start(); reached.wait()"),
    "while a daemon thread closes": (
        "threading.Thread(target=lambda: list(loader), daemon=True).start(); reached.wait()\n"
        "threading.Thread(target=loader.close, daemon=True).start(); time.sleep(0.2)"
    ),
    "while many threads begin": (
        "loader = hr.range(4000).map(wait).batch(4).loader(threads=400)\n"
        "threading.Thread(target=lambda: list(loader), daemon=True).start(); reached.wait()"
    ),
    "a fork": (
        "threading.Thread(target=lambda: list(loader), daemon=True).start(); reached.wait()\n"
        "pid = os.fork()\nloader.close()\nif pid: assert os.waitpid(pid, 0)[1] == 0"
    ),
}


@pytest.mark.parametrize(
    ("end", "threads"), [(e, t) for e in ENDS for t in (0, 2) if t > 0 or ("daemon" in ENDS[e] and "many" not in e)]
)
def test_a_program_ends(tmp_path: pathlib.Path, end: str, threads: int) -> None:
    done = run_script(tmp_path, SCRIPT + ENDS[end] + "\nprint('last line', flush=True)", end, str(threads))
    assert done.returncode == 0 and "last line" in done.stdout, done.stderr
    assert "at record 20" in done.stderr and "Fatal" not in done.stderr
