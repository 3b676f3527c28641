"""NLP-hf-tf of cedar's evaluation: lines to GPT-2's ids, as far as nlp_hf_tf.yaml says.

python examples/papers/nlp_hf_tf.py wiki.txt encoder.json vocab.bpe
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 1, *, encoder: str, merges: str) -> hr.Pipeline:
    """Lines of the file `data`, in their order."""
    return hr.list(data).tokenize_bpe(encoder=encoder, merges=merges).truncate_tokens(254).padded_batch(batch)


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1], encoder=sys.argv[2], merges=sys.argv[3]).loader(progress=True):
        pass
