"""hr.join: two pipelines joined by a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from ._check import checked_op
from ._ops import flow_join

if TYPE_CHECKING:
    from .pipeline import Pipeline


def _value(value: str | float | Sequence[object]) -> str | float:
    """As in a graph file, where "=" stands for the text after it and for an empty list."""
    if isinstance(value, str):
        return f"={value}" if value.startswith("=") else value
    if isinstance(value, Sequence) and len(value) == 0:
        return "="
    return value  # type: ignore[return-value]  # anything else is refused by name


@checked_op("flow.join")
def join(
    left: Pipeline,
    right: Pipeline,
    *,
    on: str | None = None,
    left_on: str | None = None,
    right_on: str | None = None,
    integers: bool = False,
    how: Literal["inner", "left"] = "inner",
    fill: Mapping[str, str | float | Sequence[object]] | None = None,
    matched: str | None = None,
    prefix: Sequence[str] = (),
    name: str | None = None,
) -> Pipeline:
    """Join the records of two pipelines that have equal keys, as `merge` of pandas.

        photos = hr.files("photos/")  # photos/000123.jpg, ...
        table = hr.csv("people.csv")  # id, name, age
        pipe = hr.join(photos, table, left_on="stem", right_on="id", integers=True).shuffle().decode()

    There is one record for each pair of equal keys, in the order of `left`, and for one record there in
    the order of `right`. Records without a match are left out; `pipe.explain()` says how many are used.
    Filters, shuffles and batches come after the join.

    With how="left", records of `left` without a match come too, once each. What the fields of `right` become
    there has to be said, so that it is not taken for data:

        hr.join(photos, table, left_on="stem", right_on="id", how="left", fill={"id": "", "age": -1, "name": ""})
        hr.join(photos, table, left_on="stem", right_on="id", how="left", matched="known")

    Args:
        left: the first pipeline. Its source must know the key before it reads a record: a column, a label,
            "path", "stem" (the file's name without its ending) or "index" (the record's number); or a field that
            `rename`, `lower_text`, `cast` and other steps that are no functions of yours make of such columns.
        right: the second pipeline; the smaller one, if you can choose.
        on: the name of the key, if both have the same.
        left_on: the name of the key in `left`.
        right_on: the name of the key in `right`.
        integers: read keys that are texts as decimal integers, so that "000123" is 123.
        how: "inner", or "left": all records of `left`.
        fill: values of fields of `right`, by the names that they have after the join, in records without a
            match: a number or bool (for all elements of a tensor), a text, or [] for a list.
        matched: a new field, true where there is a match. Fields that `fill` does not name are then zeros, and
            empty texts and lists.
        prefix: of the names of `left`'s fields and of `right`'s, if others than `on` are the same.
        name: what the node is called in messages and files.

    Raises:
        ArgumentError: when the pipeline is used: the key is unknown, of another type in one pipeline, or no
            two are equal; `fill` names a field that is not there, or a value that it cannot have.
        GraphError: when the pipeline is used: both have a field of the same name; a left join has a field
            without a value, or one that cannot be made up, such as the bytes of a file.
    """
    return flow_join(
        left,
        right,
        on=on,
        left_on=left_on,
        right_on=right_on,
        integers=integers,
        how=how,
        fill={field: _value(value) for field, value in (fill or {}).items()},
        matched=matched,
        prefix=prefix,
        name=name,
    )
