"""Arrays, tables and frames in memory as a source: record i is row i of each column.

Arrow tables, polars frames and what else speaks Arrow's C stream are read in their memory by the
engine's threads, without Python, as far as the engine knows the types. All other columns are indexed
like any data set. Tables on disk (Lance, pyarrow.dataset) give the rows that a thread makes next in one call.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import key_columns
from ._check import checked_op
from ._numpy import np
from .dataset import source_of
from .errors import ArgumentError, DtypeError, UnsupportedError
from .fieldspec import has_float
from .pipeline import Outputs, Pipeline


class Columns:
    """Columns of equal length, as a data set of dicts, or of tuples if they have no names."""

    def __init__(self, names: tuple[str, ...] | None, columns: Sequence[Any]) -> None:
        self.names, self.columns = names, tuple(columns)
        # What the columns are, for fingerprints; their content is not part of it.
        self._fingerprint = " ".join(
            f"{n}:{_kind(c)}" for n, c in zip(names or "-" * len(columns), columns, strict=True)
        )

    @property
    def fixed(self) -> bool:
        """Whether item 0 has the shape of all: columns are arrays of numbers, or of text or bytes."""
        return all(isinstance(column, np.ndarray) and _is_fixed(column) for column in self.columns)

    @property
    def stand_in(self) -> Any:
        """A row that has the types of the columns, for columns without rows; None: there is none."""
        values = [column.stand_in if isinstance(column, _Arrow) else _zero(column) for column in self.columns]
        return None if any(value is None for value in values) else self._item(values)

    @property
    def key_columns(self) -> Sequence[Any]:
        """Of each field; None where it is no number or text."""
        return [
            c if key_columns.is_key(c.stand_in if isinstance(c, _Arrow) else _zero(c)) else None for c in self.columns
        ]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, row: int) -> Any:
        return self._item([column[row] for column in self.columns])

    def _item(self, values: Sequence[Any]) -> Any:
        if self.names is not None:
            return dict(zip(self.names, values, strict=True))
        return tuple(values) if len(values) > 1 else values[0]

    def __getitems__(self, rows: list[int]) -> list[Any]:
        """Several rows; numbers become Python's, which are faster one by one."""
        values = [
            column[rows].tolist() if column.ndim == 1 else [column[row] for row in rows] for column in self.columns
        ]
        return [self._item(row) for row in zip(*values, strict=True)]


class Table(Columns):
    """Columns of a pyarrow.Table."""

    def __init__(self, table: Any) -> None:
        self.table = table
        super().__init__(tuple(table.column_names), [_Arrow(column) for column in table.columns])


class _Arrow:
    """A pyarrow column, indexed as an array: for rows that the engine does not read itself."""

    ndim = 0

    def __init__(self, column: Any) -> None:
        self.column, self.dtype = column, column.type
        self._numbers = _numbers(getattr(column.type, "value_type", column.type))  # of a list's items

    @property
    def stand_in(self) -> Any:
        return _zero_of(self.dtype)

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, row: int) -> Any:
        value = self.column[row].as_py()
        if self._numbers is None:
            return value
        return np.asarray(value, self._numbers) if isinstance(value, list) else self._numbers.type(value)


class Stored(Columns):
    """A table on disk whose rows are taken by their numbers: Lance, pyarrow.dataset."""

    def __init__(self, dataset: Any, names: Sequence[str]) -> None:
        self.dataset, self.names = dataset, tuple(names)
        self._keys = list(names)
        self._count = dataset.count_rows()
        kinds = " ".join(f"{name}:{dataset.schema.field(name).type}".replace(" ", "") for name in names)
        self._fingerprint = f"{kinds} {getattr(dataset, 'version', '')}".strip()

    @property
    def fixed(self) -> bool:
        return False

    @property
    def stand_in(self) -> Any:
        values = self._zeros()
        return None if any(value is None for value in values) else self._item(values)

    @property
    def key_columns(self) -> Sequence[Any]:
        if not hasattr(self.dataset, "to_table"):
            return ()
        return [
            key_columns.Lazy(functools.partial(self._column, key)) if key_columns.is_key(zero) else None
            for key, zero in zip(self._keys, self._zeros(), strict=True)
        ]

    def _zeros(self) -> list[Any]:
        return [_zero_of(self.dataset.schema.field(key).type) for key in self._keys]

    def _column(self, key: str) -> Sequence[Any]:
        return _values(self.dataset.to_table(columns=[key]).column(0))

    def __len__(self) -> int:
        return int(self._count)

    def __getitem__(self, row: int) -> Any:
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: list[int]) -> list[Any]:
        table = self.dataset.take(rows, columns=self._keys)
        return [self._item(row) for row in zip(*map(_values, table.columns), strict=True)]


def _values(column: Any) -> Sequence[Any]:
    """The values of a pyarrow column; lists of numbers as arrays."""
    column = column.combine_chunks()
    kind = column.type
    if column.null_count or not len(column):
        return column.to_pylist()  # type: ignore[no-any-return]
    inner = _numbers(getattr(kind, "value_type", kind))
    if inner is None:
        return column.to_pylist()  # type: ignore[no-any-return]
    if not hasattr(kind, "value_type"):
        return list(column.to_numpy(zero_copy_only=False))
    if hasattr(kind, "list_size"):
        ends: Any = np.arange(len(column) + 1) * kind.list_size
    elif hasattr(column, "offsets"):
        ends = column.offsets.to_numpy() - column.offsets[0].as_py()
    else:  # a dictionary
        return column.to_pylist()  # type: ignore[no-any-return]
    items = column.flatten()
    if items.null_count:
        return column.to_pylist()  # type: ignore[no-any-return]
    numbers = items.to_numpy(zero_copy_only=False)
    return [numbers[begin:end] for begin, end in itertools.pairwise(ends)]


def _numbers(kind: Any) -> Any:
    """NumPy's dtype of an Arrow type of numbers; None: it is none."""
    try:
        dtype = np.dtype(kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        return None
    return dtype if dtype.kind in "biuf" else None


def _is_fixed(column: np.ndarray) -> bool:
    """Whether row 0 has the shape of all."""
    return column.dtype.kind != "O" or (column.ndim == 1 and len(column) > 0 and isinstance(column[0], (str, bytes)))


def _zero(column: np.ndarray) -> Any:
    """A row of an array; texts, if it is one of objects."""
    if column.dtype.kind == "O":
        return ""
    return np.zeros(column.shape[1:], column.dtype)[()]


def _zero_of(kind: Any) -> Any:
    """A value of an Arrow type; None: unknown."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = _numbers(getattr(kind, "value_type", kind))
    if numbers is not None:
        return np.zeros(0, numbers) if hasattr(kind, "value_type") else numbers.type(0)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return ""
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return b"" if binary or types.is_binary_view(kind) else None


def _kind(column: Any) -> str:
    return f"{column.dtype}{list(getattr(column, 'shape', ()))[1:] or ''}".replace(" ", "")


@checked_op("code.source")
def from_columns(
    columns: Any,
    *,
    names: Sequence[str] | None = None,
    outputs: Outputs = None,
    version: str | None = None,
    name: str | None = None,
) -> Pipeline:
    """The rows of arrays, tables and frames in memory, as `TensorDataset` and `from_tensor_slices` give them.

        for images, labels in hr.from_columns((images, labels)).shuffle().batch(256).loader(): ...
        for batch in hr.from_columns({"image": images, "label": labels}).shuffle().batch(256).loader(): ...
        prices = hr.from_columns(pandas.read_csv("prices.csv"))
        rows = hr.from_columns(lance.dataset("photos.lance"), names=["image", "label"]).shuffle()

    Args:
        columns: a tuple or list of arrays, whose records are tuples; a dict of arrays, a structured array,
            an Arrow table, or a pandas or polars frame, whose records have a field for each column. Arrays
            are NumPy arrays, memory maps, torch tensors, or lists. Nothing is copied, and Arrow's memory is
            read without Python: numbers, bools, text, bytes, and lists of numbers. Or a table on disk with
            `count_rows`, `schema` and `take(rows, columns=)`, such as a Lance or pyarrow dataset: threads
            take many rows in one call, in any order.
        names: names of the fields of a tuple, in order; of the others, the columns that are wanted.
        outputs: as for `from_dataset`.
        version: identifies the content in fingerprints, which cover the names, types and length of the
            columns only, and the version of a Lance dataset.

    Raises:
        ArgumentError: the columns differ in length, or are no arrays; a column has missing values.
        DtypeError: a list holds text beside other values, or whole numbers of which one does not fit into int64.
        UnsupportedError: pyarrow is needed, and not installed.
        DtypeError: when the pipeline is used: a column has a type that batches cannot hold.
    """
    what = f"from_columns({type(columns).__name__})"
    made = _columns(columns, names, what)
    named = names if made.names is None else None
    stand_in = made.stand_in if len(made) == 0 else None
    return source_of(made, what, named, outputs, "threads", version, False, name, stand_in)


def _columns(given: Any, names: Sequence[str] | None, what: str) -> Columns:
    if isinstance(given, Mapping):
        _keys(map(str, given), names, what)
        return _of_arrays(_chosen({str(key): value for key, value in given.items()}, names, what), what)
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        return _of_arrays(_chosen({key: given[key] for key in given.dtype.names}, names, what), what)
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        chosen = _chosen(_keys(given.columns, names, what), names, what)
        return _of_arrays({key: _of_pandas(given[key], key, what) for key in chosen}, what)
    if all(hasattr(given, one) for one in ("count_rows", "schema", "take")):
        return Stored(given, tuple(_chosen(_keys(given.schema.names, names, what), names, what)))
    arrow = any(hasattr(given, one) for one in ("to_arrow", "__arrow_c_stream__", "__arrow_c_array__"))
    if arrow and (hasattr(given, "columns") or not hasattr(given, "to_numpy")):  # no Series and no Array
        return _of_arrow(given, names, what)
    if isinstance(given, (tuple, list)) and given:
        return _of_arrays(given, what)
    if isinstance(given, np.ndarray) or hasattr(given, "to_numpy"):
        raise ArgumentError(f"{what}: one column: give a tuple of it, (column,), or a dict", param="columns")
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):
        raise ArgumentError(f"{what}: the rows are not there yet: give frame.collect()", param="columns")
    raise ArgumentError(
        f"{what}: needs a tuple, list or dict of arrays, a structured array, an Arrow table, a Lance dataset, or a "
        "pandas or polars frame; objects with __len__ and __getitem__ are for hr.from_dataset",
        param="columns",
    )


def _keys(columns: Iterable[Any], names: Sequence[str] | None, what: str) -> dict[Any, Any]:
    """{name: name} of all columns. ArgumentError if two that are wanted have the same name."""
    keys: dict[Any, Any] = {}
    for key in columns:
        if key in keys and (names is None or key in names):
            raise ArgumentError(f"{what}: two columns are called {key!r}; rename one", param="columns")
        keys[key] = key
    return keys


def _chosen(columns: dict[str, Any], names: Sequence[str] | None, what: str) -> dict[str, Any]:
    """The wanted columns in their order."""
    from ._check import nearest

    for missing in (name for name in names or () if name not in columns):
        raise ArgumentError(
            f"{what}: there is no column '{missing}'{nearest(missing, columns)}; there are {', '.join(columns)}",
            param="names",
        )
    return columns if names is None else {name: columns[name] for name in names}


def _array(column: Any, name: str, what: str) -> np.ndarray:
    masked = int(np.ma.getmaskarray(column).sum()) if isinstance(column, np.ma.MaskedArray) else 0
    if masked:
        raise _missing(what, name, masked, "array.filled(0)", "values")
    if hasattr(column, "detach"):
        column = _of_torch(column, name, what)
    try:
        listed = isinstance(column, Sequence) and not isinstance(column, (str, bytes, bytearray, memoryview))
        array = _listed(column, name, what) if listed else np.asarray(column)
        none = sum(one is None for one in array.flat) if array.dtype.kind == "O" else 0
        if none:
            raise _missing(what, name, none, "a value that stands for it")
        return array
    except ValueError as error:
        raise ArgumentError(
            f"{what}: column {name} is no array: {error} Rows of different lengths are read from an Arrow table, "
            "or by hr.from_dataset from a list of items",
            param="columns",
        ) from None


def _listed(column: Sequence[Any], name: str, what: str) -> np.ndarray:
    """A list's array: of objects if it holds text or bytes, since NumPy's own arrays of them drop NULs at the end."""
    types = set(map(type, column))
    kinds = {_string_kind(one) for one in types - {type(None)}}
    if len(kinds) > 1 and type(None) not in types:
        first = _string_kind(type(column[0]))
        at = next(at for at, value in enumerate(column) if _string_kind(type(value)) is not first)
        raise DtypeError(
            f"{what}: column '{name}' has {_with_type(column[0])} in row 0 and {_with_type(column[at])} in row {at}: "
            "a list holds text, bytes or numbers, not several of them",
            param="columns",
        )
    if kinds & {str, bytes}:
        return np.fromiter(column, object, len(column))
    array = np.asarray(column)
    doubtful = array.dtype.name in ("float64", "uint64", "object")  # as of whole numbers beyond int64
    return _whole(column, array, name, what) if doubtful and array.size and not has_float(column) else array


def _string_kind(kind: type) -> type | None:
    """str or bytes; None: neither."""
    return next((one for one in (str, bytes) if issubclass(kind, one)), None)


def _with_type(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})"


def _whole(column: Sequence[Any], array: np.ndarray, name: str, what: str) -> np.ndarray:
    """A list's array if its numbers fit into int64; of objects that are no numbers, `array`."""
    exact = np.asarray(column, object)
    for at, value in enumerate(exact.flat):
        if not isinstance(value, (int, np.integer)):
            return array
        if not -1 << 63 <= int(value) < 1 << 63:
            raise DtypeError(
                f"{what}: column '{name}' has {value} in row {at // (exact.size // len(exact))}, which does not fit "
                "into int64: give floats or text, if it is to hold such numbers",
                param="columns",
            )
    return array if array.dtype == np.uint64 else exact.astype(np.int64)


def _of_torch(column: Any, name: str, what: str) -> np.ndarray:
    """The array of a tensor of torch or like torch's, perhaps with a gradient, on a GPU, or conjugated or negated when
    it is read."""
    if str(column.dtype) == "torch.bfloat16":
        raise DtypeError(
            f"{what}: column {name} is of bfloat16, which NumPy does not have: give column.float(), or "
            "hr.from_dataset a TensorDataset",
            param="columns",
        )
    try:
        column = column.detach()
        if hasattr(column, "resolve_conj"):
            column = column.resolve_conj().resolve_neg()
        return np.asarray(column.cpu())
    except (TypeError, RuntimeError) as error:  # sparse, without values, of a type that NumPy does not have
        reason = str(error).partition("\n")[0]
        raise ArgumentError(f"{what}: column {name} cannot be read as an array: {reason}", param="columns") from None


def _of_arrays(given: Mapping[str, Any] | Sequence[Any], what: str) -> Columns:
    names = tuple(given) if isinstance(given, Mapping) else None
    columns = list(given.values() if isinstance(given, Mapping) else given)
    shown = names or tuple(map(str, range(len(columns))))
    arrays = [_array(column, one, what) for one, column in zip(shown, columns, strict=True)]
    single = next((one for one, array in zip(shown, arrays, strict=True) if array.ndim == 0), None)
    if single is not None:
        raise ArgumentError(f"{what}: column {single} is a single value, not one for each row", param="columns")
    if not arrays:
        raise ArgumentError(f"{what}: there is no column", param="columns")
    if len({len(array) for array in arrays}) != 1:
        lengths = ", ".join(f"{one} has {len(array)}" for one, array in zip(shown, arrays, strict=True))
        raise ArgumentError(f"{what}: the columns have different lengths: {lengths}", param="columns")
    return Columns(names, arrays)


def _missing(what: str, key: str, count: int, cure: str, of: str = "rows") -> ArgumentError:
    where = f"has no value in {count} {of}" if of == "rows" else f"has {count} masked {of}"
    return ArgumentError(
        f"{what}: column '{key}' {where}, and batches hold none: fill or drop them first, for example by {cure}",
        param="columns",
    )


def _of_pandas(column: Any, key: str, what: str) -> Any:
    """A column's array. NaN is a number where the column is of NumPy's floats, else a missing value."""
    if not isinstance(key, str):
        raise ArgumentError(f"{what}: column {key!r} has no text for a name; rename it", param="columns")
    floats = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
    if not floats and column.isna().any():
        raise _missing(what, key, int(column.isna().sum()), "frame.dropna()")
    return column.to_numpy()


def _of_arrow(given: Any, names: Sequence[str] | None, what: str) -> Columns:
    try:
        import pyarrow
    except ImportError as error:
        raise UnsupportedError(f"{what}: needs pyarrow (pip install pyarrow): {error}", param="columns") from None
    table = given if isinstance(given, pyarrow.Table) else None
    if table is None:
        table = given.to_arrow() if hasattr(given, "to_arrow") else pyarrow.table(given)
    table = table.select(list(_chosen(_keys(table.column_names, names, what), names, what)))
    for key, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise _missing(what, key, column.null_count, "table.drop_null()")
    return Table(table)
