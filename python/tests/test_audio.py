"""Operators on sound against torchaudio, librosa and soxr (tests/golden/sounds.npz), and against NumPy."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headrace as hr
import sounds

ROOT = pathlib.Path(__file__).resolve().parents[2]
Array = NDArray[np.float32]


@pytest.fixture(scope="module")
def golden() -> Any:
    """Made by tests/sounds/peers.py."""
    return np.load(ROOT / "tests/golden/sounds.npz")


def first(pipe: Any) -> Array:
    (batch,) = pipe.batch(1).loader(output="numpy")
    return batch["audio"][0]


def of_file(folder: pathlib.Path, rate: int, sound: Array) -> Any:
    sounds.write(folder / "sound.wav", rate, sound)
    return hr.files(folder, suffixes=["wav"]).decode_audio()


def close(got: Array, want: Array, least: float = 1e-3) -> None:
    """Equal within 1e-4 of the value, or of this share of the largest one."""
    assert got.shape == want.shape
    limit = 1e-4 * np.maximum(np.abs(want), least * np.abs(want).max())
    worst = np.unravel_index(np.argmax(np.abs(got - want) - limit), want.shape)
    assert not (np.abs(got - want) > limit).any(), f"at {worst}: {got[worst]}, not {want[worst]}"


def test_a_file_comes_as_it_was_written(tmp_path: pathlib.Path) -> None:
    sound = np.stack([sounds.chirp(8000, 500), -sounds.chirp(8000, 500)])
    pipe = of_file(tmp_path, 8000, sound).resample(8000)
    (batch,) = pipe.batch(1).loader(output="numpy")
    assert np.array_equal(batch["audio"][0], sound)
    assert batch["rate"].tolist() == [8000]


@pytest.mark.parametrize("rate", [44100, 8000, 48000, 22050])
def test_resampling_gives_torchaudios_numbers(rate: int, tmp_path: pathlib.Path, golden: Any) -> None:
    pipe = of_file(tmp_path, rate, sounds.chirp(rate, 1200)).mono().resample(16000, filter="torchaudio")
    # torchaudio computes times in float32 and is up to 8e-6 from the sums in float64, we 1e-7.
    close(first(pipe), golden[f"resample {rate}"], least=0.5)


@pytest.mark.parametrize("rate", [44100, 8000, 48000, 22050])
def test_hq_agrees_with_soxr_within_the_band(rate: int, tmp_path: pathlib.Path, golden: Any) -> None:
    pipe = of_file(tmp_path, rate, sounds.tones(rate)).mono().resample(16000)
    got, want = first(pipe)[1500:1800], golden[f"soxr {rate}"]
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()


SPECTRA = {
    "spectrogram": {"hop": 160},
    "magnitude": {"n_fft": 512, "win": 400, "hop": 100, "power": 1, "window": "hamming"},
    "left": {"hop": 160, "center": False},
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectrograms_are_torchaudios(name: str, tmp_path: pathlib.Path, golden: Any) -> None:
    pipe = of_file(tmp_path, 16000, sounds.chirp(16000, 1800)).mono().resample(16000)
    close(first(pipe.spectrogram(**SPECTRA[name])), golden[name])


def test_mel_spectrograms_and_cepstra_are_torchaudios_and_librosas(tmp_path: pathlib.Path, golden: Any) -> None:
    pipe = of_file(tmp_path, 16000, sounds.chirp(16000, 1800)).mono().resample(16000)
    mel = pipe.mel(hop=160)
    close(first(mel), golden["mel"])
    assert np.abs(first(mel.db()) - golden["mel db"]).max() < 1e-2
    close(first(mel.db().mfcc()), golden["mfcc"], least=0.1)
    mel = pipe.mel(n_fft=1024, hop=256, n_mels=64, scale="slaney", norm=True, pad="zero")
    close(first(mel), golden["librosa mel"])
    assert np.abs(first(mel.db()) - golden["librosa db"]).max() < 1e-2


def test_silence_is_trimmed_where_librosa_does(tmp_path: pathlib.Path, golden: Any) -> None:
    sound = sounds.chirp(16000, 1800)
    quiet = np.concatenate([np.zeros(5000, np.float32), sound, np.zeros(7000, np.float32)])
    start, end = golden["trim"]
    pipe = of_file(tmp_path, 16000, quiet).mono().resample(16000).trim_audio()
    assert np.array_equal(first(pipe), quiet[start:end])


STRETCHES = {"stretch slow": (0.8, {"n_fft": 512}), "stretch fast": (1.7, {"n_fft": 400, "hop": 80})}


@pytest.mark.parametrize("name", STRETCHES)
def test_stretched_sounds_are_librosas(name: str, tmp_path: pathlib.Path, golden: Any) -> None:
    rate, frames = STRETCHES[name]
    pipe = of_file(tmp_path, 16000, sounds.chirp(16000, 3000)).mono()
    close(first(pipe.resample(16000).time_stretch(rate, **frames)), golden[name], least=0.1)


@pytest.mark.parametrize("steps", [-3, 2])
def test_a_shift_of_pitch_is_librosas_within_the_band(steps: int, tmp_path: pathlib.Path, golden: Any) -> None:
    pipe = of_file(tmp_path, 16000, sounds.tones(16000)).mono().resample(16000)
    got, want = first(pipe.pitch(steps)), golden[f"pitch {steps}"]
    assert got.shape == (4000,)
    assert np.abs(got[1500:1800] - want).max() <= 1e-4 * np.abs(want).max()


def test_speed_noise_and_rooms_are_torchaudios(tmp_path: pathlib.Path, golden: Any) -> None:
    sound = sounds.chirp(16000, 3000)
    (tmp_path / "mixed in").mkdir()
    noise, room = tmp_path / "mixed in" / "noise.wav", tmp_path / "mixed in" / "room.wav"
    sounds.write(noise, 16000, sound[::-1])
    sounds.write(room, 16000, sound[::-1][:900])
    sounds.write(tmp_path / "sound.wav", 16000, sound)
    pipe = hr.files(tmp_path / "*.wav", suffixes=[]).decode_audio(rate=16000).mono()
    close(first(pipe.speed(factors=0.9, filter="torchaudio")), golden["speed"], least=0.1)
    close(first(pipe.add_noise(noise, snr=7)), golden["noise"], least=0.1)
    direct = int(np.abs(sound[::-1][:900]).argmax())
    close(first(pipe.reverb(path=room)), golden["room"][direct : direct + 3000], least=0.1)


def test_files_that_are_mixed_in_count_by_their_samples(tmp_path: pathlib.Path) -> None:
    """The fingerprint follows what the files hold, not where they are; a folder is read by ending."""
    sounds.write(tmp_path / "sound.wav", 8000, sounds.chirp(8000, 900))
    pipe = hr.files(tmp_path / "*.wav", suffixes=[]).decode_audio(rate=8000)
    for name in ("a", "b b"):
        (tmp_path / name).mkdir()
        sounds.write(tmp_path / name / "1.wav", 8000, sounds.chirp(8000, 500))
        sounds.write(tmp_path / name / "2.wav", 11025, sounds.chirp(11025, 500))
        (tmp_path / name / "LICENSE").write_text("no sound")
    same = pipe.add_noise(tmp_path / "a"), pipe.add_noise(tmp_path / "b b")
    assert same[0].fingerprint == same[1].fingerprint
    assert pipe.reverb(path=tmp_path / "a") == pipe.reverb(path=tmp_path / "b b") != pipe.reverb()
    sounds.write(tmp_path / "a" / "2.wav", 11025, sounds.chirp(11025, 501))
    assert pipe.add_noise(tmp_path / "a").fingerprint != same[0].fingerprint
    (tmp_path / "a" / "2.wav").write_bytes(b"RIFF no sound")
    with pytest.raises(hr.HeadraceError, match=r"2\.wav: "):
        pipe.add_noise(tmp_path / "a").batch(1).loader()
    (tmp_path / "none").mkdir()
    with pytest.raises(hr.HeadraceError, match="none"):
        pipe.add_noise(tmp_path / "none").batch(1).loader()


def test_perturbations_differ_by_record_and_epoch_and_resume(tmp_path: pathlib.Path) -> None:
    for i in range(6):
        sounds.write(tmp_path / f"{i}.wav", 16000, sounds.chirp(16000, 2000))
    pipe = hr.files(tmp_path / "*.wav", suffixes=[]).shuffle().decode_audio(rate=16000).mono()
    pipe = pipe.speed().time_stretch([0.8, 1.2], n_fft=256).pitch([-2, 2], n_fft=256)
    pipe = pipe.add_noise(tmp_path / "0.wav").reverb(rt60=[0.05, 0.1]).padded_batch(2)
    loader = pipe.loader(epochs=2, output="numpy", seed=5)
    whole = [batch["audio"] for batch in loader]
    assert len({sound.tobytes() for batch in whole for sound in batch}) == 12
    for threads in (0, 3):
        part = pipe.loader(epochs=2, output="numpy", seed=5, threads=threads)
        head = []
        for batch in part:
            head.append(batch["audio"])
            if len(head) == 4:
                break
        rest = pipe.loader(epochs=2, output="numpy", seed=5)
        rest.load_state_dict(part.state_dict())
        got = head + [batch["audio"] for batch in rest]
        assert all(np.array_equal(a, b) for a, b in zip(got, whole, strict=True))


def test_spectra_of_random_sizes_are_numpys(tmp_path: pathlib.Path) -> None:
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    sound = np.round(rng.uniform(-1, 1, (2, 3000)) * 32000).astype(np.float32) / 32768
    for _ in range(20):
        n_fft = int(rng.integers(2, 700))
        hop = int(rng.integers(1, 300))
        pipe = of_file(tmp_path, 16000, sound).resample(16000)
        got = first(pipe.spectrogram(n_fft=n_fft, hop=hop))
        padded = np.pad(sound.astype(float), [(0, 0), (n_fft // 2, n_fft // 2 + n_fft)], mode="reflect")
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)
        frames = [np.fft.rfft(padded[:, at : at + n_fft] * window) for at in range(0, 3001, hop)]
        want = np.abs(np.stack(frames, axis=-1)) ** 2
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= 1e-5 * max(want.max(), 1), (n_fft, hop)


def test_mixed_rates_are_refused_before_any_data(tmp_path: pathlib.Path) -> None:
    pipe = of_file(tmp_path, 8000, sounds.chirp(8000, 900))
    with pytest.raises(hr.HeadraceError, match="put audio.resample before it"):
        pipe.mel().batch(2).loader()
    with pytest.raises(hr.HeadraceError, match="cannot share a batch"):
        pipe.batch(2).loader()
    with pytest.raises(hr.HeadraceError, match="the file has 8000 Hz"):
        list(hr.files(tmp_path, suffixes=["wav"]).decode_audio(rate=16000).batch(1).loader())


def test_a_damaged_file_is_named(tmp_path: pathlib.Path) -> None:
    sounds.write(tmp_path / "a.wav", 8000, sounds.chirp(8000, 900))
    (tmp_path / "b.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:-1])
    pipe = hr.files(tmp_path, suffixes=["wav"]).decode_audio(rate=8000).batch(1)
    with pytest.raises(hr.HeadraceError, match=r"cut short: 1800 bytes .*1799 are there .*b\.wav"):
        list(pipe.loader())
    assert len(list(pipe.loader(on_error="skip"))) == 1
