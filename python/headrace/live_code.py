"""loader(optimize=...): whether user code is faster in worker processes is found while a run is on.

Threads that run Python take turns for the interpreter's lock. Where the consumer waits for batches
although threads leave cores idle, the run goes on in worker processes for a while, in threads
again, and so on in turns, and stays where it makes more records per second. Its batches stay the
same, which the first one made in worker processes has to show. docs/decisions/0109-live-variants.md
"""

from __future__ import annotations

import contextlib
import logging
import statistics
import threading
import time
import weakref
from typing import TYPE_CHECKING, NamedTuple

from . import _headrace
from .aside import Aside
from .build import Built, build, kept_here
from .errors import HeadraceError
from .optimizing import StepVariant, cores_of, free_steps, reorder
from .profiling import CodeCost, Profile, save

if TYPE_CHECKING:
    from collections.abc import Callable

    from .host import Host

_LOOK_S = 2.0  # until the first look at the waits; each further one comes after twice the time
_LOOKS_MAX = 8
_WAITS = 0.1  # of the time that the consumer must wait
_CODE = 0.2  # of the CPU time that user code must take
_STEP = 0.02  # of the CPU time from which on a step moves
_BUSY = 0.75  # of the cores that threads may use: if they compute on more, processes have none to gain
_GAIN = 1.05  # that worker processes must bring
_WARM = 2  # batches after a change that are not timed
_BATCHES = 4  # in a window, at least
_WINDOW = 0.05  # of the run so far
_WINDOW_S = 0.25, 2.0  # but within these
_ROUNDS_SURE = 2  # rounds that decide if both gain or lose more than _SURE
_SURE = 1.3
_ROUNDS_MIN, _ROUNDS_MAX = 3, 7

_logger = logging.getLogger("headrace")


class Contest:
    """Whether the other of two ways to run is faster, by windows of time in both. Pure.

    A round is a window in each: A B, B A, A B, so that there is one change in a round.
    """

    def __init__(self) -> None:
        self._rates: list[float] = []

    @property
    def is_other(self) -> bool:
        """Whether the next window is one of the other way."""
        return len(self._rates) % 4 in (1, 2)

    def add(self, rate: float) -> None:
        """The rate of a window, above 0."""
        self._rates.append(rate)

    @property
    def gains(self) -> list[float]:
        """Rate of the other way by that of the first, of each whole round."""
        pairs = list(zip(self._rates[::2], self._rates[1::2], strict=False))
        return [b / a if at % 2 == 0 else a / b for at, (a, b) in enumerate(pairs)]

    @property
    def verdict(self) -> bool | None:
        """Whether the other way gains _GAIN; None as long as the rounds do not agree."""
        gains = self.gains
        if len(gains) < _ROUNDS_SURE or len(self._rates) % 2 == 1:
            return None
        if min(gains) >= _SURE or max(gains) <= 1 / _SURE:
            return min(gains) >= _SURE
        if len(gains) < _ROUNDS_MIN:
            return None
        if min(gains) >= _GAIN or max(gains) < _GAIN:
            return min(gains) >= _GAIN
        return statistics.median(gains) >= _GAIN if len(gains) >= _ROUNDS_MAX else None


class Sums(NamedTuple):
    """What a run took since it was opened, in seconds."""

    seconds: float
    waits: float  # the consumer waited for a batch
    nodes: dict[str, float]  # CPU time of each
    records: dict[str, int]  # that entered each

    @staticmethod
    def of(run: _headrace.Iter) -> Sums:
        stats, nodes = run.stats(), run.node_stats()
        return Sums(
            stats["seconds"],
            stats["wait_seconds"],
            {node["node"]: node["seconds"] for node in nodes},
            {node["node"]: node["records"] for node in nodes},
        )

    def since(self, before: Sums) -> Sums:
        """What was added after `before`."""
        return Sums(
            self.seconds - before.seconds,
            self.waits - before.waits,
            {name: seconds - before.nodes.get(name, 0.0) for name, seconds in self.nodes.items()},
            {name: count - before.records.get(name, 0) for name, count in self.records.items()},
        )

    def plus(self, other: Sums | None) -> Sums:
        """The sums of both."""
        if other is None:
            return self
        return Sums(
            self.seconds + other.seconds,
            self.waits + other.waits,
            {name: seconds + other.nodes.get(name, 0.0) for name, seconds in self.nodes.items()},
            {name: count + other.records.get(name, 0) for name, count in self.records.items()},
        )

    def steps_to_move(self, code: list[str], cores: int) -> list[str]:
        """Steps of `code` that might gain in worker processes; [] if the run would not gain by them. Pure."""
        all_ = sum(self.nodes.values())
        mine = sum(self.nodes.get(name, 0.0) for name in code)
        waits = self.seconds > 0 and self.waits >= _WAITS * self.seconds
        if not waits or mine < _CODE * all_ or all_ > _BUSY * cores * self.seconds:
            return []
        return [name for name in code if self.nodes.get(name, 0.0) >= _STEP * all_]


def costs_of(moved: list[str], threads: Sums, processes: Sums) -> dict[str, CodeCost]:
    """What the contest shows of the steps that won it. Pure.

    In threads the lock was taken whenever the consumer waited: the steps' time under it is all the time that there was.
    """
    locked = min(threads.seconds / max(sum(threads.nodes[name] for name in moved), 1e-9), 1.0)
    return {name: CodeCost(locked, processes.nodes[name] / max(processes.records[name], 1) * 1e9) for name in moved}


class LiveCode:
    """Where the user code of a loader runs, as far as it is known.

    `graph` is the one that runs should use instead of that as written; None: as written. Methods are called by the
    thread that takes a batch, but for those that end it.
    """

    def __init__(self, built: Built, threads: int, in_order: Callable[[_headrace.Graph], _headrace.Graph]) -> None:
        """`in_order`: a graph of the same nodes in the order that the run has."""
        self.graph: _headrace.Graph | None = None
        self.moved: Built | None = None  # the pipeline with its code in worker processes
        self.is_shown = False  # that its batches are the same
        self.won = False
        self.steps: tuple[StepVariant, ...] = ()  # what was found
        self._written, self._in_order = built, in_order
        self._cores = cores_of(threads)
        self._free = free_steps(built)
        self.is_settled = False
        self._moving: list[str] = []
        self._stays: dict[str, str] = {}  # why worker processes cannot run a step
        self._ready: _headrace.Graph | None = None  # of `moved`, whose workers have imported their code
        self._rival: _headrace.Graph | None = None  # that `_ready` was made for: the same with the code as written
        self._profile: Profile | None = None  # of the run in threads
        self._contest: Contest | None = None
        self._why = ""  # why the code cannot move
        self._aside = Aside("headrace-code")
        self._lock = threading.Lock()  # of the next two
        self._held = self._cancelled = False  # _held: this object uses the workers of `moved`
        self._run: _headrace.Iter | None = None
        self._skip = self._batches = self._records = self._looks = 0
        self._from = self._ran = 0.0
        self._span = _LOOK_S
        self._before: Sums | None = None  # where the window began
        self._spent: dict[bool, Sums] = {}  # in windows of the contest: in worker processes, in threads
        _all.add(self)

    @property
    def is_trying(self) -> bool:
        """Whether runs change between threads and worker processes."""
        return self._contest is not None and not self.is_settled

    def is_between(self, one: _headrace.Graph, other: _headrace.Graph) -> bool:
        """Whether code is in worker processes in one of two graphs only."""
        return (one is self._ready) != (other is self._ready)

    # ---- windows ----

    def after_batch(self, run: _headrace.Iter, graph: _headrace.Graph, records: int, written: _headrace.Graph) -> None:
        """`run` of `graph` delivered a batch; `written`: what runs use with the code as written."""
        if self.is_settled or graph is not (self.graph or written):
            return
        if run is not self._run:
            self._run, self._skip = run, _WARM
        if self._skip > 0:
            self._skip -= 1
            if self._skip == 0:
                self._begin_window(run)
            return
        self._records += records
        self._batches += 1
        seconds = time.monotonic() - self._from
        if seconds < self._span or self._batches < _BATCHES:
            return
        assert self._before is not None
        with contextlib.suppress(_headrace.Error):  # closed meanwhile
            self._end_window(run, seconds, Sums.of(run).since(self._before), written)
            self._begin_window(run)

    def _begin_window(self, run: _headrace.Iter) -> None:
        self._before = Sums.of(run)
        self._from, self._records, self._batches = time.monotonic(), 0, 0

    def _end_window(self, run: _headrace.Iter, seconds: float, spent: Sums, written: _headrace.Graph) -> None:
        self._ran += seconds
        if self._contest is not None:
            other = self._contest.is_other
            self._spent[other] = spent.plus(self._spent.get(other))
            self._contest.add(self._records / seconds)
            self._judge(self._contest)
        elif self._aside.thread is None:
            self._look(run, spent, written)
        elif not self._aside.is_alive:
            if self._ready is not None and self._rival is not written:  # the order was found meanwhile
                self._begin_thread(written)
            else:
                self._begin_contest()

    def _look(self, run: _headrace.Iter, spent: Sums, written: _headrace.Graph) -> None:
        """Whether worker processes are worth a try."""
        self._looks += 1
        self._span *= 2
        self._moving = spent.steps_to_move(self._free, self._cores)
        if self._moving and run.stats()["errors"] == 0:
            self._span = _WINDOW_S[0]
            self._profile = Profile(run.profile())
            self._begin_thread(written)
        elif self._looks == _LOOKS_MAX:
            self.is_settled = True

    # ---- in a thread ----

    def _begin_thread(self, written: _headrace.Graph) -> None:
        self._rival = written
        self._aside.begin(self._prepare)

    def _prepare(self) -> None:
        """Makes the pipeline with its code in worker processes, and starts these."""
        try:
            self._ready = self._start()
        except (HeadraceError, SystemExit) as error:
            self._why = str(error) or type(error).__name__

    def _start(self) -> _headrace.Graph | None:
        if self.moved is not None:
            return self._in_order(self.moved.graph)
        written = self._written
        self._stays = kept_here(written.nodes, written.graph, self._moving)
        moving = frozenset(name for name in self._moving if name not in self._stays)
        if not moving:
            return None
        names = tuple(info["name"] for info in written.graph.nodes())
        moved = build(reorder(written.nodes, written.graph, names, None, moving))
        assert moved.host is not None
        with self._lock:
            if self._cancelled:
                return None
            moved.host.acquire()
            self.moved, self._held = moved, True
        try:
            moved.host.wait_imported()
        finally:
            if self._cancelled:  # perhaps before it started
                moved.host.close()
        return self._in_order(moved.graph)

    # ---- the contest ----

    def _begin_contest(self) -> None:
        if self._ready is None:
            self._settle(False, self._why or "worker processes cannot run it")
            return
        self._contest = Contest()
        least, most = _WINDOW_S
        self._span = min(max(_WINDOW * self._ran, least), most)

    def _judge(self, contest: Contest) -> None:
        verdict = contest.verdict
        if verdict is None:
            self.graph = self._ready if contest.is_other else None
            return
        gain = statistics.median(contest.gains)
        self._settle(verdict, f"measured while a run was on: {gain:.2f} times the records per second of threads")

    def _settle(self, won: bool, why: str) -> None:
        self.won, self.is_settled = won, True
        self.graph = self._ready if won else None
        moved = [name for name in self._moving if name not in self._stays]
        self.steps = tuple(
            StepVariant(name, "processes" if won and name in moved else "threads", won and name in moved, reason)
            for name in self._free
            for reason in [self._stays.get(name) or (why if name in self._moving else "takes too little time to move")]
        )
        if won:
            self._keep(moved)
            _logger.info("optimize: in worker processes: %s: %s", ", ".join(moved), why)
        else:
            _logger.info("optimize: your code stays as written: %s", why)

    def _keep(self, moved: list[str]) -> None:
        """For later runs, which have their code in worker processes from the start."""
        assert self._profile is not None
        save(self._written.graph, self._profile.with_code(costs_of(moved, self._spent[False], self._spent[True])))

    def compare(self, got: _headrace.Batch, made: _headrace.Batch) -> bool:
        """Whether a batch that was made in threads, and in worker processes, has the same bytes; if not, the code
        stays."""
        digests = [_headrace.Digest(), _headrace.Digest()]
        for digest, batch in zip(digests, (got, made), strict=True):
            _headrace.digest_batch(digest, batch)
        self.is_shown = digests[0].hexdigest() == digests[1].hexdigest()
        if not self.is_shown:
            self.refuse("its results differ there")
        return self.is_shown

    def refuse(self, why: str) -> None:
        """The code stays in threads."""
        if not self.is_settled:
            self._settle(False, why)

    # ---- ends ----

    def end(self) -> Host | None:
        """The run is where it stays. Returns the host of `moved`, as take_over()."""
        self.graph = self._ready = None
        return self.take_over()

    def take_over(self) -> Host | None:
        """The host of `moved`, which the caller releases from now on; None if this object does not use it."""
        with self._lock:
            held, self._held = self._held, False
        return self.moved.host if held and self.moved is not None else None

    def release(self) -> None:
        """Ends its worker processes; no run has them any more."""
        host = self.take_over()
        if host is not None:
            host.release()

    def cancel(self) -> None:
        """Runs stay where they are. If one may be in worker processes, release() comes once it has ended."""
        with self._lock:
            self._cancelled = True
        self.is_settled = True
        if self._contest is None:
            self.release()

    def wait(self) -> None:
        """Waits for the thread that prepares, after cancel()."""
        self._aside.close()


_all: weakref.WeakSet[LiveCode] = weakref.WeakSet()


def release_all() -> None:
    """At the interpreter's exit, after the runs have ended."""
    for one in list(_all):
        one.release()
