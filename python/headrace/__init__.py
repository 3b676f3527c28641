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

from . import _headrace, ops
from .batch import Batch, Ragged
from .build import Field
from .dataset import from_dataset, from_generator, from_iterable
from .errors import (
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
from .pipeline import Pipeline
from .sources import csv, files, from_yaml, idx, jsonl, lines, list, load, range, records, tar, tfrecord, zip
from .split import split
from .user_code import rng

if TYPE_CHECKING:
    from .contact_sheet import show
    from .data_loader import DataLoader as DataLoader
    from .loader import Loader, UnknownLengthError
    from .states import merge_states
    from .tokenizer import Tokenizer

__version__ = _headrace.version()

# DataLoader is not in __all__: it imports torch.
_LAZY = {
    "DataLoader": "data_loader",
    "Loader": "loader",
    "Tokenizer": "tokenizer",
    "UnknownLengthError": "loader",
    "merge_states": "states",
    "show": "contact_sheet",
}


def __getattr__(name: str) -> Any:
    import importlib
    import sys

    if name not in _LAZY:
        # With name and obj the interpreter adds "Did you mean".
        raise AttributeError(f"module 'headrace' has no attribute '{name}'", name=name, obj=sys.modules[__name__])

    made = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = made
    return made


__all__ = [
    "ArgumentError",
    "Batch",
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
    "MissingFileError",
    "NotFoundError",
    "OutOfMemoryError",
    "Pipeline",
    "Ragged",
    "RangeError",
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
    "csv",
    "files",
    "from_dataset",
    "from_generator",
    "from_iterable",
    "from_yaml",
    "idx",
    "jsonl",
    "lines",
    "list",
    "load",
    "merge_states",
    "ops",
    "range",
    "records",
    "rng",
    "show",
    "spec",
    "split",
    "tar",
    "tfrecord",
    "zip",
]
