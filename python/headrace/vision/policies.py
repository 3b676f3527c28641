"""Transforms that choose among others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..pipeline import Pipeline
from .transform import Fill, Transform, fill, interpolation


@dataclass(eq=False)
class AutoAugment(Transform):
    """One of the policy's pairs of changes."""

    policy: Any = "imagenet"
    interpolation: Any = "nearest"
    fill: Fill = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.auto_augment(
            policy=getattr(self.policy, "value", self.policy),
            interpolation=interpolation(self.interpolation),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class RandAugment(Transform):
    """`num_ops` random changes of one magnitude."""

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Fill = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.rand_augment(
            num_ops=self.num_ops,
            magnitude=self.magnitude,
            num_magnitude_bins=self.num_magnitude_bins,
            interpolation=interpolation(self.interpolation),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class TrivialAugmentWide(Transform):
    """One random change of random magnitude."""

    num_magnitude_bins: int = 31
    interpolation: Any = "nearest"
    fill: Fill = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.trivial_augment_wide(
            num_magnitude_bins=self.num_magnitude_bins,
            interpolation=interpolation(self.interpolation),
            fill=fill(self.fill),
        )


@dataclass(eq=False)
class AugMix(Transform):
    """A mix of the image with chains of changes of it."""

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: Any = "bilinear"
    fill: Fill = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.aug_mix(
            severity=self.severity,
            mixture_width=self.mixture_width,
            chain_depth=self.chain_depth,
            alpha=self.alpha,
            all_ops=self.all_ops,
            interpolation=interpolation(self.interpolation),
            fill=fill(self.fill),
        )
