"""NLP-hf-tf of cedar's evaluation: lines to GPT-2's ids and their embeddings.

python examples/papers/nlp_hf_tf.py wiki.txt encoder.json vocab.bpe rows.npy
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 1, *, encoder: str, merges: str, table: str) -> hr.Pipeline:
    """Lines of the file `data`, in their order."""
    return (
        hr.lines(data)
        .tokenize_bpe(encoder=encoder, merges=merges)
        .truncate_tokens(254)
        .embed_tokens(table)
        .select("embeddings")
        .padded_batch(batch)
    )


if __name__ == "__main__":
    data, encoder, merges, table = sys.argv[1:]
    for _ in pipeline(data, encoder=encoder, merges=merges, table=table).loader(progress=True):
        pass
