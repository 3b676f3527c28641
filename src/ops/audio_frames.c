/*
 * audio_frames.c - what the ops that make spectra share.
 */
#include "ops/audio_frames.h"

#include <assert.h>

#include "core/alloc.h"

const char *const hr__window_names[] = {"hann", "hamming", "blackman", "rectangular",
                                        NULL};
const char *const hr__frames_pads[] = {"reflect", "zero", NULL};

const char *const hr__mel_scales[] = {"htk", "slaney", NULL};

struct hr_mel_options hr__mel_options(const struct hr_mel_bands *bands, int32_t rate)
{
    return (struct hr_mel_options){
        .count = (int32_t)bands->n_mels,
        .rate = rate,
        .low = bands->f_min,
        .high = bands->f_max > 0 ? bands->f_max : rate / 2.0,
        .scale = bands->scale,
        .norm = bands->norm,
    };
}

enum hr_err hr__infer_mel(struct hr_infer *infer, const struct hr_mel_options *options)
{
    if (options->low < options->high)
        return HR_OK;
    return hr__infer_fail(infer, "f_min", HR_ERR_RANGE,
                          "the bands end at %g Hz and begin at %g", options->high,
                          options->low);
}

static struct hr_spectrum_options options_of(const struct hr_frames *p)
{
    int64_t width = p->win > 0 ? p->win : p->n_fft;
    int64_t hop = p->hop > 0 ? p->hop : width / 2;

    return (struct hr_spectrum_options){
        .size = (int32_t)p->n_fft,
        .width = (int32_t)width,
        .hop = hop > 0 ? (int32_t)hop : 1,
        .window = p->window,
        .centre = p->center,
        .reflect = p->pad == 0,
        .magnitude = p->power == 1,
    };
}

enum hr_err hr__infer_frames(struct hr_infer *infer, const struct hr_mel_options *mel)
{
    const struct hr_frames *p = infer->params;
    struct hr_spectrum_options options = options_of(p);
    struct hr_field *field = infer->fields[0];
    int64_t frames = hr__field_frames(field)->size;

    if (p->win > p->n_fft)
        return hr__infer_fail(infer, "win", HR_ERR_RANGE,
                              "a window of %lld samples is larger than the transform, "
                              "which has %lld",
                              (long long)p->win, (long long)p->n_fft);
    if (field->ndim == HR_MAX_DIMS)
        return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                              "field \"%s\" has %d dimensions, no room for one more",
                              field->name, field->ndim);
    field->meaning = HR_MEANING_NONE;
    field->rate = 0;
    hr__dim_set(&field->dims[field->ndim - 1], hr__spectrum_rows(&options, mel));
    field->ndim++;
    if (frames >= 0 && hr__spectrum_frames(&options, frames) > 0)
        hr__dim_set(hr__field_frames(field), hr__spectrum_frames(&options, frames));
    else
        hr__dim_unknown(hr__field_frames(field), "time");
    return HR_OK;
}

struct plan {
    struct hr_spectrum_options options;
    struct hr_spectrum *spectrum;
    int32_t rows;
};

enum hr_err hr__frames_open(const struct hr_open *open, const struct hr_mel_options *mel,
                            void **ret_state)
{
    struct plan *plan = hr__calloc(1, sizeof *plan);
    enum hr_err err;

    if (plan == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    plan->options = options_of(open->params);
    plan->rows = hr__spectrum_rows(&plan->options, mel);
    err = hr__spectrum_create(&plan->options, mel, &plan->spectrum, open->error);
    if (err != HR_OK) {
        hr__free(plan);
        return err;
    }
    *ret_state = plan;
    return HR_OK;
}

void hr__frames_close(void *state)
{
    struct plan *plan = state;

    hr__spectrum_destroy(plan->spectrum);
    hr__free(plan);
}

enum hr_err hr__frames_apply(struct hr_op_ctx *ctx)
{
    const struct plan *plan = ctx->state;
    struct hr_sound sound;
    int64_t frames;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    frames = hr__spectrum_frames(&plan->options, sound.frames);
    if (frames == 0)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "a sound of %lld samples is too short for a frame of %d",
                        (long long)sound.frames, (int)plan->options.size);
    HR_TRY(hr__sound_alloc(ctx, sound.channels * plan->rows, frames, 0, &data));
    for (int64_t c = 0; c < sound.channels; c++)
        if (hr__spectrum_run(plan->spectrum, &ctx->thread->arena,
                             sound.data + c * sound.frames, sound.frames,
                             data + c * plan->rows * frames) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory for a spectrum");
    hr__sound_replace(ctx, 0, plan->rows, frames, data);
    return HR_OK;
}
