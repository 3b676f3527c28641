"""From nodes to a frozen graph: code is resolved, registered, and the graph checked.

Resolving a node of user code finds out what the function receives and returns. That may
need the schema of its input and one call of the function (see user_code.py); the result is
kept in the node.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload

from . import _headrace, structure
from ._check import nearest
from .errors import CodeError, GraphError, HeadraceError, translated
from .fieldspec import Dim, Spec, spec_of
from .identity import identity, name_of
from .node import Node, named_params, numbered, to_json
from .pickling import Holder, Memory, PickledCode
from .probing import Known, Probe, run_first, why_not
from .structure import Parts, Structure, leaves, named, split
from .timed import calling
from .user_code import Code, ItemCall, SeedCall, callable_of, file_name, main_is_guarded, pickled

if TYPE_CHECKING:
    from .host import Host


class Field(NamedTuple):
    """A field of the records (after a batch op: of the batches) that a pipeline outputs.

    classes: names of the classes in the order of their numbers, for labels that have names.
    """

    name: str
    spec: Spec
    ragged: bool = False
    classes: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        """Element type; "text" for text, "bytes" for other byte strings."""
        return self.spec.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        """Lengths; a name or None for those known only at run time."""
        return self.spec.shape

    def text(self) -> str:
        """As "float32[3, 224, 224]"."""
        return ("ragged " if self.ragged else "") + self.spec.text()


class Fields(tuple[Field, ...]):
    """The fields in order; `fields["label"]` is the one of that name, `"label" in fields` whether there is one."""

    __slots__ = ()

    def __contains__(self, key: object) -> bool:
        return any(field.name == key for field in self) if isinstance(key, str) else super().__contains__(key)

    def keys(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self)

    def items(self) -> tuple[tuple[str, Field], ...]:
        """The fields with their names."""
        return tuple((field.name, field) for field in self)

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Field: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Field, ...]: ...
    def __getitem__(self, key: Any, /) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        names = self.keys()
        if key not in names:
            raise KeyError(f"there is no field '{key}'{nearest(key, names)}; fields are {', '.join(names)}")
        return super().__getitem__(names.index(key))


class Resolved(NamedTuple):
    """A resolved node of user code: fields in, fields out, how it is called.

    takes, gives: the structures of its argument and its result (user_code.ItemCall).
    structure: that of the records it makes; None: fields by name.
    """

    code: Code
    inputs: tuple[str, ...]
    outputs: Mapping[str, Spec] | None  # None: a filter
    probed: bool
    takes: Structure | None = None
    gives: Structure | None = None
    structure: Structure | None = None


class Built:
    """A frozen graph and what Python keeps with it."""

    def __init__(self, graph: _headrace.Graph, nodes: list[Node], host: Host | None, output: Node) -> None:
        self.graph, self.nodes, self.host = graph, nodes, host
        self._output = output
        self.fields = fields_of(graph)

    @functools.cached_property
    def structure(self) -> Structure | None:
        """Of the records and batches; None: fields by name."""
        found = _structure(self._output)
        same = found is not None and sorted(leaves(found)) == sorted(f.name for f in self.fields)
        return found if same else None

    @functools.cached_property
    def fingerprint(self) -> str:
        """128 bits as hex."""
        return self.graph.fingerprint()

    @property
    def record_count(self) -> int | None:
        """Records per epoch, None if known only at run time."""
        count = self.graph.record_count()
        return None if count < 0 else count

    @functools.cached_property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """Names of the classes of each field that has them."""
        return {field.name: field.classes for field in self.fields if field.classes}

    @functools.cached_property
    def changing_part(self) -> tuple[str, str] | None:
        """Names of a take or skip and of a shuffle before it, which select other records in every epoch."""
        infos = self.graph.nodes()
        for info in infos:
            before = list(info["inputs"]) if info["op"] in ("order.take", "order.skip") else []
            for at in before:  # grows
                if infos[at]["op"] == "order.shuffle":
                    return info["name"], infos[at]["name"]
                before += infos[at]["inputs"]
        return None


@functools.cache
def op_infos() -> dict[str, _headrace.OpInfo]:
    """{operator: what the library says of it}."""
    return {op["name"]: op for op in _headrace.op_list()}


@functools.cache
def op_kinds() -> dict[str, str]:
    """{operator: kind}."""
    return {name: op["kind"] for name, op in op_infos().items()}


def fields_of(graph: _headrace.Graph) -> Fields:
    """The schema of a frozen graph's output."""
    infos = graph.nodes()
    used = {i for info in infos for i in info["inputs"]}
    output = next(i for i in range(len(infos)) if i not in used)
    made = []
    for f in graph.fields(output):
        dims: tuple[Dim, ...] = tuple(
            size if size >= 0 else name or None for size, name in zip(f["shape"], f["dims"], strict=True)
        )
        spec = Spec(f["dtype"] or ("text" if f["text"] else "bytes"), dims if f["dtype"] else ())
        made.append(Field(f["name"], spec, f["ragged"], tuple(f["classes"])))
    return Fields(made)


def is_batched(node: Node) -> bool:
    """Whether `node` gives batches."""
    waiting = [node]
    while waiting:
        one = waiting[-1]
        unknown = [i for i in one.inputs if i.batched is None]
        if op_kinds().get(one.op) == "batch":
            one.batched = True
        elif one.op == "batch.unbatch":
            one.batched = False
        elif unknown:
            waiting += unknown
            continue
        else:
            one.batched = any(i.batched for i in one.inputs)
        waiting.pop()
    return bool(node.batched)


def has_labels(node: Node) -> bool:
    """Whether a source before `node` has labels, whose classes are known once it is open."""
    return any(
        one.op == "source.coco" or one.params.get("find_classes", False) or one.params.get("labels", "none") != "none"
        for one in numbered(node)
    )


# ---- user code ----


def resolve(node: Node, known: Known | None = None) -> Resolved:
    """What the node's code receives and returns; CodeError or GraphError if that is unknown.

    known: of the nodes before it, if their code was resolved just now; what is found is added.
    """
    if node.resolved is None:
        node.resolved = _resolve(node, known if known is not None else Known())
    made: Resolved = node.resolved
    return made


def _structure(node: Node) -> Structure | None:
    """The structure of a data set's items as the nodes of user code leave it. It describes the records
    of `node` if these have its fields and no others."""
    while len(node.inputs) == 1 and not _gives_items(node):
        node = node.inputs[0]
    if node.code is not None and _gives_items(node):
        found = resolve(node)
        return found.code.structure if node.code.kind == "source" else found.structure
    if len(node.inputs) > 1 and op_kinds().get(node.op) != "merge":
        return None
    structures = [_structure(one) for one in node.inputs]
    return structures[0] if structures and structures.count(structures[0]) == len(structures) else None


def _gives_items(node: Node) -> bool:
    """Whether it is user code that gives whole items."""
    code = node.code
    return code is not None and (code.kind == "source" or (code.kind != "filter" and code.fields is None))


def _settled(node: Node, settle: Callable[[Code], Code]) -> Code:
    """The node's code with what its first item says."""
    assert node.code is not None
    try:
        with calling(node.name or node.op, node.op, "the data set"):
            return settle(node.code)
    except HeadraceError as error:
        error.op = error.op or node.op
        error.node = error.node or node.name or node.op
        raise


def _resolve(node: Node, known: Known) -> Resolved:
    code = node.code
    assert code is not None
    if code.kind == "source":
        code = code if code.settle is None else _settled(node, code.settle)
        return Resolved(code, (), code.outputs, code.probed)
    if "batch" in code.flags and code.outputs is not None:
        code = code._replace(outputs={name: _strings_of_batch(spec) for name, spec in code.outputs.items()})
    if code.fields is not None and (code.outputs is not None or code.kind == "filter"):
        found = Resolved(code, code.fields, code.outputs, False, *_structures_of_file(code))
        known.note(node, found, None, None)
        return found
    before = known.before(node)
    if before is not None:
        try:
            return _resolve_after(node, code, build(before.fields, probing=True), before.records, known)
        except HeadraceError:
            known.forget_before(node)  # what is wrong is found again, and named, after all nodes before it
    return _resolve_after(node, code, build(node.inputs[0], probing=True), node.inputs[0], known)


def _resolve_after(node: Node, code: Code, prefix: Built, records: Node, known: Known) -> Resolved:
    """The same after a pipeline with the fields of `prefix`, whose first record `records` gives."""
    names = tuple(f.name for f in prefix.fields)
    for name in code.fields or ():
        if name not in names:
            raise GraphError(
                f"node '{node.name or node.op}' ({node.op}): there is no field \"{name}\""
                f"{nearest(name, names)}; fields here: {', '.join(names)}",
                node=node.name or node.op,
                op=node.op,
                param=name,
            )
    if prefix.record_count == 0 and code.outputs is None and code.kind != "filter":
        return _resolve_unused(code, prefix, code.fields or names)
    if code.fields is not None:
        given, value = _probe(node, code, records, code.fields, None)
        returned = _by_fields(node, code, value)
        same = dict(zip(map(id, given), code.fields, strict=True))
        found = Resolved(code, code.fields, _specs(node, code, prefix, returned, same), True)
        known.note(node, found, prefix, returned)
        return found
    found, values = _resolve_whole(node, code, prefix, records, names)
    known.note(node, found, prefix, values)
    return found


def _resolve_unused(code: Code, prefix: Built, inputs: tuple[str, ...]) -> Resolved:
    """A function of an empty source, which is never called: it keeps the fields."""
    outputs = {name: _of_batch(f) if f.ragged else f.spec for f in prefix.fields if (name := f.name) in inputs}
    return Resolved(code, inputs, outputs, True, structure=prefix.structure if code.fields is None else None)


def _structures_of_file(code: Code) -> tuple[Structure | None, Structure | None]:
    """What a function of whole records takes and gives if it was loaded from a file, which names all fields."""
    if "record" not in code.flags or code.fields is None:
        return None, None
    several = len(code.fields) != 1 or "batch" in code.flags
    return named(code.fields) if several else None, named(code.outputs) if code.outputs is not None else None


def _resolve_whole(
    node: Node, code: Code, prefix: Built, records: Node, names: tuple[str, ...]
) -> tuple[Resolved, dict[str, Any] | None]:
    """A function that takes whole records, and the fields of what it returned if it was called."""
    before = prefix.structure
    takes: Structure | None = before if isinstance(before, Parts) else None
    if before is None and (len(names) != 1 or "batch" in code.flags):
        takes = named(names)
    inputs = leaves(before) if before is not None else names
    if takes is not None:
        code = code._replace(flags=code.flags | {"record"})
    if code.kind == "filter":
        return Resolved(code, inputs, None, False, takes), None
    if code.outputs is not None:
        after = before if before is not None and set(leaves(before)) == set(code.outputs) else None
        outputs = {name: code.outputs[name] for name in (leaves(after) if after is not None else code.outputs)}
        gives = None if takes is None else after if after is not None else named(outputs)
        return Resolved(code, inputs, outputs, False, takes, gives, after), None
    given, value = _probe(node, code, records, inputs, takes)
    gives = _returned(node, code, value, takes, before, given)
    if gives is not None:
        code = code._replace(flags=code.flags | {"record"})
    after = gives if gives is not None or before is None else before
    values = _values(gives if gives is not None else inputs[0], value)
    outputs = _specs(node, code, prefix, values, dict(zip(map(id, given), inputs, strict=True)))
    return Resolved(code, inputs, outputs, True, takes, gives, after if before is not None else None), values


def _values(structure: Structure, item: Any) -> dict[str, Any]:
    """{field: value} of an item."""
    names, values = leaves(structure), split(structure, item)
    return dict(zip(names, values if len(names) > 1 else (values,), strict=True))


def _by_fields(node: Node, code: Code, value: Any) -> dict[str, Any]:
    """{field: value} of what a function of some fields returned."""
    names = code.fields or ()
    if isinstance(value, dict) and set(value) == set(names):
        return {name: value[name] for name in names}
    if len(names) == 1:
        if isinstance(value, (tuple, Mapping)) or value is None:
            raise _bad(node, code, f"gave a {type(value).__name__} for the one field '{names[0]}'; declare outputs=")
        return {names[0]: value}
    if not isinstance(value, (tuple, list)) or len(value) != len(names):
        raise _bad(node, code, f"must return a tuple of {len(names)} values ({', '.join(names)}), or declare outputs=")
    return dict(zip(names, value, strict=True))


def _returned(
    node: Node, code: Code, value: Any, takes: Structure | None, before: Structure | None, given: tuple[Any, ...]
) -> Structure | None:
    """The structure of what a function of whole records returned; None: a value of the only field."""
    if before is not None:
        if value is None:
            raise _bad(node, code, "must return an item, not None")
        whole = (*given, *_string_lists(value)) if "batch" in code.flags else given
        found = structure.of(value, f"what {name_of(code.fn)} returned", whole=whole)
        if structure.same_shape(found, before):
            return takes
        return found
    if isinstance(value, Mapping):
        if not value or not all(isinstance(k, str) and k for k in value):
            raise _bad(node, code, f"must return a dict of named fields, not {value!r:.60}")
        return named(value)
    if takes is not None:
        raise _bad(node, code, f"must return a dict of fields, not a {type(value).__name__}")
    if isinstance(value, tuple) or value is None:
        raise _bad(node, code, f"gave a {type(value).__name__} for the one field; declare outputs=")
    return None


def _specs(
    node: Node, code: Code, prefix: Built, values: dict[str, Any], same: Mapping[int, str] | None = None
) -> dict[str, Spec]:
    """Outputs by their values in a first call. same: fields by the ids of the values that were given."""
    known = {f.name: f for f in prefix.fields}
    batch = "batch" in code.flags
    outputs = {}
    for name, one in values.items():
        if batch and isinstance(one, (tuple, list)) and id(one) in (same or ()):
            outputs[name] = _of_batch(known[(same or {})[id(one)]])
            continue
        if batch and _is_strings(one):
            raise _bad(
                node,
                code,
                f"gave what no batch can hold: field '{name}' is a new {type(one).__name__}, and strings can only be "
                "returned unchanged, as the list that the function was given: make new strings with .map before "
                ".batch()",
            )
        try:
            spec = spec_of(one, f"field '{name}'")
        except HeadraceError as error:
            raise _bad(node, code, f"gave what no batch can hold: {error}") from error
        outputs[name] = _with_names(spec, known[name].spec if name in known else None, batch)
    return outputs


def _of_batch(field: Field) -> Spec:
    """Strings or a ragged field of a batch, which functions can only pass on."""
    return Spec(f"ragged {field.dtype}", field.shape) if field.ragged else Spec("strings", (None,))


def _strings_of_batch(spec: Spec) -> Spec:
    """What a declaration for functions of batches means: text and bytes are those of each record."""
    return Spec("strings", (None,)) if spec.dtype in ("text", "bytes") else spec


def _is_strings(value: object) -> bool:
    """Whether this is a string, or a list or tuple that holds strings."""
    return isinstance(value, (str, bytes, bytearray)) or (
        isinstance(value, (list, tuple)) and any(map(_is_strings, value))
    )


def _string_lists(value: Any) -> list[Any]:
    """The lists and tuples in a batch that hold strings and nothing else."""
    if isinstance(value, Mapping):
        return [found for part in value.values() for found in _string_lists(part)]
    if not isinstance(value, (tuple, list)):
        return []
    if value and all(isinstance(part, (str, bytes)) for part in value):
        return [value]
    return [found for part in value for found in _string_lists(part)]


def _with_names(spec: Spec, before: Spec | None, batch: bool) -> Spec:
    """Lengths keep the names that they had before; a batch's first length is free."""
    shape: tuple[Dim, ...] = spec.shape
    if batch and shape:
        shape = (None, *shape[1:])
    if before is not None and len(before.shape) == len(shape):
        shape = tuple(
            old if isinstance(old, str) and not isinstance(new, int) else new
            for new, old in zip(shape, before.shape, strict=True)
        )
    return Spec(spec.dtype, shape)


def _bad(node: Node, code: Code, why: str) -> CodeError:
    return CodeError(
        f"node '{node.name or node.op}' ({node.op}): {name_of(code.fn)} {why}", node=node.name or node.op, op=node.op
    )


def _probe(
    node: Node, code: Code, records: Node, inputs: tuple[str, ...], takes: Structure | None
) -> tuple[tuple[Any, ...], Any]:
    """Call the code once, on the first record after `records` that it takes. Returns the fields that it was given,
    and what it returned."""
    call: Any = code.fn
    if takes is not None:
        call = ItemCall(code.fn, "map", takes, None)
    if "seed" in code.flags:
        call = SeedCall(call, code.kind == "expand")
    batch = "batch" in code.flags
    probe = Probe(call, code.kind == "expand", most=1 if batch else 64)
    probing = Code("filter", probe, inputs, None, "inline", version="probe")
    last = Node("code.filter", {}, (records,), "headrace-probe", probing)
    with calling(node.name or node.op, node.op, name_of(code.fn)):
        run_first(build(last, probing=True), records=2 if batch else 1)
    if not probe.done:
        raise _bad(node, code, why_not(probe, "batch" if batch else "record")) from probe.error
    return probe.inputs, probe.value


def _shapes_agree(node: Node, consumers: dict[int, list[Node]]) -> bool:
    """Whether batch.stack follows with nothing in between that could change a shape."""
    follow = consumers.get(id(node), [])
    while len(follow) == 1:
        one = follow[0]
        if one.op == "batch.stack":
            return not one.params.get("ragged", False) and int(one.params.get("size", 1)) > 1
        same = one.op.split(".")[0] in ("order", "record") and op_kinds().get(one.op) != "expand"
        if not same and one.op != "code.filter":
            return False
        follow = consumers.get(id(one), [])
    return False


# ---- graphs ----


class _Codes:
    """The code of a graph, each under one name.

    anywhere: worker processes get all code that they can run, whatever its variant.
    """

    def __init__(self, probing: bool, anywhere: bool) -> None:
        self.probing, self.anywhere = probing, anywhere
        self.stays: dict[str, str] = {}  # why worker processes cannot run it, by name
        self.entries: dict[str, tuple[str, str, Any]] = {}
        self.for_workers: list[PickledCode] = []
        self.memory = Memory()
        self._known: dict[tuple[Any, ...], str] = {}
        self._numbers: dict[str, int] = {}  # of the last name, by its stem

    def add(self, node: Node, found: Resolved) -> str:
        """Register the code of `node`; returns its name."""
        code = found.code
        outputs = tuple(found.outputs or ())
        key = (id(code.fn), code.kind, code.flags, code.version, found.inputs, outputs, found.takes, found.gives)
        if key in self._known:
            name = self._known[key]
            call = self.entries[name][2]
        else:
            name = self._name(code)
            call = callable_of(code, found.takes, found.gives)
            stream: Any = call
            if hasattr(stream, "reader"):
                call = stream.peek if self.probing else stream.reader()
            self._known[key] = name
            self.entries[name] = (
                identity(code.fn, code.version, code.kind, sorted(code.flags)),
                code.kind,
                call,
            )
        known = any(name == one.name for one in self.for_workers)
        if code.variant == "processes" and not self.probing and not known:
            self._send(name, code, call, node)
            self.stays.pop(name, None)
        elif not known and name not in self.stays and not (self.anywhere and code.variant == "inline"):
            self.stays[name] = self._why_not(name, code, call, node)
        return name

    def _send(self, name: str, code: Code, call: Any, node: Node) -> None:
        data, spans, main = pickled(code, call, node.name or node.op, self.memory)
        self.for_workers.append(PickledCode(name, code.kind, data, spans, main))

    def _why_not(self, name: str, code: Code, call: Any, node: Node) -> str:
        """Why worker processes cannot run code that need not run there; "": they can, and get it."""
        if not self.anywhere:
            return "its variant is not 'processes'"
        if code.kind == "source" and not isinstance(code.fn, Holder):
            return "only a data set's items can be read there"
        try:
            self._send(name, code, call, node)
        except CodeError as error:
            return str(error)
        if self.for_workers[-1].main and not main_is_guarded():
            self.for_workers.pop()
            return (
                "worker processes would run your script again to find it: move it to a module, or start the script's "
                "work under `if __name__ == '__main__':`"
            )
        return ""

    def _name(self, code: Code) -> str:
        wanted = file_name(code)
        if wanted is None:
            stem = re.sub(r"\W", "", getattr(code.fn, "__name__", type(code.fn).__name__)) or "local"
            at = self._numbers.get(stem, 1)
            while f"{stem}-{at}" in self.entries:
                at += 1
            self._numbers[stem] = at
            wanted = f"{stem}-{at}"
        name, number = wanted, 2
        while name in self.entries:
            name, number = f"{wanted}{',' if '#' in wanted else '#'}{number}", number + 1
        return name


Row = tuple[str, str | None, list[int], dict[str, Any]]


def _rows(nodes: list[Node], codes: _Codes) -> list[Row]:
    at = {id(n): i for i, n in enumerate(nodes)}
    consumers: dict[int, list[Node]] = {}
    for node in nodes:
        for one in node.inputs:
            consumers.setdefault(id(one), []).append(node)
    rows: list[Row] = []
    known = Known()
    for node, params in zip(nodes, named_params(nodes), strict=True):
        if node.code is not None:
            found = resolve(node, known)
            params["code"] = codes.add(node, found)
            params |= code_params(node, found, found.probed and not _shapes_agree(node, consumers))
            if codes.probing:
                params["variant"] = "inline"
        rows.append((node.op, node.name, [at[id(i)] for i in node.inputs], params))
    return rows


def code_params(node: Node, found: Resolved, free: bool) -> dict[str, Any]:
    """Parameters of a code op that follow from its function."""
    made: dict[str, Any] = {"variant": found.code.variant}
    if found.code.kind != "source":
        made["fields"] = list(found.inputs)
    if found.outputs is not None:
        made["outputs"] = [f"{k}: {(_free(node, v) if free else v).text()}" for k, v in found.outputs.items()]
    if "record" in found.code.flags and found.code.kind == "map":
        made["keep"] = False
    return made


def _free(node: Node, spec: Spec) -> Spec:
    """The spec with unknown lengths; those of a source's pictures are named height and width."""
    if node.op == "code.source" and spec.dtype == "uint8" and len(spec.shape) == 3 and spec.shape[2] in (1, 3, 4):
        return Spec("uint8", ("height", "width", spec.shape[2]))
    return spec.free()


def _graph(rows: list[Row]) -> _headrace.Graph:
    """A graph of rows; those of a file may refer to later nodes."""
    if all(i < at for at, row in enumerate(rows) for i in row[2]):
        graph = _headrace.Graph()
        for op, name, inputs, params in rows:
            graph.add(op, name, inputs, to_json(params, op))
        return graph
    names = [name or f"node{at + 1}" for at, (_, name, _, _) in enumerate(rows)]
    items = [
        {op: json.loads(to_json(params, op)), "name": names[at], "inputs": [names[i] for i in inputs]}
        for at, (op, _, inputs, params) in enumerate(rows)
    ]
    for item, row in zip(items, rows, strict=True):
        if not row[2]:
            del item["inputs"]
    return _headrace.Graph.parse(json.dumps({"headrace": 1, "pipeline": items}), "pipeline.json", {})


def assemble(nodes: list[Node], probing: bool = False, anywhere: bool = False) -> tuple[_headrace.Graph, Host | None]:
    """An unfrozen graph of `nodes` with its code."""
    codes = _Codes(probing, anywhere)
    rows = _rows(nodes, codes)
    with translated():
        graph = _graph(rows)
        for name, (ident, kind, call) in codes.entries.items():
            graph.code(name, ident, kind, call, codes.stays.get(name) or None)
        host = None
        if codes.for_workers:
            from .host import Host

            host = Host(codes.for_workers, codes.memory)
            graph.host(host.start, host.kill, host.ended)
    return graph, host


def build(output: Node, probing: bool = False, anywhere: bool = False) -> Built:
    """The frozen graph that ends in `output`. probing: to read a few records only, with all
    code in this process. anywhere: worker processes get all code that they can run."""
    nodes = numbered(output)
    graph, host = assemble(nodes, probing, anywhere)
    with translated():
        graph.freeze()
        return Built(graph, nodes, host, output)


def kept_here(nodes: list[Node], graph: _headrace.Graph, names: list[str]) -> dict[str, str]:
    """Why worker processes cannot run the code of nodes of these names, of those that must stay. Data of more than a
    quarter of the memory that is free stays, too: nobody asked for a copy."""
    codes, found = _Codes(probing=False, anywhere=True), {}
    codes.memory = Memory(_headrace.free_memory() // 4)
    for info, node in zip(graph.nodes(), nodes, strict=True):
        if info["name"] in names:
            found[info["name"]] = codes.stays.get(codes.add(node, resolve(node)), "")
    return {name: why for name, why in found.items() if why}
