"""hr.DataLoader: torch's DataLoader that knows its place.

Arguments, samplers, collation, seeds and the order of draws are torch's: the class is a
torch DataLoader. What it adds is `state_dict`. Worker processes are not supported yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .errors import ArgumentError, FormatError, StateMismatchError, UnsupportedError
from .pipeline import Pipeline

try:
    import torch
    from torch.utils.data import _DatasetKind
    from torch.utils.data import dataloader as _torch
except ImportError as error:
    raise ImportError(
        "hr.DataLoader needs PyTorch: pip install torch. Without it: hr.from_dataset(dataset).batch(32).loader()"
    ) from error

_VERSION = 1
_KEYS = ("yielded", "drawn", "generator", "sampler")


class Place:
    """Where an epoch has got to, for the next batch that is given.

    drawn: a hash of the indices of the batches that were given. generator: the state of the
    generator when the sampler began. before: that of the user's generator before the epoch, until
    its end. sampler: its own state after those batches, if it has one.
    """

    def __init__(self) -> None:
        self.yielded = 0
        self.drawn = ""
        self.generator = b""
        self.before = b""
        self.sampler: Any = None


class DataLoader(_torch.DataLoader):
    """`torch.utils.data.DataLoader` with a state: the same arguments, the same batches.

        loader = hr.DataLoader(dataset, batch_size=32, shuffle=True)
        for images, labels in loader: ...

        state = loader.state_dict()             # at any step: the place after the last batch
        loader.load_state_dict(state)           # the next loop resumes there

    It is a torch DataLoader, so help(torch.utils.data.DataLoader) describes the arguments, and
    frameworks take it for one. Batches are equal to those of torch for the same
    dataset, arguments and `torch.manual_seed` or `generator`: the order, and the draws that the loader makes
    of your generators. `collate_fn` gets the list of items, and may return anything. Items are fetched in the
    loop, when they are needed.

    For pictures, text and sound in files a pipeline is much faster: `hr.files(...)...loader()`.

    Args:
        dataset: map-style (`__len__` and `__getitem__`, or `__getitems__` for many) or an IterableDataset.
        batch_size: items of a batch; None: single items, without a batch.
        shuffle: another order in each epoch.
        sampler, batch_sampler: indices, or lists of them. Those with `state_dict` and `load_state_dict`
            have their state kept with the place; others are run again up to it when resuming.
        num_workers: 0; more are refused.
        collate_fn: makes a batch of a list of items; by default torch's default_collate.
        pin_memory: copy tensors to pinned memory if there is an accelerator.
        drop_last: leave out a last batch that is too small.
        generator: decides the order in place of torch's global one.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, in_order: of
            worker processes, checked as torch does.
        pin_memory_device: deprecated in torch.

    Raises:
        ValueError: arguments that exclude each other, in torch's words.
        UnsupportedError: there are workers, or the dataset is a torch DataPipe.
    """

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
        if num_workers > 0:
            raise UnsupportedError(
                "DataLoader() has no worker processes yet: leave out num_workers=, or let the engine call the dataset: "
                "hr.from_dataset(dataset, variant='processes').batch(32).loader()",
                param="num_workers",
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
        self._place: Place | None = None  # of the epoch that runs or was left
        self._resumes: Mapping[str, Any] | None = None  # the state that the next epoch begins from

    def __iter__(self) -> Any:
        before = _state_of(self.generator) if self.generator is not None else b""
        iterator = super().__iter__()
        assert self._place is not None
        self._place.before = before
        return iterator

    def _get_iterator(self) -> Any:
        return _InLoop(self)

    def _stateful(self) -> Any:
        """The sampler with a state of its own, or None."""
        for one in (self.batch_sampler, self.sampler):
            if hasattr(one, "state_dict") and hasattr(one, "load_state_dict"):
                return one
        return None

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch that the loop received: about 10 kB of numbers and texts, for json
        or torch.save, and the state of the sampler if it has one.

        After the end of an epoch, and before the first, it is the beginning of the next epoch. The
        generators of your program are not part of it, except `generator`.
        """
        if self._resumes is not None:
            return dict(self._resumes)
        place = self._place or Place()
        generator = place.generator
        if place.yielded == 0:
            generator = place.before or (_state_of(self.generator) if self.generator is not None else b"")
        return {
            "headrace_data_loader": _VERSION,
            "yielded": place.yielded,
            "drawn": place.drawn,
            "generator": generator.hex(),
            "sampler": place.sampler,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next loop from a state that `state_dict` returned.

        The sampler is run up to the place without fetching anything, and is then compared with what it
        gave before the state was saved. An IterableDataset is read again up to the place.

        Raises:
            FormatError: it is no such state, or is damaged.
            StateMismatchError: by the next loop, if the sampler gives other indices than it did.
        """
        if not isinstance(state, Mapping) or state.get("headrace_data_loader") != _VERSION:
            raise FormatError(f"this is not a state of hr.DataLoader: it has no headrace_data_loader={_VERSION}")
        missing = [key for key in _KEYS if key not in state]
        if missing:
            raise FormatError(f"the state is damaged: keys are missing: {', '.join(missing)}")
        for key, kind in (("yielded", int), ("drawn", str), ("generator", str)):
            if not isinstance(state[key], kind) or isinstance(state[key], bool):
                raise FormatError(f"the state is damaged: {key} is {state[key]!r:.80}", param=key)
        try:
            generator = bytes.fromhex(state["generator"])
        except ValueError:
            raise FormatError("the state is damaged: generator is not hexadecimal", param="generator") from None
        if state["yielded"] < 0 or (state["yielded"] > 0 and not generator):
            raise FormatError(f"the state is damaged: yielded is {state['yielded']}", param="yielded")
        if state["yielded"] == 0:
            if generator and self.generator is not None:
                _set_state(self.generator, generator)
            self._resumes = self._place = None
        else:
            self._resumes = dict(state)


def _state_of(generator: Any) -> bytes:
    return bytes(generator.get_state().numpy())


def _set_state(generator: Any, state: bytes) -> None:
    try:
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    except (RuntimeError, TypeError) as error:
        raise FormatError(f"the state is damaged: torch refuses the generator's state: {error}") from None


class _Placed:
    """What an iterator knows of its place. Mixed into torch's."""

    _dataset_kind: int
    _index_sampler: Any
    _num_yielded: int
    _sampler_iter: Iterator[Any]

    def _begin(self, loader: DataLoader) -> None:
        """After torch's part of the beginning of an epoch."""
        self._sampler_state = loader._stateful()
        self._place = loader._place = Place()
        self._drawn, self._resolved = "", 0
        state, loader._resumes = loader._resumes, None
        generator = loader.generator if loader.generator is not None else torch.default_generator
        if state is None:
            self._place.generator = _state_of(generator)
            return
        before = _state_of(generator)
        try:
            _set_state(generator, bytes.fromhex(state["generator"]))
            self._advance(state)
        except BaseException:
            loader._resumes = state
            raise
        finally:
            if loader.generator is None:
                _set_state(generator, before)
        self._place.generator = bytes.fromhex(state["generator"])
        self._place.yielded = self._num_yielded = self._resolved = state["yielded"]
        self._place.drawn = self._drawn = state["drawn"]
        self._place.sampler = state["sampler"]

    def _advance(self, state: Mapping[str, Any]) -> None:
        """Bring the sampler to the place of a state."""
        if self._sampler_state is not None and state["sampler"] is not None:
            self._sampler_state.load_state_dict(state["sampler"])
            self._sampler_iter = iter(self._index_sampler)
            return
        for _ in range(state["yielded"]):
            try:
                self._next_index()
            except StopIteration:
                break
        if self._drawn != state["drawn"]:
            raise StateMismatchError(
                "the sampler gives other indices than when the state was saved: it is another sampler or dataset, or "
                "it draws from a generator that is not torch's; give it state_dict() and load_state_dict()",
                param="sampler",
            )

    def _next_index(self) -> Any:
        index = next(self._sampler_iter)
        if self._dataset_kind == _DatasetKind.Map:
            text = repr(index)
            if " at 0x" not in text:  # an address says nothing
                self._drawn = hashlib.blake2b((self._drawn + text).encode(), digest_size=16).hexdigest()
        return index

    def _mark(self) -> tuple[str, Any]:
        """What the place will be after the batch whose indices were drawn last."""
        return self._drawn, self._sampler_state.state_dict() if self._sampler_state is not None else None

    def _given(self, mark: tuple[str, Any]) -> None:
        self._place.drawn, self._place.sampler = mark
        self._place.yielded = self._resolved

    def _finish(self) -> None:
        """The next state is the beginning of an epoch."""
        self._place.yielded = 0
        self._place.drawn, self._place.sampler, self._place.before = "", None, b""


class _InLoop(_Placed, _torch._SingleProcessDataLoaderIter):
    """Items are fetched in the thread that runs the loop, when it asks."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._begin(loader)
        if self._dataset_kind == _DatasetKind.Iterable and self._num_yielded > 0:
            fetcher = self._dataset_fetcher
            collate, fetcher.collate_fn = fetcher.collate_fn, lambda items: None
            try:
                for _ in range(self._num_yielded):
                    fetcher.fetch(next(self._sampler_iter))
            except StopIteration:
                raise StateMismatchError(
                    f"the dataset ends before batch {self._num_yielded}, after which the state was saved",
                    param="dataset",
                ) from None
            fetcher.collate_fn = collate

    def _next_data(self) -> Any:
        self._resolved += 1  # also if it fails
        try:
            data = super()._next_data()
        except StopIteration:
            self._finish()
            raise
        self._given(self._mark())
        return data
