"""NLP-torch of cedar's evaluation: lines to RoBERTa's ids and their embeddings; see nlp_torch.yaml.

python examples/papers/nlp_torch.py wiki.txt encoder.json vocab.bpe rows.npy
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
        .add_tokens(begin=0, end=2)
        .embed_tokens(table)
        .select("embeddings")
        .padded_batch(batch)
    )


if __name__ == "__main__":
    data, encoder, merges, table = sys.argv[1:]
    for _ in pipeline(data, encoder=encoder, merges=merges, table=table).loader(progress=True):
        pass
