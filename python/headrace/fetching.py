"""The data set of hr.DataLoader as torch's loops get it, in the training process or in a worker.

Around map-style data sets, to name the item that fails; around iterables and data sets with a state of their
own, to know and restore their place. Objects of this module go to worker processes.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils.data import _utils, get_worker_info
from torch.utils.data._utils import collate as torch_collate

from . import seeding
from ._numpy import np
from .errors import StateMismatchError

_LARGE = 1 << 15  # bytes of an item's tensor from which on it is worth its own copy


def has_state(value: Any) -> bool:
    """Whether an object can save its state and restore it."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


class Resume(NamedTuple):
    """The place that a worker resumes from.

    given: batches that the loop received from it. size: items of each. state: of its data set after
    them, as `Source.place` returned it; None if the data set has none. ended: the last of these batches was
    the end of its stream; `state` is then from before that batch.
    """

    given: int
    size: int
    state: dict[str, Any] | None
    ended: bool = False


class Source:
    """A data set, with the place of each worker to resume from; none: from the beginning."""

    def __init__(self, dataset: Any, resumes: Sequence[Resume]) -> None:
        self.dataset = dataset
        self._resumes = list(resumes)

    def _resume_of_this(self) -> Resume | None:
        """The place of this worker, or of the training process; None if it was taken already."""
        info = get_worker_info()
        return self._resumes[info.id if info is not None else 0] if self._resumes else None

    def _take_resume(self) -> Resume | None:
        """The same, once."""
        resume, self._resumes = self._resume_of_this(), []
        return resume

    def _state_of(self, iterator: Any) -> dict[str, Any] | None:
        made = {}
        if self.dataset is not iterator and has_state(self.dataset):
            made["dataset"] = self.dataset.state_dict()
        if has_state(iterator):
            made["iterator"] = iterator.state_dict()
        return copy.deepcopy(made) if made else None

    def state(self) -> dict[str, Any] | None:
        """A copy of the data set's own state in this process; None if it has none."""
        return self._state_of(None)

    def place(self) -> tuple[dict[str, Any] | None, bool]:
        """`state` and `ended` of a Resume after the batch that was just made."""
        return self.state(), False

    def begin(self) -> None:
        """Restores the state of a map-style data set in this process."""

    def draws_anew(self) -> bool:
        """Whether random numbers of a resumed worker must be others than those of the epoch's beginning: not if it
        begins there, or makes all items before its place again."""
        resume = self._resume_of_this()
        return resume is None or (resume.given > 0 and resume.state is not None)


class Rows:
    """The large tensors of a batch that is being made by default_collate: each item's are copied there as soon as
    the item is made, so that the items of a batch are not all in memory at once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._number = self._part = 0  # of the item, and of its tensor
        self._tensors: list[Any] = []  # of the batch; None: not made in advance

    def add(self, item: Any) -> Any:
        """The next item, with rows of the batch in place of its tensors."""
        self._part = 0
        if self._number < self._count:
            item = self._moved(item)
        self._number += 1
        return item

    def _moved(self, value: Any) -> Any:
        kind = type(value)
        if kind is torch.Tensor or kind is np.ndarray:
            return self._row(value)
        if kind is dict:
            return {key: self._moved(part) for key, part in value.items()}
        if kind in (tuple, list):
            return kind(map(self._moved, value))
        return kind._make(map(self._moved, value)) if hasattr(kind, "_make") else value

    def _row(self, value: Any) -> Any:
        if not _is_large(value):
            return value
        tensor = torch.as_tensor(value)
        part, self._part = self._part, self._part + 1
        if self._number == 0:
            self._tensors.append(self._batch_of(tensor))
        made = self._tensors[part] if part < len(self._tensors) else None
        if made is None or made.dtype != tensor.dtype or made.shape[1:] != tensor.shape:
            return value
        row = made[self._number]
        row.copy_(tensor)
        return row

    def _batch_of(self, tensor: Any) -> Any:
        """An empty tensor for the batch, as torch makes it: in a worker in shared memory."""
        shape = (self._count, *tensor.shape)
        if get_worker_info() is None:
            return torch.empty(shape, dtype=tensor.dtype)
        storage = tensor._typed_storage()._new_shared(self._count * tensor.numel(), device="cpu")
        return tensor.new(storage).resize_(shape)

    def collate(self, items: Any, *, collate_fn_map: Any = None) -> Any:
        """Like torch's collate_tensor_fn: of all rows of a tensor that tensor."""
        for made in self._tensors:
            if len(made) == len(items) and all(map(_same, items, made)):
                return made
        if self._tensors:  # where items differ, some may be arrays still
            items = list(map(torch.as_tensor, items))
        return torch_collate.collate_tensor_fn(items, collate_fn_map=collate_fn_map)


def _is_large(value: Any) -> bool:
    if type(value) is np.ndarray:
        return (
            value.dtype.kind in "biufc" and value.dtype.isnative and value.flags.c_contiguous and value.nbytes >= _LARGE
        )
    return (
        value.device.type == "cpu"
        and value.layout == torch.strided
        and not (value.requires_grad or value.is_nested or value.is_quantized or value.is_conj() or value.is_neg())
        and value.nbytes >= _LARGE
    )


def _same(one: Any, row: Any) -> bool:
    return type(one) is torch.Tensor and one.data_ptr() == row.data_ptr() and one.shape == row.shape


class Items(Source):
    """A map-style data set. Errors of items get a note with the index."""

    def __init__(self, dataset: Any, resumes: Sequence[Resume]) -> None:
        super().__init__(dataset, resumes)
        self._gathers = False  # whether `collate` makes batches of the items
        self._rows = Rows(0)

    def gather(self) -> Callable[[Any], Any]:
        """A collate_fn like default_collate, which needs less memory."""
        self._gathers = True
        return self._collate

    def _collate(self, items: Any) -> Any:
        rows, self._rows = self._rows, Rows(0)
        kinds = dict(torch_collate.default_collate_fn_map)
        if kinds[torch.Tensor] is torch_collate.collate_tensor_fn:
            kinds[torch.Tensor] = rows.collate
        return torch_collate.collate(items, collate_fn_map=kinds)

    def __getitem__(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            self._name(error, f"item {index!r:.80}")
            raise

    def __getitems__(self, indices: Any) -> Any:
        several = getattr(self.dataset, "__getitems__", None)
        if several:
            try:
                return several(indices)
            except Exception as error:
                self._name(error, f"items {indices!r:.400}")
                raise
        index, made, dataset = None, [], self.dataset
        rows = self._rows = Rows(len(indices)) if self._gathers and hasattr(indices, "__len__") else Rows(0)
        try:
            for index in indices:
                item = dataset[index]
                made.append(rows.add(item) if self._gathers else item)
        except Exception as error:
            self._name(error, f"item {index!r:.80}")
            raise
        return made

    def _name(self, error: Exception, what: str) -> None:
        what += f" of {type(self.dataset).__name__}"
        if isinstance(error, StopIteration):  # would end the loop without a word
            raise RuntimeError(f"{what} raised StopIteration") from error
        error.add_note(f"This was {what}.")

    def begin(self) -> None:
        resume = self._take_resume()
        if resume is not None and resume.state is not None:
            self.dataset.load_state_dict(resume.state["dataset"])


class Stream(Source):
    """An iterable data set. The first iteration begins at the place to resume from.

    A batch that is cut short has run the data set to its end, where many reset their state for the next pass.
    Resumed from that state, the worker would start over. Its place is therefore the state before the batch and
    the fact that it has ended: when resuming, the items of the batch are read again and dropped, which
    leaves the data set ready for the next epoch.
    """

    def __init__(self, dataset: Any, resumes: Sequence[Resume]) -> None:
        super().__init__(dataset, resumes)
        self._iterator: Any = None
        self._ended = False
        self._before: dict[str, Any] | None = None  # the state at the latest place

    def __iter__(self) -> Iterator[Any]:
        resume = self._take_resume()
        state = resume.state if resume is not None else None
        if state is not None and "dataset" in state:
            self.dataset.load_state_dict(state["dataset"])
        iterator: Any = iter(self.dataset)
        self._iterator, self._ended = iterator, False
        if state is not None and "iterator" in state:
            iterator.load_state_dict(state["iterator"])
        self._before = state if state is not None else self.state()
        items = itertools.chain(iterator, self._end())
        if resume is not None and state is None:
            _skip(items, resume)
        elif resume is not None and resume.ended:
            with contextlib.suppress(Exception):  # no item is wanted
                _drop(items, resume.size)
        return iter(()) if resume is not None and resume.ended else items

    def _end(self) -> Iterator[Any]:
        """No items; notes that those before it have ended."""
        self._ended = True
        yield from ()

    def state(self) -> dict[str, Any] | None:
        return self._state_of(self._iterator)

    def place(self) -> tuple[dict[str, Any] | None, bool]:
        if not self._ended:
            self._before = self.state()
        return self._before, self._ended


def _drop(items: Iterator[Any], count: int) -> int:
    """Reads up to `count` items. Returns how many there were."""
    return sum(1 for _ in itertools.islice(items, count))


def _skip(items: Iterator[Any], resume: Resume) -> None:
    """Makes the items before the place again. The last batch may have been a small one."""
    read = _drop(items, resume.given * resume.size)
    if read <= (resume.given - 1) * resume.size:
        raise StateMismatchError(
            f"the dataset ends before batch {resume.given}, after which the state was saved; it has {read} items",
            param="dataset",
        )


class Stated:
    """A batch on its way to the loop, with the place of its worker after it."""

    def __init__(self, batch: Any, state: dict[str, Any] | None, ended: bool) -> None:
        self.batch, self.state, self.ended = batch, state, ended

    def pin_memory(self) -> Stated:
        """torch calls this."""
        return Stated(_utils.pin_memory.pin_memory(self.batch), self.state, self.ended)


class Collate:
    """A collate_fn whose batches carry the place of their worker."""

    def __init__(self, collate: Callable[[Any], Any], source: Source) -> None:
        self._collate, self._source = collate, source

    def __call__(self, items: Any) -> Stated:
        return Stated(self._collate(items), *self._source.place())


class Start:
    """The worker_init_fn of torch's workers: ours, then the user's.

    moved: base seed and place of a resumed epoch; None: a whole epoch.
    """

    def __init__(self, source: Source, init: Callable[[int], Any] | None, moved: tuple[int, int] | None) -> None:
        self._source, self._init, self._moved = source, init, moved

    def __call__(self, worker: int) -> None:
        gc.freeze()  # the collector never visits what a fork shares, so its pages stay shared
        info = get_worker_info()
        seed = info.seed
        if self._moved is not None and self._source.draws_anew():
            key = hashlib.blake2b(repr((*self._moved, worker)).encode(), digest_size=16).digest()
            seeding.Seeding(int.from_bytes(key, "little"), keep=False)
            seed = torch.initial_seed()
        _utils.worker._worker_info = _utils.worker.WorkerInfo(
            id=worker, num_workers=info.num_workers, seed=seed, dataset=self._source.dataset
        )
        if self._init is not None:
            self._init(worker)
        self._source.begin()
