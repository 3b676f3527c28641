/*
 * audio.crop - cuts a piece of fixed length out of a sound.
 */
#include <string.h>

#include "ops/audio.h"

struct crop {
    const char *field;
    int64_t frames;
    int at;
};

enum { AT_RANDOM, AT_START, AT_CENTER, AT_END };
static const char *const places[] = {"random", "start", "center", "end", NULL};

static const struct hr_param crop_params[] = {
    HR_P_INT(struct crop, frames, .required = true, HR_RANGE(1, 1LL << 40),
             .unit = "frames", .help = "length of the result"),
    HR_P_ENUM(struct crop, at, .fallback = "random", .names = places,
              .help = "which piece of the sound"),
    HR_P_AUDIO(struct crop),
};

static enum hr_err crop_infer(struct hr_infer *infer)
{
    const struct crop *p = infer->params;

    HR_TRY(hr__infer_sound(infer, 0));
    hr__dim_set(hr__field_frames(infer->fields[0]), p->frames);
    return HR_OK;
}

/* Frames before the piece, of `spare` that the sound has too many. */
static int64_t place(struct hr_op_ctx *ctx, int64_t spare)
{
    const struct crop *p = ctx->params;
    struct hr_rng rng;

    switch (p->at) {
    case AT_RANDOM:
        hr__op_rng(ctx, &rng);
        return (int64_t)hr__rng_below(&rng, (uint64_t)spare + 1);
    case AT_CENTER:
        return spare / 2;
    case AT_END:
        return spare;
    default:
        return 0;
    }
}

static enum hr_err crop_apply(struct hr_op_ctx *ctx)
{
    const struct crop *p = ctx->params;
    struct hr_sound sound;
    int64_t from = 0, count;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    if (sound.frames == p->frames)
        return HR_OK;
    if (sound.frames > p->frames)
        from = place(ctx, sound.frames - p->frames);
    count = sound.frames < p->frames ? sound.frames : p->frames;
    HR_TRY(hr__sound_alloc(ctx, sound.channels, p->frames, 0, &data));
    for (int64_t c = 0; c < sound.channels; c++) {
        float *to = data + c * p->frames;

        memcpy(to, sound.data + c * sound.frames + from, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(p->frames - count) * sizeof *to);
    }
    hr__sound_replace(ctx, 0, 0, p->frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_crop = {
    .name = "audio.crop",
    .summary = "cut a piece of fixed length out of a sound",
    .doc = "A shorter sound gets silence at its end, so that all have `frames` frames.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(crop_params, struct crop),
    .infer = crop_infer,
    .apply = crop_apply,
};
