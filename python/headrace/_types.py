"""Types that signatures share."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]
DType: TypeAlias = Literal[
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
]
Variant: TypeAlias = Literal["inline", "threads", "processes"]
Output: TypeAlias = Literal["torch", "numpy", "jax", "headrace"]
Compress: TypeAlias = Literal["auto", "none", "lz4", "zstd"]
OnError: TypeAlias = Literal["fail", "skip", "substitute"]
Even: TypeAlias = Literal["none", "drop", "repeat", "steps"]
Demand: TypeAlias = float | Literal["consumer"] | None
Shard: TypeAlias = Literal["auto"] | tuple[int, int] | None
Strictness: TypeAlias = Literal["exact", "close", "relaxed"]
Rule: TypeAlias = Literal["headrace", "pecan", "written"]
