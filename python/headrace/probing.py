"""Runs of a few records that find out what user code returns.

The run makes one record at a time and ends with the first good one: functions may be slow. What a
function returned there is what the next one is given (`Known`), so that a chain of functions needs
as many short runs, and no function is called again for each that follows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _headrace
from .errors import DtypeError, translated
from .fieldspec import Spec
from .node import Node
from .structure import Structure
from .user_code import Code

if TYPE_CHECKING:
    from .build import Built, Resolved


class After(NamedTuple):
    """Short pipelines that stand for the one that ends in a node.

    fields: has the same fields; its records are never read. records: gives the first good record.
    values: its fields; None: not known without a run.
    """

    fields: Node
    records: Node
    values: Mapping[str, Any] | None = None


class Known:
    """What is known of the records after nodes of user code, while the code of one graph is resolved.

    It lasts as long as that, since it keeps records. Nodes after which less is known than a pipeline of few
    nodes would say are left out: a function of batches, in a group, or of some fields where the others are not known.
    """

    def __init__(self) -> None:
        self._after: dict[int, After] = {}

    def before(self, node: Node) -> After | None:
        """What stands for the input of a node."""
        return self._after.get(id(node.inputs[0])) if node.inputs else None

    def forget_before(self, node: Node) -> None:
        """What stands for the input of a node did not do: its first record is not that of the whole pipeline."""
        del self._after[id(node.inputs[0])]

    def note(self, node: Node, found: Resolved, prefix: Built | None, values: Mapping[str, Any] | None) -> None:
        """Keep what was found out about `node`.

        prefix: the graph of its input, if it was built. values: the fields that its first call returned, if it
        was called.
        """
        code = node.code
        if code is None or "when" in node.params or "batch" in code.flags:
            return
        after = None
        if code.kind == "filter":
            after = self._after_filter(node, found, prefix)
        elif code.fields is None and found.outputs is not None and code.kind != "source":
            after = self._after_call(node, found, found.outputs, values)
        elif code.kind == "map" and values is not None:
            after = self._after_fields(node, found, values)
        if after is not None:
            self._after[id(node)] = after

    def _after_filter(self, node: Node, found: Resolved, prefix: Built | None) -> After | None:
        before = self.before(node)
        if before is not None:
            return After(before.fields, _moved(node, before.records, found), before.values)
        if prefix is None or prefix.record_count == 0 or any(f.ragged for f in prefix.fields):
            return None
        return After(_source({f.name: f.spec for f in prefix.fields}, prefix.structure, ()), node)

    def _after_call(
        self, node: Node, found: Resolved, outputs: Mapping[str, Spec], values: Mapping[str, Any] | None
    ) -> After | None:
        if values is not None:
            free = {name: spec.free() for name, spec in outputs.items()}
            source = _source(free, found.structure, tuple(values[name] for name in outputs))
            return After(source, source, values)
        before = self.before(node)
        if before is None or found.probed:
            return None
        return After(_source(outputs, found.structure, ()), _moved(node, before.records, found))

    def _after_fields(self, node: Node, found: Resolved, values: Mapping[str, Any]) -> After | None:
        from .build import build

        before = self.before(node)
        if before is None or before.values is None:
            return None
        made = build(_moved(node, before.fields, found), probing=True)
        merged = {**before.values, **values}
        if any(f.ragged or f.name not in merged for f in made.fields):
            return None
        kept = {f.name: merged[f.name] for f in made.fields}
        source = _source({f.name: f.spec for f in made.fields}, made.structure, tuple(kept.values()))
        return After(source, source, kept)


def _moved(node: Node, before: Node, found: Resolved) -> Node:
    """The node after another one."""
    moved = Node(node.op, node.params, (before,), node.name, node.code)
    moved.resolved = found
    return moved


def _source(outputs: Mapping[str, Spec], structure: Structure | None, values: tuple[Any, ...]) -> Node:
    """A source of one record with these fields."""

    def first(index: int) -> Any:
        return values[0] if len(values) == 1 else values

    code = Code("source", first, None, dict(outputs), "inline", version="first", structure=structure)
    return Node("code.source", {"count": 1}, (), None, code)


class Probe:
    """A filter that calls a function on record after record, up to `most`, until one is good."""

    def __init__(self, call: Callable[..., Any], expands: bool, most: int) -> None:
        self.call, self.expands, self.most = call, expands, most
        self.inputs: tuple[Any, ...] = ()
        self.value: Any = None
        self.done = False
        self.error: Exception | None = None
        self.tries = 0

    def __call__(self, *values: Any) -> bool:
        if self.done or self.tries >= self.most:
            return True
        self.tries += 1
        try:
            value = self.call(*values)
            if self.expands:
                value = next(iter(_iterable(value)), _NOTHING)
                if value is _NOTHING:
                    return False
        except Exception as error:  # noqa: BLE001 - user code raises what it likes
            self.error = self.error or error
            return self.tries >= self.most
        self.inputs, self.value, self.done = values, value, True
        return True


_NOTHING = object()


def _iterable(value: Any) -> Iterable[Any]:
    if not hasattr(value, "__iter__"):
        raise DtypeError(f"flat_map wants an iterable of records, not a {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def why_not(probe: Probe, what: str) -> str:
    """Why a probe knows nothing after the run."""
    if probe.error is not None:
        e = probe.error
        whole = isinstance(e, TypeError) and "positional argument" in str(e)
        hint = "; without fields it gets the whole record; fields=['image', 'label'] makes arguments of them"
        return (
            f"raised {type(e).__name__}: {e} for the first {probe.tries} {what}(s), so it is not known what "
            f"it returns; declare outputs={{'name': hr.spec(dtype, shape)}} or fix it{hint if whole else ''}"
        )
    return f"was given no {what}, so it is not known what it returns; declare outputs={{'name': hr.spec(dtype, shape)}}"


def run_first(built: Built, records: int) -> None:
    """Run a graph until it gave some records, one at a time where no batch needs more."""
    options: dict[str, Any] = {"variant": "inline", "records_max": records, "on_error": "skip"}
    with translated():
        plan = json.loads(built.graph.plan(options, True))
        for stage in plan["stages"]:
            if not stage["direct"]:  # blocks of direct stages are batches
                stage["memory"]["block_records"] = 1
        run = _headrace.Iter(built.graph, {**options, "plan": json.dumps(plan)})
        try:
            while run.next() is not None:
                pass
        finally:
            run.close()
