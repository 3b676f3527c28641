/*
 * audio_stretch.c - what the ops that use a phase vocoder share.
 */
#include "ops/audio_stretch.h"

static int64_t win_of(const struct hr_stretch_frames *p)
{
    return p->win > 0 ? p->win : p->n_fft;
}

static int64_t hop_of(const struct hr_stretch_frames *p)
{
    int64_t quarter = win_of(p) / 4;

    return p->hop > 0 ? p->hop : quarter > 0 ? quarter : 1;
}

enum hr_err hr__infer_stretch(struct hr_infer *infer)
{
    const struct hr_stretch_frames *p = infer->params;

    HR_TRY(hr__infer_sound(infer, 0));
    if (p->n_fft % 2 != 0)
        return hr__infer_fail(infer, "n_fft", HR_ERR_RANGE,
                              "a transform of %lld samples: their number must be even",
                              (long long)p->n_fft);
    if (p->win > p->n_fft)
        return hr__infer_fail(infer, "win", HR_ERR_RANGE,
                              "a window of %lld samples is larger than the transform, "
                              "which has %lld",
                              (long long)p->win, (long long)p->n_fft);
    if (hop_of(p) > win_of(p))
        return hr__infer_fail(infer, "hop", HR_ERR_RANGE,
                              "windows of %lld samples that are %lld apart leave gaps",
                              (long long)win_of(p), (long long)hop_of(p));
    hr__dim_unknown(hr__field_frames(infer->fields[0]), "frames");
    return HR_OK;
}

enum hr_err hr__stretch_open(const struct hr_stretch_frames *p,
                             struct hr_stretch **ret_stretch, struct hr_error *error)
{
    return hr__stretch_create((int32_t)p->n_fft, (int32_t)win_of(p), (int32_t)hop_of(p),
                              ret_stretch, error);
}

enum hr_err hr__sound_stretch(struct hr_op_ctx *ctx, const struct hr_stretch *stretch,
                              const struct hr_sound *sound, double rate, float **ret_data,
                              int64_t *ret_frames)
{
    int64_t frames = hr__stretch_count(sound->frames, rate);

    HR_TRY(hr__sound_alloc(ctx, sound->channels, frames, 0, ret_data));
    for (int64_t c = 0; c < sound->channels; c++)
        if (hr__stretch_run(stretch, &ctx->thread->arena, sound->data + c * sound->frames,
                            sound->frames, rate, *ret_data + c * frames) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY,
                            "out of memory to stretch a sound");
    *ret_frames = frames;
    return HR_OK;
}
