"""Fields with types, which editors, mypy and pyright know; that the fields are there is checked at the start.

python examples/cookbook/typed.py photos
"""

import sys
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import headrace as hr

Floats: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int64]


class Photos(hr.Batch):
    image: Floats
    label: Labels


def brightest(images: Floats, labels: Labels) -> int:
    """The label of the brightest image."""
    return int(labels[images.mean(axis=(1, 2, 3)).argmax()])


photos = hr.files(sys.argv[1] if len(sys.argv) > 1 else "photos", labels="folder").shuffle()
classes = photos.fields["label"].classes
pipe = photos.decode().resize([64, 64]).normalize("imagenet").batch(16)

for batch in pipe.loader(schema=Photos, output="numpy"):
    print(f"of {batch.records} photos the brightest is a {classes[brightest(batch.image, batch.label)]}")
