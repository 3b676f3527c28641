"""Records of a data set by their numbers, as worker processes make them.

Apart from dataset.py, because a worker imports this module and little else of the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import key_columns
from .pickling import Holder
from .structure import Structure, leaves, split


class DatasetCall(Holder):
    """Record i of a dataset; can be pickled if the dataset can.

    items: how an item becomes fields; None: the engine accepts it as it is. An IndexError is an
    error here, not the end, since the length is known.
    """

    __slots__ = ("_columns", "_items", "_warned", "arrow")

    def __init__(self, dataset: Any, items: Structure | None, arrow: object = None) -> None:
        self.dataset, self._items = dataset, items
        self.arrow = arrow  # its rows, which the engine then reads without calling this
        self._warned = False  # of what `__getitems__` returns
        self._columns = key_columns.of(dataset, () if items is None else leaves(items))

    def __reduce__(self) -> Any:
        return DatasetCall, (self.dataset, self._items)

    def with_dataset(self, dataset: Any) -> DatasetCall:
        """The same for another form of the data set."""
        return DatasetCall(dataset, self._items)

    def __call__(self, index: int) -> Any:
        try:
            item = self.dataset[index]
        except (IndexError, StopIteration) as error:
            raise LookupError(f"there is no item {index}, although len() says so: {error}") from error
        return item if self._items is None else split(self._items, item)

    @property
    def keys(self) -> int:
        """The fields that records are known by before they are made, as bits."""
        return sum(1 << at for at, column in enumerate(self._columns) if column is not None)

    def key(self, field: int, index: int) -> Any:
        """The value of a field, a number or a text, without the rest of the record."""
        return key_columns.checked(self._columns[field][index])

    @property
    def several(self) -> Callable[[list[int]], list[Any]] | None:
        """The records of a list of indices, for a dataset that reads several at once better."""
        return None if getattr(self.dataset, "__getitems__", None) is None else self._several

    def _several(self, indices: list[int]) -> list[Any]:
        """Raises TypeError, after a warning, for anything but one item for each index. The engine then makes the
        records one by one, as after an exception of `__getitems__`."""
        made = self.dataset.__getitems__(indices)
        items = made if type(made) is list and len(made) == len(indices) else _items(made, len(indices))
        if items is None:
            raise self._refused(made, len(indices))
        return items if self._items is None else [split(self._items, item) for item in items]

    def _refused(self, made: Any, count: int) -> TypeError:
        kind = type(made)
        try:
            length = f" of length {len(made)}"
        except TypeError:
            length = ""
        text = (
            f"{type(self.dataset).__name__}.__getitems__ was asked for {count} items and returned {kind.__module__}."
            f"{kind.__qualname__}{length}, so items are read one by one: return a list of {count} items"
        )
        if not self._warned:
            self._warned = True
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        return TypeError(text)


def _items(made: Any, count: int) -> list[Any] | None:
    """The items of a sequence, such as a tuple or the rows of an array or tensor; None for anything else."""
    columns = ("keys", "iloc", "column_names", "columns")  # found by names, not numbers
    named = getattr(getattr(made, "dtype", None), "names", None) is not None  # rows of a structured array
    if isinstance(made, (Mapping, str, bytes)) or named or any(hasattr(made, one) for one in columns):
        return None
    try:
        return [made[at] for at in range(count)] if len(made) == count else None
    except (TypeError, LookupError):
        return None
