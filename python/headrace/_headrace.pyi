"""The C extension: handles of libheadrace as Python objects, without any policy.

Every call that can block releases the interpreter's lock. Errors of the library are raised as
`Error`, whose attributes are the members of `struct hr_error`; headrace/errors.py converts them
to the public classes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

class Error(Exception):
    code: str  # "HR_ERR_SHAPE"
    message: str  # a whole sentence
    node: str
    op: str
    param: str
    file: str
    line: int
    column: int
    record: int  # index in the source, -1 when no record was at fault
    epoch: int  # of the record; 0, 0, () if there is none
    position: int  # in the epoch's order, over all ranks
    children: tuple[int, ...]  # its number among the children of each expansion
    detail: str  # a traceback from a worker process, or ""
    raised: str  # "module:name" of what user code raised and of its bases, separated by spaces
    # __cause__ is the exception that user code raised in this process, if there is one.

class ParamInfo(TypedDict):
    name: str
    type: str
    fallback: str | None
    unit: str | None
    help: str
    required: bool
    range: str  # "0 to 255", "one of a, b", ""

class OpInfo(TypedDict):
    name: str
    kind: str
    summary: str
    doc: str | None
    version: int
    test_only: bool
    traits: str
    params: list[ParamInfo]

class PartInfo(TypedDict):
    kind: str  # "library", "system" or "store"
    name: str
    gives: str
    state: Literal["ready", "missing", "not built"]
    version: str  # "" if it has none, or is not ready
    problem: str  # "" if it is ready

class NodeInfo(TypedDict):
    name: str
    op: str
    inputs: list[int]
    params: str  # JSON, as hr_graph_node_params gives it

class FieldInfo(TypedDict):
    name: str
    dtype: str | None  # None: byte strings
    ragged: bool
    text: bool  # byte strings that are meant as UTF-8
    shape: list[int]  # -1: known only at run time
    dims: list[str]  # names, "" if there is none
    classes: list[str]  # names of class numbers; none for other fields

def version() -> str: ...
def op_list() -> list[OpInfo]: ...
def parts() -> list[PartInfo]: ...
def free_memory() -> int: ...
def arrow_rows(stream: object, rows: object) -> object: ...

class EpochSize(TypedDict):
    records: int
    batches: int
    batches_least: int
    shards: bool
    ranks_differ: bool

class OptimizeResult(TypedDict):
    moved: int
    needs: int  # enum hr_strictness
    best: bool
    written_ns: float
    predicted_ns: float
    records: int
    difference: float
    written_run_ns: float
    run_ns: float
    dropped: str  # "": no order was

class CacheResult(TypedDict):
    after: str | None  # None: no cache
    where: Literal["", "memory", "folder"]
    chosen: bool
    variant: Literal["threads", "inline", "processes"]
    entry_bytes: float
    total_bytes: float
    part: float
    fill_rate: float
    hit_rate: float
    rate: float
    gain: float
    refused: str  # "": it is not
    image: str | None  # that is kept as a JPEG

class StepVariantResult(TypedDict):
    node: str
    variant: Literal["inline", "threads", "processes"]
    moved: bool
    reason: str

class WayResult(TypedDict):
    processes: str
    rate: float
    cpu_ns: float
    gain: float
    reason: str

class Graph:
    def __init__(self) -> None: ...
    @staticmethod
    def load(path: str, params: dict[str, str]) -> Graph: ...
    @staticmethod
    def parse(text: str, name: str, params: dict[str, str]) -> Graph: ...
    def add(self, op: str, name: str | None, inputs: Sequence[int], params: str | None) -> int: ...
    def code(
        self,
        name: str,
        identity: str,
        kind: str,  # "source", "map", "filter", "expand"
        function: Callable[..., Any],
        stays: str | None = None,  # why worker processes cannot run it
    ) -> None:
        """Register Python code with the graph under a name (headrace/code.h).

        source: function(index) -> value or tuple of values, one per declared output;
        StopIteration or IndexError from a source of unknown length ends the data.
        map: function(*inputs) -> value or tuple. filter: function(*inputs) -> truth.
        expand: function(*inputs) -> iterable of values or tuples.
        Inputs arrive as int, float or bool (0-d tensors), str, bytes, or read-only numpy
        arrays, copies that may be kept (docs/decisions/0012). Outputs may be int, float, bool, bytes, str,
        anything with the buffer protocol, or anything numpy.asarray takes.
        """
    def host(self, start: Callable[[int], int], kill: Callable[[int], None], ended: Callable[[int], str]) -> None:
        """How to start a worker process on a socket (hr_graph_code_host)."""
    def freeze(self) -> None: ...
    def fingerprint(self) -> str: ...
    def print(self, format: str) -> str: ...  # "yaml" or "json"
    def nodes(self) -> list[NodeInfo]: ...
    def fields(self, node: int) -> list[FieldInfo]: ...
    def params(self) -> list[dict[str, Any]]: ...
    def record_count(self) -> int: ...
    def epoch_size(self, options: dict[str, Any]) -> EpochSize: ...
    def explain(self, options: dict[str, Any], json: bool) -> str: ...
    def plan(self, options: dict[str, Any], json: bool) -> str: ...
    def profile(
        self, seed: int, records: int, seconds: float, width: float, inline: bool, threads: int, fuse: bool
    ) -> str:
        """JSON of hr_graph_profile; records 0: no limit; threads 0: one per CPU. A signal handler
        (Ctrl-C) runs within a batch, and its exception is raised."""
    def profile_save(self, profile: str) -> None: ...
    def profile_load(self, inline: bool, fuse: bool) -> str:
        """HR_ERR_NOT_FOUND if a node's is missing, HR_ERR_FORMAT if one is damaged."""
    def optimize(
        self,
        profile: str,
        rule: int,  # enum hr_rule
        strictness: int,  # enum hr_strictness
        records: int,
        seed: int,
        tick: Callable[[], object] | None,
    ) -> tuple[Graph, OptimizeResult]:
        """hr_graph_optimize: the graph in the new order, which shares the code of this one; or this
        one. Signals as for profile; an exception of `tick`, which is called once per batch, is raised."""
    def caches(
        self,
        profile: str,
        rule: int,
        strictness: int,
        epochs: int,
        memory: int,
        folder: str | None,
        folder_bytes: int,
        refresh: int,
        quality: int,
        allowed: int,
    ) -> list[CacheResult]:
        """hr_graph_propose_cache in the order that the rule finds, the best place first."""
    def variants(
        self, profile: str, rule: int, strictness: int, threads: int
    ) -> tuple[list[StepVariantResult], list[WayResult]]:
        """hr_graph_choose_variants in the order that the rule finds, of user code only; the chosen way first."""

class Iter:
    def __init__(self, graph: Graph, options: dict[str, Any]) -> None:
        """`options`: the fields of struct hr_iter_options by name; variant "threads" or
        "inline", on_error "fail", "skip" or "substitute"; state, ledger, service: str."""
    def next(self) -> Batch | None:
        """The next batch, or None at the end. A signal handler (Ctrl-C) runs within 50 ms
        and its exception is raised; the iterator is then cancelled."""
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def save(self) -> str: ...
    def committed(self) -> int: ...
    def resume(self, state: str, /) -> None: ...
    def commit_due(self) -> bool: ...
    def commit(self) -> None: ...
    def demand(self, rate: float) -> None: ...
    def seed(self, seed: int) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def node_stats(self) -> list[dict[str, Any]]: ...
    def profile(self) -> str: ...
    def trace(self) -> str: ...

class Batch:
    """Immutable. Fields, and views of a field's bytes, keep its memory alive."""

    @property
    def records(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    def field(self, key: str | int) -> Field: ...

class Field:
    """A field of a batch: the buffer protocol and DLPack, without a copy, read-only."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str | None: ...  # "float32"; None: byte strings
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...  # bytes
    @property
    def nbytes(self) -> int: ...
    @property
    def ragged(self) -> bool: ...
    @property
    def text(self) -> bool: ...  # byte strings that are meant as UTF-8
    def writable(self) -> Field:
        """The same memory, writable, if nothing else refers to the batch; else a copy."""
    @property
    def levels(self) -> int: ...  # batches that a ragged field is nested in; 0 for others
    @property
    def item_ndim(self) -> int: ...  # of a ragged field's items; 0 for byte strings
    def values(self) -> Field: ...  # of a ragged field: all elements, stored contiguously
    def offsets(self) -> Field: ...  # splits(0)
    def splits(self, level: int = 0, /) -> Field: ...  # int64, one more than the level has items
    def shapes(self) -> Field: ...  # int64 [items, item_ndim], if item_ndim > 1
    def strings(self) -> list[Any]: ...  # of byte strings: str for text, else bytes; nested batches: lists of lists
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def serve(
    fd: int, find: Callable[[str], tuple[str, Callable[..., Any]] | None], begin: Callable[[], object] = ...
) -> None:
    """In a worker process: hr_code_serve. `find` gives (kind, function) of a name; `begin` is
    called, as part of the first call of such a function, and of the first in each further epoch."""

def current_record() -> tuple[int, int, int, int, int, str, int, int] | None:
    """(seed, epoch, index, key0, key1, node, call, replaced) of the record that user code is
    processing in this thread, or None. call: a number unique to the call in this thread, so that
    hr.rng() restarts its sequence if a record is retried. replaced: how many worker processes ended
    early in the place of this one."""

class Digest:
    def __init__(self) -> None: ...
    def add(self, data: Any) -> None: ...
    def hexdigest(self) -> str: ...

class Packer:
    """struct hr_packer of headrace/pack.h. One thread at a time."""

    def __init__(
        self,
        graph: Graph,
        options: dict[str, Any],
        folder: str,
        prefix: str,
        format: str,  # "records", "tar", "tfrecord"
        shard_bytes: int,
        shard_records: int,  # 0: no limit
        zstd_level: int,  # 0: not compressed
        append: bool,
        lz4_level: int,
    ) -> None: ...
    def state(self) -> str | None: ...  # that the iterator starts from
    def complete(self) -> bool: ...
    def add(self, batch: Batch, /) -> bool: ...  # True: mark() comes next
    def mark(self, state: str, /) -> None: ...
    def finish(self) -> None: ...
    def result(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

class Tokenizer:
    def __init__(self, form: str, path: str, other: str, /) -> None:
        """`form`: "gpt2" (`other`: the merges), "tiktoken" (`other`: the pattern) or "json"."""
    @property
    def vocab_size(self) -> int: ...
    def encode(self, text: str | bytes, /) -> bytearray: ...  # int32
    def encode_batch(self, texts: Sequence[str | bytes], threads: int, /) -> tuple[Field, bytearray]: ...
    def decode(self, ids: Any, /) -> bytes: ...

def digest_batch(digest: Digest, batch: Batch) -> None:
    """Add a batch in the way of `headrace run --digest`."""

def merge_states(states: Sequence[str]) -> str:
    """Merge the states of all ranks (hr_state_merge)."""

def check_profile(text: str | bytes, name: str) -> None:
    """Raise the first error of a profile, with its place in file `name` (hr_profile_parse)."""

def _close_iterators() -> None:
    """Close all iterators; from now on threads that are in one never return. For the end of the program."""

def live_objects() -> dict[str, int]:
    """Handles alive by class, for leak tests."""
