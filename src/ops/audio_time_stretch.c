/*
 * audio.time_stretch - makes a sound longer or shorter and keeps its pitch.
 */
#include "ops/audio_stretch.h"

struct time_stretch {
    struct hr_stretch_frames frames;
    struct hr_floats rate;
};

static const struct hr_param time_stretch_params[] = {
    HR_P_FLOATS(struct time_stretch, rate, .required = true, .items_min = 1,
                .items_max = 2, HR_RANGE(0.01, 100),
                .help = "above 1 is faster and shorter: [least, most], drawn for each "
                        "record; or one number"),
    HR_P_STRETCH,
};

static enum hr_err time_stretch_infer(struct hr_infer *infer)
{
    const struct time_stretch *p = infer->params;
    int64_t frames;

    HR_TRY(hr__infer_order(infer, "rate", &p->rate));
    frames = infer->fields[0]->ndim > 0 ? hr__field_frames(infer->fields[0])->size : -1;
    HR_TRY(hr__infer_stretch(infer));
    if (p->rate.values[0] >= p->rate.values[p->rate.count - 1] && frames >= 0)
        hr__dim_set(hr__field_frames(infer->fields[0]),
                    hr__stretch_count(frames, p->rate.values[0]));
    return HR_OK;
}

static enum hr_err time_stretch_open(const struct hr_open *open, void **ret_state)
{
    struct hr_stretch *stretch = NULL;

    HR_TRY(hr__stretch_open(open->params, &stretch, open->error));
    *ret_state = stretch;
    return HR_OK;
}

static void time_stretch_close(void *state)
{
    hr__stretch_destroy(state);
}

static enum hr_err time_stretch_apply(struct hr_op_ctx *ctx)
{
    const struct time_stretch *p = ctx->params;
    struct hr_sound sound;
    struct hr_rng rng;
    int64_t frames;
    double rate;
    float *data;

    HR_TRY(hr__sound_read(ctx, 0, &sound));
    hr__op_rng(ctx, &rng);
    rate = ctx->thread->surveys ? p->rate.values[0] : hr__draw_from(&rng, &p->rate);
    HR_TRY(hr__sound_stretch(ctx, ctx->state, &sound, rate, &data, &frames));
    hr__sound_replace(ctx, 0, 0, frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_time_stretch = {
    .name = "audio.time_stretch",
    .summary = "make a sound longer or shorter at the same pitch",
    .doc = "A phase vocoder, as librosa.effects.time_stretch: the result has frames / "
           "rate frames, rounded. Spectra and phases are in float64; librosa gives the "
           "same numbers for float64 sounds, while for float32 ones its phases lose "
           "digits as they add up. torchaudio.transforms.TimeStretch does the same to a "
           "complex spectrum.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(time_stretch_params, struct time_stretch),
    .infer = time_stretch_infer,
    .open = time_stretch_open,
    .close = time_stretch_close,
    .apply = time_stretch_apply,
};
