"""ASR Transformer of Pecan's Table 1 without transcripts; asr_transformer.yaml says where it departs.

python examples/papers/asr_transformer.py sounds
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 64, suffix: str = "wav") -> hr.Pipeline:
    """Sounds of the folder `data`, shuffled."""
    return (
        hr.files(data, suffixes=[suffix])
        .shuffle()
        .decode_audio()
        .mono()
        .resample(22050)
        .speed(factors=[0.9, 1, 1.1])
        .pitch([-2, 2])
        .reverb(rt60=[0.2, 0.6], p=0.5)
        .spectrogram(n_fft=256, win=200, hop=80, power=1)
        .time_mask(50, share=0.2)
        .freq_mask(27)
        .padded_batch(batch, lengths=["audio"])
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1]).loader(progress=True):
        pass
