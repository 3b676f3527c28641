"""Run: the iterator of a loop over a loader."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from . import _headrace, _numpy, batch
from .errors import CancelledError, HeadraceError, StateError, translated

if TYPE_CHECKING:
    from .fleet import Member
    from .live_code import LiveCode
    from .live_order import LiveOrder, Past
    from .loader import Loader

_T = TypeVar("_T")

_TURN_S = 0.1  # between looks whether the run was closed
_MOVES_MAX = 3  # to other fleets without a batch


def _look(ask: Callable[[], _T]) -> _T:
    """The result of a query; retried if the run was closed while this thread waited for its turn."""
    try:
        return ask()
    except _headrace.Error:
        return ask()


class Run:
    """One iteration over some epochs: the iterator of a `for`.

    Thread-safe; each batch goes to one thread.
    """

    def __init__(self, loader: Loader, first: int, epochs: int | None, state: str | None) -> None:
        self._loader = loader
        self._form, self._progress = loader._form, loader._progress
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
        self._graph = loader._built.graph if self._order is None else self._order.first
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
        got = self._take(self._iter) if self._changing is None else self.take()
        return self._form.give(got)

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
        """The same, with the graph that is best as far as is known: changes to it first, if that can be now."""
        run, epoch = self._iter, self.epoch
        if run is None or order.wanted is self._graph or not self._loader._may_change:
            got = self._take(run)
        else:
            try:
                state, stats = run.save(), run.stats()
            except _headrace.Error:  # another thread closed it
                return self._take(run)
            if self._is_change_due(order, stats):
                got = self._change_and_take(order, state, stats)
            else:
                got = self._take(run)
            if got.epoch != epoch and order.wanted is not self._graph:
                # The first batch of an epoch is made again, so that the epoch has one order.
                got = self._change_and_take(order, state, stats, got)
        self._batch = got.records
        if not order.is_over and self._iter is not None:
            order.after_batch(self._iter, self._graph, got.records)
        code = order.code
        if code is not None and code.is_settled and not code.is_between(self._graph, order.wanted):
            self._loader._end_live_code(order, code)
        if order.is_over and order.wanted is self._graph:
            self._changing = None
        return got

    def _is_change_due(self, order: LiveOrder, stats: Mapping[str, Any]) -> bool:
        """Whether to change before the next batch, and not only with the next epoch."""
        if not self.given:
            return True
        if self._loader.world > 1 or stats["errors"] > 0:
            return False
        if order.changing_code(self._graph) is not None:
            return True
        if order.strictness != "exact":
            return False
        left = None if self.epochs is None else self.first + self.epochs - 1 - self.epoch
        return order.is_worth(stats, self._batch, left)

    def _change_and_take(
        self, order: LiveOrder, state: str, stats: dict[str, Any], got: _headrace.Batch | None = None
    ) -> _headrace.Batch:
        """The next batch after a state, at which the run had these statistics: made by the graph that is wanted.
        `got`: the same batch as the run has made it."""
        code = order.changing_code(self._graph)
        if code is None or code.is_shown:
            return self._take(self._change(order, state, stats))
        return self._take_both(order, code, state, stats, got)

    def _take_both(
        self, order: LiveOrder, code: LiveCode, state: str, stats: dict[str, Any], got: _headrace.Batch | None
    ) -> _headrace.Batch:
        """The same, made in threads and then in worker processes, where the run continues if both are equal. One after
        the other, as a memory budget is for one run."""
        old = self._iter
        if old is None:  # another thread closed it
            raise self._end()
        got = self._take(old) if got is None else got
        try:
            after = old.save()
        except _headrace.Error:  # another thread closed it
            return got
        old.close()
        run, same = None, False
        try:
            run = self._open(order.wanted, state)
            made = run.next()
            same = made is not None and code.compare(got, made)
        except (HeadraceError, _headrace.Error) as error:
            code.refuse(f"it fails in worker processes: {error}")
        except BaseException:  # such as Ctrl-C: the next step makes the batch again
            if run is not None:
                run.close()
            self._replace(old, self._open(self._graph, state), stats)
            raise
        if same and run is not None:
            self._graph = order.wanted
            self._replace(old, run, stats)
        else:
            if run is not None:
                run.close()
            self._replace(old, self._open(self._graph, after), old.stats())
        return got

    def _change(self, order: LiveOrder, state: str, stats: dict[str, Any]) -> _headrace.Iter:
        """Continues from a state, at which the run had these statistics, with the graph that is wanted."""
        old = self._iter
        if old is None:  # another thread closed it
            raise self._end()
        before, self._graph = self._graph, order.wanted
        old.close()
        try:
            run = self._open(self._graph, state)
        except HeadraceError as error:
            order.give_up(before, str(error))
            self._graph = order.wanted
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
            if isinstance(error, _headrace.Error) and (self._moved(run) or self._returned(run, error)):
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
        if self._loader._consumer is not None:
            self._loader._consumer.uncommitted += 1
            self._loader._consumer.untaken = False
        if got.epoch != self.epoch:
            with self._lock:
                self.epoch = max(self.epoch, got.epoch)
        if self._progress is not None:
            self._progress.advance(self)
        return got

    def _returned(self, old: _headrace.Iter, error: _headrace.Error) -> bool:
        """Whether the run continues in threads, because worker processes that it tried failed."""
        order = self._changing
        code = order.code if order is not None else None
        if order is None or code is None or not code.is_trying or self._iter is not old or self._closing:
            return False
        if not code.is_between(self._graph, order.graph):
            return False
        code.refuse(f"it failed in worker processes: {error}")
        stats = old.stats() | {"errors": 0}
        old.close()
        self._graph = order.graph
        self._replace(old, self._open(self._graph, old.save()), stats)
        return True

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
