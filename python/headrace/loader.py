"""Loader: runs a pipeline and hands its batches to a training loop.

A loader is used like torch's DataLoader: each `for` runs the next epochs, from the start of
an epoch. Its state is the position just after the last batch that the loop received, a small
dict for json or torch.save; batches in flight do not count.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypedDict, TypeVar, Unpack

from . import _headrace, _numpy, batch, build, share, states
from ._check import nearest, one_of
from ._types import Compress, Demand, Even, OnError, Output, PathLike, Shard, Strictness
from .batch import Batch
from .equal_steps import EqualSteps
from .errors import (
    ArgumentError,
    CancelledError,
    ClosedError,
    CodeError,
    HeadraceError,
    StateError,
    UnsupportedError,
    translated,
)
from .node import numbered
from .structure import Parts, Structure, join, leaves, named, with_field

if TYPE_CHECKING:
    from .async_loop import AsyncLoop
    from .fleet import Member, Workers
    from .host import Host
    from .live_order import LiveOrder, Past
    from .optimizing import Optimization
    from .pipeline import Pipeline
    from .ray_workers import RayWorkers

_T = TypeVar("_T")

_SERVICE_FILES = ("service_token_file", "service_tls_ca", "service_tls_cert", "service_tls_key")
_TURN_S = 0.1  # between looks whether the run was closed
_MOVES_MAX = 3  # to other fleets without a batch
_START_WAIT_S = 5.0  # that close() waits for a run that another thread starts


class LoaderOptions(TypedDict, total=False):
    """Keyword arguments of `Pipeline.loader`, which describes them."""

    epochs: int | None
    seed: int | None
    threads: int | None
    ordered: bool
    memory: int | None
    plan: str | os.PathLike[str] | None
    optimize: bool | Strictness
    on_error: OnError
    errors_max: int | None
    timeout: float | None
    demand: Demand
    ledger: PathLike | None
    service: str | None
    service_token_file: PathLike | None
    service_tls_ca: PathLike | None
    service_tls_name: str | None
    service_tls_cert: PathLike | None
    service_tls_key: PathLike | None
    service_compress: Compress
    workers: str | Workers | None
    ray: bool | RayWorkers
    shard: Shard
    even: Even | None
    eval: bool
    output: Output | None
    schema: type[Any] | None
    device: Any
    pin_memory: bool
    progress: bool


_NAMES = tuple(LoaderOptions.__annotations__)

# The options that mean something without being given; all others are None then.
_DEFAULTS = {
    "epochs": 1,
    "ordered": True,
    "optimize": False,
    "on_error": "fail",
    "service_compress": "auto",
    "ray": False,
    "shard": "auto",
    "eval": False,
    "pin_memory": False,
    "progress": False,
}


def changed(arguments: Mapping[str, Any]) -> LoaderOptions:
    """The arguments of `Pipeline.loader` that are not the defaults."""
    options = {name: arguments[name] for name in _NAMES}
    defaults = {name: _DEFAULTS.get(name) for name in _NAMES}
    return {  # type: ignore[return-value]
        name: value
        for name, value in options.items()
        if type(value) is not type(defaults[name]) or value != defaults[name]
    }


def _demand(demand: Any) -> float:
    """The engine's number for a demand."""
    if demand is None:
        return 0.0
    if isinstance(demand, str) and demand == "consumer":
        return -1.0  # HR_DEMAND_CONSUMER
    if isinstance(demand, bool) or not isinstance(demand, (int, float)) or not 0 < demand < 1e18:
        raise ArgumentError(
            f"loader(): demand is a number of records per second above 0, 'consumer' or None; not {demand!r:.60}",
            param="demand",
        )
    return float(demand)


def _checked(options: Mapping[str, Any]) -> LoaderOptions:
    for name in options:
        if name not in _NAMES:
            ranks = " Ranks are given as shard=(rank, world)." if name in ("rank", "world", "num_replicas") else ""
            hint = ranks or nearest(name, _NAMES) or "."
            raise ArgumentError(
                f"loader(): there is no argument '{name}'{hint} Arguments are: {', '.join(_NAMES)}", param=name
            )
    for name in ("epochs", "seed", "threads", "memory", "errors_max"):
        value = options.get(name)
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
            raise ArgumentError(f"loader(): {name} is a whole number, not {value!r}", param=name)
        if value is not None and value < 0:
            raise ArgumentError(f"loader(): {name} must not be negative ({value})", param=name)
        if value is not None and value >= 1 << 63:
            raise ArgumentError(f"loader(): {name} must be below 2 to the 63rd ({value:.3g})", param=name)
    for name in ("ordered", "pin_memory", "progress", "eval"):
        if not isinstance(options.get(name, False), bool):
            raise ArgumentError(f"loader(): {name} is True or False, not {options[name]!r:.60}", param=name)
    if not isinstance(options.get("ledger"), (str, os.PathLike, type(None))):
        raise ArgumentError(f"loader(): ledger is the path of a file, not {options['ledger']!r:.60}", param="ledger")
    service = options.get("service")
    if not isinstance(service, (str, type(None))):
        raise ArgumentError(
            f"loader(): service is the 'host:port' of a dispatcher, not {service!r:.60}", param="service"
        )
    for name in _SERVICE_FILES:
        if not isinstance(options.get(name), (str, os.PathLike, type(None))):
            raise ArgumentError(f"loader(): {name} is the path of a file, not {options[name]!r:.60}", param=name)
    if not isinstance(options.get("service_tls_name"), (str, type(None))):
        raise ArgumentError(
            f"loader(): service_tls_name is the name in a certificate, not {options['service_tls_name']!r:.60}",
            param="service_tls_name",
        )
    if options.get("service_compress", "auto") not in ("auto", "none", "lz4", "zstd"):
        raise ArgumentError(
            f"loader(): service_compress is 'auto', 'none', 'lz4' or 'zstd', not {options['service_compress']!r:.60}",
            param="service_compress",
        )
    fleet = "ray" if options.get("ray", False) is not False else "workers" if options.get("workers") is not None else ""
    if service is not None and fleet:
        raise ArgumentError(
            f"loader(): service= is for workers that run already, {fleet}= starts some; leave out one of them",
            param=fleet,
        )
    for name in (*_SERVICE_FILES, "service_tls_name"):
        if fleet and options.get(name) is not None:
            raise ArgumentError(
                f"loader(): workers that {fleet}= starts get a token of their own and no TLS; leave out {name}=",
                param=name,
            )
    if (service is not None or fleet) and options.get("optimize", False):
        raise ArgumentError(
            "loader(): the order of a service's graph is fixed; use pipe.optimize(), or leave out optimize=",
            param="optimize",
        )
    plan = options.get("plan")
    if not isinstance(plan, (str, os.PathLike, type(None))):
        raise ArgumentError(f"loader(): plan is a text or the path of a file, not {plan!r:.60}", param="plan")
    for name in ("threads", "memory", "ordered"):
        if plan is not None and options.get(name) is not None:
            raise ArgumentError(f"loader(): {name} is decided by the plan; edit it there", param=name)
    _check_optimize(options)
    if options.get("epochs") == 0:
        raise ArgumentError("loader(): epochs=0 would give no batches; None means unlimited", param="epochs")
    timeout = options.get("timeout")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9
    ):
        raise ArgumentError(
            f"loader(): timeout is a number of seconds above 0, or None; not {timeout!r:.60}", param="timeout"
        )
    if timeout is not None and options.get("threads") == 0:
        raise ArgumentError(
            "loader(): a timeout needs threads: with threads=0 the thread that runs the loop makes the batches, and "
            "cannot look at the clock meanwhile",
            param="timeout",
        )
    _demand(options.get("demand"))
    one_of("on_error", options.get("on_error", "fail"), ("fail", "skip", "substitute"))
    share.check(options.get("shard", "auto"))
    one_of("even", options.get("even"), (None, "none", "drop", "repeat", "steps"))
    if options.get("eval") and options.get("even") is not None:
        raise ArgumentError(
            "loader(): eval=True pads the shares, which gives equal steps; leave out even=", param="even"
        )
    one_of("output", options.get("output"), (None, "torch", "numpy", "jax", "headrace"))
    return options  # type: ignore[return-value]


def _check_optimize(options: Mapping[str, Any]) -> None:
    chosen = options.get("optimize", False)
    one_of("optimize", chosen, (False, True, "exact", "close", "relaxed"))
    if not chosen:
        return
    if options.get("plan") is not None:
        raise ArgumentError(
            "loader(): a plan is of one order; give that of pipe.optimize(), or leave out optimize=", param="optimize"
        )
    if options.get("on_error") == "substitute":
        raise ArgumentError(
            "loader(): which record takes the place of a bad one depends on the order; use on_error='skip', or leave "
            "out optimize=",
            param="optimize",
        )


def with_service(pipeline: Pipeline, options: LoaderOptions) -> LoaderOptions:
    """The options with the service that `Pipeline.distribute` names, if they have none."""
    found = {node.service for node in numbered(pipeline._node) if node.service is not None}
    if options.get("service") is not None or not found:
        return options
    if len(found) > 1:
        raise ArgumentError(f"distribute(): one service at a time, not {' and '.join(sorted(found))}", param="service")
    return {**options, "service": found.pop()}


def engine_options(options: LoaderOptions) -> dict[str, Any]:
    """The engine's options for those of a loader; without epochs, state and ranks."""
    options = _checked(options)
    threads = options.get("threads")
    made: dict[str, Any] = {
        "seed": int(options.get("seed") or 0),
        "threads": int(threads or 0),
        "variant": "inline" if threads == 0 else "threads",
        "ordered": bool(options.get("ordered", True)),
        "memory_bytes": int(options.get("memory") or 0),
        "on_error": options.get("on_error", "fail"),
        "errors_max": int(options.get("errors_max") or 0),
        "timeout_ns": int((options.get("timeout") or 0) * 1e9),
        "demand": _demand(options.get("demand")),
    }
    ledger, plan = options.get("ledger"), options.get("plan")
    if ledger is not None:
        made["ledger"] = os.fspath(ledger)
    if options.get("service") is not None:
        made["service"] = options["service"]
    if options.get("service_tls_name") is not None:
        made["service_tls_name"] = options["service_tls_name"]
    if options.get("service_compress", "auto") != "auto":
        made["service_compress"] = options["service_compress"]
    for name in _SERVICE_FILES:
        path: PathLike | None = options.get(name)  # type: ignore[assignment]
        if path is not None:
            made[name] = os.fspath(path)
    if isinstance(plan, os.PathLike):
        made["plan_name"] = os.fspath(plan)
        with open(plan, encoding="utf-8") as file:
            made["plan"] = file.read()
    elif plan is not None:
        made["plan"] = plan
    return made


def _member(options: LoaderOptions, lost: Callable[[], None]) -> Member | None:
    """Of the fleet that the options ask for; it starts with the first run. `lost` is called when it ends early."""
    workers, ray = options.get("workers"), options.get("ray")
    if workers is None and not ray:
        return None
    from .fleet import Member, workers_of

    made = workers_of(workers, ray)
    return Member(made, lost) if made is not None else None


def _converter(options: LoaderOptions) -> Callable[[_headrace.Field], Any]:
    output, device = options.get("output"), options.get("device")
    pin = bool(options.get("pin_memory", False))
    if device is not None or pin:
        if output not in (None, "torch"):
            raise ArgumentError(f"device and pin_memory are torch's; output is '{output}'", param="device")
        if str(device) != "cpu" or pin:
            return batch.Device(device if device is not None else "cpu", pin)
        output = "torch"
    if output is None:
        output = "torch" if "torch" in sys.modules else "numpy"
    made: dict[str, Callable[[_headrace.Field], Any]] = {
        "torch": batch.to_torch,
        "numpy": batch.to_numpy,
        "jax": batch.to_jax,
        "headrace": batch.to_headrace,
    }
    return made[output]


def _giver(
    structure: Structure | None,
    convert: Callable[[_headrace.Field], Any],
    classes: Mapping[str, tuple[str, ...]],
    kind: type[Batch],
) -> Callable[[_headrace.Batch], Any]:
    """The function that turns a batch of the engine into what the loop gets; `kind`: the class of mappings."""
    if structure is None or (isinstance(structure, Parts) and structure == named(structure.keys)):
        return lambda got: kind(got, convert, classes)
    if isinstance(structure, str):
        return lambda got: convert(got.field(structure))
    if structure.kind is dict:
        parts = dict(zip(map(str, structure.keys), structure.parts, strict=True))
        return lambda got: kind(got, convert, classes, parts)
    fields = leaves(structure)
    return lambda got: join(structure, (convert(got.field(name)) for name in fields))


class Run:
    """One iteration over some epochs: the iterator of a `for`.

    Thread-safe; each batch goes to one thread.
    """

    def __init__(self, loader: Loader, first: int, epochs: int | None, state: str | None) -> None:
        self._loader = loader
        self._given = loader._given
        self._lock = threading.RLock()  # re-entrant: a signal handler may call close(), too
        self._closing = self._finished = False
        self._batch = 0  # records of the last one
        self._closed_by = 0  # ident of a thread
        self.first, self.epochs = first, epochs
        self.given = False  # whether the loop received a batch
        self.replaced = False  # ended early by another loop
        self.start: dict[str, Any] | None = None  # the state that it resumes from
        self.epoch = first
        self._options = {**loader._engine, "epochs": epochs or 0, "epoch_first": first}
        self._order = loader._order
        self._changing = self._order  # None once the order stays
        self._graph = loader._built.graph if self._order is None else self._order.graph
        self._turn = threading.RLock()  # to take a batch, if the order may change; to move to another fleet
        self._past: Past | None = None  # before it did
        self._moves = 0  # to other fleets, since the last batch
        self._iter: _headrace.Iter | None = None
        self._iter = self._open(self._graph, state)
        if loader._convert is batch.to_numpy:
            _numpy.load()  # while the engine makes the first batch

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._given(self.take())

    def _open(self, graph: _headrace.Graph, state: str | None) -> _headrace.Iter:
        options = self._options if state is None else {**self._options, "state": state}
        with translated():
            return _headrace.Iter(graph, options)

    def take(self) -> _headrace.Batch:
        """The next batch as the engine gives it; StopIteration at the end."""
        order = self._changing
        if order is None:
            return self._take(self._iter)
        while not (self._turn.acquire(False) or self._turn.acquire(timeout=_TURN_S)):
            if self._closing:
                return self._take(self._iter)
        try:
            return self._take_in_order(order)
        finally:
            self._turn.release()

    def _take_in_order(self, order: LiveOrder) -> _headrace.Batch:
        """The same, in the best order that is known: changes to it first, if that can be now."""
        run, epoch = self._iter, self.epoch
        if run is None or order.graph is self._graph or not self._loader._may_change:
            got = self._take(run)
        else:
            try:
                state, stats = run.save(), run.stats()
            except _headrace.Error:  # another thread closed it
                return self._take(run)
            if self._is_change_due(order, stats):
                run = self._change(order, state, stats)
            got = self._take(run)
            if got.epoch != epoch and order.graph is not self._graph:
                # The first batch of an epoch is made again, so that the epoch has one order.
                got = self._take(self._change(order, state, stats))
        self._batch = got.records
        if order.is_settled:
            self._changing = order if order.graph is not self._graph else None
        elif self._iter is not None:
            order.after_batch(self._iter, got.records)
        return got

    def _is_change_due(self, order: LiveOrder, stats: Mapping[str, Any]) -> bool:
        """Whether to change before the next batch, and not only with the next epoch."""
        if not self.given:
            return True
        if order.strictness != "exact" or self._loader.world > 1:
            return False
        left = None if self.epochs is None else self.first + self.epochs - 1 - self.epoch
        return stats["errors"] == 0 and order.is_worth(stats, self._batch, left)

    def _change(self, order: LiveOrder, state: str, stats: dict[str, Any]) -> _headrace.Iter:
        """Continues from a state, at which the run had these statistics, in the order that was found."""
        old = self._iter
        assert old is not None
        self._graph = order.graph
        old.close()
        try:
            run = self._open(self._graph, state)
        except HeadraceError as error:
            order.give_up(str(error))
            self._graph = order.graph
            run = self._open(self._graph, state)
        self._replace(old, run, stats)
        return run

    def _take(self, run: _headrace.Iter | None) -> _headrace.Batch:
        if run is None:
            if self.replaced:
                raise StateError(
                    "another loop over the same loader has begun, which ended this one; "
                    "to run two at once, make a second loader with pipeline.loader()"
                )
            raise self._end()
        try:
            got = run.next()
        except BaseException as error:
            if isinstance(error, _headrace.Error) and self._moved(run):
                return self._take(self._iter)
            elsewhere = self._closing and self._closed_by != threading.get_ident()
            if elsewhere and isinstance(error, _headrace.Error):
                raise self._end() from None
            self.close()
            self._loader._drop_host()
            with translated():
                raise
        if got is None:
            self.close(finished=True)
            raise StopIteration
        self.given, self._moves = True, 0
        if got.epoch != self.epoch:
            with self._lock:
                self.epoch = max(self.epoch, got.epoch)
        if self._loader._progress is not None:
            self._loader._progress.advance(self)
        return got

    def _moved(self, old: _headrace.Iter) -> bool:
        """Whether the run continues on another fleet, because that of its workers was lost, which ended `old`."""
        member = self._loader._member
        if member is None:
            return False
        with self._turn:  # of the threads that share this run, one moves it
            if self._iter is not old:
                return self._iter is not None and not self._closing
            if self._closing or not member.is_lost():
                return False
            try:
                self._move(member, old)
            except BaseException:
                self.close()
                raise
        return True

    def _move(self, member: Member, old: _headrace.Iter) -> None:
        old.close()
        if self._moves >= _MOVES_MAX:
            raise StateError(f"the workers were lost {self._moves + 1} times without a batch between")
        try:
            state = old.save()
        except _headrace.Error as error:
            raise StateError(
                "the workers were lost, and a run in completion order cannot be resumed on others: use ordered=True"
            ) from error
        self._moves += 1
        self._options |= member.join()
        self._replace(old, self._open(self._graph, state), old.stats())
        member.tell()  # this one may be lost as well by now

    def _replace(self, old: _headrace.Iter, run: _headrace.Iter, stats: dict[str, Any]) -> None:
        """Continue in `run` where `old`, which had these statistics, was closed."""
        from .live_order import Past

        past = Past(stats if self._past is None else self._past.with_stats(stats), self.node_stats())
        with self._lock:
            closing = self._closing
            if not closing:
                self._iter, self._past = run, past
        if closing:
            run.close()
            raise self._end()

    def cancel(self) -> None:
        """End the wait for a batch; the thread that waits finds out why."""
        run = self._iter
        if run is not None:
            run.cancel()

    def _end(self) -> Exception:
        """The exception of a closed run: an error if another thread ended it early."""
        if self._finished or self._closed_by == threading.get_ident():
            return StopIteration()
        return CancelledError("the loader was closed in another thread")

    def save(self) -> str | None:
        """The engine's state; None if the run has ended."""
        run = self._iter
        if run is None:
            return None
        with translated():
            return _look(run.save)

    def stats(self) -> dict[str, Any]:
        """What the engine measured."""
        run = self._iter
        now = _look(run.stats) if run is not None else {}
        return now if self._past is None else self._past.with_stats(now)

    def demand(self, rate: float) -> None:
        """Change the demand; nothing if the run has ended."""
        run = self._iter
        self._options["demand"] = rate  # for a change of the order
        if run is not None:
            with translated(), contextlib.suppress(_headrace.Error):  # closed meanwhile
                run.demand(rate)

    def node_stats(self) -> list[dict[str, Any]]:
        """What the engine measured, by node."""
        run = self._iter
        try:
            now = run.node_stats() if run is not None else []
        except _headrace.Error:  # closed meanwhile
            return []
        return now if self._past is None else self._past.with_nodes(now)

    def close(self, finished: bool = False) -> None:
        """End threads and processes of this run; the loader keeps its position."""
        with self._lock:
            run = self._iter
            if run is None or self._closing:
                return
            self._closing, self._finished, self._closed_by = True, finished, threading.get_ident()
        self._keep_costs(run)
        try:
            run.close()  # first: then its statistics are available without waiting
        finally:
            try:
                self._loader._ended(self, finished)
            finally:
                self._iter = None

    def _keep_costs(self, run: _headrace.Iter) -> None:
        """For later runs, unless another thread is in this one, which must not be waited for."""
        if self._order is None or self._graph is not self._loader._built.graph:
            return
        if not self._turn.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(_headrace.Error):  # closed or interrupted already
                self._order.after_run(run)
        finally:
            self._turn.release()

    def __del__(self) -> None:
        if getattr(self, "_iter", None) is not None:
            self.close()


class _Starting:
    """A thread starts a run, which others cannot see yet."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self._thread, self._process = threading.get_ident(), os.getpid()

    def wait(self) -> None:
        """For a few seconds, unless this is that thread, or a child that was forked meanwhile."""
        if self._process == os.getpid() and self._thread != threading.get_ident():
            self.done.wait(_START_WAIT_S)


def _look(ask: Callable[[], _T]) -> _T:
    """The result of a query; retried if the run was closed while this thread waited for its turn."""
    try:
        return ask()
    except _headrace.Error:
        return ask()


if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    B = DefaultTypeVar("B", default=Any)  # what a loop gets; without a schema anything
else:
    B = TypeVar("B")


class Loader(Generic[B]):
    """Batches of a pipeline, epoch after epoch.

        for batch in pipe.loader(epochs=90): ...            # all epochs in one go

        loader = pipe.loader()
        for epoch in range(90):                             # or one by one
            for batch in loader: ...

    Each `for` runs the next `epochs` epochs. A loop that is left by `break` counts: the next
    one starts with the epoch after the last that produced a batch, unless `set_epoch` or
    `load_state_dict` was called.

    A loader runs one `for` at a time, whose iterator threads may share. It has threads and
    workers only while a `for` runs, and keeps an idle process that starts workers a little
    longer; `close()`, the end of a `with` block, or deleting the loader end that, too.
    """

    def __init__(self, pipeline: Pipeline, **options: Unpack[LoaderOptions]) -> None:
        if not hasattr(pipeline, "_built"):
            raise ArgumentError(f"a Loader runs a Pipeline, not a {type(pipeline).__name__}", param="pipeline")
        self.pipeline = pipeline
        self._options = options
        self._engine = engine_options(with_service(pipeline, options))
        self._epochs = options.get("epochs", 1)
        self._demand = options.get("demand")
        self._convert = _converter(options)
        self._built = pipeline._built
        self._structure = self._built.structure
        if options.get("eval"):
            self._structure = with_field(self._structure, "valid")
        schema = options.get("schema") or Batch
        if schema is not Batch:
            batch.check_schema(schema, self._fields())
        self._given = _giver(self._structure, self._convert, self._built.classes, schema)
        if any(n.code is not None and hasattr(n.code.fn, "reader") for n in self._built.nodes):
            self._built = build.build(pipeline._node)  # to read the iterable in a separate pass
        self._equal_steps: EqualSteps | None = None
        self._take_share(options)
        self._order = self._live_order(options)
        self._placed = False  # whether it is known where user code runs
        self._member = _member(options, self._fleet_lost)
        self._seeded = options.get("seed") is not None
        self._run: weakref.ref[Run] | None = None
        self._async: weakref.ref[AsyncLoop] | None = None
        self._next_epoch = 0
        self._state: dict[str, Any] | None = None  # for the next run to resume from
        self._last: dict[str, Any] | None = None  # the position of a run that was left
        self._closed = False
        self._starting: _Starting | None = None
        self._lock = threading.RLock()
        self._host: Host | None = None  # whose worker processes this loader uses; guarded by the lock
        self._stats: dict[str, Any] = {}
        self._node_stats: list[dict[str, Any]] = []
        self._progress: Any = None
        self._warned = False
        self._noted: set[str] = set()  # nodes whose notes were shown
        if options.get("progress", False):
            from .progress import Progress

            self._progress = Progress(self._built.record_count)

    def _take_share(self, options: LoaderOptions) -> None:
        even = options.get("even")
        if self._built.graph.epoch_size({})["shards"]:
            given = [name for name in ("shard", "even", "eval") if options.get(name) not in (None, "auto", False)]
            if given:
                raise ArgumentError(
                    "the pipeline shards already (order.shard); give its even= there, or leave .shard() out and give "
                    "shard=, even= and eval= to the loader",
                    param=given[0],
                )
            self.rank, self.world, self.even = 0, 0, "none"
            with translated():
                self._epoch_size = self._built.graph.epoch_size(self._engine)
            return
        found = share.find(options.get("shard", "auto"))
        self.rank, self.world, _ = found
        self._engine |= {"rank": self.rank, "world": self.world}
        self.even = "pad" if options.get("eval") else even or self._equal(options)
        if self.even == "steps":
            self._equal_steps = EqualSteps() if self.world > 1 else None
        else:
            self._engine["even"] = self.even
        with translated():
            self._epoch_size = self._built.graph.epoch_size(self._engine)
        if self.even in ("drop", "repeat") and self.world > 1 and self._epoch_size["batches"] < 0:
            raise UnsupportedError(
                f"even='{self.even}' divides the records before they are read, but this pipeline's number of records "
                "is known only after a filter, an expansion or an iterable: ranks would make unequal steps. "
                "even='steps' ends an epoch for all ranks when the first has no batch left",
                param="even",
            )
        share.tell(found, self.even, self._epoch_size, self._built.record_count)

    def _equal(self, options: LoaderOptions) -> Even:
        """The value of `even` that gives the ranks of this pipeline equal steps."""
        if self.world == 1:
            return "none"
        with translated():
            differ = self._built.graph.epoch_size(self._engine)["ranks_differ"]
        return "steps" if differ else "repeat"

    def _live_order(self, options: LoaderOptions) -> LiveOrder | None:
        chosen = options.get("optimize", False)
        if not chosen:
            return None
        from .live_order import LiveOrder

        strictness: Strictness = "exact" if chosen is True else chosen
        return LiveOrder(self._built, strictness, self._engine["seed"], options.get("threads") == 0)

    @property
    def _may_change(self) -> bool:
        """Whether a run may change its order: it has a position, and no rank ends its epochs for the others."""
        return self._engine["ordered"] and self._equal_steps is None

    @property
    def optimization(self) -> Optimization | None:
        """What `optimize=` found; None as long as nothing is known, or without it."""
        return self._order.found if self._order is not None else None

    @property
    def dataset(self) -> Any:
        """What `from_dataset`, `from_iterable` or `from_generator` was given; the pipeline if records come from
        elsewhere, or from several sources."""
        sources = [node for node in self._built.nodes if not node.inputs]
        code = sources[0].code
        return code.fn.dataset if len(sources) == 1 and code is not None else self.pipeline  # type: ignore[attr-defined]

    @property
    def batch_size(self) -> int | None:
        """Records of a full batch; None if nothing collects records."""
        sizes = [n.params.get("size") for n in self._built.nodes if n.op.startswith("batch.")]
        return sizes[-1] if sizes else None

    @property
    def demand(self) -> Demand:
        """Records per second that the loader must make; assign to change it, also while a `for` runs."""
        return self._demand

    @demand.setter
    def demand(self, demand: Demand) -> None:
        self._engine["demand"] = _demand(demand)
        self._demand = demand
        run = self._current()
        if run is not None:
            run.demand(self._engine["demand"])

    def _fields(self) -> tuple[str, ...] | None:
        """Names of what a batch maps; None if batches are not mappings."""
        if isinstance(self._structure, Parts) and self._structure.kind is dict:
            return tuple(map(str, self._structure.keys))
        valid = ("valid",) if self._options.get("eval") else ()
        return (*(f.name for f in self.pipeline.fields), *valid) if self._structure is None else None

    # ---- runs ----

    def __iter__(self) -> Iterator[B]:
        """The batches of the next epochs: a Batch, or what the items of the data set are, with arrays of
        the batch for values."""
        return self._with_others(self._start(None, self._epochs))

    def __aiter__(self) -> AsyncIterator[B]:
        """The same for `async for`: other tasks run while a batch is made. A step that is cancelled loses nothing:
        its batch comes with the next one."""
        from .async_loop import AsyncLoop

        loop = AsyncLoop(self)
        self._async = weakref.ref(loop)
        return loop

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of epoch `number` (from 0) alone."""
        self.set_epoch(number)
        return self._with_others(self._start(number, 1))

    def _with_others(self, run: Run) -> Iterator[Any]:
        return run if self._equal_steps is None else map(self._given, self._equal_steps.steps(run))

    def set_epoch(self, number: int) -> None:
        """Start the next run with epoch `number`, like torch's DistributedSampler.
        A loaded state that lies in that epoch is kept."""
        if isinstance(number, bool) or not hasattr(number, "__index__") or not 0 <= number < 1 << 63:
            raise ArgumentError(f"an epoch is a number from 0, not {number!r}", param="epoch")
        self._stop_run()
        if self._state is not None and self._state["engine"] is not None and self._state["at"] == number:
            return
        self._state = self._last = None
        self._next_epoch = int(number)

    def _start(self, first: int | None, epochs: int | None) -> Run:
        starting = self._starting = _Starting()
        try:
            return self._start_run(first, epochs)
        finally:
            starting.done.set()

    def _start_run(self, first: int | None, epochs: int | None) -> Run:
        self._refuse_closed()
        self._stop_run(replaced=True)
        self._choose_seed()
        self._warn_of_changing_part(epochs != 1 or (first or self._next_epoch) > 0)
        self._move_code()
        self._take_host()
        if self._member is not None:
            self._engine |= self._member.join()
        if self._order is not None:
            self._order.before_run()
        state, self._last = self._state, None
        if state is not None:
            run = Run(self, state["first"], state["epochs"], state["engine"])  # if that fails, the state stays pending
            run.epoch, run.start = state["at"], state
            self._state = None
        else:
            run = Run(self, self._next_epoch if first is None else first, epochs, None)
        self._run = weakref.ref(run)
        if self._member is not None:
            self._member.tell()  # it may have been lost before there was a run
        if self._closed:  # by another thread, which could not see this run yet
            run.close()
            self._drop_host()
            if self._member is not None:
                self._member.leave()
        self._refuse_closed()
        if self._progress is not None:
            self._progress.begin(run)
        return run

    def _fleet_lost(self) -> None:
        """In a thread: no batch can come from the fleet any more."""
        run = self._current()
        if run is not None:
            run.cancel()

    def _choose_seed(self) -> None:
        """Where none was given: torch's, if it is imported. Ranks need an equal one, so theirs is 0."""
        torch = sys.modules.get("torch")
        if not self._seeded and self.world == 1 and torch is not None:
            self._engine["seed"] = torch.initial_seed() & ((1 << 63) - 1)
        self._seeded = True

    def _warn_of_changing_part(self, several_epochs: bool) -> None:
        if not several_epochs or self._warned:
            return
        self._warned = True
        if self._built.changing_part is not None:
            part, shuffle = self._built.changing_part
            warnings.warn(
                f"'{part}' comes after '{shuffle}', which has another order in every epoch, so it selects other "
                "records in every epoch: a training and a validation set made like this overlap. To select the same "
                f"records, put '{part}' before '{shuffle}', or make both sets with hr.split()",
                UserWarning,
                stacklevel=5,
            )

    def _warn_of_notes(self) -> None:
        """What nodes have to say, such as a full cache: once per node."""
        for node in self._node_stats:
            if node.get("note") and node["node"] not in self._noted:
                self._noted.add(node["node"])
                warnings.warn(f"'{node['node']}': {node['note']}", UserWarning, stacklevel=4)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ClosedError("the loader is closed; make another one with pipeline.loader()")

    def _current(self) -> Run | None:
        return self._run() if self._run is not None else None

    def _ended(self, run: Run, finished: bool) -> None:
        """Called when a run ends: at its end, by an error, or because it was left."""
        with contextlib.suppress(_headrace.Error):  # an interrupted run is closed already
            self._stats = run.stats()
            self._node_stats = run.node_stats()
            self._warn_of_notes()
            if self._progress is not None:
                self._progress.end(run)
        self._last = None
        if finished and run.epochs is not None:
            self._next_epoch = run.first + run.epochs
        elif run.given:
            self._next_epoch = run.epoch + 1
            with contextlib.suppress(HeadraceError):  # unordered runs have no position
                self._last = self._state_of(run)
        elif run.start is not None:  # no batch was requested: the state is still pending
            self._state = run.start
        if self._progress is not None:
            self._progress.end()

    def _move_code(self) -> None:
        """Before the first run with `optimize=`: user code goes where saved costs say that it is fastest."""
        if self._order is None or self._placed or self._engine["variant"] == "inline":
            return
        self._placed = True
        from .host import is_importing
        from .optimizing import placed

        code = placed(self._built, self.pipeline._node, self._engine["threads"])
        if code.built is None:
            self._order.with_code(code)
            return
        written, self._built = self._built, code.built
        try:
            self._take_host()
        except CodeError as error:
            if is_importing():
                raise
            self._built = written
            self._order.without_code(code, str(error))
            return
        self._order.close()
        self._order = self._live_order(self._options)
        if self._order is not None:
            self._order.with_code(code)

    def _take_host(self) -> None:
        host = self._built.host
        with self._lock:
            if host is None or self._host is not None:
                return
            host.acquire()
            self._host = host
            _with_host.add(self)
        try:
            host.wait_imported()
        except BaseException:
            self._drop_host()
            self._refuse_closed()
            raise

    def _drop_host(self) -> None:
        with self._lock:
            host, self._host = self._host, None
            _with_host.discard(self)
        if host is not None:
            host.release()

    def _stop_run(self, replaced: bool = False) -> None:
        run = self._current()
        if run is not None:
            run.replaced = replaced and run._iter is not None
            run.close()
        self._run = None

    def __len__(self) -> int:
        """Batches that one `for` gives. TypeError if that is known only at run time, or epochs=None."""
        batches = self._epoch_size["batches_least" if self.even == "steps" else "batches"]
        if batches < 0 or self._epochs is None:
            raise UnknownLengthError(
                "the number of batches is not known before the run"
                + (": a filter or an iterable decides" if batches < 0 else ": epochs=None has no end")
            )
        return self._epochs * batches

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch: a small dict of numbers and texts.

        Save it with the model's checkpoint. `load_state_dict` of a loader with the same
        pipeline and seed resumes with the next batch, with any number of threads, processes
        and ranks.

        Raises:
            UnsupportedError: batches come in completion order (ordered=False).
        """
        loop = self._async() if self._async is not None else None
        pending = loop.pending if loop is not None else None
        return pending if pending is not None else self._state_now()

    def _state_now(self) -> dict[str, Any]:
        """The position after the last batch that was taken from the run."""
        self._choose_seed()
        if self._state is not None:
            return self._state_json(self._state)
        run = self._current()
        here = self._state_of(run) if run is not None else None
        if here is not None and here["engine"] is not None:
            return self._state_json(here)
        if self._last is not None:
            return self._state_json(self._last)
        return self._state_json(
            {"first": self._next_epoch, "at": self._next_epoch, "epochs": self._epochs, "engine": None}
        )

    def _state_of(self, run: Run) -> dict[str, Any]:
        return {"first": run.first, "at": run.epoch, "epochs": run.epochs, "engine": run.save()}

    def _place(self) -> tuple[int, int]:
        """Rank and world, those of an order.shard included."""
        for node in self._built.nodes:
            if node.op == "order.shard":
                return int(node.params["rank"]), int(node.params["world"])
        return self.rank, max(self.world, 1)

    @functools.cached_property
    def _about(self) -> dict[str, Any]:
        return states.about(self._built)

    @property
    def ranks_differ(self) -> bool:
        """Whether ranks may be at different places in an epoch after the same number of steps, because a filter, an
        expansion or on_error="skip" leaves out records of some ranks only. Then each has a state of its own."""
        return self._epoch_size["ranks_differ"]

    def _state_json(self, state: dict[str, Any]) -> dict[str, Any]:
        return {
            "headrace": states.VERSION,
            **self._about,
            "seed": self._engine["seed"],
            **state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next run from a state that `state_dict` returned.

        Raises:
            StateMismatchError: it belongs to another pipeline, data set or seed, or to
                another rank if ranks can be at different positions (see `merge_states`).
            FormatError: it is damaged.
        """
        self._refuse_closed()
        state = states.check(state)
        states.refuse_others(state, self._built, self._engine["seed"] if self._seeded else state["seed"])
        states.refuse_ranks(state, *self._place())
        self._stop_run()
        self._engine["seed"], self._seeded = state["seed"], True
        self._last = None
        self._next_epoch = state["first"]
        self._state = {k: state[k] for k in ("first", "at", "epochs", "engine")}
        if state["engine"] is None:
            self._state = None

    # ---- ends ----

    def stats(self) -> dict[str, Any]:
        """Records, bytes, seconds, waiting and memory of the current or last run."""
        run = self._current()
        return (run.stats() if run is not None else {}) or dict(self._stats)

    def node_stats(self) -> list[dict[str, Any]]:
        """What each node of the current or last run did.

        CPU time in ``seconds`` (``worker_seconds`` of it in worker processes) and per record
        in ``record_ns``, ``record_ns_variance`` and ``byte_ns``; ``wait_seconds`` without a
        CPU; records, errors, and bytes by how the node uses its fields.
        """
        run = self._current()
        return (run.node_stats() if run is not None else []) or list(self._node_stats)

    def close(self) -> None:
        """End the run with its threads and processes. Batches stay valid.

        Any thread may call it; a loop that waits in another thread ends with CancelledError.
        It returns within a few seconds whatever user code does: a thread that is still in it
        is named in a RuntimeWarning, and ends when that code returns.
        """
        self._closed = True
        if self._order is not None:
            self._order.close()
        if self._starting is not None:
            self._starting.wait()
        try:
            self._stop_run()
        finally:
            self._drop_host()
            if self._member is not None:
                self._member.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        order: LiveOrder | None = getattr(self, "_order", None)
        if order is not None:
            order.cancel()
        if getattr(self, "_host", None) is not None:
            self._drop_host()

    def __reduce__(self) -> NoReturn:
        raise StateError(
            "a Loader cannot be copied or pickled, since it runs; pickle the pipeline and state_dict() "
            "instead, and make one from them with pipeline.loader() and load_state_dict()"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self._options.items())
        return f"<Loader({shown}) of {len(self._built.nodes)} nodes>"


_with_host: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _end_workers() -> None:
    """Ends worker processes while the modules that this needs are still whole, which they are not
    when the interpreter deletes what is left. Iterators end first: they use the workers."""
    if "headrace.live_order" in sys.modules:
        from .live_order import close_all

        close_all()
    _headrace._close_iterators()
    for loader in list(_with_host):
        loader._drop_host()


class UnknownLengthError(StateError, TypeError):
    """len() of a loader whose number of batches is known only at run time."""
