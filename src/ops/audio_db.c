/*
 * audio.db - a spectrum in decibels.
 */
#include <math.h>

#include "kernel/samples.h"
#include "kernel/sound.h"
#include "ops/audio.h"

struct db {
    const char *field;
    int of;
    double amin, ref, top_db;
};

enum { OF_POWER, OF_MAGNITUDE };
static const char *const kinds[] = {"power", "magnitude", NULL};

static const struct hr_param db_params[] = {
    HR_P_ENUM(struct db, of, .fallback = "power", .names = kinds,
              .help = "what the numbers are: 10 or 20 times their decadic logarithm"),
    HR_P_FLOAT(struct db, amin, .fallback = "1e-10", HR_RANGE(1.2e-38, 1e30),
               .help = "smaller numbers count as this"),
    HR_P_FLOAT(struct db, ref, .fallback = "1", HR_RANGE(1.2e-38, 1e30),
               .help = "the number of 0 dB"),
    HR_P_FLOAT(struct db, top_db, .fallback = "80", HR_RANGE(0, 1e6), .unit = "dB",
               .help = "raise what is further than this below the record's largest; 0: "
                       "nothing"),
    HR_P_FIELD(struct db, field, .fallback = "audio", .access = HR_ACCESS_UPDATE,
               .help = "the field with the spectrum, or any float32 numbers"),
};

static enum hr_err db_infer(struct hr_infer *infer)
{
    return hr__infer_numbers(infer, 0);
}

static enum hr_err db_apply(struct hr_op_ctx *ctx)
{
    const struct db *p = ctx->params;
    double factor = p->of == OF_POWER ? 10 : 20;
    double ref = p->ref > p->amin ? p->ref : p->amin;
    struct hr_sound sound;
    size_t count;
    float *data;

    HR_TRY(hr__numbers_write(ctx, 0, &sound, &data));
    count = (size_t)(sound.channels * sound.frames);
    hr__sound_table()->log2(sound.data, data, count, 0, (float)p->amin,
                            (float)(factor * 0.30102999566398119521),
                            (float)(-factor * log10(ref)));
    if (p->top_db > 0)
        hr__limit_range(data, count, (float)p->top_db);
    hr__sound_replace(ctx, 0, 0, sound.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_db = {
    .name = "audio.db",
    .summary = "spectrum in decibels",
    .doc = "10 * log10(max(x, amin) / ref), or 20 times it for magnitudes, as "
           "torchaudio.transforms.AmplitudeToDB and librosa.power_to_db (whose top_db is "
           "80, too). `top_db` counts from the largest number of the record.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(db_params, struct db),
    .infer = db_infer,
    .apply = db_apply,
};
