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

from collections.abc import Sequence
from typing import Any

from .._check import nearest
from .colours import (
    JPEG,
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from .geometry import (
    CenterCrop,
    ElasticTransform,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResize,
    RandomResizedCrop,
    RandomRotation,
    RandomShortestSize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    ScaleJitter,
)
from .lists import Compose, Lambda, RandomApply, RandomChoice, RandomOrder
from .policies import AugMix, AutoAugment, RandAugment, TrivialAugmentWide
from .transform import AutoAugmentPolicy, InterpolationMode, Transform, read
from .types import ConvertImageDtype, Identity, Normalize, PILToTensor, ToDtype, ToImage, ToPureTensor, ToTensor

_ELSEWHERE = {
    "CutMix": "mixes batches: pipeline.batch(64).cutmix(num_classes=10)",
    "MixUp": "mixes batches: pipeline.batch(64).mixup(num_classes=10)",
    "FiveCrop": "makes several images of one: pipeline.five_crop(size)",
    "TenCrop": "makes several images of one: pipeline.ten_crop(size)",
    "RandomIoUCrop": 'moves boxes: pipeline.iou_crop(field=["image", "boxes"])',
    "SanitizeBoundingBoxes": "drops boxes: pipeline.sanitize()",
    "ConvertBoundingBoxFormat": 'changes boxes: pipeline.convert_boxes("xyxy")',
    "LinearTransformation": "is Lambda(function) with a function of yours",
    "RGB": "is Lambda(lambda image: image.expand(3, -1, -1)) for a tensor of one channel; encoded images are RGB",
    "ToPILImage": "is torchvision's, of the tensor that a transform returns",
    "functional": "is torchvision's, of the tensor that a transform returns",
}


def __getattr__(name: str) -> Any:
    import sys

    where = f": it {_ELSEWHERE[name]}" if name in _ELSEWHERE else nearest(name, __all__)
    raise AttributeError(f"headrace.vision has no {name}{where}", name=name, obj=sys.modules[__name__])


def __dir__() -> Sequence[str]:
    return __all__


__all__ = [
    "JPEG",
    "AugMix",
    "AutoAugment",
    "AutoAugmentPolicy",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "ElasticTransform",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Identity",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomShortestSize",
    "RandomSolarize",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ScaleJitter",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToTensor",
    "Transform",
    "TrivialAugmentWide",
    "read",
]
