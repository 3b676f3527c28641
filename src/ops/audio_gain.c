/*
 * audio.gain - makes a sound louder or softer.
 */
#include <math.h>

#include "ops/audio.h"

struct gain {
    const char *field;
    struct hr_floats db;
};

static const struct hr_param gain_params[] = {
    HR_P_FLOATS(struct gain, db, .required = true, .items_min = 1, .items_max = 2,
                HR_RANGE(-200, 200), .unit = "dB",
                .help = "change of level: [least, most], drawn for each record; or one "
                        "number"),
    HR_P_AUDIO(struct gain),
};

static enum hr_err gain_infer(struct hr_infer *infer)
{
    const struct gain *p = infer->params;

    HR_TRY(hr__infer_sound(infer, 0));
    return hr__infer_order(infer, "db", &p->db);
}

static enum hr_err gain_apply(struct hr_op_ctx *ctx)
{
    const struct gain *p = ctx->params;
    struct hr_sound sound;
    struct hr_rng rng;
    float *data, factor;

    HR_TRY(hr__numbers_write(ctx, 0, &sound, &data));
    hr__op_rng(ctx, &rng);
    factor = (float)pow(10, hr__draw_from(&rng, &p->db) / 20);
    for (int64_t i = 0; i < sound.channels * sound.frames; i++)
        data[i] = sound.data[i] * factor;
    hr__sound_replace(ctx, 0, 0, sound.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_gain = {
    .name = "audio.gain",
    .summary = "change the level of a sound",
    .doc = "Multiplies all samples by 10^(db / 20); nothing is clipped. As "
           "torchaudio.transforms.Vol with `db`, which clips.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(gain_params, struct gain),
    .infer = gain_infer,
    .apply = gain_apply,
};
