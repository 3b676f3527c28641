"""hr.DataLoader: torch's DataLoader that knows its place.

Arguments, samplers, collation, seeds, worker processes and the order of draws are torch's: the class and its
iterators are torch's with a few methods overridden. What it adds is `state_dict`, errors that name the item, and
`close`.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from .errors import ArgumentError, FormatError, StateMismatchError, UnsupportedError
from .pipeline import Pipeline

try:
    import torch
    from torch.utils.data import _DatasetKind, _utils
    from torch.utils.data import dataloader as _torch
except ImportError as error:
    raise ImportError(
        "hr.DataLoader needs PyTorch: pip install torch. Without it: hr.from_dataset(dataset).batch(32).loader()"
    ) from error

from . import fetching

_T_co = TypeVar("_T_co", covariant=True)

_VERSION = 1
_IDLE = 0.05  # of the workers' time in a window; beyond it they get one more batch
_WINDOW = 4  # batches of each worker
_END_WAIT_S = 5.0  # for a worker whose sockets are closed
_KEYS = ("started", "yielded", "ahead", "drawn", "generator", "base_seed", "sampler", "workers")


class Place:
    """Where an epoch has got to, for the batches that the loop received.

    pending: a loaded state of which the loop has received no batch yet. started: an epoch has begun and has not
    ended. generator: the state of the generator when the sampler began. yielded: batches. ahead: numbers of
    those that came before their turn. drawn: a hash of the indices of the `yielded` batches. sampler: its own
    state after them, if it has one. workers: what Workers has.
    """

    def __init__(self, pending: Mapping[str, Any] | None = None) -> None:
        self.pending = pending
        self.started = False
        self.generator = b""
        self.base_seed = 0
        self.yielded = 0
        self.ahead: list[int] = []
        self.drawn = ""
        self.sampler: Any = None
        self.workers: Workers | None = None

    def state(self, generator: bytes, base_seed: int) -> dict[str, Any]:
        """As a state. Of the next epoch: `generator` is the one that decides its order, as it is now; `base_seed` is
        that of workers that are kept, else -1."""
        if self.pending is not None:
            return dict(self.pending)
        place = self if self.started else Place()
        return {
            "headrace_data_loader": _VERSION,
            "started": place.started,
            "yielded": place.yielded,
            "ahead": list(place.ahead),
            "drawn": place.drawn,
            "generator": (place.generator if place.started else generator).hex(),
            "base_seed": place.base_seed if place.started else base_seed,
            "sampler": place.sampler,
            "workers": None if place.workers is None else place.workers.state(),
        }


class Workers:
    """The place of each worker, or of the loop without workers, in an iterable or in a data set with a state.

    next: the worker whose turn it is. given: batches that the loop received from each. states: of its data set
    after them; None if it has none. ended: the last of these batches was cut short by the end of its stream; its
    state is from before that batch.
    """

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size
        self.next = 0
        self.given = [0] * max(1, count)
        self.states: list[Any] = [None] * max(1, count)
        self.ended = [False] * max(1, count)

    def take(self, worker: int, made: fetching.Stated) -> Any:
        """A batch of a worker for the loop."""
        self.given[worker] += 1
        self.states[worker], self.ended[worker] = made.state, made.ended
        self.next = (worker + 1) % len(self.given)
        return made.batch

    def state(self) -> dict[str, Any]:
        """As part of a state."""
        return {**vars(self), "given": list(self.given), "states": list(self.states), "ended": list(self.ended)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse, for as many workers."""
        self.next, self.given, self.states = state["next"], list(state["given"]), list(state["states"])
        self.ended = self.ended_of(state)

    @staticmethod
    def ended_of(state: Mapping[str, Any]) -> list[Any]:
        """`ended` of a state; states of older versions do not have it."""
        return list(state.get("ended", [False] * len(state["given"])))

    @staticmethod
    def is_state(value: Any) -> bool:
        """Whether a part of a state is one of this class."""
        if not isinstance(value, Mapping) or set(value) - {"ended"} != {"count", "size", "next", "given", "states"}:
            return False
        count, given, states = value["count"], value["given"], value["states"]
        return (
            all(isinstance(value[key], int) for key in ("count", "size", "next"))
            and isinstance(given, list)
            and isinstance(states, list)
            and len(given) == len(states) == max(1, count)
            and all(isinstance(one, int) and one >= 0 for one in given)
            and 0 <= value["next"] < len(given)
            and value["size"] > 0
            and isinstance(value.get("ended", []), list)
            and list(map(type, Workers.ended_of(value))) == [bool] * len(given)
        )


class DataLoader(_torch.DataLoader, Generic[_T_co]):
    """`torch.utils.data.DataLoader` with a state: the same arguments, the same batches.

        loader = hr.DataLoader(dataset, batch_size=32, shuffle=True)
        for images, labels in loader: ...

        state = loader.state_dict()             # at any step: the place after the last batch
        loader.load_state_dict(state)           # the next loop resumes there

    It is a torch DataLoader, so help(torch.utils.data.DataLoader) describes the arguments, and
    frameworks take it for one. Batches are equal to those of torch for the same
    dataset, arguments and `torch.manual_seed` or `generator`: the order, and the draws that the loader makes
    of your generators and in each worker. `collate_fn` gets the list of items, in the worker, and may return anything
    that pickle can send. Without workers items are fetched in the loop, when they are needed.

    For pictures, text and sound in files a pipeline is much faster: `hr.files(...)...loader()`.

    Args:
        dataset: map-style (`__len__` and `__getitem__`, or `__getitems__` for many) or an IterableDataset.
        batch_size: items of a batch; None: single items, without a batch.
        shuffle: another order in each epoch.
        sampler, batch_sampler: indices, or lists of them. Those with `state_dict` and `load_state_dict`
            have their state kept with the place; others are run again up to it when resuming.
        num_workers: processes that fetch and collate; 0: the loop does. `get_worker_info()` works in them.
        collate_fn: makes a batch of a list of items; by default torch's default_collate.
        pin_memory: copy tensors to pinned memory if there is an accelerator.
        drop_last: leave out a last batch that is too small.
        generator: decides the order in place of torch's global one.
        timeout: seconds to wait for a batch of a worker, then RuntimeError; 0: for ever.
        worker_init_fn: called in each worker with its number.
        multiprocessing_context: how workers start: "fork", "spawn", "forkserver" or a context; by default
            multiprocessing's start method.
        prefetch_factor: batches in progress for each worker. By default at most 2: a loop begins with one for each
            worker and one more, and takes further ones when workers wait for them.
        persistent_workers: keep the workers after an epoch.
        in_order: False: batches come as they are ready.
        pin_memory_device: deprecated in torch.

    Raises:
        ValueError: arguments that exclude each other, in torch's words.
        UnsupportedError: the dataset is a torch DataPipe.
        RuntimeError: by the loop, when a worker has died or the timeout is over, in torch's words.
    """

    _iterator: Any  # with persistent workers

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if isinstance(dataset, Pipeline):
            raise ArgumentError(
                "DataLoader() takes a dataset; a pipeline makes its own batches: pipe.batch(32).loader()",
                param="dataset",
            )
        if isinstance(dataset, (_torch.IterDataPipe, _torch.MapDataPipe)):
            raise UnsupportedError(
                "DataLoader() takes no torch DataPipe: give a Dataset or an IterableDataset, or write it as a pipeline",
                param="dataset",
            )
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
        )
        self.in_order = in_order
        self._prefetch_asked = prefetch_factor is not None
        self._place = Place()  # of the epoch that runs or was left
        self._latest: weakref.ref[Any] | None = None  # the iterator of the latest loop

    def __iter__(self) -> Any:
        state, generator = self._place.pending, self._generator()
        if state is not None and self._iterator is not None:
            self._iterator.close()  # its persistent workers do not know the place
            self._iterator = None
        begins = state is not None and not state["started"]
        before = _state_of(generator)
        try:
            if state is not None and begins:
                _set_state(generator, bytes.fromhex(state["generator"]))
            iterator = super().__iter__()
        finally:
            if begins and self.generator is None:
                _set_state(generator, before)
        self._latest = weakref.ref(iterator)
        return iterator

    def _generator(self) -> Any:
        """What decides the order."""
        return self.generator if self.generator is not None else torch.default_generator

    def _get_iterator(self) -> Any:
        if self.num_workers == 0:
            return _InLoop(self)
        self.check_worker_number_rationality()
        return _InWorkers(self)

    def close(self) -> None:
        """End the latest loop and its worker processes, the persistent ones, too. The place stays, and the
        next loop starts new workers. Workers that are stuck in the dataset are killed after a few seconds."""
        latest = self._latest() if self._latest is not None else None
        if latest is not None:
            latest.close()
        self._latest = self._iterator = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that the loop received: about 10 kB of numbers and texts, for json
        or torch.save, and the states of the sampler and of the dataset if they have one.

        After the end of an epoch, and before the first, it is the beginning of the next epoch. Of the
        generators of your program the one that decides the order is part of it: `generator`, else torch's.

        An iterable dataset or its iterator, or a map-style dataset, with `state_dict` and `load_state_dict` has its
        state kept, which each worker returns with each batch.
        """
        return self._place.state(
            _state_of(self._generator()), self._iterator._seed if self._iterator is not None else -1
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next loop from a state that `state_dict` returned.

        The sampler is run up to the place without fetching anything, and is then compared with what it
        gave before the state was saved. torch's global generator stays as it is, `generator` goes on from the state.
        An IterableDataset without a state of its own is read again up to the place.
        A map-style dataset may be resumed with any number of workers, whose random numbers differ from those before;
        other datasets need the same number.

        Raises:
            FormatError: it is no such state, or is damaged.
            StateMismatchError: by the next loop, if the sampler gives other indices than it did, or the number of
                workers differs.
        """
        if not isinstance(state, Mapping) or state.get("headrace_data_loader") != _VERSION:
            raise FormatError(f"this is not a state of hr.DataLoader: it has no headrace_data_loader={_VERSION}")
        missing = [key for key in _KEYS if key not in state]
        if missing:
            raise FormatError(f"the state is damaged: keys are missing: {', '.join(missing)}")
        for key, kind in (
            ("started", bool),
            ("yielded", int),
            ("ahead", list),
            ("drawn", str),
            ("generator", str),
            ("base_seed", int),
        ):
            if not isinstance(state[key], kind) or (kind is int and isinstance(state[key], bool)):
                raise FormatError(f"the state is damaged: {key} is {state[key]!r:.80}", param=key)
        try:
            generator = bytes.fromhex(state["generator"])
        except ValueError:
            raise FormatError("the state is damaged: generator is not hexadecimal", param="generator") from None
        if state["yielded"] < 0 or not generator or (state["yielded"] > 0 and not state["started"]):
            raise FormatError(f"the state is damaged: yielded is {state['yielded']}", param="yielded")
        if not all(isinstance(one, int) and one > state["yielded"] for one in state["ahead"]):
            raise FormatError(f"the state is damaged: ahead is {state['ahead']!r:.80}", param="ahead")
        if state["workers"] is not None and not Workers.is_state(state["workers"]):
            raise FormatError(f"the state is damaged: workers is {state['workers']!r:.80}", param="workers")
        self._place = Place(dict(state))


def _state_of(generator: Any) -> bytes:
    return bytes(generator.get_state().numpy())


def _set_state(generator: Any, state: bytes) -> None:
    try:
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    except (RuntimeError, TypeError) as error:
        raise FormatError(f"the state is damaged: torch refuses the generator's state: {error}") from None


class _View:
    """A loader as torch's iterators get it: some attributes have other values."""

    def __init__(self, loader: DataLoader[Any], **attributes: Any) -> None:
        self.__dict__.update(attributes, _loader=loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._loader, name, value)


def _resumes(loader: DataLoader[Any], tracked: bool) -> list[fetching.Resume]:
    """The places of the workers in a loaded state; of each, if the data set is one whose workers have places."""
    state = loader._place.pending
    if state is None or not state["started"]:
        return []
    workers = state["workers"]
    if tracked != (workers is not None):
        raise StateMismatchError(
            "the state was saved with a dataset of another kind (map-style, iterable, or with a state of its own)",
            param="dataset",
        )
    if workers is None:
        return []
    if workers["count"] != loader.num_workers:
        raise StateMismatchError(
            f"the state was saved with num_workers={workers['count']}, not {loader.num_workers}, and each worker has "
            f"its own place in the dataset: give num_workers={workers['count']} until the end of the epoch",
            param="num_workers",
        )
    if workers["size"] != (loader.batch_size or 1) and None in workers["states"]:
        raise StateMismatchError(
            f"the state was saved with batch_size={workers['size']}, and the dataset, which has no own state, is "
            f"read again by batches: give batch_size={workers['size']}",
            param="batch_size",
        )
    return [
        fetching.Resume(given, workers["size"], one, ended)
        for given, one, ended in zip(workers["given"], workers["states"], Workers.ended_of(workers), strict=True)
    ]


class _Placed:
    """What an iterator knows of its place. Mixed into torch's."""

    _dataset: Any
    _dataset_kind: int
    _index_sampler: Any
    _num_workers: int
    _num_yielded: int
    _sampler_iter: Iterator[Any]
    _closed = False

    def _view(self, loader: DataLoader[Any]) -> _View:
        """The loader for torch's part, which begins the epoch."""
        self._pending = state = loader._place.pending
        iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._tracked = iterable or fetching.has_state(loader.dataset)
        resumes = _resumes(loader, self._tracked)
        collate = loader.collate_fn
        if iterable:
            self._source: fetching.Source = fetching.Stream(loader.dataset, resumes)
        else:
            self._source = items = fetching.Items(loader.dataset, resumes)
            if collate is _utils.collate.default_collate:
                collate = items.gather()
        moved = (state["base_seed"], state["yielded"]) if state is not None and state["yielded"] > 0 else None
        return _View(
            loader,
            dataset=self._source,
            collate_fn=fetching.Collate(collate, self._source) if self._tracked else collate,
            worker_init_fn=fetching.Start(self._source, loader.worker_init_fn, moved),
        )

    @property
    def _base_seed(self) -> int:
        """Of the workers. torch draws it from the generator and sends it to them."""
        return self._seed

    @_base_seed.setter
    def _base_seed(self, drawn: int) -> None:
        state = self._pending
        saved = state is not None and (state["started"] or state["base_seed"] >= 0)
        self._seed = state["base_seed"] if state is not None and saved else drawn

    def _begin(self, loader: Any) -> None:
        """After torch's part of the beginning of an epoch, before the first index is drawn."""
        state = loader._place.pending
        place = self._place = Place(state)
        place.started, place.base_seed = True, self._seed
        if self._tracked:
            place.workers = Workers(loader.num_workers, loader.batch_size or 1)
        self._generator = loader._generator()
        place.generator = _state_of(self._generator)
        self._sampler_state = next(filter(fetching.has_state, (loader.batch_sampler, loader.sampler)), None)
        self._mark: tuple[str, Any] = ("", None)  # of the batches before `_resolved`
        self._drawn, self._number, self._resolved = "", 0, 0
        self._early: dict[int, tuple[str, Any]] = {}  # marks of batches that were resolved before their turn
        self._last: tuple[int, tuple[str, Any]] | None = None  # number and mark of what was drawn last
        self._skipped: frozenset[int] = frozenset()
        if state is not None:
            self._restore(state, loader.generator is None)
        loader._place = place

    def _restore(self, state: Mapping[str, Any], borrowed: bool) -> None:
        """Bring the sampler to the place of a state, with the generator as it was; `borrowed` is given back."""
        place = self._place
        before = _state_of(self._generator)
        try:
            if state["started"] or state["base_seed"] >= 0:  # else a base seed was drawn from it
                _set_state(self._generator, bytes.fromhex(state["generator"]))
            place.generator = _state_of(self._generator)
            self._advance(state)
        finally:
            if borrowed:
                _set_state(self._generator, before)
        if not state["started"]:
            return
        self._num_yielded = self._resolved = self._number = place.yielded = state["yielded"]
        self._mark = place.drawn, place.sampler = state["drawn"], state["sampler"]
        place.ahead, place.base_seed = list(state["ahead"]), state["base_seed"]
        self._drawn, self._skipped = place.drawn, frozenset(place.ahead)
        if place.workers is not None:
            place.workers.restore(state["workers"])

    def _advance(self, state: Mapping[str, Any]) -> None:
        if self._sampler_state is not None and state["sampler"] is not None:
            self._sampler_state.load_state_dict(state["sampler"])
            self._sampler_iter = iter(self._index_sampler)
            return
        if self._dataset_kind == _DatasetKind.Iterable:
            return
        for _ in range(state["yielded"]):
            try:
                self._draw()
            except StopIteration:
                break
        if self._drawn != state["drawn"]:
            raise StateMismatchError(
                "the sampler gives other indices than when the state was saved: it is another sampler or dataset, or "
                "it draws from a generator that is not torch's; give it state_dict() and load_state_dict()",
                param="sampler",
            )
        first = list(itertools.islice(self._sampler_iter, 1))  # torch's sampler draws its seed from the generator
        self._sampler_iter = itertools.chain(first, self._sampler_iter)

    def _draw(self) -> Any:
        index = next(self._sampler_iter)
        if self._dataset_kind == _DatasetKind.Map:
            text = repr(index)
            if " at 0x" not in text:  # an address says nothing
                self._drawn = hashlib.blake2b((self._drawn + text).encode(), digest_size=16).hexdigest()
        return index

    def _next_index(self) -> Any:
        if self._number == 0 and self._place.pending is None:
            self._place.generator = _state_of(self._generator)
        while True:
            index = self._draw()
            state = self._sampler_state.state_dict() if self._sampler_state is not None else None
            self._last = self._number, (self._drawn, state)
            self._number += 1
            if self._number - 1 not in self._skipped:
                return index
            self._resolve(*self._last)

    def _resolve(self, number: int, mark: tuple[str, Any]) -> None:
        """A batch was received or has failed."""
        self._early[number] = mark
        while self._resolved in self._early:
            self._mark = self._early.pop(self._resolved)
            self._resolved += 1

    def _give(self, made: Any, worker: int) -> Any:
        """A batch for the loop: the place is after it."""
        place = self._place
        place.pending = None
        if place.workers is not None:
            made = place.workers.take(worker, made)
        if self._dataset_kind == _DatasetKind.Iterable:
            place.yielded += 1
            return made
        place.yielded, place.ahead = self._resolved, sorted(self._early)
        place.drawn, place.sampler = self._mark
        return made

    def _finish(self) -> None:
        """The next state is the beginning of an epoch."""
        self._place.started, self._place.pending = False, None

    def close(self) -> None:
        """The loop ends."""
        self._closed = True


class _InLoop(_Placed, _torch._SingleProcessDataLoaderIter):
    """Items are fetched in the thread that runs the loop, when it asks."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(self._view(loader))
        self._dataset = loader.dataset
        self._begin(loader)
        self._source.begin()
        if self._place.workers is not None:
            self._place.workers.states[0] = self._source.state()

    def _next_data(self) -> Any:
        if self._closed:
            raise StopIteration
        self._last = None
        try:
            made = super()._next_data()
        except StopIteration:
            self._finish()
            raise
        finally:
            if self._last is not None:
                self._resolve(*self._last)
        return self._give(made, 0)


class _InWorkers(_Placed, _torch._MultiProcessingDataLoaderIter):
    """Items are fetched by torch's worker processes.

    Indices are drawn when torch draws them. Where nobody asked for a prefetch_factor they wait here: workers have one
    batch each and one more, and a further one when they are idle while the loop waits, which is when some batches
    take much longer than others.
    """

    _shutdown = True  # until torch's part has begun
    _prefetch_factor: int
    _process = 0

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._process = os.getpid()
        self._frugal = not loader._prefetch_asked and loader.in_order
        super().__init__(self._view(loader))
        self._dataset = loader.dataset

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._pending = loader._place.pending
        self._marks: dict[int, tuple[int, tuple[str, Any]]] = {}  # by torch's number of a task
        self._waiting: deque[tuple[Any, Any]] = deque()  # indices and their marks, for no worker yet
        self._idle, self._since, self._received = 0.0, 0.0, 0
        most, self._prefetch_factor = self._prefetch_factor, 0  # so that no index is drawn yet
        try:
            super()._reset(loader, first_iter)
        finally:
            self._prefetch_factor = most
        self._begin(loader)
        workers = self._place.workers
        for _ in range(workers.next if workers is not None else 0):
            next(self._worker_queue_idx_cycle)
        most *= self._num_workers
        self._unread = self._num_workers + 1 if self._frugal and self._dataset_kind == _DatasetKind.Map else most
        for _ in range(most):
            self._try_put_index()

    def _try_put_index(self) -> None:
        try:
            index = super()._next_index()
            self._waiting.append((index, self._last))
        except StopIteration:
            pass
        finally:
            if len(self._task_info) < self._unread:
                self._put_index()

    def _put_index(self) -> None:
        self._last, task = None, self._send_idx
        super()._try_put_index()
        if self._last is not None and self._send_idx > task and self._dataset_kind == _DatasetKind.Map:
            self._marks[task] = self._last

    def _next_index(self) -> Any:
        if not self._waiting:
            raise StopIteration
        index, self._last = self._waiting.popleft()
        return index

    def _get_data(self) -> Any:
        busy = {info[0] for info in self._task_info.values() if len(info) == 1}
        idle = self._num_workers - len(busy)
        began = time.monotonic()
        got = super()._get_data()
        now = time.monotonic()
        self._idle += idle * (now - began)
        self._received += 1
        if self._received == _WINDOW * self._num_workers or not self._since:  # workers start one after the other
            starved = self._since and self._idle > _IDLE * self._num_workers * (now - self._since)
            if starved and self._unread < self._prefetch_factor * self._num_workers:
                self._unread += 1
                self._put_index()
            self._idle, self._since, self._received = 0.0, now, 0
        return got

    def _try_get_data(self, timeout: float = _utils.MP_STATUS_CHECK_INTERVAL) -> Any:
        try:
            return super()._try_get_data(timeout)
        except (ConnectionError, EOFError, FileNotFoundError) as error:
            # The worker that sent a tensor has closed its sockets, and may be a moment from its end, which torch
            # looked for.
            ended = self._wait_for_end()
            if not ended:
                raise
            raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(ended)}) exited unexpectedly") from error

    def _wait_for_end(self) -> list[str]:
        """The workers that end within some seconds, by their numbers as processes."""
        until = time.monotonic() + _END_WAIT_S
        while time.monotonic() < until:
            ended = [at for at, w in enumerate(self._workers) if self._workers_status[at] and not w.is_alive()]
            for at in ended:
                self._mark_worker_as_unavailable(at)
            if ended:
                return [str(self._workers[at].pid) for at in ended]
            time.sleep(0.01)
        return []

    def _next_data(self) -> Any:
        if self._closed:
            raise StopIteration
        try:
            return super()._next_data()
        except StopIteration:
            self._finish()
            raise

    def _process_data(self, data: Any, worker_idx: int) -> Any:
        if self._dataset_kind == _DatasetKind.Map:
            task = next(task for task in self._marks if task not in self._task_info)
            self._resolve(*self._marks.pop(task))
        try:
            made = super()._process_data(data, worker_idx)
        except BaseException as error:
            traceback.clear_frames(error.__traceback__)  # torch's refer to the error: a cycle would keep the workers
            raise
        return self._give(made, worker_idx)

    def close(self) -> None:
        super().close()
        self._shutdown_workers()

    def __del__(self) -> None:
        if self._process == os.getpid():  # not in a forked worker of a later loop, which only has a copy
            super().__del__()
