/*
 * audio.log - the logarithm of a spectrum.
 */
#include <float.h>
#include <math.h>

#include "kernel/sound.h"
#include "ops/audio.h"

struct log {
    const char *field;
    double offset;
    int base;
};

enum { BASE_E, BASE_2, BASE_10 };
static const char *const bases[] = {"e", "2", "10", NULL};

static const struct hr_param log_params[] = {
    HR_P_FLOAT(struct log, offset, .fallback = "1e-6", HR_RANGE(0, 1e30),
               .help = "added before, so that silence has a logarithm"),
    HR_P_ENUM(struct log, base, .fallback = "e", .names = bases,
              .help = "base of the logarithm"),
    HR_P_FIELD(struct log, field, .fallback = "audio", .access = HR_ACCESS_UPDATE,
               .help = "the field with the spectrum, or any float32 numbers"),
};

static enum hr_err log_infer(struct hr_infer *infer)
{
    return hr__infer_numbers(infer, 0);
}

static enum hr_err log_apply(struct hr_op_ctx *ctx)
{
    static const double of_base[] = {0.69314718055994530942, 1, 0.30102999566398119521};
    const struct log *p = ctx->params;
    struct hr_sound sound;
    float *data;

    HR_TRY(hr__numbers_write(ctx, 0, &sound, &data));
    hr__sound_table()->log2(sound.data, data, (size_t)(sound.channels * sound.frames),
                            (float)p->offset, FLT_MIN, (float)of_base[p->base], 0);
    hr__sound_replace(ctx, 0, 0, sound.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_log = {
    .name = "audio.log",
    .summary = "logarithm of a spectrum",
    .doc = "log(x + offset), within 3e-7 of the base-2 logarithm. What is not above 0 "
           "after the addition counts as the least normal float32.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(log_params, struct log),
    .infer = log_infer,
    .apply = log_apply,
};
