"""A data set of photos as usually written for torchvision, with Pillow.

Imports are at the top, as in a script, so that a worker process imports them once.
"""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import torch
import work

from headrace import vision

pil: Any = importlib.import_module("PIL.Image")
v2: Any = importlib.import_module("torchvision.transforms.v2")

COPIES = 1000  # of each photo per epoch: a new epoch would restart DataLoader's workers


class Photos:
    """Decode, random crop, flip, normalise: float32 CHW."""

    def __init__(self, folder: str, transforms: Any = v2) -> None:
        self.files = sorted(str(path) for path in pathlib.Path(folder).rglob("[!.]*.*"))
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224, antialias=True),
                transforms.RandomHorizontalFlip(),
                transforms.PILToTensor(),
                transforms.ToDtype(torch.float32, scale=True),
                transforms.Normalize(work.MEAN, work.STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.files) * COPIES

    def __getitem__(self, at: int) -> Any:
        with pil.open(self.files[at % len(self.files)]) as image:
            return self.transform(image.convert("RGB"))


class VisionPhotos(Photos):
    """The same with the transforms of hr.vision, which decode, too."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder, vision)

    def __getitem__(self, at: int) -> Any:
        return self.transform(vision.read(self.files[at % len(self.files)]))


class LevelPhotos(Photos):
    """Decode, random crop, flip: uint8 CHW, for a model that normalises on its device."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.transform = v2.Compose(self.transform.transforms[:3])
