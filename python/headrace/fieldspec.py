"""What a field holds: element type and shape, as declared for user code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

from ._check import checked, nearest
from ._numpy import np
from ._types import DType
from .errors import ArgumentError, DtypeError, ShapeError

Dim: TypeAlias = int | str | None
DTYPES: tuple[str, ...] = get_args(DType)


class Spec(NamedTuple):
    """Element type and shape of a field of one record.

    dtype: "float32", ...; "text" for str, "bytes" for other byte strings.
    shape: a number, a name for a length that may vary ("height"), or None for one
        without a name.
    """

    dtype: str
    shape: tuple[Dim, ...] = ()

    def text(self) -> str:
        """As in graph files: "float32[3, height, -1]"."""
        if not self.shape:
            return self.dtype
        return f"{self.dtype}[{', '.join('-1' if d is None else str(d) for d in self.shape)}]"

    def free(self) -> Spec:
        """The same with all lengths unknown, names kept."""
        return Spec(self.dtype, tuple(None if isinstance(d, int) else d for d in self.shape))


@checked
def spec(dtype: object, shape: Sequence[Dim] = ()) -> Spec:
    """Declare a field: `hr.spec("float32", (3, None, 224))`.

    Args:
        dtype: a name ("float32", "text", "bytes"), a NumPy or a torch dtype, or a Spec; or the
            whole declaration as text ("float32[3, height, 224]").
        shape: one entry per dimension: a length, None for any, or a name for any.
    """
    if isinstance(dtype, Spec):
        return dtype
    if isinstance(dtype, str) and "[" in dtype:
        return _parse(dtype)
    name = dtype_name(dtype)
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Iterable):
        raise ArgumentError(f"a shape is a list with one entry per dimension, not {shape!r:.60}", param="shape")
    dims = tuple(_dim(d) for d in shape)
    if name in ("bytes", "text") and dims:
        raise ShapeError(f"byte strings have no shape: declare spec('{name}')")
    return Spec(name, dims)


def _dim(dim: object) -> Dim:
    if dim is None or dim in ("?", "-1"):
        return None
    if isinstance(dim, str) and re.fullmatch(r"[A-Za-z_]\w*", dim):
        return dim
    if isinstance(dim, (int, np.integer)) and not isinstance(dim, bool):
        return None if dim < 0 else int(dim)
    raise ArgumentError(f"a length in a shape is a number, a name or None, not {dim!r}", param="shape")


def _parse(text: str) -> Spec:
    match = re.fullmatch(r"\s*(\w+)\s*\[(.*)\]\s*", text)
    if match is None:
        raise ArgumentError(f"{text!r} is no declaration; write 'float32[3, height, 224]'")
    dims = [d.strip() for d in match[2].split(",") if d.strip()]
    return spec(match[1], [int(d) if d.isdigit() else None if d == "None" else d for d in dims])


def dtype_name(dtype: object) -> str:
    """The name of a dtype; DtypeError when batches cannot hold it."""
    if dtype in (bytes, "bytes"):
        return "bytes"
    if dtype in (str, "text", "string", "str"):
        return "text"
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    text = str(dtype)
    if text.startswith("torch."):
        name = text[6:]
    else:
        try:
            name = np.dtype(dtype).name if dtype is not None else text  # type: ignore[call-overload]
        except Exception:  # noqa: BLE001 - NumPy raises what it likes
            name = text
    if name not in DTYPES:
        hint = nearest(name, DTYPES) if isinstance(dtype, str) else ""
        raise DtypeError(
            f"batches hold no {name}; there are {', '.join(DTYPES)}, text and bytes{hint}",
            param="dtype",
        )
    return str(name)


def spec_of(value: object, what: str) -> Spec:
    """The Spec of a value that user code returned; `what` names it in errors."""
    if isinstance(value, str):
        return Spec("text")
    if isinstance(value, (bytes, bytearray)):
        return Spec("bytes")
    if isinstance(value, bool):
        return Spec("bool")
    if isinstance(value, int):
        return Spec("int64")
    if isinstance(value, float):
        return Spec("float64")
    if value is None:
        raise DtypeError(f"{what} is None, and batches hold none: give a value that stands for it, such as 0 or ''")
    if hasattr(type(value), "__dataclass_fields__"):
        raise DtypeError(
            f"{what} is a {type(value).__name__}, a dataclass: give a named tuple, or a dict as of dataclasses.asdict()"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise DtypeError(
            f"{what} is a masked array, and batches hold no masks: give array.filled(0), or a dict of both"
        )
    text = str(getattr(value, "dtype", ""))
    if text.startswith("torch."):
        return Spec(dtype_name(text), tuple(value.shape))  # type: ignore[attr-defined]
    try:
        array = np.asarray(value)
    except Exception as error:
        raise DtypeError(f"{what} is a {type(value).__name__}, which is no array: {error}") from error
    if array.size and array.dtype.name == "float64" and isinstance(value, (list, tuple)) and not has_float(value):
        raise DtypeError(
            f"{what} is a {type(value).__name__} of whole numbers that NumPy takes for float64, which would round "
            "them: give floats, or an array of int64"
        )
    if array.dtype.kind in "Mm":
        raise DtypeError(f"{what} is of {array.dtype}, and batches hold no times: convert it, as .astype('int64') does")
    if array.dtype.kind in "OUSVc" and array.dtype.name not in DTYPES:  # bfloat16 is of kind V
        raise DtypeError(
            f"{what} is a {type(value).__name__} that NumPy takes for {array.dtype}; "
            "give numbers, bytes, or arrays of numbers"
        )
    try:
        return Spec(dtype_name(array.dtype), array.shape)
    except DtypeError as error:
        like = "float64" if array.dtype.kind == "f" else "int64"
        raise DtypeError(f"{what}: {error}; convert it, for example with .astype('{like}')") from None


def has_float(value: Any) -> bool:
    """Whether a number, or one in a list at any depth, is not whole."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return any(map(has_float, value))
    return type(value) is not int and np.asarray(value).dtype.kind in "fc"


def field_names(names: object, param: str, op: str) -> tuple[str, ...]:
    """Names of fields, from one text or several."""
    made = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else None
    if made is None or isinstance(names, (bytes, Mapping)) or not all(isinstance(n, str) and n for n in made):
        raise ArgumentError(f"{op}: {param} are names of fields, not {names!r:.60}", node=op, op=op, param=param)
    twice = next((n for n in made if made.count(n) > 1), None)
    if twice is not None:
        raise ArgumentError(f"{op}: {param} has '{twice}' twice", node=op, op=op, param=param)
    return made


def declarations(outputs: Mapping[str, object] | Sequence[str]) -> dict[str, Spec]:
    """{name: Spec} of what a user gave as `outputs`."""
    if isinstance(outputs, Mapping):
        return {str(k): spec(*v) if type(v) is tuple and len(v) in (1, 2) else spec(v) for k, v in outputs.items()}
    if not isinstance(outputs, Iterable):
        raise ArgumentError(
            f"outputs are declared as {{'name': hr.spec('float32', (3, None))}}, not as {outputs!r:.60}",
            param="outputs",
        )
    made: dict[str, Spec] = {}
    for text in [outputs] if isinstance(outputs, str) else outputs:
        name, colon, rest = str(text).partition(":")
        if not colon:
            raise ArgumentError(
                f"outputs: {text!r} has no type; write {{'{name}': hr.spec('float32', (3, None))}} "
                f"or '{name}: float32[3, -1]'",
                param="outputs",
            )
        made[name.strip()] = spec(rest.strip())
    return made


def show(fields: Sequence[Any]) -> str:
    """A schema in one line: "image: uint8[height, width, 3], label: int64"."""
    return ", ".join(f"{f.name}: {f.text()}" for f in fields)
