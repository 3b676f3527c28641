"""Small Pascal VOC data sets, and PNG files of any kind, for tests."""

from __future__ import annotations

import pathlib
import struct
import zlib
from typing import Any

import numpy as np

GRAY, RGB, PALETTE, GRAY_ALPHA = 0, 2, 3, 4
COLOURS = np.random.default_rng(1).integers(0, 256, (256, 3)).astype(np.uint8)


def png(pixels: np.ndarray[Any, Any], depth: int = 8, colour: int = PALETTE) -> bytes:
    """A PNG of integers [height, width] or [height, width, channels] of `depth` bits."""
    height, width = pixels.shape[:2]
    if depth == 16:
        rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    else:
        bits = np.unpackbits(pixels.astype(np.uint8).reshape(height, -1, 1), axis=2)[:, :, 8 - depth :]
        rows = np.packbits(bits.reshape(height, -1), axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    if colour == PALETTE:
        made += chunk(b"PLTE", COLOURS[: 1 << depth].tobytes())
    return made + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))) + chunk(b"IEND", b"")


def thing(name: str, corners: tuple[float, float, float, float], **marks: Any) -> str:
    """An <object>, with xmin, ymin, xmax and ymax as VOC counts them."""
    box = "".join(
        f"<{key}>{value:g}</{key}>" for key, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
    )
    return f"<object><name>{name}</name>{''.join(f'<{k}>{v}</{k}>' for k, v in marks.items())}<bndbox>{box}</bndbox></object>"


class Voc:
    """A folder like VOCdevkit/VOC2012; pictures are noise, in PNG files of that suffix."""

    def __init__(self, folder: pathlib.Path, count: int = 12, size: tuple[int, int] = (40, 60)) -> None:
        self.folder = folder
        self.size = size
        self.names = [f"2007_{7 * i % 1000:06}" for i in range(count)]
        self.rng = np.random.default_rng(5)
        self.objects: dict[str, list[str]] = {}
        self.masks: dict[str, np.ndarray[Any, Any]] = {}
        for part in ("JPEGImages", "Annotations", "SegmentationClass", "SegmentationObject", "ImageSets/Main"):
            (self.folder / part).mkdir(parents=True)
        (self.folder / "ImageSets/Segmentation").mkdir()
        for i, name in enumerate(self.names):
            self.add(
                name,
                [thing("dog", (1, 1, 60, 40)), thing("tvmonitor", (3 + i, 4, 20 + i, 9.5), difficult=1, truncated=1)][
                    : i % 3
                ],
            )
        for task in ("Main", "Segmentation"):
            self.write_list(f"ImageSets/{task}/train.txt", self.names)
            self.write_list(f"ImageSets/{task}/val.txt", self.names[:2])

    def path(self, part: str, name: str, suffix: str) -> pathlib.Path:
        return self.folder / part / (name + suffix)

    def add(self, name: str, objects: list[str]) -> None:
        height, width = self.size
        self.path("JPEGImages", name, ".jpg").write_bytes(
            png(self.rng.integers(0, 256, (height, width, 3)), colour=RGB)
        )
        self.objects[name] = objects
        self.masks[name] = self.rng.choice([0, 1, 12, 20, 255], self.size)
        for part in ("SegmentationClass", "SegmentationObject"):
            self.path(part, name, ".png").write_bytes(png(self.masks[name]))
        self.annotate(name, f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>")

    def annotate(self, name: str, size: str) -> None:
        text = (
            f"<annotation>\n\t<folder>VOC2012</folder>\n\t{size}\n\t"
            + "\n\t".join(self.objects[name])
            + "\n</annotation>\n"
        )
        self.path("Annotations", name, ".xml").write_text(text)

    def write_list(self, path: str, names: list[str]) -> None:
        (self.folder / path).write_text("".join(name + "\n" for name in names))
