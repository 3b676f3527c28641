"""NLP-tf of cedar's evaluation: lines to the ids of a SentencePiece model and their embeddings.

python examples/papers/nlp_tf.py wiki.txt en.wiki.bpe.vs50000.model rows.npy
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 1, *, model: str, table: str) -> hr.Pipeline:
    """Lines of the file `data`, in their order."""
    return (
        hr.lines(data)
        .tokenize_unigram(model)
        .truncate_tokens(254)
        .embed_tokens(table)
        .select("embeddings")
        .padded_batch(batch)
    )


if __name__ == "__main__":
    data, model, table = sys.argv[1:]
    for _ in pipeline(data, model=model, table=table).loader(progress=True):
        pass
