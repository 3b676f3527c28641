"""Writes tests/golden/sounds.npz: what torchaudio, librosa and soxr make of computed sounds.

    python tests/sounds/peers.py

Needs torchaudio (with torch), librosa and soxr; python/tests/test_audio.py compares our results with
the file and needs none of them. The sounds are computed from whole numbers (sounds.py), so the
file holds results only.
"""
import pathlib
import sys

import librosa
import numpy as np
import soxr
import torch
from cpu_torchaudio import torchaudio

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "python/tests"))
from sounds import chirp, tones  # noqa: E402

made = {}
for rate in (44100, 8000, 48000, 22050):
    sound = chirp(rate, 1200)
    made[f"resample {rate}"] = torchaudio.functional.resample(torch.tensor(sound), rate, 16000).numpy()
    made[f"soxr {rate}"] = soxr.resample(tones(rate), rate, 16000, quality="HQ").astype(np.float32)[1500:1800]

sound = chirp(16000, 1800)
tensor = torch.tensor(sound)
T = torchaudio.transforms
made["spectrogram"] = T.Spectrogram(400, hop_length=160)(tensor).numpy()
made["magnitude"] = T.Spectrogram(512, win_length=400, hop_length=100, power=1, window_fn=torch.hamming_window)(tensor).numpy()
made["left"] = T.Spectrogram(400, hop_length=160, center=False)(tensor).numpy()
made["mel"] = T.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80)(tensor).numpy()
made["mel db"] = T.AmplitudeToDB(top_db=80)(torch.tensor(made["mel"])).numpy()
made["mfcc"] = T.MFCC(16000, 40, melkwargs={"n_fft": 400, "hop_length": 160, "n_mels": 80})(tensor).numpy()
made["librosa mel"] = librosa.feature.melspectrogram(y=sound, sr=16000, n_fft=1024, hop_length=256, n_mels=64)
made["librosa db"] = librosa.power_to_db(made["librosa mel"])
quiet = np.concatenate([np.zeros(5000, np.float32), sound, np.zeros(7000, np.float32)])
made["trim"] = np.array(librosa.effects.trim(quiet)[1])

# In float64: what librosa makes of float32 sounds is up to 1e-2 from it, as its phases add up in float32.
sound = chirp(16000, 3000)
made["stretch slow"] = librosa.effects.time_stretch(sound.astype(float), rate=0.8, n_fft=512).astype(np.float32)
made["stretch fast"] = librosa.effects.time_stretch(sound.astype(float), rate=1.7, n_fft=400, hop_length=80).astype(np.float32)
for steps in (-3, 2):
    pitch = librosa.effects.pitch_shift(tones(16000).astype(float), sr=16000, n_steps=steps)
    made[f"pitch {steps}"] = pitch.astype(np.float32)[1500:1800]
tensor, other = torch.tensor(sound), torch.tensor(sound[::-1].copy())
made["speed"] = torchaudio.functional.speed(tensor, 16000, 0.9)[0].numpy()
made["noise"] = torchaudio.functional.add_noise(tensor[None], other[None], torch.tensor([7.0]))[0].numpy()
made["room"] = torchaudio.functional.fftconvolve(tensor, other[:900] / other[:900].norm()).numpy()
np.savez_compressed(root / "tests/golden/sounds.npz", **{name: np.asarray(v) for name, v in made.items()})
