"""A transform of your own in NumPy, with random numbers that do not depend on threads or restarts.

python examples/cookbook/numpy_transform.py photos
"""

import sys

import numpy as np

import headrace as hr


def salt(image: np.ndarray) -> np.ndarray:
    """Makes one pixel in a hundred white."""
    image[hr.rng().random(image.shape[:2]) < 0.01] = 255
    return image


def darkest(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Adds a field to a batch."""
    return {**batch, "darkest": batch["image"].min(axis=(1, 2, 3))}


if __name__ == "__main__":  # worker processes import this file
    photos = hr.files(sys.argv[1] if len(sys.argv) > 1 else "photos", paths=False).shuffle()
    pipe = (
        photos.decode()
        .resize([64, 64])
        .map(salt, fields="image", variant="processes")  # "threads" for functions that release the lock
        .batch(32)
        .map_batch(darkest)
    )
    for batch in pipe.loader(seed=1, output="numpy"):
        white = (batch.image == 255).all(axis=3).mean()
        print(f"{batch.records} photos, {white:.1%} white, the darkest has {batch.darkest.min()}")
