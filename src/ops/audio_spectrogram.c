/*
 * audio.spectrogram - short-time power or magnitude of a sound's frequencies.
 */
#include "ops/audio_frames.h"

static const struct hr_param spectrogram_params[] = {HR_P_FRAMES};

static const struct hr_mel_options all_bins = {0};

static enum hr_err spectrogram_infer(struct hr_infer *infer)
{
    HR_TRY(hr__infer_rate(infer, 0, "a spectrogram"));
    return hr__infer_frames(infer, &all_bins);
}

static enum hr_err spectrogram_open(const struct hr_open *open, void **ret_state)
{
    return hr__frames_open(open, &all_bins, ret_state);
}

const struct hr_op hr_op_audio_spectrogram = {
    .name = "audio.spectrogram",
    .summary = "short-time power spectrum of a sound",
    .doc = "`[channels, frames]` becomes `[channels, n_fft / 2 + 1, time]`. As "
           "torchaudio.transforms.Spectrogram with its defaults; librosa.stft has hop = "
           "win / 4 and `pad: zero`. `power` is 1 or 2. All sizes are possible whose "
           "largest prime factor is at most 1024; products of 2, 3 and 5 are fast. A "
           "sound shorter than half the transform is mirrored repeatedly.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(spectrogram_params, struct hr_frames),
    .infer = spectrogram_infer,
    .open = spectrogram_open,
    .close = hr__frames_close,
    .apply = hr__frames_apply,
};
