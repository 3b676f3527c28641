"""Sounds that are computed from whole numbers, and WAV files of them."""

from __future__ import annotations

import pathlib
import wave

import numpy as np
from numpy.typing import NDArray


def chirp(rate: int, frames: int) -> NDArray[np.float32]:
    """A sweep with a sawtooth, as 16-bit samples, in -1..1."""
    at = np.arange(frames, dtype=np.int64)
    values = (at * at * 8000 // rate // 5 + 37 * at) % 20011 - 10005 + (at * 113) % 2001
    return (values / 32768).astype(np.float32)


def tones(rate: int) -> NDArray[np.float32]:
    """A quarter of a second of tones, all below 3 kHz, rounded to 16 bits."""
    time = np.arange(rate // 4) / rate
    values = sum(np.sin(2 * np.pi * hz * time + hz) for hz in (200, 730, 1900, 2950)) / 5
    return (np.round(values * 32768) / 32768).astype(np.float32)


def write(path: pathlib.Path, rate: int, sound: NDArray[np.float32]) -> None:
    """Writes samples of 16 bits: [frames] or [channels, frames]."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1 if sound.ndim == 1 else len(sound))
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(sound.T * 32768).astype("<i2").tobytes())
