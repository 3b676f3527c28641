"""What all transforms are, and how their arguments become those of operators."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .. import batch, sources
from ..errors import ArgumentError
from ..one_record import OneRecord
from ..pipeline import Pipeline

Size: TypeAlias = "int | Sequence[int]"
Interval: TypeAlias = "float | Sequence[float]"
Fill: TypeAlias = "float | Sequence[float] | Mapping[Any, Any] | None"


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

    def __call__(self, image: Any, *more: Any) -> Any:
        """The image after the steps.

        Args:
            image: encoded bytes (JPEG, PNG, WebP, PNM); a PIL image; a NumPy array `[height, width, channels]`;
                a torch tensor `[channels, height, width]`; or a Pipeline.
            more: refused: labels stay as they are, and boxes and masks move with their image in a pipeline.
        """
        if more or isinstance(image, (dict, list, tuple)):
            raise ArgumentError(
                f"{type(self).__name__}() takes one image, and the label beside it stays as it is; boxes, masks and "
                'points move with their image in a pipeline: pipe.flip(field=["image", "boxes"])',
                param="image",
            )
        return self._steps(image) if isinstance(image, Pipeline) else self._of_image(image)

    def _of_image(self, image: Any) -> Any:
        one = self._one
        if one is None:
            one = self._one = OneRecord(self._last)
        return batch.to_torch(one(image, _seed()))[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_one"}

    def _calls(self) -> bool:
        """Whether functions of the user are part of it."""
        return False

    def _steps(self, p: Pipeline) -> Pipeline:
        raise NotImplementedError

    def _last(self, p: Pipeline) -> Pipeline:
        return self._steps(p).layout("chw")


_AS_IT_IS = OneRecord(lambda p: p.layout("chw"))


def tensor(image: Any) -> Any:
    """The image as a tensor; nothing is drawn."""
    import torch

    return image if isinstance(image, torch.Tensor) else batch.to_torch(_AS_IT_IS(image, 0))[0]


def _seed() -> int:
    import torch

    return int(torch.empty((), dtype=torch.int64).random_())


def interpolation(given: Any) -> Any:
    """Torchvision's and Pillow's numbers and enums as our words; other values as they are, to be refused."""
    word = getattr(given, "value", given)
    return _PILLOW.get(word, word) if isinstance(word, int) else _WORDS.get(word, word)


def refuse(what: str, given: Any, wanted: Any, instead: str) -> None:
    if given is not wanted:
        name, _, param = what.partition(".")
        raise ArgumentError(f"{name}(): {param}={given!r:.60} is not supported; {instead}", param=param)


def fill(given: Fill) -> Any:
    """Of a dict by types, as torchvision takes it, that of images."""
    if isinstance(given, Mapping):
        by_name = {getattr(kind, "__name__", kind): value for kind, value in given.items()}
        named = next((name for name in ("Image", "Tensor", "others") if name in by_name), None)
        if named is None:
            raise ArgumentError(f'fill={given!r:.100} has no value for images: give one for "others"', param="fill")
        given = by_name[named]
    return 0 if given is None else given


def sides(size: Any) -> list[Any]:
    """One number or several, as a list."""
    return list(size) if isinstance(size, Iterable) else [size]
