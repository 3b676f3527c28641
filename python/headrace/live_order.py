"""loader(optimize=...): the order of a pipeline is found while it runs.

A run begins in the written order unless a profile is saved. Its own meters, which are always on,
measure what the operators cost. Once it has delivered so many records that comparing the two
orders costs 2 % of that (5 % where timed runs disagree), a thread compares them; loader.py then
continues the run in the new order. docs/decisions/0040-live-order.md
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from typing import TYPE_CHECKING, NamedTuple

from . import _headrace
from .aside import Aside
from .build import op_kinds
from .errors import HeadraceError
from .optimizing import Optimization, Placed, Settings, StepVariant, as_written, find, read_by_one_run, streams
from .profiling import Profile, save, saved

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._types import Strictness
    from .build import Built
    from .live_code import LiveCode

_RUNS = 8  # of each record in a comparison, at least: compared once, timed three times, both orders; at most 16
_PART = 50  # of what was delivered, a comparison may cost one part
_RECORDS, _RECORDS_MAX = 16, 64  # to compare
_BLOCK = 256  # records of the sources that are made at least where a filter or an expansion decides what is delivered
_START_S = 1.0  # of one CPU, that a comparison before the first batch may take
_PROFILED = 64  # records from which on a run's costs are worth keeping

_logger = logging.getLogger("headrace")


class _Cancelled(Exception):
    pass


class LiveOrder:
    """The order of the nodes of a loader's graph, as far as it is known.

    `graph` is the one that runs should use; the loader's thread and the one that compares share it.
    """

    def __init__(self, built: Built, strictness: Strictness, seed: int, inline: bool) -> None:
        self.strictness = strictness
        self.graph: _headrace.Graph = built.graph
        self.report: Optimization | None = None
        self._other: Optimization | None = None  # the same with user code in worker processes
        self.built, self._written = built, built.graph
        self._seed, self._inline = seed, inline
        code = [node.code for node in built.nodes if node.code is not None]
        self._streams = streams(built)
        self._beside = all(one.variant != "inline" for one in code)  # whether it may be compared beside a run
        self._sources = {info["name"] for info in built.graph.nodes() if not info["inputs"]}
        sizes = [int(n.params.get("size", 1)) for n in built.nodes if n.params.get("drop_last", False)]
        self._least = max([_RECORDS, *sizes])
        self._block = _BLOCK if built.record_count is None else 0
        self._delivered = 0  # records, in all runs
        self._next = _RUNS * _PART * self._least  # records delivered before the costs are next looked at
        self._per_record = 1.0  # records of the sources for each that is delivered
        self._code: Placed | None = None  # where user code runs
        self._costs: Profile | None = None
        self._looked = self._kept = False  # for a saved profile; kept the own one
        self._aside = Aside("headrace-order")
        self._cancel = threading.Event()
        self.is_settled = False  # `graph` does not change any more
        self.code: LiveCode | None = None  # where user code runs, if that is found while a run is on
        if self._streams:
            why = read_by_one_run(self._streams)
            self.report = as_written(built, strictness, why)
            self._end(why)
        _all.add(self)

    # ---- finding ----

    def with_code(self, code: Placed) -> None:
        """Reports where user code of the graph runs, and why."""
        self._code = code
        if code.built is not None:
            _logger.info("optimize: in worker processes: %s", code.ways[0].processes)
        for step in code.steps:
            if code.built is None and self.code is None:
                _logger.info("optimize: '%s' stays as written: %s", step.node, step.reason)

    def without_code(self, code: Placed, why: str) -> None:
        """Says why user code stays as written although it was to move."""
        self._code = Placed(
            None, tuple(StepVariant(one.node, "threads", False, why) if one.moved else one for one in code.steps)
        )
        _logger.info("optimize: your code stays as written: %s", why)

    @property
    def found(self) -> Optimization | None:
        """What is known: the order, and where user code runs."""
        report, live = self.report, self.code
        if report is None and live is not None and live.steps:
            report = as_written(self.built, self.strictness, "too few records were delivered")
        if report is None or self._code is None:
            return report
        if live is not None and live.steps:
            return report._replace(steps=live.steps)
        return report._replace(steps=self._code.steps, ways=self._code.ways)

    @property
    def wanted(self) -> _headrace.Graph:
        """The graph that runs should use."""
        live = self.code.graph if self.code is not None else None
        return self.graph if live is None else live

    @property
    def first(self) -> _headrace.Graph:
        """The graph that a run should begin with."""
        return self.wanted if self.code is None or self.code.is_shown else self.graph

    @property
    def is_over(self) -> bool:
        """Whether `wanted` does not change any more."""
        return self.is_settled and (self.code is None or self.code.is_settled)

    def in_order(self, graph: _headrace.Graph) -> _headrace.Graph:
        """A graph with the nodes of the written one, in the order that was found, unless it is slower there."""
        if self.report is None or not self.report.moved:
            return graph
        settings = Settings(self.report.needs, "headrace", self._least, self._seed)
        with contextlib.suppress(_Cancelled):
            graph, self._other = find(graph, self.report.profile, settings, self._tick)
        return graph

    def adopt(self, code: LiveCode) -> None:
        """From now on the pipeline is the one with its code in worker processes."""
        assert code.won and code.graph is not None and code.moved is not None
        self.built, self._written, self.graph = code.moved, code.moved.graph, code.graph
        self.report = self._other or self.report
        self._kept = True  # by the code, which knows more

    def before_run(self) -> None:
        """Uses a saved profile, or what earlier runs have measured, before a run begins."""
        if self.is_settled or self._aside.thread is not None:
            return
        if not self._looked:
            self._looked = True
            self._costs = saved(self._written, self._inline)
            self._kept = self._costs is not None
            if self._costs is not None and self._seconds(self._costs) <= _START_S:
                self._find(self._costs, self._least)
        elif self._costs is not None and (records := self._affordable()) > 0:
            self._find(self._costs, records)

    def after_batch(self, run: _headrace.Iter, graph: _headrace.Graph, records: int) -> None:
        """Counts what the run of `graph` delivered; begins to compare once that is cheap beside it."""
        self._delivered += records
        if self.code is not None and not self._aside.is_alive:
            self.code.after_batch(run, graph, records, self.graph)
            if self.code.is_trying:
                return
        if self.is_settled or self._delivered < self._next or not self._beside or self._aside.thread is not None:
            return
        self._next = self._delivered * 5 // 4
        with contextlib.suppress(_headrace.Error):  # closed meanwhile
            costs = self._profile(run)
            if (records := self._affordable()) > 0:
                self._aside.begin(self._find, costs, records)

    def after_run(self, run: _headrace.Iter) -> None:
        """Keeps what the run has measured, for the next one."""
        if self._kept or self._streams or self._aside.thread is not None or self._delivered < _PROFILED:
            return
        self._costs = self._profile(run)
        self._keep(self._costs)

    def _profile(self, run: _headrace.Iter) -> Profile:
        costs = Profile(run.profile())
        taken = sum(node.records_in for node in costs if node.node in self._sources)
        self._per_record = max(taken / max(run.stats()["records"], 1), 1e-3)
        return costs

    def _seconds(self, costs: Profile) -> float:
        """What a comparison of the fewest records should take."""
        taken = sum(node.records_in for node in costs if node.node in self._sources)
        batched = [node.records_in for node in costs if op_kinds().get(node.op) == "batch"]
        given = batched[0] if batched else costs.nodes[-1].records_out
        made = self._least * taken / max(given, 1) + self._block
        return _RUNS * made * sum(node.cpu_ns * node.records_in for node in costs) / max(taken, 1) / 1e9

    def _affordable(self) -> int:
        """Records that can be compared for their part of what was delivered; 0: too few."""
        records = int(self._delivered / (_RUNS * _PART) - self._block / self._per_record)
        return min(records, max(self._least, _RECORDS_MAX)) if records >= self._least else 0

    def _keep(self, costs: Profile) -> None:
        self._kept = True
        save(self._written, costs)

    def _find(self, costs: Profile, records: int) -> None:
        try:
            if not self._kept:
                self._keep(costs)
            graph, report = find(
                self._written, costs, Settings(self.strictness, "headrace", records, self._seed), self._tick
            )
        except _Cancelled:
            self.is_settled = True
        except (HeadraceError, SystemExit) as error:
            self._end(str(error))
        else:
            self.report = report
            self.graph = graph  # last: a run may see it from now on
            self._end("" if report.moved else report.dropped)

    def _tick(self) -> None:
        if self._cancel.is_set():
            raise _Cancelled

    def _end(self, why: str) -> None:
        self.is_settled = True
        if why:
            _logger.info("optimize: the order stays as written: %s", why)

    def changing_code(self, graph: _headrace.Graph) -> LiveCode | None:
        """The code that is in worker processes in one of `graph` and the graph that is wanted only."""
        return self.code if self.code is not None and self.code.is_between(graph, self.wanted) else None

    def give_up(self, before: _headrace.Graph, why: str) -> None:
        """Returns to threads, or to the written order, if what is wanted instead of `before` cannot run."""
        code = self.changing_code(before)
        if code is not None:
            code.refuse(why)
        else:
            self.graph = self._written
            self._end(why)

    def cancel(self) -> None:
        """Ends the comparison soon."""
        self.is_settled = True
        self._cancel.set()
        if self.code is not None:
            self.code.cancel()

    def close(self) -> None:
        """Ends the comparison."""
        self.cancel()
        if self.code is not None:
            self.code.wait()
        self._aside.close()

    # ---- changing ----

    def is_worth(self, stats: Mapping[str, Any], batch: int, epochs_left: int | None) -> bool:
        """Whether changing in the midst of a run gains more than the records in flight, which are made again."""
        report = self.report
        if report is None or report.written_run_ns <= 0:
            return False
        per_epoch, done = stats["epoch_records"], stats["epoch_done"]
        left = max(per_epoch - done, 0) if per_epoch >= 0 else done  # not known: as much again
        if epochs_left is None:
            left = 1 << 62
        elif epochs_left > 0:
            left += epochs_left * max(per_epoch, done)
        in_flight = (stats["batches_ready"] + 3) * batch
        return bool((1 - report.run_ns / report.written_run_ns) * left > in_flight)


_all: weakref.WeakSet[LiveOrder] = weakref.WeakSet()


def close_all() -> None:
    """At the interpreter's exit."""
    for one in list(_all):
        one.close()


class Past(NamedTuple):
    """What the parts of a run before a change of order did."""

    stats: dict[str, Any]
    nodes: list[dict[str, Any]]

    def with_stats(self, now: dict[str, Any]) -> dict[str, Any]:
        """Statistics of the whole run."""
        if not now:
            return now
        made = {**now, **{key: self.stats[key] + now[key] for key in _SUMS}}
        made["first_batch_seconds"] = self.stats["first_batch_seconds"] or now["first_batch_seconds"]
        made["memory_peak_bytes"] = max(self.stats["memory_peak_bytes"], now["memory_peak_bytes"])
        return made

    def with_nodes(self, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Statistics of the nodes over the whole run, in the order of now."""
        before = {node["node"]: node for node in self.nodes}
        return [_sum(before[node["node"]], node) if node["node"] in before else node for node in now]


_SUMS = ["records", "batches", "bytes", "errors", "substituted", "seconds", "cpu_seconds", "wait_seconds"]
_SUMS += ["worker_seconds", "blocked_seconds"]
_NODE_SUMS = ["records", "records_out", "errors", "dropped", "seconds", "worker_seconds", "ordered_seconds"]
_NODE_SUMS += ["wait_seconds"]
_NODE_SUMS += ["bytes_in", "bytes_out", "bytes_read", "bytes_taken", "bytes_updated", "bytes_written"]


def _sum(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    made = {**now, **{key: before[key] + now[key] for key in _NODE_SUMS}}
    if made["records"] > 0:
        share = now["records"] / made["records"]
        for key in ("record_ns", "record_ns_variance", "byte_ns"):
            made[key] = before[key] + (now[key] - before[key]) * share
    return made
