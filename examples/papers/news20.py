"""CNN and LSTM on News20 of PipeTune's evaluation: messages to the vectors of 500 words; see news20.yaml.

python examples/papers/news20.py 20news words.txt glove.npy
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 128, *, words: str, table: str) -> hr.Pipeline:
    """Messages in the folders of `data`, which are their labels."""
    return (
        hr.files(data, labels="folder", suffixes=[])
        .shuffle()
        .lower_text(field="data")
        .split_text(field="data")
        .vocab_lookup(words, skip_unknown=True)
        .truncate_tokens(500, keep="end")
        .pad_tokens(length=500)
        .embed_tokens(table)
        .select(["embeddings", "label"])
        .batch(batch)
    )


if __name__ == "__main__":
    data, words, table = sys.argv[1:]
    for _ in pipeline(data, words=words, table=table).loader(progress=True):
        pass
