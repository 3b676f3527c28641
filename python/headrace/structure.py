"""The structure of a data set's items: tuples, named tuples, lists and dicts of fields.

A structure is the name of a field, or Parts, which may have parts themselves. A field inside
a part is called by its path, such as "image.pixels".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ._numpy import np
from .errors import ArgumentError, DtypeError

Structure: TypeAlias = "str | Parts"


class Parts(NamedTuple):
    """kind: tuple, list, dict or a class of named tuples. keys: those of a dict, else ()."""

    kind: Any
    keys: tuple[Any, ...]
    parts: tuple[Structure, ...]


def named(names: Iterable[str]) -> Parts:
    """A dict with a field for each name."""
    names = tuple(names)
    return Parts(dict, names, names)


def with_field(structure: Structure | None, name: str) -> Structure | None:
    """The structure with one more field: None, fields by name, unless it is a dict."""
    if not isinstance(structure, Parts) or structure.kind is not dict:
        return None
    return Parts(dict, (*structure.keys, name), (*structure.parts, name))


def leaves(structure: Structure) -> tuple[str, ...]:
    """The fields in order."""
    if isinstance(structure, str):
        return (structure,)
    return tuple(name for part in structure.parts for name in leaves(part))


def plain(value: Any) -> Any:
    """A value that the engine accepts: converts pictures to arrays."""
    if hasattr(value, "getbands") and hasattr(value, "tobytes"):  # a PIL image
        return np.asarray(value)
    return value


def of(item: Any, what: str, names: Sequence[str] | None = None, whole: Iterable[Any] = ()) -> Structure:
    """The structure of an item.

    A list of numbers, or of lists of numbers, is one field.

    Args:
        what: the item, for messages.
        names: of its parts, or of its only field. Those of a dict select the parts.
        whole: objects that are fields even if they are tuples, lists or dicts.
    """
    if names is not None and isinstance(item, Mapping):
        item = {name: item[name] for name in names}
    elif names is not None:
        whole_item = not isinstance(item, (tuple, list)) or (len(names) == 1 and _is_array(item))
        parts = (item,) if whole_item else item
        if len(parts) != len(names):
            raise ArgumentError(f"{what}: an item has {len(parts)} parts; names are {', '.join(names)}", param="names")
        if parts is not item:
            return names[0]
        item = tuple(item) if isinstance(item, list) else item
    made = _of(item, "", what, names, {id(value) for value in whole})
    found = leaves(made)
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ArgumentError(f"{what}: two parts of an item would be the field '{twice}'; give names=", param="names")
    return made


def _of(item: Any, path: str, what: str, names: Sequence[str] | None, whole: set[int]) -> Structure:
    keys: tuple[Any, ...] = ()
    values: Sequence[Any]
    if id(item) in whole or not isinstance(item, (Mapping, tuple, list)) or _is_array(item):
        return path or "value"
    if isinstance(item, Mapping):
        kind, keys, values = dict, tuple(item), tuple(item.values())
    else:
        kind, values = _kind(item), item
    if not values:
        raise DtypeError(f"{what}: {f'part {path!r}' if path else 'an item'} is an empty {type(item).__name__}")
    if names is None:
        names = tuple(map(str, keys)) or getattr(item, "_fields", None) or _default_names(values, bool(path))
    inner = (f"{path}.{name}" if path else name for name in names)
    return Parts(kind, keys, tuple(_of(v, n, what, None, whole) for v, n in zip(values, inner, strict=True)))


def _kind(item: Any) -> Any:
    if isinstance(item, list):
        return list
    return type(item) if hasattr(item, "_fields") and hasattr(item, "_make") else tuple


def _default_names(values: Sequence[Any], inside: bool) -> tuple[str, ...]:
    """("image", "label") for pairs of an array and a number, else field0, field1, ...; inside of a part
    0, 1, ..."""
    if inside:
        return tuple(map(str, range(len(values))))
    if len(values) == 2 and getattr(plain(values[0]), "ndim", 0) >= 2 and isinstance(values[1], (int, np.integer)):
        return ("image", "label")
    return tuple(f"field{i}" for i in range(len(values)))


def _is_array(item: Any) -> bool:
    """Whether this is a list of numbers, or of lists and tuples of numbers."""
    return isinstance(item, list) and all(map(_is_numeric, item))


def _is_numeric(item: Any) -> bool:
    if isinstance(item, (list, tuple)):
        return all(map(_is_numeric, item))
    return isinstance(item, (int, float, np.generic))


def join(structure: Structure, values: Iterator[Any]) -> Any:
    """An item of this structure from the values of its fields in order."""
    if isinstance(structure, str):
        return next(values)
    made = [join(part, values) for part in structure.parts]
    if structure.kind is dict:
        return dict(zip(structure.keys, made, strict=True))
    return structure.kind._make(made) if hasattr(structure.kind, "_make") else structure.kind(made)


def split(structure: Structure, item: Any, exact: bool = False) -> Any:
    """The value of an item's only field, or a tuple with the value of each field in order.

    Raises:
        TypeError, KeyError, ValueError: the item has another structure. If not `exact`, a dict may
            have more keys.
    """
    if isinstance(structure, str):
        return plain(item)
    values: list[Any] = []
    _split(structure, item, exact, values)
    return values[0] if len(values) == 1 else tuple(values)


def _split(structure: Parts, item: Any, exact: bool, values: list[Any]) -> None:
    keys, parts = structure.keys, structure.parts
    if structure.kind is dict:
        if not isinstance(item, Mapping):
            raise TypeError(f"expected a dict with {', '.join(map(str, keys))}, got a {type(item).__name__}")
        if any(key not in item for key in keys) or (exact and len(item) != len(keys)):
            raise KeyError(f"expected the fields {', '.join(map(str, keys))}; got {', '.join(map(str, item))}")
        given: Iterable[Any] = [item[key] for key in keys]
    else:
        if not isinstance(item, (tuple, list)):
            raise TypeError(f"expected a {structure.kind.__name__} of {len(parts)}, got a {type(item).__name__}")
        if len(item) != len(parts):
            hint = "; only lists of numbers may differ in length" if structure.kind is list else ""
            raise ValueError(f"expected {len(parts)} parts ({', '.join(leaves(structure))}), got {len(item)}{hint}")
        given = item
    for part, value in zip(parts, given, strict=True):
        if isinstance(part, str):
            values.append(plain(value))
        else:
            _split(part, value, exact, values)


def same_shape(one: Structure, other: Structure) -> bool:
    """Whether they differ in names of fields only."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return (one.kind, one.keys, len(one.parts)) == (other.kind, other.keys, len(other.parts)) and all(
        map(same_shape, one.parts, other.parts)
    )


def mapped(fn: Callable[[Any], Any], value: Any) -> Any:
    """The same tuples, lists and dicts with `fn` applied to what they hold."""
    if isinstance(value, Mapping):
        return {key: mapped(fn, part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        made = [mapped(fn, part) for part in value]
        return value._make(made) if hasattr(value, "_make") else type(value)(made)
    return fn(value)
