"""Transforms of types and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..fieldspec import dtype_name
from ..pipeline import Pipeline
from .transform import Transform


@dataclass(eq=False)
class Identity(Transform):
    """The image as it is."""

    def _steps(self, p: Pipeline) -> Pipeline:
        return p


class ToImage(Identity):
    """Nothing: the result is a tensor in any case."""


class PILToTensor(Identity):
    """Nothing: the result is a tensor in any case."""


class ToPureTensor(Identity):
    """Nothing: the result is a tensor in any case."""


@dataclass(eq=False)
class ToDtype(Transform):
    """Another element type; with `scale` 0..255 becomes 0..1, and back."""

    dtype: Any
    scale: bool = False

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.op("tensor.cast", dtype=dtype_name(self.dtype), scale=self.scale)


@dataclass(eq=False)
class ConvertImageDtype(Transform):
    """Another element type; 0..255 becomes 0..1, and back."""

    dtype: Any = "float32"

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.op("tensor.cast", dtype=dtype_name(self.dtype), scale=True)


@dataclass(eq=False)
class ToTensor(Transform):
    """float32, 0..1."""

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.cast("float32")


@dataclass(eq=False)
class Normalize(Transform):
    """`(x - mean) / std` per channel, in 0..1: a uint8 image is scaled first."""

    mean: Sequence[float]
    std: Sequence[float]
    inplace: bool = False  # images are never changed in place

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.normalize(mean=self.mean, std=self.std)
