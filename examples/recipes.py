"""The augmentations of SimCLR and DINO as pipelines, and a picture of what they do.

    python examples/recipes.py PHOTOS sheet.png [simclr|dino]

The same as the graph files recipe_simclr.yaml and recipe_dino.yaml, and the same records. SimCLR works on
floats of 0 to 1 without normalisation, DINO on bytes, as their authors' code does. Two things differ from it:
blur is Gaussian where Pillow stacks boxes (DINO), and resizing averages where TensorFlow skips pixels (SimCLR).
"""

from __future__ import annotations

import sys

import numpy as np

import headrace as hr


def simclr_view(photo: hr.Pipeline, size: int = 224, blur: int = 23) -> hr.Pipeline:
    return (
        photo.random_resized_crop(size, interpolation="bicubic")
        .flip(p=0.5)
        .clip(min=0, max=1)
        .apply(lambda p: p.color_jitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2), p=0.8)
        .grayscale(p=0.2, channels=3)
        .apply(lambda p: p.gaussian_blur(blur, sigma=[0.1, 2]), p=0.5)
        .layout("chw")
    )


def simclr(photos: str, size: int = 224, blur: int = 23, batch: int = 256) -> hr.Pipeline:
    photo = hr.files(photos).shuffle().decode().cast("float32")
    views = [simclr_view(photo, size, blur) for _ in range(2)]
    return hr.zip(*views, prefix=["a_", "b_"]).batch(batch)


def blurred(p: hr.Pipeline) -> hr.Pipeline:
    return p.gaussian_blur(13, sigma=[0.1, 2])


def dino_view(photo: hr.Pipeline, size: int, scale: list[float]) -> hr.Pipeline:
    return (
        photo.random_resized_crop(size, scale=scale, interpolation="bicubic")
        .flip(p=0.5)
        .apply(lambda p: p.color_jitter(brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1), p=0.8)
        .grayscale(p=0.2, channels=3)
    )


def normal(p: hr.Pipeline) -> hr.Pipeline:
    return p.normalize(mean="imagenet", std="imagenet").layout("chw")


def dino(photos: str, size: int = 224, small: int = 96, batch: int = 64) -> hr.Pipeline:
    photo = hr.files(photos).shuffle().decode()
    first = normal(blurred(dino_view(photo, size, [0.4, 1])))
    second = normal(dino_view(photo, size, [0.4, 1]).apply(blurred, p=0.1).solarize(threshold=128, p=0.2))
    local = [normal(dino_view(photo, small, [0.05, 0.4]).apply(blurred, p=0.5)) for _ in range(8)]
    large = hr.zip(first, second, prefix=["global1_", "global2_"])
    return hr.zip(large, hr.zip(*local, prefix=[f"local{i}_" for i in range(1, 9)])).batch(batch)


def sheet(pipe: hr.Pipeline, path: str) -> None:
    """Draws the views of the first photos, a photo per row of each size."""
    batch = next(iter(pipe.loader(output="numpy", seed=1)))
    views = [batch[f.name].transpose(0, 2, 3, 1) for f in pipe.fields if f.name.endswith("image")]
    for side in sorted({v.shape[1] for v in views}, reverse=True):
        rows = np.stack([v for v in views if v.shape[1] == side], axis=1)
        name = path if side == max(v.shape[1] for v in views) else path.replace(".png", "-small.png")
        hr.show(rows.reshape(-1, side, side, 3), columns=rows.shape[1], captions=None).save(name)


if __name__ == "__main__":
    photos, path = sys.argv[1:3]
    sheet(dino(photos, batch=6) if sys.argv[3:] == ["dino"] else simclr(photos, batch=6), path)
