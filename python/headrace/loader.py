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
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Self, TypeVar, Unpack

from . import _headrace, batch, build, hints, share, states
from ._types import Demand, Even, PathLike, Strictness
from .batch import Batch, Form
from .equal_steps import EqualSteps
from .errors import (
    ArgumentError,
    ClosedError,
    CodeError,
    HeadraceError,
    StateError,
    StateMismatchError,
    UnsupportedError,
    translated,
)
from .loader_options import LoaderOptions as LoaderOptions
from .loader_options import converter, demand_rate, engine_options, with_service
from .loader_run import Run
from .structure import Parts, Structure, join, leaves, named, with_field
from .timed import within

if TYPE_CHECKING:
    from .async_loop import AsyncLoop
    from .consumer import Consumer
    from .fleet import Member
    from .host import Host
    from .live_code import LiveCode
    from .live_order import LiveOrder
    from .optimizing import Optimization
    from .pipeline import Pipeline

_START_WAIT_S = 5.0  # that close() waits for a run that another thread starts


def _member(options: LoaderOptions, lost: Callable[[], None]) -> Member | None:
    """Of the fleet that the options ask for; it starts with the first run. `lost` is called when it ends early."""
    workers, ray = options.get("workers"), options.get("ray")
    if workers is None and not ray:
        return None
    from .fleet import Member, workers_of

    made = workers_of(workers, ray)
    return Member(made, lost) if made is not None else None


def _built(pipeline: Pipeline, timeout: float | None) -> build.Built:
    """The pipeline's graph; finding its types may call user code, which gets the loader's timeout."""
    if "_built" not in vars(pipeline):
        # Not by the property, which locks out all other pipelines (Python 3.11).
        node = pipeline._node
        made = build.build(node) if timeout is None else within(timeout, lambda: build.build(node))
        vars(pipeline)["_built"] = made
    return pipeline._built


class _Form(NamedTuple):
    """How batches that are no mappings are given."""

    give: Callable[[_headrace.Batch], Any]


def _form(
    structure: Structure | None,
    convert: Callable[[_headrace.Field], Any],
    classes: Mapping[str, tuple[str, ...]],
    kind: type[Batch],
) -> Form | _Form:
    """How a batch of the engine becomes what the loop gets; `kind`: the class of mappings."""
    if structure is None or (isinstance(structure, Parts) and structure == named(structure.keys)):
        return Form(convert, classes, kind=kind)
    if isinstance(structure, str):
        return _Form(lambda got: convert(got.field(structure)))
    if structure.kind is dict:
        parts = dict(zip(map(str, structure.keys), structure.parts, strict=True))
        return Form(convert, classes, parts, kind)
    fields = leaves(structure)
    return _Form(lambda got: join(structure, (convert(got.field(name)) for name in fields)))


class _Starting:
    """A thread starts a run, which others cannot see yet."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self._thread, self._process = threading.get_ident(), os.getpid()

    def wait(self) -> None:
        """For a few seconds, unless this is that thread, or a child that was forked meanwhile."""
        if self._process == os.getpid() and self._thread != threading.get_ident():
            self.done.wait(_START_WAIT_S)


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
        if not hasattr(type(pipeline), "_built"):  # of the pipeline itself it would be made here
            raise ArgumentError(f"a Loader runs a Pipeline, not a {type(pipeline).__name__}", param="pipeline")
        self.pipeline = pipeline
        self._options = options
        self._engine = engine_options(with_service(pipeline, options))
        self._epochs = options.get("epochs", 1)
        self._demand = options.get("demand")
        self._convert = converter(options)
        self._built = _built(pipeline, options.get("timeout"))
        self._structure = self._built.structure
        if options.get("eval"):
            self._structure = with_field(self._structure, "valid")
        schema = options.get("schema") or Batch
        if schema is not Batch:
            batch.check_schema(schema, self._fields())
        self._form = _form(self._structure, self._convert, self._built.classes, schema)
        if any(n.code is not None and hasattr(n.code.fn, "reader") for n in self._built.nodes):
            self._built = build.build(pipeline._node)  # to read the iterable in a separate pass
        self._equal_steps: EqualSteps | None = None
        self._consumer: Consumer | None = None
        if options.get("service_consumer") is not None:
            from .consumer import Consumer

            self._consumer = Consumer(self)
        self._take_share(options)
        self._order = self._live_order(options)
        self._placed = False  # whether it is known where user code runs
        self._member = _member(options, self._fleet_lost)
        self._seeded = options.get("seed") is not None
        self._run: weakref.ref[Run] | None = None
        self._async: weakref.ref[AsyncLoop] | None = None
        self._next_epoch = 0
        self._epoch_set = False  # by set_epoch()
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
        found = share.find(options.get("shard", "auto") if self._consumer is None else None)
        self.rank, self.world, _ = found
        self._engine |= {"rank": self.rank, "world": self.world}
        self.even = "pad" if options.get("eval") else even or self._equal(options)
        if self.even == "steps":
            self._equal_steps = EqualSteps() if self.world > 1 else None
        else:
            self._engine["even"] = self.even
        with translated():
            self._epoch_size = self._built.graph.epoch_size(self._engine)
        unknown = self._epoch_size["batches"] < 0 and self._epoch_size["ranks_differ"]
        if self.even in ("drop", "repeat") and self.world > 1 and unknown:
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
        self._engine["demand"] = demand_rate(demand)
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

        self._refuse_consumer("async for")
        loop = AsyncLoop(self)
        self._async = weakref.ref(loop)
        return loop

    def epoch(self, number: int) -> Iterator[Any]:
        """The batches of epoch `number` (from 0) alone."""
        self._refuse_consumer("epoch()")
        self.set_epoch(number)
        return self._with_others(self._start(number, 1))

    def _with_others(self, run: Run) -> Iterator[Any]:
        return run if self._equal_steps is None else map(self._form.give, self._equal_steps.steps(run))

    def set_epoch(self, number: int) -> None:
        """Start the next run with epoch `number`, like torch's DistributedSampler.
        A loaded state that lies in that epoch is kept."""
        self._refuse_consumer("set_epoch()")
        if isinstance(number, bool) or not hasattr(number, "__index__") or not 0 <= number < 1 << 63:
            raise ArgumentError(f"an epoch is a number from 0, not {number!r}", param="epoch")
        self._stop_run()
        if self._state is not None and self._state["engine"] is not None and self._state["at"] == number:
            return
        self._state = self._last = None
        self._next_epoch, self._epoch_set = int(number), True

    def _start(self, first: int | None, epochs: int | None) -> Run:
        starting = self._starting = _Starting()
        try:
            return self._start_run(first, epochs)
        finally:
            starting.done.set()

    def _start_run(self, first: int | None, epochs: int | None) -> Run:
        self._refuse_closed()
        if self._consumer is not None:
            return self._start_consumer(self._consumer)
        self._stop_run(replaced=True)
        self._choose_seed()
        self._warn_of_epochs(self._next_epoch if first is None else first, epochs)
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

    def _start_consumer(self, consumer: Consumer) -> Run:
        state, self._state = self._state, None
        if self._run is not None and consumer.untaken is False:
            self._stop_run(replaced=True)
        self._choose_seed()
        run = consumer.begin(self._epochs, state["engine"] if state is not None else None)
        self._run = weakref.ref(run)
        if self._progress is not None:
            self._progress.begin(run)
        return run

    def _ask_run(self) -> Run:
        """A run that only asks, so far, which checkpoint of this consumer counts."""
        self._refuse_closed()
        self._choose_seed()
        return Run(self, 0, self._epochs, None)

    def _refuse_consumer(self, what: str) -> None:
        if self._consumer is not None:
            raise UnsupportedError(
                f"{what}: a loader with service_consumer= gets what comes next of all epochs, in a plain for",
                param="service_consumer",
            )

    def _the_consumer(self) -> Consumer:
        if self._consumer is None:
            raise StateError("only a loader with service_consumer= commits; others save state_dict() alone")
        return self._consumer

    def _fleet_lost(self) -> None:
        """In a thread: no batch can come from the fleet any more."""
        run = self._current()
        if run is not None:
            run.cancel()

    def _choose_seed(self) -> None:
        """Where none was given: torch's, if it is imported. Ranks need an equal one, so theirs is 0."""
        torch = sys.modules.get("torch")
        if not self._seeded and self.world == 1 and torch is not None and self._consumer is None:
            self._engine["seed"] = torch.initial_seed() & ((1 << 63) - 1)
        self._seeded = True

    def _warn_of_epochs(self, first: int, epochs: int | None) -> None:
        if first == 0 and self._options.get("seed") is None and self._state is None and not self._epoch_set:
            hints.of_repeated_epoch(self.pipeline._node, self._engine, stacklevel=5)
        if (epochs != 1 or first > 0) and not self._warned:
            self._warned = True
            hints.of_changing_part(self._built, stacklevel=5)

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
        if self._consumer is not None:
            return
        if finished and run.first == 0:
            hints.note_first_epoch(self.pipeline._node, self._built, self._engine)
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
        from .optimizing import cores_of, placed

        threads = self._engine["threads"]
        tries = self._engine["on_error"] == "fail" and self._may_change and cores_of(threads) > 1
        code = placed(self._built, self.pipeline._node, threads, tries)
        if code.built is None:
            if code.unmeasured and tries:
                from .live_code import LiveCode

                self._order.code = LiveCode(self._built, threads, self._order.in_order)
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

    def _end_live_code(self, order: LiveOrder, code: LiveCode) -> None:
        """Where user code runs fastest is known, and the run is there."""
        if code.won and code.graph is not None:
            order.adopt(code)
            self._built = order.built
        host = code.end()
        if code.won and host is not None:
            with self._lock:
                host, self._host = self._host, host
                _with_host.add(self)
        if host is not None:
            host.release()

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
        if self._consumer is not None:
            raise UnknownLengthError("how many batches a consumer gets is not known: others take the rest")
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
        if self._consumer is not None:
            return self._state_json({"first": 0, "at": 0, "epochs": self._epochs, "engine": self._consumer.save()})
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
        if self._consumer is None:
            states.refuse_ranks(state, *self._place())
        elif not states.is_consumers(state):
            raise StateMismatchError("the state is not of one of several consumers", param="service_consumer")
        if self._consumer is None or not self._consumer.untaken:
            self._stop_run()
        self._engine["seed"], self._seeded = state["seed"], True
        self._last = None
        self._next_epoch = state["first"]
        self._state = {k: state[k] for k in ("first", "at", "epochs", "engine")}
        if state["engine"] is None:
            self._state = None

    # ---- one of several consumers ----

    @property
    def commit_due(self) -> bool:
        """Whether no batch comes before the batches so far are committed: others may wait for that. Then the loop must
        `commit`; its next step would raise StateError. Waits until that is known or a batch is there."""
        return self._the_consumer().is_due()

    def commit(self, path: PathLike) -> contextlib.AbstractContextManager[str]:
        """Commits all batches that the loop has received, with a checkpoint of theirs.

            with loader.commit("a.pt") as aside:
                torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, aside)

        The body writes the checkpoint to the path that it is given, beside `path`. Then the dispatcher is told, and
        when it has answered the file replaces the one at `path`. After a crash anywhere between, `checkpoint` finds
        the one that counts.

        Raises:
            CancelledError: this consumer was evicted or replaced; go back to its committed checkpoint.
        """
        return self._the_consumer().commit(path)

    def checkpoint(self, path: PathLike) -> str | None:
        """The committed checkpoint of this consumer, put in place at `path`; None if there is none. Before a loop:

            found = loader.checkpoint("a.pt")
            if found is not None:
                saved = torch.load(found)
                model.load_state_dict(saved["model"])
                loader.load_state_dict(saved["loader"])

        Raises:
            StateError: the checkpoint that was committed is not there.
        """
        return self._the_consumer().checkpoint(path)

    # ---- ends ----

    def stats(self) -> dict[str, Any]:
        """Records, bytes, seconds, waiting and memory of the current or last run."""
        run = self._current()
        return (run.stats() if run is not None else {}) or dict(self._stats)

    def node_stats(self) -> list[dict[str, Any]]:
        """What each node of the current or last run did.

        CPU time in ``seconds`` (``worker_seconds`` of it in worker processes, ``ordered_seconds``
        with records in order, one thread at a time) and per record in ``record_ns``,
        ``record_ns_variance`` and ``byte_ns``; ``wait_seconds`` without a CPU; records, errors,
        and bytes by how the node uses its fields.
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
            if self._consumer is not None:
                self._consumer.close()
        finally:
            self._drop_host()
            if self._order is not None and self._order.code is not None:
                self._order.code.release()
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
        if order is not None and order.code is not None:
            order.code.release()

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
    if "headrace.live_code" in sys.modules:
        from .live_code import release_all

        release_all()
    for loader in list(_with_host):
        loader._drop_host()


class UnknownLengthError(StateError, TypeError):
    """len() of a loader whose number of batches is known only at run time."""
