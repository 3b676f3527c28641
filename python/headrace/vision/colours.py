"""Transforms of colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..pipeline import Pipeline
from .transform import Interval, Size, Transform, sides


@dataclass(eq=False)
class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue, in random order."""

    brightness: Interval | None = None
    contrast: Interval | None = None
    saturation: Interval | None = None
    hue: Interval | None = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.color_jitter(
            brightness=self.brightness or 0,
            contrast=self.contrast or 0,
            saturation=self.saturation or 0,
            hue=self.hue or 0,
        )


@dataclass(eq=False)
class RandomPhotometricDistort(Transform):
    """SSD's changes of colours, each with probability `p`."""

    brightness: Sequence[float] = (0.875, 1.125)
    contrast: Sequence[float] = (0.5, 1.5)
    saturation: Sequence[float] = (0.5, 1.5)
    hue: Sequence[float] = (-0.05, 0.05)
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.photometric_distort(
            brightness=self.brightness, contrast=self.contrast, saturation=self.saturation, hue=self.hue, p=self.p
        )


@dataclass(eq=False)
class RandomChannelPermutation(Transform):
    """Channels in random order."""

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.permute_channels()


@dataclass(eq=False)
class Grayscale(Transform):
    """One channel of luma, or three that are equal."""

    num_output_channels: int = 1

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.grayscale(channels=self.num_output_channels)


@dataclass(eq=False)
class RandomGrayscale(Transform):
    """Luma in all channels."""

    p: float = 0.1

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.grayscale(p=self.p, channels=3)


@dataclass(eq=False)
class GaussianBlur(Transform):
    """A kernel of one size, or of `[width, height]`; a deviation that is drawn from `sigma`."""

    kernel_size: Size
    sigma: Interval = (0.1, 2.0)

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.gaussian_blur(sides(self.kernel_size)[::-1], sigma=self.sigma)


@dataclass(eq=False)
class GaussianNoise(Transform):
    """Normal noise, in 0..1."""

    mean: float = 0.0
    sigma: float = 0.1
    clip: bool = True

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.gaussian_noise(mean=self.mean, sigma=self.sigma, clip=self.clip)


@dataclass(eq=False)
class JPEG(Transform):
    """Compressed as JPEG of a quality, or of one from the interval, and decoded."""

    quality: Size

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.jpeg(self.quality)


@dataclass(eq=False)
class RandomInvert(Transform):
    """The negative."""

    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.invert(p=self.p)


@dataclass(eq=False)
class RandomPosterize(Transform):
    """The highest `bits` of each level."""

    bits: int
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.posterize(self.bits, p=self.p)


@dataclass(eq=False)
class RandomSolarize(Transform):
    """Levels from `threshold` on inverted."""

    threshold: float
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.solarize(self.threshold, p=self.p)


@dataclass(eq=False)
class RandomAdjustSharpness(Transform):
    """0: blurred; 1: as it is; 2: sharpened."""

    sharpness_factor: float
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.sharpness(self.sharpness_factor, p=self.p)


@dataclass(eq=False)
class RandomAutocontrast(Transform):
    """Each channel stretched over all levels."""

    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.autocontrast(p=self.p)


@dataclass(eq=False)
class RandomEqualize(Transform):
    """Equal numbers of pixels at all levels."""

    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.equalize(p=self.p)
