/*
 * audio.pad - lengthens sounds with silence.
 */
#include <string.h>

#include "ops/audio.h"

struct pad {
    const char *field;
    int64_t frames, multiple;
    int side;
};

enum { SIDE_END, SIDE_START, SIDE_BOTH };
static const char *const sides[] = {"end", "start", "both", NULL};

static const struct hr_param pad_params[] = {
    HR_P_INT(struct pad, frames, .fallback = "0", HR_RANGE(0, 1LL << 40),
             .unit = "frames", .help = "the length that shorter sounds get"),
    HR_P_INT(struct pad, multiple, .fallback = "1", HR_RANGE(1, 1LL << 40),
             .unit = "frames", .help = "round lengths up to a multiple of this"),
    HR_P_ENUM(struct pad, side, .fallback = "end", .names = sides,
              .help = "where the silence goes; both: half of it before the sound, "
                      "rounded down"),
    HR_P_AUDIO(struct pad),
};

static int64_t padded(const struct pad *p, int64_t frames)
{
    if (frames < p->frames)
        frames = p->frames;
    return (frames + p->multiple - 1) / p->multiple * p->multiple;
}

static enum hr_err pad_infer(struct hr_infer *infer)
{
    const struct pad *p = infer->params;
    struct hr_dim *frames;

    HR_TRY(hr__infer_sound(infer, 0));
    if (p->frames == 0 && p->multiple == 1)
        return hr__infer_fail(infer, "frames", HR_ERR_ARGUMENT,
                              "it pads nothing without `frames` or `multiple`");
    frames = hr__field_frames(infer->fields[0]);
    if (frames->size >= 0)
        hr__dim_set(frames, padded(p, frames->size));
    return HR_OK;
}

static enum hr_err pad_apply(struct hr_op_ctx *ctx)
{
    const struct pad *p = ctx->params;
    struct hr_sound sound;
    int64_t frames, before, after;
    float *data, *to;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    frames = padded(p, sound.frames);
    if (frames == sound.frames)
        return HR_OK;
    after = frames - sound.frames;
    before = p->side == SIDE_START ? after : p->side == SIDE_BOTH ? after / 2 : 0;
    after -= before;
    HR_TRY(hr__sound_alloc(ctx, sound.channels, frames, 0, &data));
    to = data;
    for (int64_t c = 0; c < sound.channels; c++) {
        memset(to, 0, (size_t)before * sizeof *to);
        memcpy(to + before, sound.data + c * sound.frames,
               (size_t)sound.frames * sizeof *to);
        memset(to + before + sound.frames, 0, (size_t)after * sizeof *to);
        to += frames;
    }
    hr__sound_replace(ctx, 0, 0, frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_pad = {
    .name = "audio.pad",
    .summary = "lengthen sounds with silence",
    .doc = "Longer sounds stay as they are. To give all sounds one length, use "
           "audio.crop, which pads, too.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(pad_params, struct pad),
    .infer = pad_infer,
    .apply = pad_apply,
};
