"""Argument checks that suggest the nearest valid name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, ParamSpec, TypeVar

from .errors import ArgumentError, HeadraceError

P = ParamSpec("P")
R = TypeVar("R")


def nearest(name: str, names: Iterable[str]) -> str:
    """The nearest valid name, as "; did you mean 'x'?", or ""."""
    import difflib

    found = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"; did you mean '{found[0]}'?" if found else ""


def path_of(path: object, called: str) -> str | bytes:
    """A path as text; ArgumentError if it is not a path."""
    import os

    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentError(f"{called}(): a path is needed, not {path!r:.60}", param="path")
    return os.fspath(path)


def listed(path: Any, files: Any) -> tuple[Any, Any]:
    """A list of paths as the folder that all are in, and the paths below it; other paths as they are."""
    import os

    if any(isinstance(given, (Mapping, Set)) for given in (path, files)):
        raise ArgumentError("files(): a list of paths is needed, in their order, not a dict or a set", param="path")
    if files is not None and not isinstance(files, (str, bytes)):
        files = [os.fsdecode(path_of(file, "files")) for file in files]
    if isinstance(path, (str, bytes, os.PathLike)) or not isinstance(path, Iterable):
        return path, files
    if files is not None:
        raise ArgumentError("files(): path is a list already; give a folder and files, or a list alone", param="files")
    texts = [os.fsdecode(path_of(file, "files")) for file in path]
    if not texts:
        raise ArgumentError("files(): the list of files is empty", param="path")
    if len({(text.partition("://")[0] if "://" in text else "", text.startswith("/")) for text in texts}) > 1:
        raise ArgumentError(
            "files(): absolute and relative paths, or those of different stores, are mixed", param="path"
        )
    scheme, _, _ = texts[0].rpartition("://")
    parts = [[p for p in text.rpartition("://")[2].split("/") if p not in ("", ".")] for text in texts]
    first, last = min(parts), max(parts)
    most = min(len(first), len(last)) - 1  # the name itself stays
    same = next((i for i in range(most) if first[i] != last[i]), most)
    root = f"{scheme}://" if scheme else "/" if texts[0].startswith("/") else ""
    if scheme and same == 0:
        raise ArgumentError("files(): the files of a list lie in one bucket, volume or server", param="path")
    return root + "/".join(first[:same]) or ".", ["/".join(p[same:]) for p in parts]


def one_of(what: str, value: object, allowed: Iterable[object]) -> None:
    """Raise ArgumentError unless `value` is one of `allowed`."""
    allowed = list(allowed)
    if value not in allowed:
        hint = nearest(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise ArgumentError(f"{what} must be one of {', '.join(map(repr, allowed))}, not {value!r}{hint}", param=what)


# Arguments of other libraries, and how the same is said here.
_MEANT = {("loader", name): "; ranks are given as shard=(rank, world)" for name in ("rank", "world", "num_replicas")}
_MEANT |= {
    (op, theirs): f"; torchvision's {theirs} is {ours} here"
    for op, theirs, ours in (
        ("image.gaussian_blur", "kernel_size", "size, [height, width]"),
        ("image.sharpness", "sharpness_factor", "factor"),
        ("image.grayscale", "num_output_channels", "channels"),
        ("image.ten_crop", "vertical_flip", "vertical"),
        ("image.scale_jitter", "target_size", "size"),
        ("image.scale_jitter", "scale_range", "scale"),
        ("image.random_shortest_size", "min_size", "sizes, or between=[least, most]"),
        ("image.iou_crop", "min_scale", "scale=[least, most]"),
        ("image.iou_crop", "max_scale", "scale=[least, most]"),
        ("image.iou_crop", "min_aspect_ratio", "ratio=[least, most]"),
        ("image.iou_crop", "max_aspect_ratio", "ratio=[least, most]"),
        ("image.iou_crop", "sampler_options", "overlaps"),
        *((op, "padding_mode", "mode") for op in ("image.pad", "image.random_crop", "image.fixed_size_crop")),
    )
}
_MEANT |= {
    (op, theirs): f"; {ours}"
    for op, names, ours in (
        ("loader", "batch_size", "the pipeline makes batches: pipe.batch(32).loader()"),
        ("loader", "drop_last", "the pipeline makes batches: pipe.batch(32, drop_last=True).loader()"),
        ("loader", "shuffle", "the pipeline shuffles: pipe.shuffle().batch(32).loader()"),
        ("loader", "sampler batch_sampler", "the pipeline chooses: pipe.sample(), pipe.take(), hr.split(pipe, ...)"),
        ("loader", "collate_fn", "the pipeline collates: pipe.padded_batch(32), pipe.batch(32).map_batch(function)"),
        ("loader", "num_workers", 'it is threads, and variant="processes" of functions'),
        ("loader", "prefetch_factor prefetch buffer_size", "loaders read ahead by themselves: memory bounds it"),
        ("loader", "in_order", "it is ordered"),
        ("loader", "generator", "it is seed"),
        ("loader", "worker_init_fn persistent_workers multiprocessing_context", "it is not needed: leave it out"),
        ("order.shuffle", "buffer_size reshuffle_each_iteration", "it shuffles all records, differently in each epoch"),
        ("code.map", "num_parallel_calls num_workers num_proc", "loader(threads=...) says how many calls run at once"),
        ("code.map", "batched", "map_batch takes batches"),
        ("code.source", "num_workers", "loader(threads=...) says how many items are read at once"),
        ("batch.pad", "padded_shapes", "each field is padded to its longest record"),
        ("batch.pad", "padding_value padding_values", "it is value"),
        ("flow.window", "shift", "it is stride"),
        ("flow.mix", "probs probabilities", "they are weights"),
        ("order.sample", "num_samples", "it is count"),
        ("source.files", "transform", "transforms are steps after it: hr.files(path).decode().resize(64)"),
    )
    for theirs in names.split()
}


def _explain(fn: Callable[..., Any], op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentError | None:
    """Why these arguments do not fit `fn`, or None when they do."""
    import inspect

    signature = inspect.signature(fn)
    names = [n for n, p in signature.parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    shown = [n for n in names if n not in ("self", "pipeline")]
    param = ""
    try:
        bound = signature.bind(*args, **kwargs).arguments
        if "pipeline" not in bound or hasattr(bound["pipeline"], "_then"):
            return None
        reason = f"pipeline is what hr.files() and its like make, not a {type(bound['pipeline']).__name__}"
    except TypeError as error:
        reason = str(error)
        unknown = [k for k in kwargs if k not in names]
        if unknown:
            param = unknown[0]
            reason = f"there is no argument '{param}'{_MEANT.get((op or fn.__name__, param)) or nearest(param, shown)}"
    called = op if fn.__module__.endswith("._ops") else fn.__name__
    reason += "" if reason.endswith("?") else "."
    return ArgumentError(
        f"{called}(): {reason} Arguments are: {', '.join(shown)}", param=param, op=op, node=_node_of(op, kwargs)
    )


def _node_of(op: str, kwargs: Mapping[str, Any]) -> str:
    name = kwargs.get("name")
    return name if op and isinstance(name, str) else op


def checked_op(op: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like `checked`, for a function that adds a node of operator `op`."""

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return fn(*args, **kwargs)
            except HeadraceError as error:
                error.op = error.op or op
                error.node = error.node or _node_of(op, kwargs)
                raise
            except (TypeError, AttributeError):
                made = _explain(fn, op, args, kwargs)
                if made is None:
                    raise
            raise made

        return call

    return decorate


def checked(fn: Callable[P, R]) -> Callable[P, R]:
    """Wraps `fn` so that wrong arguments raise ArgumentError."""
    return checked_op("")(fn)
