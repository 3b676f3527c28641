/*
 * audio.mfcc - cepstral coefficients of a log-mel spectrum.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "ops/audio.h"

#define PI 3.14159265358979323846

struct mfcc {
    const char *field;
    int64_t n_mfcc;
};

static const struct hr_param mfcc_params[] = {
    HR_P_INT(struct mfcc, n_mfcc, .fallback = "40", HR_RANGE(1, 4096),
             .help = "number of coefficients"),
    HR_P_FIELD(struct mfcc, field, .fallback = "audio", .access = HR_ACCESS_UPDATE,
               .help =
                   "the field with the log-mel spectrum, float32 [..., n_mels, time]"),
};

/* The index of the dim of the bands, or of the coefficients. */
static int bands_dim(const struct hr_field *field)
{
    assert(field->ndim >= 2);
    return field->ndim - 2;
}

static enum hr_err mfcc_infer(struct hr_infer *infer)
{
    const struct mfcc *p = infer->params;
    struct hr_field *f = infer->fields[0];

    HR_TRY(hr__infer_numbers(infer, 0));
    if (f->ndim < 2 || f->dims[bands_dim(f)].size < 1)
        return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                              "field \"%s\" has no known number of bands: put audio.mel "
                              "and audio.db before it",
                              f->name);
    if (p->n_mfcc > f->dims[bands_dim(f)].size)
        return hr__infer_fail(infer, "n_mfcc", HR_ERR_RANGE,
                              "%lld coefficients of %lld bands", (long long)p->n_mfcc,
                              (long long)f->dims[bands_dim(f)].size);
    hr__dim_set(&f->dims[bands_dim(f)], p->n_mfcc);
    return HR_OK;
}

/* The orthonormal cosine transform of type 2: [coefficient][band]. */
struct cosines {
    int64_t bands;
    float *weights;
};

static void mfcc_close(void *state)
{
    struct cosines *c = state;

    hr__free(c->weights);
    hr__free(c);
}

static enum hr_err mfcc_open(const struct hr_open *open, void **ret_state)
{
    const struct mfcc *p = open->params;
    const struct hr_field *field = hr__schema_get(open->input, p->field);
    int64_t bands = field->dims[bands_dim(field)].size;
    struct cosines *c = hr__calloc(1, sizeof *c);

    if (c != NULL)
        c->weights = hr__calloc((size_t)(p->n_mfcc * bands), sizeof *c->weights);
    if (c == NULL || c->weights == NULL) {
        hr__free(c);
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    }
    c->bands = bands;
    for (int64_t k = 0; k < p->n_mfcc; k++)
        for (int64_t b = 0; b < bands; b++)
            c->weights[k * bands + b] =
                (float)(cos(PI / (double)bands * ((double)b + 0.5) * (double)k) *
                        sqrt((k == 0 ? 1.0 : 2.0) / (double)bands));
    *ret_state = c;
    return HR_OK;
}

static enum hr_err mfcc_apply(struct hr_op_ctx *ctx)
{
    const struct mfcc *p = ctx->params;
    const struct cosines *c = ctx->state;
    struct hr_value *value = ctx->fields[0];
    struct hr_sound in;
    int64_t blocks;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &in));
    if (value->ndim < 2 || value->dims[value->ndim - 2] != c->bands)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field has no %lld bands",
                        (long long)c->bands);
    blocks = in.channels / c->bands;
    HR_TRY(hr__sound_alloc(ctx, blocks * p->n_mfcc, in.frames, 0, &data));
    memset(data, 0, (size_t)(blocks * p->n_mfcc * in.frames) * sizeof *data);
    for (int64_t row = 0; row < blocks * p->n_mfcc; row++) {
        const float *from = in.data + row / p->n_mfcc * c->bands * in.frames;
        const float *weights = c->weights + row % p->n_mfcc * c->bands;
        float *to = data + row * in.frames;

        for (int64_t b = 0; b < c->bands; b++)
            for (int64_t t = 0; t < in.frames; t++)
                to[t] += weights[b] * from[b * in.frames + t];
    }
    value->dims[value->ndim - 2] = p->n_mfcc;
    hr__sound_replace(ctx, 0, 0, in.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_mfcc = {
    .name = "audio.mfcc",
    .summary = "cepstral coefficients of a log-mel spectrum",
    .doc = "The orthonormal cosine transform of each frame's bands. After audio.mel and "
           "audio.db it gives torchaudio.transforms.MFCC (with its parameters; there "
           "n_mels is 128) and librosa.feature.mfcc.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(mfcc_params, struct mfcc),
    .infer = mfcc_infer,
    .open = mfcc_open,
    .close = mfcc_close,
    .apply = mfcc_apply,
};
