/*
 * audio.trim - cuts off silence before and after a sound.
 */
#include <math.h>
#include <string.h>

#include "ops/audio.h"

struct trim {
    const char *field;
    double top_db;
    int64_t frame, hop;
};

static const struct hr_param trim_params[] = {
    HR_P_FLOAT(struct trim, top_db, .fallback = "60", HR_RANGE(0, 200), .min_open = true,
               .unit = "dB",
               .help =
                   "what is softer than the loudest part by more than this is silence"),
    HR_P_INT(struct trim, frame, .fallback = "2048", HR_RANGE(1, 1 << 24),
             .unit = "frames", .help = "samples whose mean power counts together"),
    HR_P_INT(struct trim, hop, .fallback = "512", HR_RANGE(1, 1 << 24), .unit = "frames",
             .help = "from one mean to the next"),
    HR_P_AUDIO(struct trim),
};

static enum hr_err trim_infer(struct hr_infer *infer)
{
    HR_TRY(hr__infer_sound(infer, 0));
    hr__dim_unknown(hr__field_frames(infer->fields[0]), "frames");
    return HR_OK;
}

/* Mean power of the samples about `centre`; those beyond the ends are silent. */
static double power(const float *data, int64_t frames, int64_t centre, int64_t width)
{
    int64_t from = centre - width / 2, to = from + width;
    double sum = 0;

    from = from < 0 ? 0 : from;
    to = to > frames ? frames : to;
    for (int64_t i = from; i < to; i++)
        sum += (double)data[i] * (double)data[i];
    return sum / (double)width;
}

/* The frames [*ret_from, *ret_to) that are not silent in all channels. */
static void find_loud(const struct trim *p, const struct hr_sound *sound, double *powers,
                      int64_t *ret_from, int64_t *ret_to)
{
    const double least = 1e-10; /* librosa's amin, squared */
    int64_t count = sound->frames / p->hop + 1, first = count, last = -1;
    double top = least, limit;

    for (int64_t i = 0; i < count; i++) {
        powers[i] = least;
        for (int64_t c = 0; c < sound->channels; c++)
            powers[i] = fmax(powers[i], power(sound->data + c * sound->frames,
                                              sound->frames, i * p->hop, p->frame));
        top = fmax(top, powers[i]);
    }
    limit = top * pow(10, -p->top_db / 10);
    for (int64_t i = 0; i < count; i++) {
        if (!(powers[i] > limit))
            continue;
        first = i < first ? i : first;
        last = i;
    }
    *ret_to = (last + 1) * p->hop < sound->frames ? (last + 1) * p->hop : sound->frames;
    *ret_from = first * p->hop < *ret_to ? first * p->hop : *ret_to;
}

static enum hr_err trim_apply(struct hr_op_ctx *ctx)
{
    const struct trim *p = ctx->params;
    int64_t from, to;
    struct hr_sound sound;
    void *powers;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    HR_TRY(
        hr__op_alloc(ctx, (size_t)(sound.frames / p->hop + 1) * sizeof(double), &powers));
    find_loud(p, &sound, powers, &from, &to);
    HR_TRY(hr__sound_alloc(ctx, sound.channels, to - from, 0, &data));
    for (int64_t c = 0; c < sound.channels; c++)
        memcpy(data + c * (to - from), sound.data + c * sound.frames + from,
               (size_t)(to - from) * sizeof *data);
    hr__sound_replace(ctx, 0, 0, to - from, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_trim = {
    .name = "audio.trim",
    .summary = "cut off silence before and after a sound",
    .doc = "As librosa.effects.trim with its defaults: silent is what in all channels "
           "is more than `top_db` below the loudest part.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(trim_params, struct trim),
    .infer = trim_infer,
    .apply = trim_apply,
};
