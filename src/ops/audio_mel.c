/*
 * audio.mel - a mel spectrogram.
 */
#include "ops/audio_frames.h"

struct mel {
    struct hr_frames frames;
    int64_t n_mels;
    double f_min, f_max;
    int scale;
    bool norm;
};

static const char *const scales[] = {"htk", "slaney", NULL};

static const struct hr_param mel_params[] = {
    HR_P_INT(struct mel, n_mels, .fallback = "80", HR_RANGE(1, 4096),
             .help = "number of bands"),
    HR_P_FLOAT(struct mel, f_min, .fallback = "0", HR_RANGE(0, HR_RATE_MAX), .unit = "Hz",
               .help = "lower end of the first band"),
    HR_P_FLOAT(struct mel, f_max, .fallback = "0", HR_RANGE(0, HR_RATE_MAX), .unit = "Hz",
               .help = "upper end of the last band; 0: half the rate"),
    HR_P_ENUM(struct mel, scale, .fallback = "htk", .names = scales,
              .help = "the mel scale"),
    HR_P_BOOL(struct mel, norm, .fallback = "false",
              .help = "divide each band by its width (slaney's norm)"),
    HR_P_FRAMES,
};

static struct hr_mel_options options_of(const struct mel *p, const struct hr_field *sound)
{
    return (struct hr_mel_options){
        .count = (int32_t)p->n_mels,
        .rate = sound->rate,
        .low = p->f_min,
        .high = p->f_max > 0 ? p->f_max : sound->rate / 2.0,
        .scale = p->scale,
        .norm = p->norm,
    };
}

static enum hr_err mel_infer(struct hr_infer *infer)
{
    struct hr_mel_options options;

    HR_TRY(hr__infer_rate(infer, 0, "a mel spectrogram"));
    options = options_of(infer->params, infer->fields[0]);
    if (options.low >= options.high)
        return hr__infer_fail(infer, "f_min", HR_ERR_RANGE,
                              "the bands end at %g Hz and begin at %g", options.high,
                              options.low);
    return hr__infer_frames(infer, &options);
}

static enum hr_err mel_open(const struct hr_open *open, void **ret_state)
{
    const struct mel *p = open->params;
    struct hr_mel_options options =
        options_of(p, hr__schema_get(open->input, p->frames.field));

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
