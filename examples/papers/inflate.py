"""The synthetic pipeline of Cachew's autocache experiment: TFRecords whose bytes become 2.5 times as many.

python examples/papers/inflate.py train.tfrecord
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 900) -> hr.Pipeline:
    """Records of TFRecord files."""
    return hr.tfrecord(data).op("debug.inflate", factor=2.5).batch(batch)


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1]).loader(progress=True):
        pass
