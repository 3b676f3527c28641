"""Ray Data: an epoch of a pipeline as a Dataset, `hr.to_ray_dataset(pipe)`.

Each read task runs a range of the epoch: the pipeline with order.skip and order.take before its batches are
gathered. These only move positions, so a task reads its own records and no others, and random steps draw what
they draw in a loader. Where filters or expansions decide how many records there are, a task runs the
share of a rank instead, which costs the same.

Ray is imported when it is used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import batch
from ._check import checked
from ._numpy import np
from ._types import Even
from .build import Field
from .errors import ArgumentError, UnsupportedError
from .node import Node

if TYPE_CHECKING:
    from .pipeline import Pipeline

_BATCH = 64  # records of a block, if the pipeline makes no batches
_BATCHERS = ("batch.stack", "batch.pad")
_BATCH_OPS = ("batch.mixup", "batch.cutmix")  # one batch in, one out


class _Part(NamedTuple):
    """What a read task runs. records: None if not known before."""

    pipeline: Pipeline
    shard: tuple[int, int] | None
    records: int | None


@checked
def to_ray_dataset(
    pipeline: Pipeline,
    *,
    seed: int = 0,
    epoch: int = 0,
    blocks: int | None = None,
    threads: int = 1,
    ray_remote_args: Mapping[str, Any] | None = None,
) -> Any:
    """The records of an epoch as a `ray.data.Dataset`, one row each, with a column for each field.

        dataset = hr.to_ray_dataset(pipe)
        for batch in dataset.iter_torch_batches(batch_size=256): ...

    Nothing is read before the dataset is used. Read tasks run wherever Ray Data puts them: the data must be
    there under the same paths, or in an object store. Rows are those that a loader with this seed gives in this
    epoch, however many tasks there are; every use of the dataset gives the same ones. They come in the epoch's
    order if Ray Data keeps the order of blocks (`execution_options.preserve_order`), except after a filter
    or an expansion. Images are tensors; texts, bytes and numbers are columns of Arrow; lists that differ in length
    are tensors of variable shape.

    Args:
        seed: of order and augmentation.
        epoch: which pass, from 0: its order and draws.
        blocks: read tasks; by default Ray Data chooses.
        threads: of each task. Give `ray_remote_args={"num_cpus": N}` with more than one.
        ray_remote_args: of the read tasks.

    Raises:
        UnsupportedError: Ray Data is not installed.
    """
    for name, value, least in (("seed", seed, 0), ("epoch", epoch, 0), ("threads", threads, 1), ("blocks", blocks, 1)):
        wrong = isinstance(value, bool) or not isinstance(value, int) or value < least
        if wrong and not (name == "blocks" and value is None):
            raise ArgumentError(f"to_ray_dataset(): {name} is a number from {least}, not {value!r:.60}", param=name)
    try:
        import ray.data
    except ImportError as error:
        raise UnsupportedError(
            f"to_ray_dataset() needs Ray Data, which cannot be imported ({error}): pip install 'ray[data]'"
        ) from error
    odd = next((field.name for field in pipeline.fields if field.dtype == "bfloat16"), None)
    if odd is not None:
        raise UnsupportedError(
            f"to_ray_dataset(): columns of Ray Data cannot hold bfloat16, which field '{odd}' is; append "
            f".cast('float32', field='{odd}')"
        )
    source = _source_class()(_batched(pipeline), functools.partial(_read, seed=seed, epoch=epoch, threads=threads))
    arguments = dict(ray_remote_args) if ray_remote_args is not None else None
    return ray.data.read_datasource(source, override_num_blocks=blocks, ray_remote_args=arguments)


# ---- parts of an epoch ----


def _batcher(pipeline: Pipeline) -> tuple[list[Node], Node | None]:
    """(nodes after it, last node first; the node that gathers batches) in a chain with one such node, else
    ([], None)."""
    chain = [pipeline._node]
    while len(chain[-1].inputs) == 1:
        chain.append(chain[-1].inputs[0])
    found = [at for at, node in enumerate(chain) if node.op.startswith("batch.") and node.op not in _BATCH_OPS]
    if len(found) != 1 or chain[found[0]].op not in _BATCHERS:
        return [], None
    return chain[: found[0]], chain[found[0]]


def _batched(pipeline: Pipeline) -> Pipeline:
    """The pipeline itself if it makes batches, else with batches of any records."""
    makes = any(field.spec.shape[:1] == ("batch",) or field.ragged for field in pipeline.fields)
    return pipeline if _batcher(pipeline)[1] is not None or makes else pipeline.batch(_BATCH, ragged=True)


def _range(pipeline: Pipeline, first: int, count: int) -> Pipeline:
    """The batches of `count` records from record `first` of an epoch on."""
    from .pipeline import Pipeline

    after, batcher = _batcher(pipeline)
    assert batcher is not None
    made = Pipeline(batcher.inputs[0]).skip(first).take(count)
    for node in (batcher, *reversed(after)):
        made = Pipeline(Node(node.op, node.params, (made._node,), node.name, node.code, node.origin))
    return made


def _parts(pipeline: Pipeline, most: int) -> list[_Part]:
    """At most `most` parts, which together are an epoch of the pipeline, which makes batches."""
    size = pipeline._built.graph.epoch_size({})
    _, batcher = _batcher(pipeline)
    if size["records"] < 0 or batcher is None:
        if size["shards"]:  # it is a rank's share already
            return [_Part(pipeline, None, None)]
        return [_Part(pipeline, (rank, most), None) for rank in range(most)]
    step, records = int(batcher.params["size"]), size["records"]
    batches = math.ceil(records / step)
    most = min(most, batches)
    cuts = [min(batches * at // most * step, records) for at in range(most + 1)] if most > 0 else []
    return [
        _Part(_range(pipeline, cuts[at], cuts[at + 1] - cuts[at]), None, cuts[at + 1] - cuts[at]) for at in range(most)
    ]


# ---- rows ----


def _read(part: _Part, *, seed: int, epoch: int, threads: int) -> Iterator[Any]:
    """The blocks of a part: one for each batch."""
    from ray.data.block import BlockAccessor

    even: Even | None = "none" if part.shard is not None else None
    with part.pipeline.loader(seed=seed, threads=threads, shard=part.shard, even=even, output="numpy") as loader:
        run, form = loader._start(epoch, 1), batch.Form(batch.to_numpy)
        while True:
            try:
                got = batch.Batch(run.take(), form)
            except StopIteration:
                return
            yield BlockAccessor.batch_to_block({name: _column(got[name]) for name in got.names})


def _column(value: Any) -> Any:
    """A field of a batch as a column: an array, or an array of objects."""
    if isinstance(value, np.ndarray):
        return value
    items = value.items() if isinstance(value, batch.Ragged) else value
    column = np.empty(len(items), object)
    for at, item in enumerate(items):  # an assignment of the list would make one array of items of one shape
        column[at] = item
    return column


def _example(field: Field) -> Any:
    """A column of two records for the schema; sizes that are not known are 1 and 2."""
    spec = field.spec
    if spec.dtype in ("text", "bytes"):
        return _column(["", ""] if spec.dtype == "text" else [b"", b""])
    kind = np.dtype(spec.dtype)
    shape = spec.shape[1:]
    if all(isinstance(length, int) for length in shape):
        return np.zeros((2, *shape), kind)
    return _column([np.zeros([n if isinstance(n, int) else at for n in shape], kind) for at in (1, 2)])


def _record_bytes(pipeline: Pipeline) -> int | None:
    """Bytes of a record in memory; None if its fields tell no size."""
    total = 0
    for field in pipeline.fields:
        lengths = field.spec.shape[1:]
        if field.ragged or field.spec.dtype in ("text", "bytes") or not all(isinstance(n, int) for n in lengths):
            return None
        total += math.prod(lengths) * np.dtype(field.spec.dtype).itemsize  # type: ignore[arg-type]
    return total


@functools.cache
def _source_class() -> type[Any]:
    """The Datasource, a class of Ray's."""
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasource, ReadTask

    class HeadraceSource(Datasource):  # type: ignore[misc]
        """An epoch of a pipeline that makes batches."""

        def __init__(self, pipeline: Pipeline, read: Any) -> None:
            super().__init__()
            self._pipeline, self._reads = pipeline, read

        def get_name(self) -> str:
            return "Headrace"

        def estimate_inmemory_data_size(self) -> int | None:
            records = self._pipeline._built.graph.epoch_size({})["records"]
            each = _record_bytes(self._pipeline)
            return None if records < 0 or each is None else records * each

        def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, *_: Any, **__: Any) -> Any:
            each = _record_bytes(self._pipeline)
            example = {field.name: _example(field) for field in self._pipeline.fields}
            schema = BlockAccessor.for_block(BlockAccessor.batch_to_block(example)).schema()
            tasks = []
            for part in _parts(self._pipeline, parallelism):
                size = None if part.records is None or each is None else part.records * each
                about = BlockMetadata(num_rows=part.records, size_bytes=size, input_files=None, exec_stats=None)
                read = functools.partial(self._reads, part)
                tasks.append(ReadTask(read, about, schema=schema, per_task_row_limit=per_task_row_limit))
            return tasks

    return HeadraceSource
