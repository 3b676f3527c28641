"""Batches: fields as attributes and items, as arrays of the library that the user chose.

Nothing is copied: torch tensors, NumPy arrays and JAX arrays are views of the batch's memory,
which they keep alive. NumPy arrays are read-only; torch has no read-only tensors, so writing
to one writes to the batch.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple, Self, TypeVar

from . import _headrace
from ._check import nearest
from ._numpy import np
from .errors import ArgumentError, NotFoundError, StateError, UnsupportedError, translated
from .structure import Structure, join, leaves, mapped


class Ragged(tuple[Any, ...]):
    """A field whose records differ in size: (values, splits of each level, shapes).

        values, offsets = batch.ids         lists: record i is values[offsets[i]:offsets[i + 1]]
        values, offsets, shapes = batch.boxes   items of two or more dimensions, [n, 4] or images
        batch.boxes.item(3)                 a record, in its shape: a view of the values
        batch.boxes.items()                 all of them

    In a batch of batches there are splits for each level: item k of a level is
    [splits[k], splits[k + 1]) of the next level, of the values in the last; item() of it is a
    Ragged with one level less. Arrays are those of the library that the loader was asked for.
    """

    __slots__ = ()

    @property
    def values(self) -> Any:
        """The elements of all records, stored contiguously."""
        return self[0]

    @property
    def shapes(self) -> Any:
        """Sizes of the items, [items, dimensions]; None if they have one dimension."""
        return self[-1] if len(self[-1].shape) == 2 else None

    @property
    def splits(self) -> tuple[Any, ...]:
        """Where items begin: one array for each level."""
        return tuple(self[1:]) if self.shapes is None else tuple(self[1:-1])

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self[1].shape[0]) - 1

    def item(self, at: int) -> Any:
        """Record `at`: an array, or a Ragged if it is a batch itself. Negative numbers count from the end."""
        records, shapes = self.records, self.shapes
        if not -records <= at < records:
            raise IndexError(f"record {at} of {records}")
        at %= records
        start, end = int(self[1][at]), int(self[1][at + 1])
        if len(self.splits) == 1:
            part = self.values[start:end]
            return part if shapes is None else part.reshape(tuple(int(n) for n in shapes[at]))
        parts = []
        for splits in self.splits[1:]:
            inner = splits[start : end + 1]
            items = slice(start, end)
            start, end = int(inner[0]), int(inner[-1])
            parts.append(inner - start)
        return Ragged((self.values[start:end], *parts, *(() if shapes is None else (shapes[items],))))

    def items(self) -> list[Any]:
        """All records."""
        return [self.item(i) for i in range(self.records)]


def _parts(field: _headrace.Field, convert: Callable[[_headrace.Field], Any]) -> Ragged:
    shapes = (field.shapes(),) if field.item_ndim > 1 else ()
    return Ragged(map(convert, (field.values(), *map(field.splits, range(field.levels)), *shapes)))


class Form:
    """How a loader's batches are mappings.

    Attributes:
        convert: a field of the engine to an array.
        classes: names of classes, by field.
        parts: of mappings of other fields than the engine's: how each is put together, by name.
        kind: the class of the mappings; None: Batch.
    """

    __slots__ = ("classes", "convert", "kind", "parts")

    def __init__(
        self,
        convert: Callable[[_headrace.Field], Any],
        classes: Mapping[str, tuple[str, ...]] | None = None,
        parts: Mapping[str, Structure] | None = None,
        kind: type[Batch] | None = None,
    ) -> None:
        self.convert, self.classes, self.parts, self.kind = convert, classes or {}, parts or {}, kind or Batch

    def give(self, batch: _headrace.Batch) -> Batch:
        """What a loop gets for a batch of the engine."""
        return self.kind(batch, self)


class Batch(Mapping[str, Any]):
    """Fields of some records, stacked.

        batch.image, batch["image"]     the array; the first dimension counts records
        batch.records, batch.epoch      how many, and of which epoch
        dict(batch)                     all of them

    A field whose name is that of a method or property of this class is an item only. A dict inside
    the items of a data set is a dict here, too.

    Text is a list of str, other byte strings are lists of bytes; ragged fields are a `Ragged`:
    (values, offsets), where record i is values[offsets[i]:offsets[i + 1]], and
    `batch.boxes.item(i)`. In batches of batches, strings are lists of lists.

    Frameworks that move a batch rebuild it by `type(batch)(values)`, which this class supports.

    A class made from this one declares the types of fields, for editors and type checkers:

        class Photos(hr.Batch):
            image: torch.Tensor
            label: torch.Tensor

        for batch in pipe.loader(schema=Photos): batch.image    # a torch.Tensor
    """

    __slots__ = ("_batch", "_form", "_made")

    def __init__(self, batch: _headrace.Batch | Mapping[str, Any], form: Form | None = None) -> None:
        self._made: dict[str, Any] = {}
        self._form = form or _AS_IT_IS
        if isinstance(batch, _headrace.Batch):
            self._batch: _headrace.Batch | _Values = batch
        else:
            self._made |= batch
            self._batch = _Values(tuple(self._made), _count(self._made), -1)

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise ArgumentError(
                f"a batch is asked for fields by their names, not for {key!r:.60}; records are in the fields, "
                f"such as batch['{(*self.names, 'image')[0]}'][:4]"
            )
        made, batch, form = self._made, self._batch, self._form
        if key in made:
            return made[key]
        if key not in (form.parts or batch.names):
            raise NotFoundError(
                f"the batch has no field '{key}'{nearest(key, self.names).rstrip('?')}; "
                f"fields: {', '.join(self.names)}",
                param=key,
            )
        if not form.parts:
            return made.setdefault(key, form.convert(batch.field(key)))
        part = form.parts[key]
        return made.setdefault(key, join(part, (form.convert(batch.field(n)) for n in leaves(part))))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except NotFoundError as error:
            raise AttributeError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        """Names of the fields; ArgumentError for `x, y = batch`, which would get names instead of values."""
        if _unpacks(sys._getframe(1)):
            raise ArgumentError(
                "a batch of named fields cannot be unpacked into values: write `for batch in loader:` and "
                + ", ".join(f'batch["{name}"]' for name in self.names[:4])
            )
        return iter(self.names)

    def __len__(self) -> int:
        """Number of fields, as for any mapping; see `records`."""
        return len(self.names)

    def __contains__(self, key: object) -> bool:
        return key in self.names

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.names]

    def __eq__(self, other: object) -> bool:
        """Whether the fields have the same names, and values of the same types and shapes that are equal."""
        if not isinstance(other, Batch):
            return NotImplemented
        return set(self.names) == set(other.names) and all(_equal(self[n], other[n]) for n in self.names)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch_of, (mapped(_kept, self), self.records, self.epoch, type(self))

    @property
    def records(self) -> int:
        """Number of records."""
        return self._batch.records

    @property
    def epoch(self) -> int:
        """The epoch of the records; -1 in a batch that was built from values."""
        return self._batch.epoch

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(self._form.parts) or self._batch.names

    def raw(self, key: str) -> _headrace.Field:
        """The field itself: buffer protocol, DLPack, dtype, shape, strides in bytes."""
        if isinstance(self._batch, _Values):
            raise StateError("this batch was made of values, such as .to(device) makes; it has no fields of the engine")
        with translated():
            return self._batch.field(key)

    def to(self, *args: Any, **options: Any) -> Self:
        """The batch with its torch tensors moved by `tensor.to(...)`; other values are kept."""

        def moved(value: Any) -> Any:
            return value.to(*args, **options) if hasattr(value, "to") else value

        made = _batch_of(mapped(moved, self), self.records, self.epoch, type(self))
        made._form = Form(to_headrace, self._form.classes)
        return made

    def __repr__(self) -> str:
        made = isinstance(self._batch, _Values)
        shown = [f"{n}: {_shown(self[n] if made else self._batch.field(n))}" for n in self._batch.names]
        return f"<{type(self).__name__} of {self.records} records: {', '.join(shown)}>"


@functools.cache
def _unpacking() -> tuple[int, ...]:
    import opcode

    return opcode.opmap["UNPACK_SEQUENCE"], opcode.opmap["UNPACK_EX"]


def _unpacks(frame: FrameType) -> bool:
    """Whether the frame is at an assignment to several names."""
    return frame.f_code.co_code[frame.f_lasti] in _unpacking()


def _shown(value: Any) -> str:
    """Type and shape in short."""
    if isinstance(value, Ragged):
        return f"ragged {_shown(value[0])}"
    if isinstance(value, list) or not hasattr(value, "shape"):
        return f"{type(value[0]).__name__}[{len(value)}]" if isinstance(value, list) and value else type(value).__name__
    shape = ", ".join(map(str, value.shape))
    if value.dtype is None:
        return f"{'text' if value.text else 'bytes'}[{shape}]"
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{'ragged ' if getattr(value, 'ragged', False) else ''}{dtype}[{shape}]"


_Kind = TypeVar("_Kind", bound=Batch)


class _Values(NamedTuple):
    """The engine's side of a batch that was built from values."""

    names: tuple[str, ...]
    records: int
    epoch: int

    def field(self, key: str) -> _headrace.Field:
        raise AssertionError(key)  # all values are there


def check_schema(schema: object, fields: Sequence[str] | None) -> None:
    """Raise ArgumentError unless `schema` is a class of batches whose declared fields are there.

    Args:
        fields: of the batches; None: they are not mappings.
    """
    if not isinstance(schema, type) or not issubclass(schema, Batch):
        raise ArgumentError(
            f"loader(): schema is a class such as `class Photos(hr.Batch): image: torch.Tensor`, not {schema!r:.60}",
            param="schema",
        )
    if fields is None:
        raise ArgumentError(
            "loader(): batches have the structure of the data set's items, which is no dict: give it names=[...], or "
            "leave out schema",
            param="schema",
        )
    import inspect

    kinds = schema.__mro__[: schema.__mro__.index(Batch)]
    declared = [name for kind in kinds for name in inspect.get_annotations(kind) if not name.startswith("_")]
    for name in declared:
        if name not in fields:
            raise ArgumentError(
                f"loader(): {schema.__name__} declares '{name}', and batches have {', '.join(fields)}"
                f"{nearest(name, fields)}",
                param="schema",
            )
        if hasattr(Batch, name):
            raise ArgumentError(
                f"loader(): {schema.__name__} declares '{name}', which is an attribute of every batch: rename the "
                f"field, or use batch['{name}']",
                param="schema",
            )


def classes_of(batch: Mapping[str, Any], name: object) -> tuple[str, ...]:
    """Names of classes of a field; none if no loader made the batch."""
    return batch._form.classes.get(str(name), ()) if isinstance(batch, Batch) else ()


def _batch_of(values: Mapping[str, Any], records: int, epoch: int, kind: type[_Kind]) -> _Kind:
    made = kind(values)
    made._batch = _Values(tuple(values), records, epoch)
    return made


def _kept(value: Any) -> Any:
    """A value that does not refer to the engine's memory, for pickles and copies."""
    return to_numpy(value) if isinstance(value, _headrace.Field) else value


def _equal(one: Any, other: Any) -> bool:
    one, other = _kept(one), _kept(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    if hasattr(one, "shape") and hasattr(other, "shape"):
        return one.shape == other.shape and one.dtype == other.dtype and bool((one == other).all())
    return bool(one == other)


def _count(value: Any) -> int:
    """Records in what fields became."""
    if isinstance(value, Ragged):
        return value.records
    if isinstance(value, Mapping):
        return next(filter(None, map(_count, value.values())), 0)
    if isinstance(value, (tuple, list)) and not all(isinstance(one, (str, bytes)) for one in value):
        return next(filter(None, map(_count, value)), 0)
    return len(value) if hasattr(value, "__len__") and getattr(value, "ndim", None) != 0 else 0


def to_numpy(field: _headrace.Field) -> Any:
    """A read-only NumPy view of the field; a Ragged of such views if it is ragged."""
    if field.dtype is None:
        return field.strings()
    if field.ragged:
        return _parts(field, _array)
    return _array(field)


def _array(field: _headrace.Field) -> np.ndarray[Any, Any]:
    if field.dtype != "bfloat16":
        return np.asarray(field)
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError(
            f"field '{field.name}': NumPy has no bfloat16; install ml_dtypes, or ask for output='torch', "
            "or use float32 or float16",
            param=field.name,
        ) from None
    return np.asarray(field).view(ml_dtypes.bfloat16)


def to_torch(field: _headrace.Field) -> Any:
    """A torch view of the field; a Ragged of such views if it is ragged."""
    if field.dtype is None:
        return field.strings()
    if field.ragged:
        return _parts(field, to_torch)
    return _torch_from_dlpack()(field.__dlpack__())


@functools.cache
def _torch_from_dlpack() -> Callable[[object], Any]:
    """Passes a capsule, since torch takes microseconds to inspect anything else."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack  # type: ignore[no-any-return]


def to_jax(field: _headrace.Field) -> Any:
    """A JAX array of the field, on JAX's default device; a Ragged of such arrays if it is ragged. A view on the CPU."""
    import jax

    if field.dtype is None:
        return field.strings()
    if field.ragged:
        return _parts(field, to_jax)
    device = jax.config.jax_default_device or _first_of_jax()
    if isinstance(device, str):  # a platform
        device = jax.local_devices(backend=device)[0]
    if device.platform == "cpu":
        view = jax.dlpack.from_dlpack(field)
        if view.device == device:
            return view
    return jax.numpy.asarray(_array(field))  # JAX computes where arrays are: a view would keep the program on the CPU


@functools.cache
def _first_of_jax() -> Any:
    import jax

    return jax.local_devices()[0]


def to_headrace(field: _headrace.Field) -> _headrace.Field:
    """The field as it is."""
    return field


_AS_IT_IS = Form(to_headrace)


class Device:
    """Copies fields to a torch device through pinned memory.

    The copy to pinned memory is made in the thread that asks for the field; the transfer runs on
    a separate stream, beside work that was queued before. Later work on the tensors waits for the
    transfer, by the usual rules of streams.
    """

    def __init__(self, device: Any, pin_memory: bool) -> None:
        try:
            import torch
        except ImportError as error:
            raise UnsupportedError(
                f"loader(): device and pin_memory need PyTorch (pip install 'headrace[torch]'): {error}", param="device"
            ) from None
        self._torch: Any = torch
        try:
            self._device = torch.device(device)
        except (RuntimeError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise ArgumentError(f"loader(): {device!r} is no torch device: {reason}", param="device") from None
        self._pin = pin_memory
        self._cuda = self._device.type == "cuda"
        if self._cuda and not torch.cuda.is_available():
            raise UnsupportedError(
                f"device='{device}': torch sees no CUDA device here; use device='cpu'", param="device"
            )
        if self._cuda and (self._device.index or 0) >= torch.cuda.device_count():
            raise UnsupportedError(
                f"device='{device}': torch sees {torch.cuda.device_count()} CUDA devices here, numbered from 0",
                param="device",
            )
        self._stream = None
        if self._cuda:
            if self._device.index is None:  # the same GPU for copies and waits, whichever is current later
                self._device = torch.device("cuda", torch.cuda.current_device())
            self._stream = torch.cuda.Stream(self._device)

    def __call__(self, field: _headrace.Field) -> Any:
        made = to_torch(field)
        if isinstance(made, tuple):
            return type(made)(map(self._move, made))
        return made if isinstance(made, list) else self._move(made)

    def _move(self, tensor: Any) -> Any:
        if not self._cuda:
            if self._pin and self._torch.cuda.is_available():
                tensor = tensor.pin_memory()
            return tensor.to(self._device)
        current = self._torch.cuda.current_stream(self._device)
        with self._torch.cuda.stream(self._stream):
            moved = tensor.pin_memory().to(self._device, non_blocking=True)
        current.wait_stream(self._stream)
        moved.record_stream(current)
        return moved
