/*
 * audio.pitch - makes a sound higher or lower and keeps its length.
 *
 * The sound is stretched, then resampled to its old length. Steps are whole numbers, so
 * that each has its filter from the start.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "kernel/sinc.h"
#include "ops/audio_stretch.h"

#define STEPS_MAX 64

struct pitch {
    struct hr_stretch_frames frames;
    struct hr_ints steps;
    int64_t octave;
};

static const struct hr_param pitch_params[] = {
    HR_P_INTS(struct pitch, steps, .required = true, .items_min = 1, .items_max = 2,
              HR_RANGE(-4096, 4096), .unit = "steps",
              .help = "how much higher: [least, most], drawn for each record; or one "
                      "number"),
    HR_P_INT(struct pitch, octave, .fallback = "12", HR_RANGE(1, 1200), .unit = "steps",
             .help = "steps of an octave"),
    HR_P_STRETCH,
};

/* Samples after the stretch for each sample before. */
static double ratio_of(const struct pitch *p, int64_t steps)
{
    return pow(2, (double)steps / (double)p->octave);
}

static int64_t most(const struct pitch *p)
{
    return p->steps.values[p->steps.count - 1];
}

static enum hr_err pitch_infer(struct hr_infer *infer)
{
    const struct pitch *p = infer->params;
    struct hr_dim frames = {0};

    if (p->steps.values[0] > most(p))
        return hr__infer_fail(infer, "steps", HR_ERR_RANGE,
                              "steps: the smaller number comes first");
    if (most(p) - p->steps.values[0] >= STEPS_MAX)
        return hr__infer_fail(infer, "steps", HR_ERR_RANGE,
                              "%lld different steps, each with a filter of its own: at "
                              "most %d are allowed",
                              (long long)(most(p) - p->steps.values[0] + 1), STEPS_MAX);
    if (p->steps.values[0] < -5 * p->octave || most(p) > 5 * p->octave)
        return hr__infer_fail(infer, "steps", HR_ERR_RANGE,
                              "steps must be within five octaves");
    if (infer->fields[0]->ndim > 0)
        frames = *hr__field_frames(infer->fields[0]);
    HR_TRY(hr__infer_stretch(infer));
    *hr__field_frames(infer->fields[0]) = frames;
    return HR_OK;
}

/* ---- state ---- */

struct tables {
    struct hr_stretch *stretch;
    struct hr_sinc *sinc[STEPS_MAX]; /* NULL for 0 steps */
};

static void pitch_close(void *state)
{
    struct tables *t = state;

    for (int i = 0; i < STEPS_MAX; i++)
        hr__sinc_destroy(t->sinc[i]);
    hr__stretch_destroy(t->stretch);
    hr__free(t);
}

static enum hr_err pitch_open(const struct hr_open *open, void **ret_state)
{
    const struct pitch *p = open->params;
    struct tables *t = hr__calloc(1, sizeof *t);
    enum hr_err err;

    if (t == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    err = hr__stretch_open(&p->frames, &t->stretch, open->error);
    for (int64_t steps = p->steps.values[0]; steps <= most(p) && err == HR_OK; steps++)
        if (steps != 0)
            err = hr__sinc_create(ratio_of(p, steps),
                                  &t->sinc[steps - p->steps.values[0]], open->error);
    if (err != HR_OK) {
        pitch_close(t);
        return err;
    }
    *ret_state = t;
    return HR_OK;
}

/* ---- a record ---- */

static enum hr_err shift(struct hr_op_ctx *ctx, const struct hr_sound *sound,
                         int64_t steps, const struct hr_sinc *sinc)
{
    const struct tables *t = ctx->state;
    double ratio = ratio_of(ctx->params, steps);
    float *long_data, *data;
    int64_t long_frames, count;

    HR_TRY(
        hr__sound_stretch(ctx, t->stretch, sound, 1 / ratio, &long_data, &long_frames));
    HR_TRY(hr__sound_alloc(ctx, sound->channels, sound->frames, 0, &data));
    count = (int64_t)ceil((double)long_frames / ratio);
    count = count < sound->frames ? count : sound->frames;
    for (int64_t c = 0; c < sound->channels; c++) {
        float *to = data + c * sound->frames;

        if (hr__sinc_run(sinc, &ctx->thread->arena, long_data + c * long_frames,
                         long_frames, to, count) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory to resample");
        memset(to + count, 0, (size_t)(sound->frames - count) * sizeof *to);
    }
    hr__sound_replace(ctx, 0, 0, sound->frames, data);
    return HR_OK;
}

static enum hr_err pitch_apply(struct hr_op_ctx *ctx)
{
    const struct pitch *p = ctx->params;
    const struct tables *t = ctx->state;
    struct hr_sound sound;
    struct hr_rng rng;
    uint64_t last = (uint64_t)(most(p) - p->steps.values[0]), drawn;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    hr__op_rng(ctx, &rng);
    drawn = hr__rng_below(&rng, last + 1);
    if (ctx->thread->surveys) /* the higher, the longer it is before its rate changes */
        drawn = last > 0 && t->sinc[last] == NULL ? last - 1 : last;
    if (t->sinc[drawn] == NULL)
        return HR_OK;
    return shift(ctx, &sound, p->steps.values[0] + (int64_t)drawn, t->sinc[drawn]);
}

const struct hr_op hr_op_audio_pitch = {
    .name = "audio.pitch",
    .summary = "make a sound higher or lower at the same length",
    .doc = "As librosa.effects.pitch_shift: a stretch by a phase vocoder (see "
           "audio.time_stretch), then a change of rate back to the old length. Steps are "
           "whole numbers: for finer ones make `octave` larger, such as `octave: 120, "
           "steps: [-20, 20]`.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(pitch_params, struct pitch),
    .infer = pitch_infer,
    .open = pitch_open,
    .close = pitch_close,
    .apply = pitch_apply,
};
