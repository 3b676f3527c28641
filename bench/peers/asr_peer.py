"""Sound files to batches of log-mel spectra with torchaudio, or with librosa and soxr, on one core.

    python asr_peer.py torchaudio|librosa FOLDER

Prints `files/s of wall-clock time, files/s of CPU time` of a pass after one that is not counted, or
`none` where the libraries are not installed. Files are read with libsndfile (soundfile); filters and
mel bands are made once.
"""
import pathlib
import sys
import time

BATCH, RATE, N_FFT, HOP, MELS = 32, 16000, 400, 160, 80
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/sounds"))


def with_torchaudio():
    import soundfile
    import torch
    from cpu_torchaudio import torchaudio

    torch.set_num_threads(1)
    resamplers = {}
    mel = torchaudio.transforms.MelSpectrogram(RATE, n_fft=N_FFT, hop_length=HOP, n_mels=MELS)
    db = torchaudio.transforms.AmplitudeToDB(top_db=80)

    def one(path):
        sound, rate = soundfile.read(path, dtype="float32")
        if rate not in resamplers:
            resamplers[rate] = torchaudio.transforms.Resample(rate, RATE)
        return db(mel(resamplers[rate](torch.from_numpy(sound))))

    def join(items):
        batch = torch.zeros(len(items), MELS, max(item.shape[1] for item in items))
        for row, item in zip(batch, items):
            row[:, : item.shape[1]] = item
        return batch

    return one, join


def with_librosa():
    import librosa
    import numpy as np
    import soundfile
    import soxr

    bands = librosa.filters.mel(sr=RATE, n_fft=N_FFT, n_mels=MELS)

    def one(path):
        sound, rate = soundfile.read(path, dtype="float32")
        sound = soxr.resample(sound, rate, RATE, quality="HQ")
        power = np.abs(librosa.stft(sound, n_fft=N_FFT, hop_length=HOP)) ** 2
        return librosa.power_to_db(bands @ power)

    def join(items):
        batch = np.zeros((len(items), MELS, max(item.shape[1] for item in items)), np.float32)
        for row, item in zip(batch, items):
            row[:, : item.shape[1]] = item
        return batch

    return one, join


def run(paths, one, join):
    for at in range(0, len(paths), BATCH):
        join([one(path) for path in paths[at : at + BATCH]])


def main():
    try:
        one, join = {"torchaudio": with_torchaudio, "librosa": with_librosa}[sys.argv[1]]()
    except ImportError:
        print("none")
        return
    paths = sorted(pathlib.Path(sys.argv[2]).glob("*.wav"))
    run(paths, one, join)
    wall, cpu = time.perf_counter(), time.process_time()
    run(paths, one, join)
    print(len(paths) / (time.perf_counter() - wall), len(paths) / (time.process_time() - cpu))


main()
