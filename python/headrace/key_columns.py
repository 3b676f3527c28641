"""What the records of a data set are known by before they are made: columns of numbers and texts.

The engine asks for them where records are chosen by a field: hr.split, sample, join.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import arrow_rows
from ._numpy import np


class Lazy:
    """A column that is read as a whole when it is first indexed."""

    def __init__(self, read: Callable[[], Sequence[Any]]) -> None:
        self._read = read

    @functools.cached_property
    def _values(self) -> Sequence[Any]:
        return self._read()

    def __getitem__(self, row: int) -> Any:
        return self._values[row]


def is_key(value: Any) -> bool:
    """Whether a column of such values can be a key."""
    return isinstance(value, (str, bytes, bool, int, float, np.number, np.bool_))


def of(dataset: Any, fields: Sequence[str]) -> Sequence[Any]:
    """For each field of the records of a data set its column, or None where it is not known."""
    own = getattr(dataset, "key_columns", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    hub = arrow_rows.plain_columns(dataset)
    if hub:
        return [Lazy(functools.partial(_hub_column, dataset, field)) if field in hub else None for field in fields]
    return _targets(dataset, fields)


def _hub_column(dataset: Any, field: str) -> Sequence[Any]:
    return dataset.with_format(None).select_columns([field])[:][field]  # type: ignore[no-any-return]


def _targets(dataset: Any, fields: Sequence[str]) -> Sequence[Any]:
    """The labels of torchvision's data sets of pairs."""
    found = type(dataset).__module__.startswith("torchvision.datasets.") and len(fields) == 2
    targets = getattr(dataset, "targets", None) if found else None
    if targets is None or getattr(dataset, "target_transform", None) or len(targets) != len(dataset):
        return ()
    return (None, np.asarray(targets)) if np.ndim(targets) == 1 else ()


def checked(value: Any) -> Any:
    """A key as sources in C give it, where a bool is a number. TypeError if it is none."""
    if not is_key(value):
        raise TypeError(f"a key is a number or a text, and this is {type(value).__name__}")
    return int(value) if isinstance(value, (bool, np.bool_)) else value
