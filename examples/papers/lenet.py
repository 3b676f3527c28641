"""LeNet on MNIST of PipeTune's evaluation: digits, shuffled and standardised.

python examples/papers/lenet.py mnist t10k
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 128, part: str = "train") -> hr.Pipeline:
    """The IDX files in the folder `data`, as published; `part` is train or t10k."""
    return (
        hr.idx(f"{data}/{part}-images-idx3-ubyte.gz", labels=f"{data}/{part}-labels-idx1-ubyte.gz")
        .shuffle()
        .normalize("mnist")
        .layout("chw")
        .batch(batch)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1], part=sys.argv[2]).loader(progress=True):
        pass
