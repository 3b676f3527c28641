"""Python objects as sources: anything with __getitem__, and iterables.

A dataset's items are accessed by number, so it can be shuffled, sharded and resumed like
files. An iterable is read in its own order, under a lock, one epoch after the other; to
resume in the middle, its first records are read again and dropped.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, NamedTuple

from . import _headrace, arrow_rows, fieldspec, seeding, structure
from ._check import checked_op, nearest
from ._numpy import np
from ._types import Variant
from .dataset_call import DatasetCall
from .errors import ArgumentError, CodeError
from .fieldspec import Spec
from .identity import identity, name_of
from .node import Node
from .pipeline import Outputs, Pipeline
from .structure import Structure, leaves, split
from .user_code import Code, check_options, pickled


class Layout(NamedTuple):
    """How items become fields, and batches items again. Can be pickled.

    items: the structure of the items. batches: that of batches; None: a mapping of named fields.
    """

    items: Structure
    batches: Structure | None

    def declare(self, item: Any, what: str) -> dict[str, Spec]:
        """{field: Spec} by one item."""
        names, values = leaves(self.items), split(self.items, item)
        if len(names) == 1:
            values = (values,)
        return {n: fieldspec.spec_of(v, f"{what}: field '{n}'") for n, v in zip(names, values, strict=True)}


def _layout(item: Any, names: Sequence[str] | None, outputs: Mapping[str, Spec] | None, what: str) -> Layout:
    """By the first item. Names that the user gave make batches mappings, unless items are dicts."""
    if isinstance(item, Mapping):
        missing = next((n for n in names or () if n not in item), None)
        if missing is not None:
            raise ArgumentError(
                f"{what}: items have no '{missing}'{nearest(missing, map(str, item))}; "
                f"they have {', '.join(map(str, item))}",
                param="names",
            )
    made = structure.of(item, what, names)
    if outputs is not None and set(outputs) != set(leaves(made)):
        if names is not None or isinstance(item, Mapping):
            raise ArgumentError(
                f"{what}: outputs declare {', '.join(outputs)}; the fields are {', '.join(leaves(made))}",
                param="outputs",
            )
        return _layout(item, tuple(outputs), outputs, what)
    return Layout(made, made if names is None or isinstance(item, Mapping) else None)


def _declared(layout: Layout, item: Any, outputs: Mapping[str, Spec] | None, what: str) -> dict[str, Spec]:
    if outputs is None:
        return layout.declare(item, what)
    return {name: outputs[name] for name in leaves(layout.items)}


@checked_op("code.source")
def from_dataset(
    dataset: Any,
    *,
    names: Sequence[str] | None = None,
    outputs: Outputs = None,
    variant: Variant = "threads",
    version: str | None = None,
    seed_globals: bool = False,
    name: str | None = None,
) -> Pipeline:
    """The items of any object with `__len__` and `__getitem__`: a list, a torch Dataset, a
    Hugging Face dataset.

        for x, y in hr.from_dataset(torchvision.datasets.CIFAR10("data")).shuffle().batch(256).loader(): ...

    Args:
        dataset: its items are numbers, text, bytes, NumPy arrays, torch tensors or PIL images, or
            tuples, named tuples, lists and dicts of them, nested as item 0 is. A list of numbers
            is an array. Batches have the structure of the items. If it has `__getitems__`, as Hugging Face
            datasets do, that is called with the list of all records that a thread makes next, unless
            `seed_globals`. It returns a list of their items, or another sequence such as an array whose rows
            they are; if it raises or returns anything else, they are read one by one. Hugging Face datasets
            of numbers, text, bytes and lists of numbers without None, in the default format or NumPy's, are
            read from their Arrow memory, without Python. What is None in all of their items (the path of
            embedded pictures) is left out. Their class labels keep the names of their classes.
        names: names of the fields, or of those of a dict that are wanted. Batches are mappings
            then. By default fields are called by the keys of dicts and names of named tuples,
            "image" and "label" in pairs of a picture and a number, "field0", ... in other tuples,
            else "value"; inside a part by their path, such as "image.pixels".
        outputs: {name: hr.spec(...)}; by default taken from item 0, which is read when the pipeline is used;
            of a list, numbers are floats if one of them is, and integers rather than bools. Names
            that are not those of the fields are as in `names`.
        variant: as for `Pipeline.map`; with "processes" the dataset is sent once. All
            workers share its NumPy arrays, and a dataset that is a list of plain objects;
            other Python objects end up copied in each worker.
        version: identifies the content in fingerprints. By default these cover the class, the
            length and, for a Hugging Face dataset, its own fingerprint, but not the content.

    Raises:
        CodeError: the dataset cannot be sent to worker processes. When the pipeline is used: item 0 cannot
            be read.
        DtypeError: when the pipeline is used: an item has a type that batches cannot hold.
    """
    what = f"from_dataset({type(dataset).__name__})"
    _refuse_columns(dataset, what)
    if not isinstance(dataset, Sized) or not hasattr(dataset, "__getitem__"):
        raise ArgumentError(f"{what}: the object needs __len__ and __getitem__; try hr.from_iterable", param="dataset")
    check_options("code.source", variant, version, seed_globals)
    made = source_of(dataset, what, names, outputs, variant, version, seed_globals, name)
    for field, classes in arrow_rows.class_names(dataset).items() if outputs is None else ():
        if names is None or field.partition(".")[0] in names:
            made = made.classes(field, classes)
    return made


def source_of(
    dataset: Any,
    what: str,
    names: Sequence[str] | None,
    outputs: Outputs,
    variant: Variant,
    version: str | None,
    seed_globals: bool,
    name: str | None,
    stand_in: Any = None,
) -> Pipeline:
    """`from_dataset` of what is known to be a data set; `what` is the call, for messages. stand_in: an item that
    says what a data set without items would hold."""
    try:
        count = len(dataset)
    except Exception as error:
        raise CodeError(f"{what}: len() raised {type(error).__name__}: {error}", param="dataset") from error
    if names is not None:
        names = fieldspec.field_names(names, "names", "code.source")
    own = getattr(dataset, "_fingerprint", None)
    code = Code(
        "source",
        DatasetCall(dataset, None),
        (),
        None if outputs is None else fieldspec.declarations(outputs),
        variant,
        version if version is not None else f"{name_of(dataset)} {count} {own or ''}".strip(),
        frozenset({"seed"} if seed_globals else set()),
        settle=functools.partial(_settle_dataset, dataset, names, what, stand_in),
    )
    if variant == "processes":
        pickled(code, code.fn, name or "code.source")
    return Pipeline(Node("code.source", {"count": count}, (), name, code))


def _refuse_columns(dataset: Any, what: str) -> None:
    """ArgumentError for objects that hold columns: what they call item 0 is no record."""
    if hasattr(dataset, "iloc") and not hasattr(dataset, "columns"):
        raise ArgumentError(
            f"{what}: pandas finds items by labels, not by numbers; give series.to_numpy()", param="dataset"
        )
    tables = ("iloc", "to_arrow", "__arrow_c_stream__", "count_rows")
    table = any(hasattr(dataset, one) for one in tables) and type(dataset).__module__.split(".")[0] != "datasets"
    named = isinstance(dataset, Mapping) and len(dataset) > 0 and all(isinstance(key, str) for key in dataset)
    named = named or getattr(getattr(dataset, "dtype", None), "names", None) is not None
    arrays = type(dataset) is tuple and len(dataset) > 1 and all(getattr(a, "ndim", 0) > 0 for a in dataset)
    rows = arrays and len({len(column) for column in dataset}) == 1
    if table or named or rows:
        raise ArgumentError(
            f"{what}: this holds columns, and a data set has records: hr.from_columns reads its rows"
            + ("; a list of arrays is a data set of arrays" if rows else ""),
            param="dataset",
        )


def _settle_dataset(dataset: Any, names: tuple[str, ...] | None, what: str, stand_in: Any, code: Code) -> Code:
    """The code once item 0 is known."""
    if len(dataset) == 0 and stand_in is None:
        return _settle_empty(names, code)
    if len(dataset) == 0:
        return _settle_item(stand_in, names, what, code, fixed=dataset.fixed)
    try:
        with seeding.seeded(0) if "seed" in code.flags else contextlib.nullcontext():
            first = dataset[0]
    except Exception as error:
        raise CodeError(f"{what}: item 0 raised {type(error).__name__}: {error}", record=0) from error
    first = arrow_rows.with_values(dataset, first)
    layout = _layout(first, names, code.outputs, what)
    # The engine accepts values, tuples of them and pictures directly: no wrapper is needed.
    parts = () if isinstance(layout.items, str) else layout.items.parts
    direct = not parts or (len(parts) > 1 and isinstance(first, tuple) and all(isinstance(p, str) for p in parts))
    arrow = arrow_rows.of(dataset, layout.items) if code.outputs is None and not code.flags else None
    call: Any = DatasetCall(dataset, None if direct else layout.items, arrow)
    if direct and type(dataset) in (list, tuple, np.ndarray):
        call = dataset.__getitem__
    declared = _declared(layout, first, code.outputs, what)
    if code.outputs is None and type(dataset) in (list, tuple):
        _widen(declared, layout, first, dataset)
    probed = code.outputs is None and not getattr(dataset, "fixed", False)
    return code._replace(fn=call, outputs=declared, probed=probed, structure=layout.batches, settle=None)


def _settle_item(item: Any, names: tuple[str, ...] | None, what: str, code: Code, fixed: bool = False) -> Code:
    """The code by an item; if fixed, all have its shapes."""
    layout = _layout(item, names, code.outputs, what)
    declared = _declared(layout, item, code.outputs, what)
    probed = code.outputs is None and not fixed
    return code._replace(outputs=declared, probed=probed, structure=layout.batches, settle=None)


def _settle_empty(names: tuple[str, ...] | None, code: Code) -> Code:
    """Without an item its fields are those that were declared, else numbers."""
    outputs = code.outputs or dict.fromkeys(names or ("value",), Spec("float64"))
    structure = "value" if tuple(outputs) == ("value",) else None
    return code._replace(outputs=outputs, probed=code.outputs is None, structure=structure, settle=None)


def _widen(declared: dict[str, Spec], layout: Layout, first: Any, items: Sequence[Any]) -> None:
    """Numbers of which item 0 is an int and another a float are floats; bools beside numbers are numbers. The
    numbers of lists of which item 0 is empty are those of the first list that has some."""
    names = leaves(layout.items)
    values = split(layout.items, first)
    if len(names) == 1:
        values = (values,)
    for at, value in enumerate(values):
        empty = type(value) is list and not value
        if type(value) not in (int, bool) and not empty:
            continue
        with contextlib.suppress(TypeError, KeyError, IndexError, ValueError):  # the run reports it
            if empty:
                some = fieldspec.spec_of(next(filter(len, _column(layout.items, at, items)), value), "it")
                if len(some.shape) == 1:
                    declared[names[at]] = Spec(some.dtype, declared[names[at]].shape)
                continue
            types = set(map(type, _column(layout.items, at, items)))
            if float in types:
                declared[names[at]] = Spec("float64")
            elif int in types:
                declared[names[at]] = Spec("int64")


def _column(items: Structure, at: int, values: Sequence[Any]) -> Iterable[Any]:
    """Field `at` of each item."""
    if isinstance(items, str):
        return values
    if all(isinstance(part, str) for part in items.parts):
        return map(operator.itemgetter(items.keys[at] if items.keys else at), values)
    one = len(leaves(items)) == 1
    return (split(items, value) if one else split(items, value)[at] for value in values)


class Stream:
    """An iterable as a source. Each loader reads it separately."""

    def __init__(self, start: Callable[[], Iterator[Any]], once: bool, name: str, dataset: Any = None) -> None:
        self._start = start
        self.dataset = dataset  # what the user gave
        self.__name__ = name  # for messages
        self.once = once  # an iterator, which can be read once only
        self.layout: Layout | None = None
        self._lock = threading.Lock()
        self._opened: Iterator[Any] | None = None
        self._peeked: list[Any] = []  # items that were read to find out their types

    def __call__(self, index: int) -> Any:
        raise LookupError("a stream is read through passes")

    def reader(self) -> Pass:
        """The function from which a graph gets records."""
        return Pass(self)

    def peek(self, index: int) -> Any:
        """Record `index`, which the next run will read as well."""
        with self._lock:
            if self._opened is None:
                self._opened = self._start()
            while len(self._peeked) <= index:
                self._peeked.append(next(self._opened))
            item = self._peeked[index]
        return self.apart(item)

    def apart(self, item: Any) -> Any:
        """The item as a value, or as a tuple with one per field."""
        return split(self.layout.items, item) if self.layout is not None else item

    def begin(self) -> Iterator[Any]:
        """An iterator over all items; the first call continues the one that was peeked into."""
        with self._lock:
            if self._opened is not None:
                begun = itertools.chain(self._peeked, self._opened)
                self._opened, self._peeked = None, []
                return begun
        if self.once:
            raise RuntimeError(
                "an iterator can be read once only, and this one was; give hr.from_generator the function that makes it"
            )
        return self._start()


class Pass:
    """Reads a stream for one loader, in order, whichever order threads ask in.

    Threads ask slightly out of order, so records that were read ahead wait in a stash. Each
    epoch reads the iterable from the beginning.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._epochs: dict[int, _Epoch] = {}

    def __call__(self, index: int) -> Any:
        record = _headrace.current_record()
        epoch = record[1] if record is not None else 0
        run = self._epochs.get(epoch)
        if run is None or run.is_behind(index):
            with self._lock:
                run = self._begin(epoch, index)
        return self._stream.apart(run.at(index))

    def _begin(self, epoch: int, index: int) -> _Epoch:
        run = self._epochs.get(epoch)
        if run is None or run.is_behind(index):
            run = self._epochs[epoch] = _Epoch(self._stream.begin())
            for old in [e for e in self._epochs if e < epoch - 1 or e > epoch + 1]:
                del self._epochs[old]
        return run


_LOOK_S = 0.1  # how often a waiting thread looks around: close() may have interrupted it


class _Epoch:
    """One pass over an iterable. One thread at a time reads it; others wait for their record.

    A thread that waits gets its record as soon as it is read, although the reader may be
    long in getting the next one. It registers before it looks, and the reader looks for
    those registered after it has stored a record or stopped reading.

    The stash is bounded, since records of other ranks are read but never asked for. Threads
    stay close to each other if items are large, because they take few of them at a time.
    """

    ITEMS_MAX, ITEMS_MIN, BYTES_MAX = 1 << 16, 512, 64 << 20

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._reading = threading.Lock()  # held by the reader
        self._next = 0
        self._ended = False
        self._stash: dict[int, Any] = {}
        self._bytes = 0
        self._lock = threading.Lock()  # guards the stash's bytes
        self._waiting: dict[int, threading.Lock] = {}  # by record; released to wake the thread

    def is_behind(self, index: int) -> bool:
        """Whether record `index` was returned before, which means that another run has begun."""
        return index < self._next and index not in self._stash

    def at(self, index: int) -> Any:
        while not self._reading.acquire(blocking=False):
            if self._wait(index):
                return self._take(index)
        try:
            return self._take(index) if index in self._stash else self._read(index)
        finally:
            self._reading.release()
            if self._waiting:
                self._call_one()

    def _wait(self, index: int) -> bool:
        """Waits until there may be no reader; returns True if the record is there."""
        called = threading.Lock()
        called.acquire()
        self._waiting[index] = called
        if index not in self._stash and self._reading.locked():
            called.acquire(timeout=_LOOK_S)
        self._waiting.pop(index, None)
        return index in self._stash

    def _call_one(self) -> None:
        """When there is no reader: the thread that waits for the first record may become it."""
        first = min(tuple(self._waiting), default=None)
        called = self._waiting.pop(first, None) if first is not None else None
        if called is not None:
            called.release()

    def _read(self, index: int) -> Any:
        """The reader's part: reads up to record `index`. What is raised meanwhile belongs to the record that
        was being read, whichever thread asks for it."""
        while not self._ended:
            item: Any
            try:
                item = next(self._iterator)
            except StopIteration:
                self._ended = True
                break
            except Exception as error:  # noqa: BLE001
                item = _Raised(error)
            number = self._next
            if number == index:
                self._next += 1
                return _given(item)
            self._put(number, item)
            self._next += 1  # later than the stash, for is_behind()
            called = self._waiting.pop(number, None)
            if called is not None:
                called.release()
        raise StopIteration

    def _put(self, index: int, item: Any) -> None:
        with self._lock:
            self._stash[index] = item
            self._bytes += _bytes(item)
        while len(self._stash) > self.ITEMS_MAX or (self._bytes > self.BYTES_MAX and len(self._stash) > self.ITEMS_MIN):
            self._pop(next(iter(self._stash)))

    def _take(self, index: int) -> Any:
        return _given(self._pop(index))

    def _pop(self, index: int) -> Any:
        with self._lock:
            item = self._stash.pop(index)
            self._bytes -= _bytes(item)
        return item


class _Raised(NamedTuple):
    """Stands for an item whose reading raised."""

    error: Exception


def _given(item: Any) -> Any:
    if not isinstance(item, _Raised):
        return item
    if isinstance(item.error, IndexError):  # would end the data without a word
        raise RuntimeError(f"the iterable raised IndexError: {item.error}") from item.error
    raise item.error


def _bytes(item: Any) -> int:
    """Approximate memory of an item; the same for each call."""
    if isinstance(item, Mapping):
        item = tuple(item.values())
    if isinstance(item, (tuple, list)):
        return 64 + sum(map(_bytes, item)) if len(item) < 64 else 32 * len(item)
    return 64 + int(getattr(item, "nbytes", 0)) + (len(item) if isinstance(item, (bytes, str)) else 0)


@checked_op("code.source")
def from_iterable(
    iterable: Iterable[Any],
    *,
    names: Sequence[str] | None = None,
    outputs: Outputs = None,
    version: str | None = None,
    name: str | None = None,
) -> Pipeline:
    """The items of an iterable, in its order; each epoch iterates over it again.

    Its length is unknown, so it can be shuffled only with a window, and each rank reads all
    of it. An iterator, such as a running generator, is good for one epoch.

    Args:
        iterable: items as for `from_dataset`.
        names, outputs, version: as for `from_dataset`, with the first item.
    """
    what = f"from_iterable({type(iterable).__name__})"
    if not isinstance(iterable, Iterable):
        raise ArgumentError(f"{what}: cannot be iterated over", param="iterable")
    once = isinstance(iterable, Iterator)
    return _stream(lambda: iter(iterable), once, iterable, names, outputs, version, name, what, name_of(iterable))


@checked_op("code.source")
def from_generator(
    fn: Callable[[], Iterable[Any]],
    *,
    names: Sequence[str] | None = None,
    outputs: Outputs = None,
    version: str | None = None,
    name: str | None = None,
) -> Pipeline:
    """The items that a generator function yields; it is called again for each epoch.

    Args:
        fn: called without arguments, returns an iterable; items as for `from_dataset`.
        names, outputs, version: as for `from_dataset`, with the first item.
    """
    what = f"from_generator({name_of(fn)})"
    if not callable(fn):
        raise ArgumentError(f"{what}: needs a function; from_iterable takes the generator itself", param="fn")
    return _stream(lambda: iter(fn()), False, fn, names, outputs, version, name, what, identity(fn, version))


def _stream(
    start: Callable[[], Iterator[Any]],
    once: bool,
    dataset: Any,
    names: Sequence[str] | None,
    outputs: Outputs,
    version: str | None,
    name: str | None,
    what: str,
    ident: str,
) -> Pipeline:
    if names is not None:
        names = fieldspec.field_names(names, "names", "code.source")
    stream = Stream(start, once, re.findall(r"\w+", what)[-1], dataset)
    code = Code(
        "source",
        stream,
        (),
        None if outputs is None else fieldspec.declarations(outputs),
        version=version if version is not None else ident,
        settle=functools.partial(_settle_stream, stream, names, what),
    )
    return Pipeline(Node("code.source", {}, (), name, code))


def _settle_stream(stream: Stream, names: tuple[str, ...] | None, what: str, code: Code) -> Code:
    """The code once the first item is known."""
    try:
        first = stream.peek(0)
    except StopIteration:
        return _settle_empty(names, code)
    except Exception as error:
        raise CodeError(f"{what}: the first item raised {type(error).__name__}: {error}", record=0) from error
    stream.layout = _layout(first, names, code.outputs, what)
    return _settle_item(first, names, what, code)
