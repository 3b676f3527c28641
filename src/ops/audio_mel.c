/*
 * audio.mel - a mel spectrogram.
 */
#include "ops/audio_frames.h"

struct mel {
    struct hr_frames frames;
    struct hr_mel_bands bands;
};

static const struct hr_param mel_params[] = {
    HR_P_MEL(struct mel, bands),
    HR_P_FRAMES,
};

static enum hr_err mel_infer(struct hr_infer *infer)
{
    const struct mel *p = infer->params;
    struct hr_mel_options options;

    HR_TRY(hr__infer_rate(infer, 0, "a mel spectrogram"));
    options = hr__mel_options(&p->bands, infer->fields[0]->rate);
    HR_TRY(hr__infer_mel(infer, &options));
    return hr__infer_frames(infer, &options);
}

static enum hr_err mel_open(const struct hr_open *open, void **ret_state)
{
    const struct mel *p = open->params;
    struct hr_mel_options options =
        hr__mel_options(&p->bands, hr__schema_get(open->input, p->frames.field)->rate);

    return hr__frames_open(open, &options, ret_state);
}

const struct hr_op hr_op_audio_mel = {
    .name = "audio.mel",
    .summary = "mel spectrogram of a sound",
    .doc = "`[channels, frames]` becomes `[channels, n_mels, time]`. With its defaults, "
           "and their n_mels, as torchaudio.transforms.MelSpectrogram; as "
           "librosa.feature.melspectrogram with `scale: slaney, norm: true, n_fft: 2048, "
           "hop: 512, pad: zero, n_mels: 128`. Bands are computed in float64 from the "
           "exact frequencies of the bins; torchaudio rounds half the rate down. A band "
           "between two bins is 0 throughout: then use fewer bands or a larger n_fft.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(mel_params, struct mel),
    .infer = mel_infer,
    .open = mel_open,
    .close = hr__frames_close,
    .apply = hr__frames_apply,
};
