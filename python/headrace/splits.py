"""hr.split: training, validation and test sets of one pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from . import build
from ._check import checked_op
from ._ops import order_split
from .errors import ArgumentError, GraphError
from .node import Node
from .pipeline import Pipeline


@checked_op("order.split")
def split(
    pipeline: Pipeline,
    fractions: Sequence[float],
    *,
    seed: int = 0,
    by: str = "path",
    group: str | None = None,
) -> tuple[Pipeline, ...]:
    """Divide the records of a pipeline into parts that never share one.

        train, val = hr.split(hr.files("photos/", labels="folder"), [0.8, 0.2], seed=1)
        train = train.shuffle().decode().random_resized_crop(224)
        val = val.decode().resize_shortest(256).center_crop(224)

    The hash of a record's key decides in which part it is: the same one in every epoch, in every
    process, and when other records are added or removed. Records with equal keys are always in
    one part. A part has about the size that its fraction says; `record_count` is the exact one.
    The split comes before a shuffle, filter or batch that `pipeline` has already, and before the
    steps after these: the key is a field that records have there, and is refused if one of these
    steps changes it.

    Args:
        pipeline: what is divided.
        fractions: the sizes of the parts, which add up to 1.
        seed: another seed gives another division. The loader's seed does not matter.
        by: the key: "path" (of a file, below the folder of its source; in a tar archive the key of the
            record, the name up to its ending), a field that is known before a record is read, such as
            "label", a column of a labels file, a table or a frame, a number or a text in archives and
            packed records, or what steps before the split (`lower_text`, `rename`, `cast`) make of these,
            or "index" (the number in the source; records keep their part only if others are added after
            them).
        group: a regular expression (POSIX, extended); what it matches in the key is used in place
            of the key: "^[^/]+" keeps the files of each folder together.

    Returns:
        As many pipelines as there are fractions.

    Raises:
        GraphError, ArgumentError: an argument is wrong, or the fractions do not add up to 1; when the
            pipelines are used, the key is unknown or a part would be empty.
    """
    if not hasattr(fractions, "__len__"):
        raise ArgumentError(
            f"split(): fractions are a list such as [0.8, 0.2], not {fractions!r:.60}", param="fractions"
        )
    chain = _after(pipeline._node)
    _refuse_changed(chain, by)
    below = pipeline if not chain else Pipeline(chain[-1].inputs[0])
    made = []
    for part in range(len(fractions)):
        node = order_split(below, fractions, part, seed=seed, by=by, group=group)._node
        for one in reversed(chain):
            node = Node(one.op, one.params, (node,), one.name, one.code)
            node.service = one.service
        made.append(Pipeline(node))
    return tuple(made)


def _after(output: Node) -> list[Node]:
    """The nodes that the split must come before, the last one first."""
    chain, blocking = [output], 0
    while len(chain[-1].inputs) == 1:
        chain.append(chain[-1].inputs[0])
    for at, node in enumerate(chain):
        if node.op in ("order.shuffle", "order.shard") or build.op_kinds()[node.op] in ("filter", "expand", "batch"):
            blocking = at + 1
    for node in chain[:blocking]:
        if node.op in ("order.take", "order.skip"):
            first = chain[blocking - 1]
            raise GraphError(
                f"'{node.name or node.op}' selects records by their place after '{first.name or first.op}', so which "
                "ones it selects would depend on the split: split before it, and use it on each part",
                node=node.name or node.op,
                op=node.op,
            )
    return chain[:blocking]


def _refuse_changed(chain: Sequence[Node], by: str) -> None:
    """A step after the split changes its key: records with equal keys then could be in several parts."""
    for node in reversed(chain):
        if build.op_kinds()[node.op] == "batch":
            return
        if by in _changed(node):
            first, name = chain[-1].name or chain[-1].op, node.name or node.op
            raise GraphError(
                f"'{name}' changes \"{by}\" after '{first}', and the split comes before '{first}', where records have "
                f"other values of it: put '{name}' before '{first}', or split before both and use them on each part",
                node=name,
                op=node.op,
            )


def _changed(node: Node) -> set[str]:
    """The fields in which a step may make different values equal."""
    op = build.op_infos()[node.op]
    if op["kind"] != "map" or any(trait in op["traits"] for trait in ("zero copy", "dtype")):
        return set()
    if node.code is not None:
        return set(node.code.outputs or node.code.fields or ())
    given = {p["name"]: node.params.get(p["name"], p["fallback"]) for p in op["params"]}
    names = given.get("to") or given.get("field") or ()
    return {names} if isinstance(names, str) else set(names)
