/*
 * audio.reverb - puts a sound into a room, by the room's impulse response.
 */
#include <math.h>

#include "core/alloc.h"
#include "kernel/convolve.h"
#include "ops/audio.h"
#include "ops/audio_bank.h"

struct reverb {
    const char *field, *path, *suffix;
    int64_t samples_max;
    struct hr_floats rt60, drr;
    double p;
};

static const struct hr_param reverb_params[] = {
    HR_P_BANK(struct reverb, "impulse responses", false),
    HR_P_FLOATS(struct reverb, rt60, .fallback = "[0.2, 0.6]", .items_min = 1,
                .items_max = 2, HR_RANGE(0.001, 30), .unit = "s",
                .help = "without path: time in which the room's echoes fall by 60 dB: "
                        "[least, most], drawn for each record; or one number"),
    HR_P_FLOATS(struct reverb, drr, .fallback = "[0, 12]", .items_min = 1, .items_max = 2,
                HR_RANGE(-60, 60), .unit = "dB",
                .help = "without path: how much louder than all echoes together the "
                        "direct sound is, like rt60"),
    HR_P_FLOAT(struct reverb, p, .fallback = "1", HR_RANGE(0, 1),
               .help = "probability that a record is changed"),
    HR_P_AUDIO(struct reverb),
};

static enum hr_err reverb_infer(struct hr_infer *infer)
{
    const struct reverb *p = infer->params;

    HR_TRY(hr__infer_order(infer, "rt60", &p->rt60));
    HR_TRY(hr__infer_order(infer, "drr", &p->drr));
    return hr__infer_rate(infer, 0, "a room");
}

/* ---- state ---- */

struct rooms {
    struct hr_bank *bank; /* NULL: rooms are drawn */
    int32_t rate;
    struct hr_convolver *convolver;
};

static void reverb_close(void *state)
{
    struct rooms *rooms = state;

    hr__bank_close(rooms->bank);
    hr__convolver_destroy(rooms->convolver);
    hr__free(rooms);
}

static enum hr_err
open_rooms(const struct reverb *p, struct rooms *rooms, struct hr_error *error)
{
    double seconds = p->rt60.values[p->rt60.count - 1];
    int64_t longest = (int64_t)ceil(seconds * rooms->rate) + 1;

    if (p->path != NULL) {
        HR_TRY(hr__bank_open(p->path, p->suffix, rooms->rate, p->samples_max,
                             &rooms->bank, error));
        longest = rooms->bank->longest;
    }
    if (longest > HR_CONVOLVE_MAX)
        return hr__fail(error, HR_ERR_LIMIT,
                        "a response of %lld samples; at most %lld are allowed",
                        (long long)longest, (long long)HR_CONVOLVE_MAX);
    return hr__convolver_create(longest, &rooms->convolver, error);
}

static enum hr_err reverb_open(const struct hr_open *open, void **ret_state)
{
    const struct reverb *p = open->params;
    struct rooms *rooms = hr__calloc(1, sizeof *rooms);
    enum hr_err err;

    if (rooms == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    rooms->rate = hr__schema_get(open->input, p->field)->rate;
    err = open_rooms(p, rooms, open->error);
    if (err != HR_OK) {
        reverb_close(rooms);
        return err;
    }
    *ret_state = rooms;
    return HR_OK;
}

static void
reverb_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct rooms *rooms = state;

    (void)params;
    if (rooms->bank != NULL)
        hr__hasher_add(hasher, &rooms->bank->hash, sizeof rooms->bank->hash);
}

/* ---- a record ---- */

static double energy(const float *data, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)data[i] * (double)data[i];
    return sum;
}

static void scale(float *data, int64_t count, double by)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)((double)data[i] * by);
}

/* The direct sound, then noise that falls evenly in dB. */
static void
draw_room(const struct reverb *p, struct hr_rng *rng, float *room, int64_t frames)
{
    double drr = hr__draw_from(rng, &p->drr), loss = pow(10, -3.0 / (double)frames);
    double level = 1, tail;

    room[0] = 1;
    for (int64_t i = 1; i < frames; i++) {
        level *= loss;
        room[i] = (float)(level * hr__rng_uniform(rng, -1, 1));
    }
    tail = energy(room + 1, frames - 1);
    if (tail > 0)
        scale(room + 1, frames - 1, sqrt(pow(10, -drr / 10) / tail));
}

static const struct hr_bank_sound *longest(const struct hr_bank *bank)
{
    const struct hr_bank_sound *sound = bank->sounds;

    while (sound->frames < bank->longest)
        sound++;
    return sound;
}

/* The response for the record in the arena, with an energy of 1. */
static enum hr_err choose_room(struct hr_op_ctx *ctx, struct hr_rng *rng,
                               float **ret_room, int64_t *ret_frames)
{
    const struct reverb *p = ctx->params;
    const struct rooms *rooms = ctx->state;
    bool surveys = ctx->thread->surveys;
    double sum, rt60;

    if (rooms->bank != NULL) {
        const struct hr_bank_sound *from =
            surveys ? longest(rooms->bank)
                    : &rooms->bank->sounds[hr__rng_below(rng, rooms->bank->count)];

        *ret_frames = from->frames;
        HR_TRY(hr__sound_alloc(ctx, 1, from->frames, 0, ret_room));
        for (int64_t i = 0; i < from->frames; i++)
            (*ret_room)[i] = from->data[i];
    } else {
        rt60 = surveys ? p->rt60.values[p->rt60.count - 1] : hr__draw_from(rng, &p->rt60);
        *ret_frames = (int64_t)ceil(rt60 * rooms->rate) + 1;
        HR_TRY(hr__sound_alloc(ctx, 1, *ret_frames, 0, ret_room));
        draw_room(p, rng, *ret_room, *ret_frames);
    }
    sum = energy(*ret_room, *ret_frames);
    if (sum > 0)
        scale(*ret_room, *ret_frames, 1 / sqrt(sum));
    return HR_OK;
}

static int64_t loudest(const float *data, int64_t count)
{
    int64_t at = 0;

    for (int64_t i = 1; i < count; i++)
        if (fabsf(data[i]) > fabsf(data[at]))
            at = i;
    return at;
}

static enum hr_err reverb_apply(struct hr_op_ctx *ctx)
{
    const struct reverb *p = ctx->params;
    const struct rooms *rooms = ctx->state;
    struct hr_sound sound;
    struct hr_rng rng;
    int64_t frames, direct;
    float *room, *data;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p && !ctx->thread->surveys)
        return HR_OK;
    HR_TRY(hr__sound_read(ctx, 0, &sound));
    HR_TRY(choose_room(ctx, &rng, &room, &frames));
    HR_TRY(hr__sound_alloc(ctx, sound.channels, sound.frames, 0, &data));
    direct = loudest(room, frames);
    for (int64_t c = 0; c < sound.channels; c++)
        if (hr__convolver_run(rooms->convolver, &ctx->thread->arena, room, frames,
                              sound.data + c * sound.frames, sound.frames, direct,
                              data + c * sound.frames) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory for a room");
    hr__sound_replace(ctx, 0, 0, sound.frames, data);
    return HR_OK;
}

const struct hr_op hr_op_audio_reverb = {
    .name = "audio.reverb",
    .summary = "put a sound into a room",
    .doc = "Convolution with an impulse response of energy 1. With `path` one of its "
           "files is drawn for each record; without, a response is: the direct sound, "
           "then noise that falls by 60 dB in `rt60`. The sound keeps its place and its "
           "length: the response's loudest sample counts as time 0, and what sounds on "
           "after the end is cut off. As torchaudio.functional.fftconvolve with such a "
           "response, cut that way. The files are read when the graph is opened: their "
           "channels are averaged, and other rates resampled. Their samples, not their "
           "paths, are part of the fingerprint.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(reverb_params, struct reverb),
    .infer = reverb_infer,
    .open = reverb_open,
    .close = reverb_close,
    .identity = reverb_identity,
    .apply = reverb_apply,
};
