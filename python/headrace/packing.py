"""Pipeline.pack: writes the records of a pipeline into shards."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict

from . import _headrace
from ._check import nearest, one_of, path_of
from ._types import OnError, PathLike
from .errors import ArgumentError, translated
from .loader import Loader
from .loader_run import Run

if TYPE_CHECKING:
    from .pipeline import Pipeline

PackFormat: TypeAlias = Literal["records", "tar", "tfrecord"]


class PackOptions(TypedDict, total=False):
    """Options of `Pipeline.pack` that are those of a loader."""

    epochs: int
    seed: int
    threads: int | None
    memory: int | None
    plan: str | os.PathLike[str] | None
    on_error: OnError
    errors_max: int | None
    timeout: float | None
    ledger: PathLike | None
    shard: tuple[int, int] | None
    progress: bool


class Packed(NamedTuple):
    """What `Pipeline.pack` has written."""

    path: str  # of all shards, as the sources take it: "packed/part-{000000..000003}.records"
    shards: int
    records: int
    bytes: int
    errors: int  # bad records that this call skipped or substituted
    resumed: bool  # an earlier call had begun
    earlier: int = 0  # of the records, those that were there before append=True


_NAMES = tuple(PackOptions.__annotations__)


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 < value < 1 << 63:
        raise ArgumentError(f"pack(): {name} is a whole number above 0, not {value!r:.60}", param=name)
    return int(value)


def _loader(pipeline: Pipeline, options: PackOptions) -> Loader:
    for name in options:
        if name not in _NAMES:
            hint = nearest(name, _NAMES) or "."
            raise ArgumentError(
                f"pack(): there is no argument '{name}'{hint} Arguments are: format, prefix, shard_bytes, "
                f"shard_records, zstd, lz4, append, {', '.join(_NAMES)}",
                param=name,
            )
    _positive("epochs", options.get("epochs", 1))
    given: dict[str, Any] = {"seed": 0, "shard": None, **options}
    if given["shard"] is not None:
        given["even"] = "none"
    return Loader(pipeline, **given)


def _write(loader: Loader, packer: _headrace.Packer, epochs: int) -> None:
    state = packer.state()
    if state is not None:
        loader._state = {"first": 0, "epochs": epochs, "at": 0, "engine": state}
    run = loader._start(0, epochs)
    while True:
        try:
            record = run.take()
        except StopIteration:
            break
        with translated():
            ended = packer.add(record)
        if ended:
            _mark(run, packer)
    with translated():
        packer.finish()


def _mark(run: Run, packer: _headrace.Packer) -> None:
    state = run.save()
    assert state is not None, "the run has not ended"
    with translated():
        packer.mark(state)


def pack(
    pipeline: Pipeline,
    folder: PathLike,
    format: PackFormat,
    prefix: str,
    shard_bytes: int,
    shard_records: int | None,
    zstd: int | None,
    lz4: int | None,
    append: bool,
    options: PackOptions,
) -> Packed:
    """`Pipeline.pack`."""
    folder = os.fsdecode(path_of(folder, "pack"))
    one_of("format", format, ("records", "tar", "tfrecord"))
    if not isinstance(prefix, str):
        raise ArgumentError(f"pack(): prefix is a str, not {prefix!r:.60}", param="prefix")
    shard_bytes = _positive("shard_bytes", shard_bytes)
    shard_records = 0 if shard_records is None else _positive("shard_records", shard_records)
    zstd_level = 0 if zstd is None else _positive("zstd", zstd)
    lz4_level = 0 if lz4 is None else _positive("lz4", lz4)
    if not isinstance(append, bool):
        raise ArgumentError(f"pack(): append is True or False, not {append!r:.60}", param="append")
    with _loader(pipeline, options) as loader:
        epochs = int(options.get("epochs", 1))
        os.makedirs(folder, exist_ok=True)
        with translated():
            packer = _headrace.Packer(
                loader._built.graph,
                {**loader._engine, "epochs": epochs},
                folder,
                prefix,
                format,
                shard_bytes,
                shard_records,
                min(zstd_level, 1000),
                append,
                min(lz4_level, 1000),
            )
        with contextlib.closing(packer):
            complete = packer.complete()
            if not complete:
                _write(loader, packer, epochs)
            made = packer.result()
        errors = 0 if complete else int(loader.stats()["errors"])
    path = os.path.join(folder, f"{prefix}-{{000000..{made['shards'] - 1:06}}}.{format}")
    return Packed(
        path, made["shards"], made["records"], made["bytes"], errors, made["resumed"], made["records_earlier"]
    )
