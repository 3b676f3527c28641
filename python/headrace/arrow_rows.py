"""The rows of a Hugging Face dataset or an Arrow table, in Arrow's memory."""

from __future__ import annotations

import sys
from typing import Any

from . import _headrace
from ._numpy import np
from .errors import HeadraceError, translated
from .structure import Parts, Structure, leaves

# Types that the default format and NumPy's give as they are. float16 is left to Python.
_VALUES = frozenset(
    ["bool", "float32", "float64", "string", "large_string", "binary", "large_binary"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


def with_values(dataset: Any, item: Any) -> Any:
    """The item without what is None in all items of a Hugging Face dataset, such as the path of embedded pictures."""
    if not _is_dataset(dataset) or not isinstance(item, dict):
        return item
    made = {}
    for key, value in item.items():
        if value is None and _is_empty(dataset, [key]):
            continue
        inner = isinstance(value, dict) and None in value.values()
        made[key] = (
            {k: v for k, v in value.items() if v is not None or not _is_empty(dataset, [key, k])} if inner else value
        )
    return made


def _is_empty(dataset: Any, path: list[str]) -> bool:
    """Whether a column, or one of a struct, has no value."""
    try:
        column = dataset.data.table.column(path[0])
        if len(path) > 1:
            column = dataset.data.table.select(path[:1]).flatten().column(".".join(path))
    except (AttributeError, KeyError, TypeError, ValueError):  # made by a transform
        return False
    return bool(column.null_count == len(column))


def _is_dataset(dataset: Any) -> bool:
    datasets = sys.modules.get("datasets")
    return datasets is not None and type(dataset) is getattr(datasets, "Dataset", None)


def class_names(dataset: Any) -> dict[str, list[str]]:
    """{field: names} of the class numbers of a Hugging Face dataset."""
    if not _is_dataset(dataset) or dataset.format["type"] == "custom":
        return {}
    kind = sys.modules["datasets"].ClassLabel
    found = {}
    for key in dataset.format["columns"]:
        feature = dataset.features[key]
        for name, part in feature.items() if isinstance(feature, dict) else ((None, feature),):
            label = _inner(part) or part
            path = [key] if name is None else [key, name]
            if isinstance(label, kind) and label.names and not _is_empty(dataset, path):
                found[".".join(path)] = list(label.names)
    return found


def plain_columns(dataset: Any) -> list[str]:
    """The columns of a Hugging Face dataset that are numbers and texts in its items."""
    if not _is_dataset(dataset) or dataset.format["type"] == "custom":
        return []
    datasets = sys.modules["datasets"]
    plain = (datasets.Value, datasets.ClassLabel)
    return [key for key in dataset.format["columns"] if isinstance(dataset.features[key], plain)]


def of(dataset: Any, items: Structure) -> object | None:
    """What `_headrace.arrow_rows` made of the fields of the items; None: they are made by calling it."""
    table = getattr(dataset, "table", None)
    if table is not None and hasattr(table, "__arrow_c_stream__"):
        return _in_place(table, None)
    if not _is_dataset(dataset):
        return None
    try:
        return _rows(sys.modules["datasets"], dataset, items)
    except (AttributeError, ImportError, KeyError, TypeError, ValueError):  # another version of datasets or pyarrow
        return None


def _rows(datasets: Any, dataset: Any, items: Structure) -> object | None:
    shape = dataset.format
    if shape["type"] not in (None, "numpy") or shape["format_kwargs"] or not _is_plain(items):
        return None
    keys = items.keys  # type: ignore[union-attr]
    if not all(_is_read(datasets, dataset.features[key]) for key in keys):
        return None
    table = dataset.data.table.select(list(keys)).flatten()
    names = leaves(items)
    if not set(names) <= set(table.column_names) or len(set(table.column_names)) < len(table.column_names):
        return None
    if any(table.column(name).null_count for name in names):
        return None
    rows = dataset._indices
    if rows is not None:
        rows = np.ascontiguousarray(rows.column(0).to_numpy(), dtype=np.int64)
    return _in_place(table.select(list(names)), rows)


def _in_place(table: Any, rows: Any) -> object | None:
    try:
        with translated():
            return _headrace.arrow_rows(table.__arrow_c_stream__(), rows)
    except HeadraceError:  # a type that the engine does not read
        return None


def _is_plain(items: Structure) -> bool:
    """A dict of fields, which may have dicts of fields."""
    return (
        isinstance(items, Parts)
        and all(
            isinstance(part, str) or (part.kind is dict and all(isinstance(inner, str) for inner in part.parts))
            for part in items.parts
        )
        and items.kind is dict
    )


def _is_read(datasets: Any, feature: Any) -> bool:
    """Whether items have what the Arrow memory has."""
    if isinstance(feature, datasets.Value):
        return feature.dtype in _VALUES
    if isinstance(feature, dict):
        return all(isinstance(part, datasets.Value) and part.dtype in _VALUES for part in feature.values())
    inner = _inner(feature)
    if inner is not None:
        return isinstance(inner, datasets.Value) and inner.dtype in _VALUES
    if isinstance(feature, (datasets.Image, datasets.Audio)):
        return not feature.decode
    return isinstance(feature, datasets.ClassLabel)


def _inner(feature: Any) -> Any:
    """Of what a list is; None: it is none."""
    if isinstance(feature, list):
        return feature[0]
    names = ("List", "LargeList", "Sequence")
    return getattr(feature, "feature", None) if type(feature).__name__ in names else None
