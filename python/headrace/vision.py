"""torchvision's v2 transforms of images, by its names and arguments, on Headrace's operators.

    from headrace import vision

    transform = vision.Compose([
        vision.RandomResizedCrop(224),
        vision.RandomHorizontalFlip(),
        vision.ToDtype(torch.float32, scale=True),
        vision.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ])

As the transform of a data set, of encoded bytes, PIL images, arrays or tensors:

    dataset = torchvision.datasets.ImageFolder("photos", transform, loader=vision.read)
    loader = hr.DataLoader(dataset, batch_size=64, num_workers=2)

Encoded bytes are fastest: only what a crop needs is decoded. Or as steps of a pipeline:

    hr.files("photos").shuffle().decode().pipe(transform).layout("chw").batch(64)

A transform of an image returns a tensor `[channels, height, width]`. Its random numbers come from torch's
global generator, one of 63 bits for each call, so `torch.manual_seed` and the seeds of DataLoader's workers
decide them. What is drawn has torchvision's distributions; the numbers differ.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from . import batch, sources
from .errors import ArgumentError
from .fieldspec import dtype_name
from .one_record import OneRecord
from .pipeline import Pipeline

Size: TypeAlias = "int | Sequence[int]"
Interval: TypeAlias = "float | Sequence[float]"
Fill: TypeAlias = "float | Sequence[float] | None"


class InterpolationMode(enum.StrEnum):
    """How values between pixels are computed."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    LANCZOS = "lanczos"


class AutoAugmentPolicy(enum.StrEnum):
    """The data set that a policy was found for."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


_PILLOW = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box"}
_WORDS = {"nearest-exact": "nearest"}


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, for `ImageFolder(loader=vision.read)`: the transform decodes them."""
    with open(path, "rb") as file:
        return file.read()


class Transform:
    """What all transforms are: called with an image, it returns a tensor; with a pipeline, the pipeline with
    its steps, which change the field "image"."""

    _one: OneRecord | None = None

    def __post_init__(self) -> None:
        self._steps(sources.range(1))  # refuses wrong arguments here, not at the first image

    def __call__(self, image: Any) -> Any:
        """The image after the steps.

        Args:
            image: encoded bytes (JPEG, PNG, WebP, PNM); a PIL image; a NumPy array `[height, width, channels]`;
                a torch tensor `[channels, height, width]`; or a Pipeline.
        """
        if isinstance(image, Pipeline):
            return self._steps(image)
        one = self._one
        if one is None:
            one = self._one = OneRecord(self._last)
        return batch.to_torch(one(image, _seed()))[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_one"}

    def _steps(self, p: Pipeline) -> Pipeline:
        raise NotImplementedError

    def _last(self, p: Pipeline) -> Pipeline:
        return self._steps(p).layout("chw")


def _seed() -> int:
    import torch

    return int(torch.empty((), dtype=torch.int64).random_())


def _interpolation(given: Any) -> Any:
    """Torchvision's and Pillow's numbers and enums as our words; other values as they are, to be refused."""
    word = getattr(given, "value", given)
    return _PILLOW.get(word, word) if isinstance(word, int) else _WORDS.get(word, word)


def _refuse(what: str, given: Any, wanted: Any, instead: str) -> None:
    if given is not wanted:
        name, _, param = what.partition(".")
        raise ArgumentError(f"{name}(): {param}={given!r:.60} is not supported; {instead}", param=param)


def _fill(given: Fill) -> Any:
    return 0 if given is None else given


# ---- groups ----


def _listed(transforms: Any, what: str) -> list[Any]:
    if isinstance(transforms, (str, bytes)) or not isinstance(transforms, Sequence) or not transforms:
        raise ArgumentError(f"{what}(): a list of transforms is needed, not {transforms!r:.60}", param="transforms")
    wrong = next((t for t in transforms if not isinstance(t, Transform)), None)
    if wrong is not None:
        raise ArgumentError(
            f"{what}(): {wrong!r:.80} is not a transform of headrace.vision; a function of your own belongs behind "
            "them, on the tensor",
            param="transforms",
        )
    return list(transforms)


@dataclass(eq=False)
class Compose(Transform):
    """The transforms, one after the other."""

    transforms: Sequence[Transform]

    def _steps(self, p: Pipeline) -> Pipeline:
        for one in _listed(self.transforms, "Compose"):
            p = one(p)
        return p


@dataclass(eq=False)
class RandomApply(Transform):
    """All of the transforms with probability `p`, or none."""

    transforms: Sequence[Transform]
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.apply(Compose(self.transforms), p=self.p)


@dataclass(eq=False)
class RandomChoice(Transform):
    """One of the transforms; `p`: their weights."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.one_of(_listed(self.transforms, "RandomChoice"), weights=self.p)


# ---- sizes and places ----


@dataclass(eq=False)
class Resize(Transform):
    """To `[height, width]`; one number is the length of the shorter side."""

    size: Size
    interpolation: Any = "bilinear"
    max_size: int | None = None
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        how: Any = {"interpolation": _interpolation(self.interpolation), "antialias": bool(self.antialias)}
        sides = [self.size] if isinstance(self.size, int) else list(self.size)
        if len(sides) == 1:
            return p.resize_shortest(sides[0], max_size=self.max_size or 0, **how)
        _refuse("Resize.max_size", self.max_size, None, "it needs a size of one number")
        return p.resize(sides, **how)


@dataclass(eq=False)
class ScaleJitter(Transform):
    """So that it just fits into `target_size`, times a random factor."""

    target_size: Size
    scale_range: Sequence[float] = (0.1, 2.0)
    interpolation: Any = "bilinear"
    antialias: bool | None = True

    def _steps(self, p: Pipeline) -> Pipeline:
        how: Any = {"interpolation": _interpolation(self.interpolation), "antialias": bool(self.antialias)}
        return p.scale_jitter(self.target_size, scale=self.scale_range, **how)


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
            fill=_fill(self.fill),
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
            interpolation=_interpolation(self.interpolation),
            antialias=bool(self.antialias),
        )


@dataclass(eq=False)
class Pad(Transform):
    """A frame: one number for all sides, or two (left and right, top and bottom), or four from the left on."""

    padding: Size
    fill: Fill = 0
    padding_mode: Any = "constant"

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.pad(self.padding, fill=_fill(self.fill), mode=self.padding_mode)


@dataclass(eq=False)
class RandomZoomOut(Transform):
    """On a larger canvas, at a random place."""

    fill: Fill = 0
    side_range: Sequence[float] = (1.0, 4.0)
    p: float = 0.5

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.zoom_out(fill=_fill(self.fill), side_range=self.side_range, p=self.p)


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
        _refuse("RandomRotation.center", self.center, None, "images are rotated about their centre")
        return p.rotate(
            self.degrees,
            interpolation=_interpolation(self.interpolation),
            expand=self.expand,
            fill=_fill(self.fill),
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
        _refuse("RandomAffine.center", self.center, None, "images are turned about their centre")
        return p.affine(
            self.degrees,
            translate=self.translate or (0, 0),
            scale=self.scale or (1, 1),
            shear=(0, 0) if self.shear is None else self.shear,
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
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
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
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
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
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


# ---- colours ----


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
        size = self.kernel_size
        return p.gaussian_blur(size if isinstance(size, int) else list(size)[::-1], sigma=self.sigma)


@dataclass(eq=False)
class GaussianNoise(Transform):
    """Normal noise, in 0..1."""

    mean: float = 0.0
    sigma: float = 0.1
    clip: bool = True

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.gaussian_noise(mean=self.mean, sigma=self.sigma, clip=self.clip)


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


# ---- policies ----


@dataclass(eq=False)
class AutoAugment(Transform):
    """One of the policy's pairs of changes."""

    policy: Any = "imagenet"
    interpolation: Any = "nearest"
    fill: Fill = None

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.auto_augment(
            policy=getattr(self.policy, "value", self.policy),
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
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
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
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
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
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
            interpolation=_interpolation(self.interpolation),
            fill=_fill(self.fill),
        )


# ---- types ----


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
        return p.normalize(mean=list(self.mean), std=list(self.std))


_ELSEWHERE = {
    "CutMix": "mixes batches: pipeline.batch(64).cutmix(num_classes=10)",
    "MixUp": "mixes batches: pipeline.batch(64).mixup(num_classes=10)",
    "FiveCrop": "makes several images of one: pipeline.five_crop(size)",
    "TenCrop": "makes several images of one: pipeline.ten_crop(size)",
    "RandomIoUCrop": 'moves boxes: pipeline.iou_crop(field=["image", "boxes"])',
    "SanitizeBoundingBoxes": "drops boxes: pipeline.sanitize()",
    "ConvertBoundingBoxFormat": 'changes boxes: pipeline.convert_boxes("xyxy")',
    "Lambda": "is a function of yours: call it on the tensor, or pipeline.map(function)",
}


def __getattr__(name: str) -> Any:
    import sys

    where = f": it {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"headrace.vision has no {name}{where}", name=name, obj=sys.modules[__name__])
