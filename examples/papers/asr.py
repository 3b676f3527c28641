"""ASR of cedar's evaluation: SpecAugment on speech; asr.yaml says where it departs.

python examples/papers/asr.py sounds
"""

from __future__ import annotations

import sys

import headrace as hr


def pipeline(data: str, batch: int = 1, suffix: str = "wav") -> hr.Pipeline:
    """Sounds of the folder `data`, in the order of their names."""
    return (
        hr.files(data, suffixes=[suffix])
        .decode_audio()
        .mono()
        .resample(22050)
        .resample(8000)
        .time_stretch(0.8)
        .spectrogram(n_fft=400)
        .time_mask(80)
        .freq_mask(80)
        .mel_scale(8000, n_mels=256, n_fft=400)
        .padded_batch(batch)
    )


if __name__ == "__main__":
    for _ in pipeline(sys.argv[1]).loader(progress=True):
        pass
