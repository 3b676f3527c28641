"""How user code and its data are sent to worker processes.

Functions and data sets are pickled. Large parts are stored not in the pickle but in a memory
file that all workers map: the buffers of NumPy arrays (pickle's protocol 5), and lists that are
data sets themselves. A list of Python objects would end up copied in every worker, because
reference counting writes to the objects' pages; here it is stored as bytes, and an item is
unpickled when it is accessed.

Pickle sends functions and classes by name. Those that a worker process cannot find by name are
sent by value if cloudpickle is installed: see `dumps`.
"""

from __future__ import annotations

import functools
import io
import mmap
import os
import pickle
import types
import weakref
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_ALIGN = 64
_ITEMS_MIN = 1024  # shorter lists are pickled as they are
_PLAIN = (str, bytes, int, float, bool, complex, type(None))
_GET: dict[str, Callable[[Any], Any]] = {
    "str": lambda b: str(b, "utf-8", "surrogatepass"),
    "bytes": bytes,
    "pickle": pickle.loads,
}

Span = tuple[int, int]


class PickledCode(NamedTuple):
    """Pickled code of a graph. spans: its buffers in the graph's Memory. main: whether a worker has to
    import __main__ for it."""

    name: str
    kind: str
    data: bytes
    spans: list[Span]
    main: bool


class Memory:
    """Buffers stored contiguously in a memory file; pickling appends to it.

    most: bytes that it may hold; None: no limit.
    """

    def __init__(self, most: int | None = None) -> None:
        self._file = -1
        self._end = 0
        self._most = most

    def add(self, buffer: pickle.PickleBuffer) -> Span:
        """Append a copy of a buffer; OSError if memory is short, MemoryError beyond the limit."""
        if self._most is not None and self._end + buffer.raw().nbytes > self._most:
            raise MemoryError(
                f"it holds more than {self._most >> 20} MiB of data, a quarter of the memory that is free"
            )
        if self._file < 0:
            self._file = os.memfd_create("headrace-data", os.MFD_CLOEXEC)
            weakref.finalize(self, os.close, self._file)
        view = buffer.raw()
        at = -(-self._end // _ALIGN) * _ALIGN
        self._end = at
        while self._end < at + len(view):
            self._end += os.pwrite(self._file, view[self._end - at :], self._end)
        return at, len(view)

    def descriptors(self) -> list[int]:
        """The file's descriptor, if there is one; closed with this object."""
        return [self._file] if self._end > 0 else []


def mapped(descriptor: int) -> memoryview:
    """A private mapping of a Memory: writes are not seen by other processes."""
    memory = memoryview(mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
    bytes(memory[:: mmap.PAGESIZE])  # touches all pages, so that they count as memory of the process from the start
    return memory


class Items(Sequence[Any]):
    """A list whose items are stored contiguously in one buffer."""

    __slots__ = ("_data", "_get", "_kind", "_offsets")

    def __init__(self, kind: str, offsets: Any, data: Any) -> None:
        self._kind, self._get = kind, _GET[kind]
        self._offsets, self._data = memoryview(offsets).cast("B").cast("q"), memoryview(data)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, at: Any) -> Any:
        return self._get(self._data[self._offsets[at] : self._offsets[at + 1]])

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Items, (self._kind, pickle.PickleBuffer(self._offsets), pickle.PickleBuffer(self._data))


def packed(values: Sequence[Any]) -> Sequence[Any]:
    """Converts a list or tuple of plain objects to Items or an array; returns others unchanged."""
    kinds = set(map(type, values))
    if len(values) < _ITEMS_MIN or not (kinds.issubset(_PLAIN) or _all_plain(values)):
        return values
    kind = kinds.pop().__name__ if len(kinds) == 1 else ""
    if kind in ("int", "float"):
        try:
            return array("q" if kind == "int" else "d", values)
        except OverflowError:
            pass
    encode: Callable[[Any], bytes] = _dumps
    if kind == "str":
        encode = _encode
    elif kind == "bytes":
        encode = bytes
    offsets, data = array("q", [0]), bytearray()
    for value in values:
        data += encode(value)
        offsets.append(len(data))
    return Items(kind if kind in _GET else "pickle", offsets, data)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, 5)


def _all_plain(values: Sequence[Any]) -> bool:
    """Whether these are numbers, texts, and tuples, lists and dicts of them, with few duplicates: an
    object that is referenced many times would be stored each time."""
    return len(set(map(id, values))) * 2 > len(values) and all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind in (tuple, list):
        return all(map(_is_plain, value))
    if kind is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return kind in _PLAIN


class Holder:
    """A call that holds a data set, which may be replaced by its packed form."""

    __slots__ = ("dataset",)

    def with_dataset(self, dataset: Any) -> Holder:
        """The same call for another form of the data set."""
        raise NotImplementedError


_METHODS = (types.BuiltinMethodType, types.MethodWrapperType)


def _reduced(value: Any) -> Any:
    """Packs a list that is a data set, found through its __getitem__ or a call that holds it."""
    holds = isinstance(value, Holder)
    if not holds and (type(value) not in _METHODS or value.__name__ != "__getitem__"):
        return NotImplemented
    values = value.dataset if holds else value.__self__
    form = packed(values) if type(values) in (list, tuple) else values
    if form is values:
        return NotImplemented
    return value.with_dataset(form).__reduce_ex__(5) if holds else (getattr, (form, "__getitem__"))


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        return _reduced(value)


@functools.cache
def _by_value() -> type[pickle.Pickler]:
    """A pickler that stores by value what other processes cannot import; ImportError without cloudpickle."""
    import cloudpickle

    class ByValue(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            made = _reduced(value)
            return super().reducer_override(value) if made is NotImplemented else made

    return ByValue


def dumps(value: Any, memory: Memory, by_value: bool = False) -> tuple[bytes, list[Span]]:
    """The pickle of `value`, and the positions of its buffers in `memory`.

    Args:
        by_value: store functions and classes of __main__, local ones and lambdas themselves, in place
            of their names. What modules define is still stored by name.

    Raises:
        ImportError: by_value needs cloudpickle, which is not installed.
    """
    kind = _by_value() if by_value else _Pickler
    file, spans = io.BytesIO(), list[Span]()

    def keep(buffer: pickle.PickleBuffer) -> bool:
        try:
            spans.append(memory.add(buffer))
        except BufferError:  # not contiguous
            return True
        return False

    kind(file, 5, buffer_callback=keep).dump(value)
    return file.getvalue(), spans
