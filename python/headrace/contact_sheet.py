"""A contact sheet of a batch of images, as PNG. Needs only NumPy and zlib."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._check import checked
from ._types import PathLike
from .batch import classes_of
from .errors import ArgumentError, DtypeError, NotFoundError, ShapeError
from .structure import mapped

_GAP = 2  # pixels between pictures
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STD = np.array([0.229, 0.224, 0.225], np.float32)

# Printable ASCII: [95, 8 rows, 5 columns].
_FONT = np.unpackbits(
    np.frombuffer(
        bytes.fromhex(
            "000000000000005f00000007000700147f147f14242a7f2a12231308646236495620500008070300001c2241000041221c00"
            "2a1c7f1c2a08083e080800807030000808080808000060600020100804023e5149453e00427f400072494949462141494d33"
            "1814127f1027454545393c4a49493141211109073649494936464949291e0000140000004034000000081422411414141414"
            "004122140802015909063e415d594e7c1211127c7f494949363e414141227f4141413e7f494949417f090909013e41415173"
            "7f0808087f00417f41002040413f017f081422417f404040407f021c027f7f0408107f3e4141413e7f090909063e4151215e"
            "7f09192946264949493203017f01033f4040403f1f2040201f3f4038403f631408146303047804036159494d43007f414141"
            "0204081020004141417f04020102044040404040000307080020545478407f284444383844444428384444287f3854545418"
            "00087e090218a4a49c787f0804047800447d40002040403d007f1028440000417f40007c047804787c080404783844444438"
            "fc1824241818242418fc7c08040408485454542404043f44243c4040207c1c2040201c3c4030403c44281028444c9090907c"
            "4464544c440008364100000077000000413608000201020402"
        ),
        np.uint8,
    ).reshape(95, 5, 1),
    axis=2,
    bitorder="little",
).transpose(0, 2, 1)
_CAPTIONS = ("label", "path")
_LETTER, _LINE = 6, 10  # pixels of a character and of a line of text, gaps included
_LETTERS = 20  # pictures are at most this far apart for the sake of their captions


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
def show(
    batch: Any,
    *,
    field: str | None = None,
    count: int = 64,
    columns: int | None = None,
    captions: str | Sequence[object] | None = _CAPTIONS,
) -> Sheet:
    """Draw the images of a batch side by side.

    Args:
        batch: a batch of a loader, or an array [n, h, w, c], [n, c, h, w], [n, h, w] or [h, w, c];
            uint8, floats 0..1, or floats around 0, which are assumed to be normalised with
            ImageNet's values.
        field: the field with the images; by default the first suitable one.
        count: the maximum number of images.
        columns: pictures per row; by default those of a square.
        captions: what is written below the images: names of fields, of which those that the batch
            has are shown, one a line, classes by their names; or a list of texts, one an
            image, for a batch that is an array. None: nothing.

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
    lines = _captions(batch, captions, n)
    letters = max((len(text) for line in lines for text in line), default=0)
    across = max(width, _LETTER * min(letters, _LETTERS))
    down = height + _LINE * len(lines)
    sheet = np.full((rows * (down + _GAP) - _GAP, columns * (across + _GAP) - _GAP, 3), 255, np.uint8)
    for i, image in enumerate(images):
        y, x = (i // columns) * (down + _GAP), (i % columns) * (across + _GAP)
        sheet[y : y + height, x : x + width] = image
        for k, line in enumerate(lines):
            text = _text(line[i], across // _LETTER)
            at = y + height + _LINE * k + 1
            sheet[at : at + text.shape[0], x : x + text.shape[1]] = text[..., None]
    return Sheet(sheet)


def _captions(batch: Any, captions: str | Sequence[object] | None, n: int) -> list[list[str]]:
    """Lines below the images, each with a text for every image."""
    if captions is None:
        return []
    if not isinstance(batch, Mapping):
        if captions is _CAPTIONS:
            return []
        if isinstance(captions, str) or not hasattr(captions, "__len__") or len(captions) < n:
            raise ArgumentError(
                f"show(): captions are {n} texts, one for each image, not {captions!r:.60}", param="captions"
            )
        return [[_plain(one) for one in captions[:n]]]
    names = (captions,) if isinstance(captions, str) else captions
    lines = []
    for name in names:
        if name not in batch and captions is not _CAPTIONS:
            raise NotFoundError(
                f"there is no field {name!r} for the captions; fields: {', '.join(batch)}", param="captions"
            )
        if name in batch and hasattr(batch[name], "__len__") and len(batch[name]) >= n:
            classes = classes_of(batch, name)
            lines.append([_plain(_last_part(one), classes) for one in _items(batch[name])[:n]])
    return lines


def _items(values: Any) -> Any:
    return values if isinstance(values, (list, tuple)) else _array(values)


def _last_part(value: Any) -> Any:
    """The last part of a path; other values unchanged."""
    return value.rstrip("/").rpartition("/")[2] if isinstance(value, str) else value


def _plain(value: Any, classes: Sequence[str] = ()) -> str:
    """A value as one line of text."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    elif isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if classes and isinstance(value, (int, np.integer)) and 0 <= value < len(classes):
        return classes[int(value)]
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else " ".join(str(value).split())


def _text(text: str, most: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Dark letters on white, [8, pixels]; of a longer text the end."""
    if len(text) > most:
        text = "~" + text[len(text) - most + 1 :]
    letters = [_FONT[ord(c) - 32 if " " <= c <= "~" else ord("?") - 32] for c in text]
    made = np.full((8, _LETTER * len(letters)), 255, np.uint8)
    for i, letter in enumerate(letters):
        made[:, _LETTER * i : _LETTER * i + 5][letter > 0] = 0
    return made


def _array(value: Any) -> np.ndarray[Any, Any]:
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    return np.asarray(value)


def _images(batch: Any, field: str | None) -> np.ndarray[Any, Any]:
    if field is not None:
        return _array(batch[field])
    if not isinstance(batch, (Mapping, tuple, list)):
        return _array(batch)
    found: list[Any] = []
    mapped(found.append, batch)
    for value in found:
        if len(getattr(value, "shape", ())) in (3, 4):
            return _array(value)
    raise NotFoundError("no part of the batch holds images; name a field of a batch with field=", param="field")


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


def _filtered(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Rows of a PNG file, each by the filter that leaves the smallest differences."""
    height, width, _ = pixels.shape
    around = np.zeros((height + 1, width + 1, 3), np.int16)
    around[1:, 1:] = pixels
    here, left, up, corner = around[1:, 1:], around[1:, :-1], around[:-1, 1:], around[:-1, :-1]
    far_left, far_up, far_corner = np.abs(up - corner), np.abs(left - corner), np.abs(left + up - 2 * corner)
    paeth = np.where((far_left <= far_up) & (far_left <= far_corner), left, np.where(far_up <= far_corner, up, corner))
    guesses = (0 * here, left, up, (left + up) // 2, paeth)  # filters 0 to 4
    each = np.stack([(here - guess).astype(np.uint8).reshape(height, -1) for guess in guesses])
    best = np.minimum(each, -each).sum(axis=2, dtype=np.uint64).argmin(axis=0)
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = best
    rows[:, 1:] = each[best, np.arange(height)]
    return rows.tobytes()


def _png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(_filtered(pixels), 6))
        + chunk(b"IEND", b"")
    )
