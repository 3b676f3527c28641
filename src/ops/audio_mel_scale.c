/*
 * audio.mel_scale - mel bands of a spectrum, which may have been masked.
 */
#include "core/alloc.h"
#include "kernel/mel.h"
#include "ops/audio_frames.h"

struct mel_scale {
    const char *field;
    int64_t rate, n_fft;
    struct hr_mel_bands bands;
};

static const struct hr_param mel_scale_params[] = {
    HR_P_INT(struct mel_scale, rate, .required = true, HR_RANGE(1, HR_RATE_MAX),
             .unit = "Hz", .help = "the rate of the sounds, which spectra do not know"),
    HR_P_INT(struct mel_scale, n_fft, .fallback = "0", HR_RANGE(0, 1 << 20),
             .unit = "samples",
             .help = "size of the transform that made the spectrum; 0: twice the bins "
                     "but one"),
    HR_P_MEL(struct mel_scale, bands),
    HR_P_FIELD(struct mel_scale, field, .fallback = "audio", .access = HR_ACCESS_UPDATE,
               .help = "the field with the spectrum, float32 [..., bins, time]"),
};

static int64_t size_of(const struct mel_scale *p, int64_t bins)
{
    return p->n_fft > 0 ? p->n_fft : 2 * (bins - 1);
}

static enum hr_err mel_scale_infer(struct hr_infer *infer)
{
    const struct mel_scale *p = infer->params;
    struct hr_mel_options options = hr__mel_options(&p->bands, (int32_t)p->rate);
    struct hr_field *f = infer->fields[0];
    int64_t bins = f->ndim >= 2 ? f->dims[f->ndim - 2].size : -1;

    if (f->meaning == HR_MEANING_SAMPLES || bins < 2)
        return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                              "field \"%s\" has no known number of bins: put "
                              "audio.spectrogram before it",
                              f->name);
    HR_TRY(hr__infer_numbers(infer, 0));
    HR_TRY(hr__infer_mel(infer, &options));
    if (size_of(p, bins) / 2 + 1 != bins)
        return hr__infer_fail(infer, "n_fft", HR_ERR_RANGE,
                              "a transform of %lld samples gives %lld bins, and field "
                              "\"%s\" has %lld",
                              (long long)p->n_fft, (long long)p->n_fft / 2 + 1, f->name,
                              (long long)bins);
    hr__dim_set(&f->dims[f->ndim - 2], p->bands.n_mels);
    return HR_OK;
}

struct bands {
    struct hr_mel mel;
    int64_t bins;
};

static enum hr_err mel_scale_open(const struct hr_open *open, void **ret_state)
{
    const struct mel_scale *p = open->params;
    struct hr_mel_options options = hr__mel_options(&p->bands, (int32_t)p->rate);
    const struct hr_field *field = hr__schema_get(open->input, p->field);
    struct bands *bands = hr__calloc(1, sizeof *bands);
    enum hr_err err;

    if (bands == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    bands->bins = field->dims[field->ndim - 2].size;
    err = hr__mel_create(&options, (int32_t)size_of(p, bands->bins), &bands->mel,
                         open->error);
    if (err != HR_OK) {
        hr__free(bands);
        return err;
    }
    *ret_state = bands;
    return HR_OK;
}

static void mel_scale_close(void *state)
{
    struct bands *bands = state;

    hr__mel_destroy(&bands->mel);
    hr__free(bands);
}

static enum hr_err mel_scale_apply(struct hr_op_ctx *ctx)
{
    const struct bands *bands = ctx->state;
    struct hr_value *value = ctx->fields[0];
    struct hr_sound in;
    int64_t blocks;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &in));
    if (value->ndim < 2 || value->dims[value->ndim - 2] != bands->bins)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field has no %lld bins",
                        (long long)bands->bins);
    blocks = in.channels / bands->bins;
    HR_TRY(hr__sound_alloc(ctx, blocks * bands->mel.bands, in.frames, 0, &data));
    for (int64_t i = 0; i < blocks; i++)
        hr__mel_run(&bands->mel, in.data + i * bands->bins * in.frames, in.frames,
                    data + i * bands->mel.bands * in.frames);
    value->dims[value->ndim - 2] = bands->mel.bands;
    hr__sound_replace(ctx, 0, 0, in.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_mel_scale = {
    .name = "audio.mel_scale",
    .summary = "mel bands of a spectrum",
    .doc = "`[channels, bins, time]` becomes `[channels, n_mels, time]`, as "
           "torchaudio.transforms.MelScale: for spectra that are changed before, such as "
           "by audio.freq_mask. Else audio.mel is faster. The bands are its bands.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(mel_scale_params, struct mel_scale),
    .infer = mel_scale_infer,
    .open = mel_scale_open,
    .close = mel_scale_close,
    .apply = mel_scale_apply,
};
