"""A contact sheet of a batch of images, as PNG. Needs only NumPy and zlib."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._check import checked
from ._types import PathLike
from .errors import ArgumentError, DtypeError, NotFoundError, ShapeError

_GAP = 2  # pixels between pictures
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STD = np.array([0.229, 0.224, 0.225], np.float32)


class Sheet:
    """Pictures in rows; a notebook shows it, `save` writes it."""

    def __init__(self, pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        self.pixels = pixels

    def _repr_png_(self) -> bytes:
        return _png(self.pixels)

    def save(self, path: PathLike) -> None:
        """Write a PNG file."""
        with open(os.fspath(path), "wb") as file:
            file.write(self._repr_png_())

    def __repr__(self) -> str:
        height, width, _ = self.pixels.shape
        return f"<Sheet of {width} x {height} pixels; .save('sheet.png')>"


@checked
def show(batch: Any, *, field: str | None = None, count: int = 64, columns: int | None = None) -> Sheet:
    """Draw the images of a batch side by side.

    Args:
        batch: a Batch, or an array [n, h, w, c], [n, c, h, w], [n, h, w] or [h, w, c];
            uint8, floats 0..1, or floats around 0, which are assumed to be normalised with
            ImageNet's values.
        field: the field with the images; by default the first suitable one.
        count: the maximum number of images.
        columns: pictures per row; by default those of a square.

    Returns:
        A Sheet, which a notebook shows.
    """
    for name, value in (("count", count), ("columns", columns)):
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__") or value < 1):
            raise ArgumentError(f"show(): {name} must be at least 1, not {value!r:.60}", param=name)
    images = _pixels(_images(batch, field), count)
    n, height, width, _ = images.shape
    columns = min(n, columns or int(np.ceil(np.sqrt(n))))
    rows = -(-n // columns)
    sheet = np.full((rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3), 255, np.uint8)
    for i, image in enumerate(images):
        y, x = (i // columns) * (height + _GAP), (i % columns) * (width + _GAP)
        sheet[y : y + height, x : x + width] = image
    return Sheet(sheet)


def _array(value: Any) -> np.ndarray[Any, Any]:
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    return np.asarray(value)


def _images(batch: Any, field: str | None) -> np.ndarray[Any, Any]:
    if not isinstance(batch, Mapping):
        return _array(batch)
    if field is not None:
        return _array(batch[field])
    for value in batch.values():
        if len(getattr(value, "shape", ())) in (3, 4):
            return _array(value)
    raise NotFoundError(f"no field of {', '.join(batch)} holds images; name one with field=", param="field")


def _pixels(images: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Images of any kind as uint8 [n, h, w, 3]."""
    if images.dtype.kind not in "buif":
        raise DtypeError(f"show(): images are arrays of numbers, not of {images.dtype}", param="batch")
    if images.ndim == 3:
        images = images[None] if images.shape[2] in (1, 3, 4) else images[..., None]
    images = images[:count] if images.ndim == 4 else images
    if images.ndim != 4 or 0 in images.shape:
        raise ShapeError(f"images have the shape [n, h, w, c] or [n, c, h, w], not {list(images.shape)}")
    if images.shape[3] not in (1, 3, 4) and images.shape[1] in (1, 3, 4):
        images = images.transpose(0, 2, 3, 1)
    images = images[..., :3] if images.shape[3] >= 3 else np.repeat(images[..., :1], 3, 3)
    if images.dtype != np.uint8:
        images = np.nan_to_num(images.astype(np.float32), posinf=1, neginf=0)
        if images.min() < -0.01:
            images = images * _STD + _MEAN
        elif images.max() > 2:
            images = images / 255
        images = np.clip(images * 255 + 0.5, 0, 255).astype(np.uint8)
    return images


def _png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )
