"""hr.join: two pipelines joined by a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._check import checked_op
from ._ops import flow_join

if TYPE_CHECKING:
    from .pipeline import Pipeline


@checked_op("flow.join")
def join(
    left: Pipeline,
    right: Pipeline,
    *,
    on: str | None = None,
    left_on: str | None = None,
    right_on: str | None = None,
    integers: bool = False,
    prefix: Sequence[str] = (),
    name: str | None = None,
) -> Pipeline:
    """Join the records of two pipelines that have equal keys, as an inner `merge` of pandas.

        photos = hr.files("photos/")  # photos/000123.jpg, ...
        table = hr.csv("people.csv")  # id, name, age
        pipe = hr.join(photos, table, left_on="stem", right_on="id", integers=True).shuffle().decode()

    There is one record for each pair of equal keys, in the order of `left`, and for one record there in
    the order of `right`. Records without a match are left out; `pipe.explain()` says how many are used.
    Filters, shuffles and batches come after the join.

    Args:
        left: the first pipeline. Its source must know the key before it reads a record: a column, a label,
            "path", "stem" (the file's name without its ending) or "index" (the record's number).
        right: the second pipeline; the smaller one, if you can choose.
        on: the name of the key, if both have the same.
        left_on: the name of the key in `left`.
        right_on: the name of the key in `right`.
        integers: read keys that are texts as decimal integers, so that "000123" is 123.
        prefix: of the names of `left`'s fields and of `right`'s, if others than `on` are the same.
        name: what the node is called in messages and files.

    Raises:
        ArgumentError: when the pipeline is used: the key is unknown, of another type in one pipeline, or no
            two are equal.
        GraphError: when the pipeline is used: both have a field of the same name.
    """
    return flow_join(
        left,
        right,
        on=on,
        left_on=left_on,
        right_on=right_on,
        integers=integers,
        prefix=prefix,
        name=name,
    )
