"""Sources of pipelines: files, lists, numbers, graph files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from . import _headrace, fieldspec, identity
from ._check import path_of
from ._ops import (
    flow_concat,
    flow_interleave,
    flow_zip,
    source_arrow,
    source_coco,
    source_csv,
    source_files,
    source_hdf5,
    source_idx,
    source_jsonl,
    source_lines,
    source_list,
    source_lmdb,
    source_npy,
    source_parquet,
    source_range,
    source_records,
    source_tar,
    source_tfrecord,
    source_voc,
)
from ._types import PathLike
from .errors import ArgumentError, CodeError, GraphError, translated
from .node import Draw, Node, Origin, is_text, to_json
from .pipeline import Pipeline
from .user_code import Code

arrow = source_arrow
coco = source_coco
concat = flow_concat
csv = source_csv
files = source_files
hdf5 = source_hdf5
idx = source_idx
interleave = flow_interleave
jsonl = source_jsonl
lines = source_lines
list = source_list
lmdb = source_lmdb
npy = source_npy
parquet = source_parquet
range = source_range
records = source_records
tar = source_tar
tfrecord = source_tfrecord
voc = source_voc
zip = flow_zip


def load(path: PathLike, *, trust: bool = False, **params: Any) -> Pipeline:
    """Read a graph file, YAML or JSON.

    Args:
        path: the file; relative paths in it stay relative to the working directory.
        trust: import and run the Python functions that the file names. Without it such a
            file is refused.
        params: values for the parameters that the file declares, as `-p name=value`.

    Raises:
        GraphError, FormatError: with file, line and column, and the nearest valid name.
        CodeError: the file names Python code and trust is False, or it cannot be found.
    """
    file = os.fsdecode(path_of(path, "load"))
    with translated():
        graph = _headrace.Graph.load(file, _texts(params))
        return _pipeline(graph, trust, file)


def from_yaml(text: str, *, trust: bool = False, **params: Any) -> Pipeline:
    """Read a graph from text, as `load` does from a file."""
    if not isinstance(text, str) or not is_text(text):
        raise ArgumentError(f"from_yaml(): needs a text in UTF-8, not {text!r:.60}", param="text")
    with translated():
        graph = _headrace.Graph.parse(text, "text.json" if text.lstrip().startswith("{") else "text", _texts(params))
        return _pipeline(graph, trust, "the text")


def _texts(params: dict[str, Any]) -> dict[str, str]:
    plain = json.loads(to_json(params, "parameters"))
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in plain.items()}


def _pipeline(graph: _headrace.Graph, trust: bool, file: str) -> Pipeline:
    infos = graph.nodes()
    origin = Origin()
    made: dict[int, Node] = {}

    def node(at: int, above: tuple[int, ...]) -> Node:
        if at in above:
            raise GraphError(f"{file}: node '{infos[at]['name']}' reads its own records", node=infos[at]["name"])
        if at not in made:
            info = infos[at]
            inputs = tuple(node(i, (*above, at)) for i in info["inputs"])
            params = json.loads(info["params"]) if info["params"] else {}
            code = _code(info["op"], params, inputs, trust, file) if info["op"].startswith("code.") else None
            made[at] = Node(info["op"], params, inputs, info["name"], code, origin)
        return made[at]

    count = len(infos)
    used = {i for info in infos for i in info["inputs"]}
    ends = [i for i in _numbers(count) if i not in used]
    if len(ends) != 1:
        graph.freeze()  # raises the reason
        raise GraphError(f"{file}: a pipeline has one output, this has {len(ends)}")
    output = node(ends[0], ())
    origin.nodes[:] = [made[i] for i in _numbers(count)]
    _forget_names(origin.nodes)
    return Pipeline(output)


def _numbers(count: int) -> Sequence[int]:
    import builtins

    return builtins.range(count)


def _forget_names(nodes: Sequence[Node]) -> None:
    """Drops names that the library generated, so that files can be combined."""
    meant = {name for n in nodes for name in n.params.get("depends_on", [])}
    for node in nodes:
        if node.name is not None and node.name not in meant and re.fullmatch(re.escape(node.op) + r"\d*", node.name):
            node.name = None
    draws: dict[str, Draw] = {}
    for node in nodes:
        when = node.params.get("when") or {}
        for name in when:
            if (kind := re.fullmatch(r"(apply|one_of)\d*", name)) is not None:
                draws.setdefault(name, Draw(kind[1]))
        if when:
            node.params["when"] = {draws.get(name, name): part for name, part in when.items()}


def _code(op: str, params: dict[str, Any], inputs: tuple[Node, ...], trust: bool, file: str) -> Code:
    """The function that a file names; removes its parameters from `params`."""
    name = str(params.pop("code", ""))
    target, _, flags = name.partition("#")
    target, _, version = target.partition("@")
    if op == "code.source" or not re.fullmatch(r"[\w.]+:[\w.]+", target):
        raise CodeError(
            f"{file} uses Python code '{name}', which only the program that saved it had; "
            "build this part of the pipeline in Python",
            op=op,
            code="HR_ERR_NOT_FOUND",
        )
    if not trust:
        raise CodeError(
            f"{file} names Python code, '{name}', that would be imported and run; "
            "if you trust the file: hr.load(path, trust=True)",
            op=op,
        )
    fields = params.pop("fields", None)
    outputs = params.pop("outputs", None)
    return Code(
        op.removeprefix("code."),
        identity.load(target),
        None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields),
        None if outputs is None else fieldspec.declarations(outputs),
        params.pop("variant", "threads"),
        version or None,
        frozenset(f for f in flags.split(",") if f and not f.isdigit()),
        file_name=re.sub(r"[#,]\d+$", "", name),
    )
