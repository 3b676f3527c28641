"""Records of a data set by their numbers, as worker processes make them.

Apart from dataset.py, because a worker imports this module and little else of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import key_columns
from .pickling import Holder
from .structure import Structure, leaves, split


class DatasetCall(Holder):
    """Record i of a dataset; can be pickled if the dataset can.

    items: how an item becomes fields; None: the engine accepts it as it is. An IndexError is an
    error here, not the end, since the length is known.
    """

    __slots__ = ("_columns", "_items", "arrow")

    def __init__(self, dataset: Any, items: Structure | None, arrow: object = None) -> None:
        self.dataset, self._items = dataset, items
        self.arrow = arrow  # its rows, which the engine then reads without calling this
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
        items = self.dataset.__getitems__(indices)
        if self._items is None or not isinstance(items, (list, tuple)):
            return list(items) if isinstance(items, tuple) else items
        return [split(self._items, item) for item in items]
