"""Issue 14 B4: elastic shifts move an image and what belongs to it alike."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import headrace as hr

FIELDS = ["image", "mask", "boxes", "points"]


class Ramps:
    """Images whose levels say where a pixel came from, with a point at every pixel."""

    def __init__(self, rng: random.Random) -> None:
        self.items: list[dict[str, Any]] = []
        for _ in range(6):
            width, height = rng.randint(30, 60), rng.randint(30, 60)
            x, y = np.meshgrid(np.arange(width), np.arange(height))
            box = [rng.randint(0, 9), rng.randint(0, 9), rng.randint(15, width - 1), rng.randint(15, height - 1)]
            self.items.append(
                {
                    "image": np.stack([4 * x, 4 * y, x + y], -1).astype(np.uint8),
                    "mask": (x // 8 + 8 * (y // 8))[:, :, None].astype(np.uint8),
                    "boxes": np.array([box], np.float32),
                    "points": np.stack([x, y], -1).reshape(-1, 2).astype(np.float32),
                }
            )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, at: int) -> dict[str, Any]:
        return self.items[at]


def moved(ramps: Ramps, seed: int, **options: Any) -> list[dict[str, Any]]:
    pipe = hr.from_dataset(ramps)
    for field in FIELDS:
        pipe = pipe.kind(field, field)
    loader = (
        pipe.elastic(field=FIELDS, mask_fill=255, **options).batch(1, ragged=True).loader(output="numpy", seed=seed)
    )
    return [{k: v.item(0) if isinstance(v, hr.Ragged) else v[0] for k, v in batch.items()} for batch in loader]


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_masks_boxes_and_points_follow_the_image(rng: random.Random, interpolation: str) -> None:
    ramps = Ramps(rng)
    farthest = 0.0
    for item, made in zip(
        ramps.items, moved(ramps, rng.randrange(2**40), alpha=150, interpolation=interpolation), strict=True
    ):
        height, width = item["image"].shape[:2]
        shifts = (item["points"] - made["points"]).reshape(height, width, 2)
        at = shifts + item["points"].reshape(height, width, 2)
        inside = ((at >= 0) & (at <= [width - 1, height - 1])).all(-1)
        levels = at if interpolation == "bilinear" else np.floor(at + 0.5)
        ties = (np.abs(at + 0.5 - np.round(at + 0.5)) < 1e-3).any(-1)
        good = inside & ~(ties & (interpolation == "nearest"))
        assert np.abs(made["image"][:, :, :2] - 4 * levels)[good].max() <= (1.01 if interpolation == "bilinear" else 0)
        x, y = np.floor(at + 0.5).astype(int).transpose(2, 0, 1)
        within = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        mask = np.where(within, x // 8 + 8 * (y // 8), 255)
        assert (made["mask"][:, :, 0] == mask)[~ties].all()
        left, top, right, bottom = item["boxes"][0].astype(int)
        corners = np.array([[x, y] - shifts[y, x] for x in (left, right) for y in (top, bottom)])
        box = np.concatenate([corners.min(0), corners.max(0)]).clip(0, [width, height, width, height])
        assert np.abs(made["boxes"][0] - box).max() < 1e-3
        farthest = max(farthest, float(np.abs(shifts).max()))
    assert farthest > 1


def test_shifts_have_the_scale_and_smoothness_that_are_asked(rng: random.Random) -> None:
    """Without a blur shifts are uniform up to alpha * side / other side / 2; with one, neighbours are alike."""
    ramps, seed = Ramps(rng), rng.randrange(2**40)
    for item, made in zip(ramps.items, moved(ramps, seed, alpha=[8, 20], sigma=0), strict=True):
        height, width = item["image"].shape[:2]
        shifts = np.abs(item["points"] - made["points"]).max(0)
        most = np.array([8 * width / height / 2, 20 * height / width / 2])
        assert (shifts <= most + 1e-3).all() and (shifts > 0.9 * most).all()
    for item, made in zip(ramps.items, moved(ramps, seed, alpha=300, sigma=4), strict=True):
        height, width = item["image"].shape[:2]
        shifts = (item["points"] - made["points"]).reshape(height, width, 2)
        assert np.abs(np.diff(shifts, axis=1)).mean() < 0.5 * np.abs(shifts).mean()
