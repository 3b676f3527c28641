"""Headrace: from a folder of files to training batches.

    import headrace as hr

    train = (hr.files("photos/", labels="folder")
               .shuffle(seed=7)
               .decode().random_resized_crop(224).flip().normalize("imagenet")
               .to("float32", layout="chw")
               .batch(256))
    for batch in train.loader(epochs=90):
        batch.image, batch.label

See `Pipeline` for the operators, `Loader` for running a pipeline, and docs/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _headrace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import ops, vision
    from .batch import Batch, Ragged
    from .build import Field
    from .columns import from_columns
    from .contact_sheet import show
    from .data_loader import DataLoader as DataLoader
    from .dataset import from_dataset, from_generator, from_iterable
    from .errors import (
        AccessError,
        ArgumentError,
        CancelledError,
        ClosedError,
        CodeError,
        DtypeError,
        FormatError,
        GraphError,
        HeadraceError,
        InternalError,
        LimitError,
        MissingFileError,
        NotFoundError,
        OutOfMemoryError,
        RangeError,
        ReadError,
        ShapeError,
        StateError,
        StateMismatchError,
        StuckError,
        UnsupportedError,
        WorkerTraceback,
    )
    from .fieldspec import Spec, spec
    from .fleet import LocalWorkers
    from .joining import join
    from .loader import Loader, UnknownLengthError
    from .mixing import mix
    from .optimizing import CachePlace, Optimization, optimize
    from .pipeline import Pipeline
    from .ray_data import to_ray_dataset
    from .ray_workers import RayWorkers
    from .sources import (
        arrow,
        coco,
        concat,
        csv,
        files,
        from_yaml,
        hdf5,
        idx,
        interleave,
        jsonl,
        lines,
        list,
        lmdb,
        load,
        npy,
        parquet,
        range,
        records,
        tar,
        tfrecord,
        voc,
        zip,
    )
    from .splits import split
    from .states import merge_states
    from .tokenizer import Tokenizer
    from .user_code import rng

__version__ = _headrace.version()
__codecs__: dict[str, str]
"""The libraries that this build can use, with their versions: `{"libpng": "1.6.58", ...}`."""

# Where the public names are. A module is imported when one of its names is first used: a worker
# process needs few of them. DataLoader is not in __all__: it imports torch.
_NAMES = {
    "batch": "Batch Ragged",
    "build": "Field",
    "columns": "from_columns",
    "contact_sheet": "show",
    "data_loader": "DataLoader",
    "dataset": "from_dataset from_generator from_iterable",
    "errors": """AccessError ArgumentError CancelledError ClosedError CodeError DtypeError FormatError GraphError
        HeadraceError InternalError LimitError MissingFileError NotFoundError OutOfMemoryError RangeError ReadError
        ShapeError StateError StateMismatchError StuckError UnsupportedError WorkerTraceback""",
    "fieldspec": "Spec spec",
    "fleet": "LocalWorkers",
    "joining": "join",
    "loader": "Loader UnknownLengthError",
    "mixing": "mix",
    "optimizing": "CachePlace Optimization optimize",
    "pipeline": "Pipeline",
    "ray_data": "to_ray_dataset",
    "ray_workers": "RayWorkers",
    "sources": "arrow coco concat csv files from_yaml hdf5 idx interleave jsonl lines list lmdb load npy parquet "
    "range records tar tfrecord voc zip",
    "splits": "split",
    "states": "merge_states",
    "tokenizer": "Tokenizer",
    "user_code": "rng",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}


def _may_be_step(name: str) -> bool:
    """False for a module: `from . import name` asks for an attribute first, and a worker process needs no pipeline."""
    from importlib.machinery import PathFinder

    named_alike = name in ("batch", "loader")
    return named_alike or not (name.startswith("_") or PathFinder.find_spec(f"{__name__}.{name}", __path__))


def __getattr__(name: str) -> Any:
    import importlib
    import sys

    if name == "__codecs__":  # made when it is asked for: it loads libcurl and others
        found: Any = {
            part["name"]: part["version"]
            for part in _headrace.parts()
            if part["kind"] == "library" and part["state"] == "ready"
        }
    elif name in ("ops", "vision"):
        found = importlib.import_module(f".{name}", __name__)
    elif name in _MODULE_OF:
        found = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    else:
        step = _may_be_step(name) and hasattr(importlib.import_module(".pipeline", __name__).Pipeline, name)
        hint = f": it is a step, as in hr.files('photos').{name}(...)" if step else ""
        # With name and obj the interpreter adds "Did you mean".
        raise AttributeError(f"module 'headrace' has no attribute '{name}'{hint}", name=name, obj=sys.modules[__name__])
    globals()[name] = found
    return found


def __dir__() -> Sequence[str]:
    import importlib.util

    torch = ["DataLoader"] if importlib.util.find_spec("torch") else []
    return [*__all__, *torch, "__codecs__", "__version__"]


__all__ = [
    "AccessError",
    "ArgumentError",
    "Batch",
    "CachePlace",
    "CancelledError",
    "ClosedError",
    "CodeError",
    "DtypeError",
    "Field",
    "FormatError",
    "GraphError",
    "HeadraceError",
    "InternalError",
    "LimitError",
    "Loader",
    "LocalWorkers",
    "MissingFileError",
    "NotFoundError",
    "Optimization",
    "OutOfMemoryError",
    "Pipeline",
    "Ragged",
    "RangeError",
    "RayWorkers",
    "ReadError",
    "ShapeError",
    "Spec",
    "StateError",
    "StateMismatchError",
    "StuckError",
    "Tokenizer",
    "UnknownLengthError",
    "UnsupportedError",
    "WorkerTraceback",
    "arrow",
    "coco",
    "concat",
    "csv",
    "files",
    "from_columns",
    "from_dataset",
    "from_generator",
    "from_iterable",
    "from_yaml",
    "hdf5",
    "idx",
    "interleave",
    "join",
    "jsonl",
    "lines",
    "list",
    "lmdb",
    "load",
    "merge_states",
    "mix",
    "npy",
    "ops",
    "optimize",
    "parquet",
    "range",
    "records",
    "rng",
    "show",
    "spec",
    "split",
    "tar",
    "tfrecord",
    "to_ray_dataset",
    "vision",
    "voc",
    "zip",
]
