/*
 * audio.speed - plays a sound faster or slower, which changes its pitch, too.
 */
#include <math.h>

#include "core/alloc.h"
#include "kernel/polyphase.h"
#include "ops/audio.h"

#define PARTS 1000 /* factors are whole numbers of thousandths */

struct speed {
    const char *field;
    struct hr_floats factors;
    int filter;
};

static const struct hr_param speed_params[] = {
    HR_P_FLOATS(struct speed, factors, .fallback = "[0.9, 1, 1.1]", .items_min = 1,
                .items_max = HR_LIST_MAX, HR_RANGE(0.01, 100),
                .help = "one of them is drawn for each record; above 1 is faster and "
                        "shorter; up to three decimals"),
    HR_P_RATE_FILTER(struct speed),
    HR_P_AUDIO(struct speed),
};

static enum hr_err speed_infer(struct hr_infer *infer)
{
    const struct speed *p = infer->params;

    HR_TRY(hr__infer_sound(infer, 0));
    for (int i = 0; i < p->factors.count; i++)
        if (fabs(rint(p->factors.values[i] * PARTS) - p->factors.values[i] * PARTS) >
            1e-6)
            return hr__infer_fail(infer, "factors", HR_ERR_RANGE,
                                  "factor %g has more than three decimals",
                                  p->factors.values[i]);
    hr__dim_unknown(hr__field_frames(infer->fields[0]), "frames");
    return HR_OK;
}

/* ---- state ---- */

struct tables {
    int count;
    struct hr_polyphase *of[HR_LIST_MAX]; /* NULL for factor 1 */
};

static void speed_close(void *state)
{
    struct tables *t = state;

    for (int i = 0; i < t->count; i++)
        hr__polyphase_destroy(t->of[i]);
    hr__free(t);
}

static enum hr_err speed_open(const struct hr_open *open, void **ret_state)
{
    const struct speed *p = open->params;
    struct tables *t = hr__calloc(1, sizeof *t);
    enum hr_err err = HR_OK;

    if (t == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    while (t->count < p->factors.count && err == HR_OK) {
        int32_t from = (int32_t)rint(p->factors.values[t->count] * PARTS);

        if (from != PARTS)
            err = hr__polyphase_create(from, PARTS, (enum hr_rate_filter)p->filter,
                                       &t->of[t->count], open->error);
        t->count++;
    }
    if (err != HR_OK) {
        speed_close(t);
        return err;
    }
    *ret_state = t;
    return HR_OK;
}

/* ---- a record ---- */

/* The smallest factor makes the longest sound. */
static int slowest(const struct speed *p)
{
    int at = 0;

    for (int i = 1; i < p->factors.count; i++)
        if (p->factors.values[i] < p->factors.values[at])
            at = i;
    return at;
}

static enum hr_err speed_apply(struct hr_op_ctx *ctx)
{
    const struct tables *t = ctx->state;
    const struct hr_polyphase *polyphase;
    struct hr_sound sound;
    struct hr_rng rng;
    uint64_t drawn;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    hr__op_rng(ctx, &rng);
    drawn = hr__rng_below(&rng, (uint64_t)t->count);
    polyphase = t->of[ctx->thread->surveys ? (uint64_t)slowest(ctx->params) : drawn];
    return polyphase != NULL ? hr__sound_resample(ctx, 0, &sound, polyphase) : HR_OK;
}

const struct hr_op hr_op_audio_speed = {
    .name = "audio.speed",
    .summary = "play a sound faster or slower",
    .doc = "As torchaudio.transforms.SpeedPerturbation: the sound is resampled as if its "
           "rate were `factor` times what it is, so its pitch changes, too; its rate "
           "stays. The result has frames / factor frames, rounded up. audio.time_stretch "
           "keeps the pitch.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(speed_params, struct speed),
    .infer = speed_infer,
    .open = speed_open,
    .close = speed_close,
    .apply = speed_apply,
};
