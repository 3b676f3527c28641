/*
 * audio.mono - averages the channels of a sound.
 */
#include "kernel/samples.h"
#include "ops/audio.h"

struct mono {
    const char *field;
};

static const struct hr_param mono_params[] = {
    HR_P_AUDIO(struct mono),
};

static enum hr_err mono_infer(struct hr_infer *infer)
{
    struct hr_field *field = infer->fields[0];

    HR_TRY(hr__infer_sound(infer, 0));
    field->dims[0] = *hr__field_frames(field);
    field->ndim = 1;
    return HR_OK;
}

static enum hr_err mono_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *value = ctx->fields[0];
    struct hr_sound sound;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    if (value->ndim == 1)
        return HR_OK;
    if (sound.channels == 0)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the sound has no channels");
    if (sound.channels == 1 && hr__value_contiguous(value)) {
        value->ndim = 1;
        value->dims[0] = sound.frames;
        value->strides[0] = sizeof(float);
        return HR_OK;
    }
    HR_TRY(hr__sound_alloc(ctx, 1, sound.frames, 0, &data));
    hr__samples_mean(sound.data, (size_t)sound.frames, (size_t)sound.channels, data,
                     (size_t)sound.frames);
    hr__value_clear(value);
    hr__value_set_tensor(value, HR_F32, 1, &sound.frames, data, NULL);
    return HR_OK;
}

const struct hr_op hr_op_audio_mono = {
    .name = "audio.mono",
    .summary = "average the channels of a sound",
    .doc = "`[channels, frames]` becomes `[frames]`, as librosa.to_mono makes it.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(mono_params, struct mono),
    .infer = mono_infer,
    .apply = mono_apply,
};
