"""Transforms of sizes and places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..pipeline import Pipeline
from .transform import Fill, Interval, Size, Transform, fill, interpolation, refuse, sides


@dataclass(eq=False)
class Resize(Transform):
    """To `[height, width]`; one number is the length of the shorter side; with None `max_size` is the longer one."""

    size: Size | None
    interpolation: Any = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        how: Any = {"interpolation": interpolation(self.interpolation), "antialias": bool(self.antialias)}
        if self.size is None:
            if self.max_size is None:
                raise ArgumentError("Resize(): size=None needs max_size, the length of the longer side", param="size")
            return p.resize_shortest(self.max_size, max_size=self.max_size, **how)
        size = sides(self.size)
        if len(size) == 1:
            return p.resize_shortest(size[0], max_size=self.max_size or 0, **how)
        refuse("Resize.max_size", self.max_size, None, "it needs a size of one number")
        return p.resize(size, **how)


@dataclass(eq=False)
class ScaleJitter(Transform):
    """So that it just fits into `target_size`, times a random factor."""

    target_size: Size
    scale_range: Sequence[float] = (0.1, 2.0)
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        how: Any = {"interpolation": interpolation(self.interpolation), "antialias": bool(self.antialias)}
        return p.scale_jitter(self.target_size, scale=self.scale_range, **how)


@dataclass(eq=False)
class RandomShortestSize(Transform):
    """The shorter side to a length of `min_size`, or to less where the longer would exceed `max_size`."""

    min_size: Size
    max_size: int | None = None
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.random_shortest_size(
            sizes=self.min_size,
            max_size=self.max_size or 0,
            interpolation=interpolation(self.interpolation),
            antialias=bool(self.antialias),
        )


@dataclass(eq=False)
class RandomResize(Transform):
    """The shorter side to a length from `min_size` to `max_size - 1`."""

    min_size: int
    max_size: int
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        if self.min_size > self.max_size:
            raise ArgumentError("RandomResize(): max_size is below min_size", param="max_size")
        return p.random_shortest_size(
            between=[self.min_size, max(self.min_size, self.max_size - 1)],  # as torch.randint draws
            interpolation=interpolation(self.interpolation),
            antialias=bool(self.antialias),
        )


@dataclass(eq=False)
class CenterCrop(Transform):
    """The middle of the image; a smaller one is framed with zeros."""

    size: Size

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.center_crop(self.size)


@dataclass(eq=False)
class RandomCrop(Transform):
    """A window at a random place."""

    size: Size
    padding: Size | None = None
    pad_if_needed: bool = False
    fill: Fill = 0
    padding_mode: Any = "constant"

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.random_crop(
            self.size,
            padding=self.padding or 0,
            pad_if_needed=self.pad_if_needed,
            fill=fill(self.fill),
            mode=self.padding_mode,
        )


@dataclass(eq=False)
class RandomResizedCrop(Transform):
    """A window of random area and aspect, resized."""

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3 / 4, 4 / 3)
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.random_resized_crop(
            self.size,
            scale=self.scale,
            ratio=self.ratio,
            interpolation=interpolation(self.interpolation),
            antialias=bool(self.antialias),
        )


@dataclass(eq=False)
class Pad(Transform):
    """A frame: one number for all sides, or two (left and right, top and bottom), or four from the left on."""

    padding: Size
    fill: Fill = 0
    padding_mode: Any = "constant"

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.pad(self.padding, fill=fill(self.fill), mode=self.padding_mode)


@dataclass(eq=False)
class RandomZoomOut(Transform):
    """On a larger canvas, at a random place."""

    fill: Fill = 0
    side_range: Sequence[float] = (1.0, 4.0)
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.zoom_out(fill=fill(self.fill), side_range=self.side_range, p=self.p)


@dataclass(eq=False)
class RandomHorizontalFlip(Transform):
    """Left and right exchanged."""

    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.flip(p=self.p)


@dataclass(eq=False)
class RandomVerticalFlip(Transform):
    """Top and bottom exchanged."""

    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.flip(p=self.p, direction="vertical")


@dataclass(eq=False)
class RandomRotation(Transform):
    """By an angle from `[-degrees, degrees]`, or from the interval, counter-clockwise."""

    degrees: Interval
    interpolation: Any = "nearest"
    expand: bool = False
    center: Sequence[float] | None = None
    fill: Fill = 0

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.rotate(
            self.degrees,
            interpolation=interpolation(self.interpolation),
            expand=self.expand,
            center=self.center or (),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class RandomAffine(Transform):
    """Rotated, shifted, scaled and sheared."""

    degrees: Interval
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: Interval | None = None
    interpolation: Any = "nearest"
    fill: Fill = 0
    center: Sequence[float] | None = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.affine(
            self.degrees,
            translate=self.translate or (0, 0),
            scale=self.scale or (1, 1),
            shear=(0, 0) if self.shear is None else self.shear,
            interpolation=interpolation(self.interpolation),
            center=self.center or (),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class RandomPerspective(Transform):
    """Its corners moved at random."""

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: Any = "bilinear"
    fill: Fill = 0

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.perspective(
            distortion_scale=self.distortion_scale,
            p=self.p,
            interpolation=interpolation(self.interpolation),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class ElasticTransform(Transform):
    """Pixels shifted at random, smoothly."""

    alpha: Interval = 50.0
    sigma: Interval = 5.0
    interpolation: Any = "bilinear"
    fill: Fill = 0

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.elastic(
            alpha=self.alpha,
            sigma=self.sigma,
            interpolation=interpolation(self.interpolation),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class RandomErasing(Transform):
    """A random rectangle replaced by `value`, or by noise ("random")."""

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: Any = 0.0
    inplace: bool = False  # images are never changed in place

    def _steps(self, p: Pipeline) -> Pipeline:
        noise = self.value == "random" or self.value is None
        what: Any = {"random": True} if noise else {"value": self.value}
        return p.erase(p=self.p, scale=self.scale, ratio=self.ratio, **what)
