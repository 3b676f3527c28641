/*
 * audio.noise - mixes noise from files in, at a level that is drawn.
 */
#include <math.h>

#include "ops/audio.h"
#include "ops/audio_bank.h"

struct noise {
    const char *field, *path, *suffix;
    int64_t samples_max;
    struct hr_floats snr;
    double p;
};

static const struct hr_param noise_params[] = {
    HR_P_BANK(struct noise, "noise", true),
    HR_P_FLOATS(struct noise, snr, .fallback = "[5, 20]", .items_min = 1, .items_max = 2,
                HR_RANGE(-200, 200), .unit = "dB",
                .help = "how much louder than the noise the sound is: [least, most], "
                        "drawn for each record; or one number"),
    HR_P_FLOAT(struct noise, p, .fallback = "1", HR_RANGE(0, 1),
               .help = "probability that a record gets noise"),
    HR_P_AUDIO(struct noise),
};

static enum hr_err noise_infer(struct hr_infer *infer)
{
    const struct noise *p = infer->params;

    HR_TRY(hr__infer_order(infer, "snr", &p->snr));
    return hr__infer_rate(infer, 0, "noise");
}

static enum hr_err noise_open(const struct hr_open *open, void **ret_state)
{
    const struct noise *p = open->params;
    struct hr_bank *bank = NULL;

    HR_TRY(hr__bank_open(p->path, p->suffix, hr__schema_get(open->input, p->field)->rate,
                         p->samples_max, &bank, open->error));
    *ret_state = bank;
    return HR_OK;
}

static void noise_close(void *state)
{
    hr__bank_close(state);
}

static void
noise_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct hr_bank *bank = state;

    (void)params;
    hr__hasher_add(hasher, &bank->hash, sizeof bank->hash);
}

static double power(const float *data, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)data[i] * (double)data[i];
    return count > 0 ? sum / (double)count : 0;
}

/* As many frames of the noise as the sound has, from a place that is drawn; a shorter one
 * is repeated. */
static enum hr_err
draw_piece(struct hr_op_ctx *ctx, struct hr_rng *rng, int64_t frames, float **ret_piece)
{
    const struct hr_bank *bank = ctx->state;
    const struct hr_bank_sound *from = &bank->sounds[hr__rng_below(rng, bank->count)];
    int64_t places = from->frames >= frames ? from->frames - frames + 1 : from->frames;
    int64_t at = (int64_t)hr__rng_below(rng, (uint64_t)places);

    HR_TRY(hr__sound_alloc(ctx, 1, frames, 0, ret_piece));
    for (int64_t i = 0; i < frames; i++) {
        (*ret_piece)[i] = from->data[at];
        at = at + 1 < from->frames ? at + 1 : 0;
    }
    return HR_OK;
}

static enum hr_err noise_apply(struct hr_op_ctx *ctx)
{
    const struct noise *p = ctx->params;
    struct hr_sound sound;
    struct hr_rng rng;
    float *data, *piece;
    double loud, soft, scale;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p && !ctx->thread->surveys)
        return HR_OK;
    HR_TRY(hr__numbers_write(ctx, 0, &sound, &data));
    HR_TRY(draw_piece(ctx, &rng, sound.frames, &piece));
    loud = power(sound.data, sound.channels * sound.frames);
    soft = power(piece, sound.frames);
    scale =
        soft > 0 ? sqrt(loud / soft) * pow(10, -hr__draw_from(&rng, &p->snr) / 20) : 0;
    for (int64_t c = 0; c < sound.channels; c++)
        for (int64_t i = 0; i < sound.frames; i++) {
            int64_t at = c * sound.frames + i;

            data[at] = sound.data[at] + (float)(scale * (double)piece[i]);
        }
    hr__sound_replace(ctx, 0, 0, sound.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_noise = {
    .name = "audio.noise",
    .summary = "mix noise from files in",
    .doc = "A file, a place in it and a ratio of signal to noise are drawn for each "
           "record. As torchaudio.functional.add_noise for one channel; of several "
           "channels, the mean power counts, and all get the same noise. Noise that is "
           "shorter than the sound is repeated; a silent sound stays silent. The files "
           "are read when the graph is opened: their channels are averaged, and other "
           "rates resampled. Their samples, not their paths, are part of the "
           "fingerprint.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(noise_params, struct noise),
    .infer = noise_infer,
    .open = noise_open,
    .close = noise_close,
    .identity = noise_identity,
    .apply = noise_apply,
};
