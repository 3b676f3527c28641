/*
 * audio.resample - changes the rate of a sound.
 *
 * The tables of a filter depend on both rates. The state has those for the rates that
 * occurred, up to a number; further ones are made for the record.
 */
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "kernel/polyphase.h"
#include "ops/audio.h"

#define KEPT_MAX 16

struct resample {
    const char *field, *rate_field;
    int64_t rate;
    int filter;
};

static const struct hr_param resample_params[] = {
    HR_P_INT(struct resample, rate, .required = true, HR_RANGE(1, HR_RATE_MAX),
             .unit = "Hz", .help = "the new rate"),
    HR_P_RATE_FILTER(struct resample),
    HR_P_AUDIO(struct resample),
    HR_P_STRING(struct resample, rate_field, .fallback = "rate",
                .help = "the field with the rate of each sound, for sounds that may have "
                        "different ones; it gets the new rate"),
};

static enum hr_err
resample_binds(const void *params, const void *state, const struct hr_schema *input,
               struct hr_bindings *bindings, struct hr_error *error)
{
    const struct resample *p = params;
    const struct hr_field *sound = hr__schema_get(input, p->field);

    (void)state;
    if (hr__schema_get(input, p->rate_field) != NULL)
        return hr__bind(bindings, p->rate_field, HR_ACCESS_UPDATE, error);
    if (sound == NULL || sound->meaning != HR_MEANING_SAMPLES || sound->rate > 0)
        return HR_OK;
    return hr__fail(
        error, HR_ERR_GRAPH,
        "the sounds in field \"%s\" may have different rates, and there is no "
        "field \"%s\" that says which: name it as `rate_field`",
        p->field, p->rate_field);
}

static enum hr_err resample_infer(struct hr_infer *infer)
{
    const struct resample *p = infer->params;
    struct hr_field *field = infer->fields[0];
    struct hr_dim *frames;

    HR_TRY(hr__infer_sound(infer, 0));
    frames = hr__field_frames(field);
    if (infer->field_count > 1) {
        const struct hr_field *rate = infer->fields[1];

        if (rate->kind != HR_FIELD_TENSOR || rate->dtype != HR_I64 || rate->ndim != 0)
            return hr__infer_fail(infer, "rate_field", HR_ERR_TYPE,
                                  "field \"%s\" is no rate, which is an int64",
                                  rate->name);
    }
    if (field->rate > 0 && frames->size >= 0 && frames->size <= INT64_MAX / HR_RATE_MAX)
        hr__dim_set(frames, (frames->size * p->rate + field->rate - 1) / field->rate);
    else
        hr__dim_unknown(frames, "frames");
    field->rate = (int32_t)p->rate;
    return HR_OK;
}

/* ---- tables ---- */

struct tables {
    int32_t rate; /* of the input, if all records have it; else 0 */
    pthread_mutex_t lock;
    size_t count; /* guarded by `lock`, like the rest; entries stay until the end */
    struct {
        int32_t from;
        struct hr_polyphase *polyphase;
    } kept[KEPT_MAX];
};

static void resample_close(void *state)
{
    struct tables *t = state;

    for (size_t i = 0; i < t->count; i++)
        hr__polyphase_destroy(t->kept[i].polyphase);
    pthread_mutex_destroy(&t->lock);
    hr__free(t);
}

static enum hr_err resample_open(const struct hr_open *open, void **ret_state)
{
    const struct resample *p = open->params;
    const struct hr_field *field = hr__schema_get(open->input, p->field);
    struct tables *t = hr__calloc(1, sizeof *t);

    if (t == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    pthread_mutex_init(&t->lock, NULL);
    t->rate = field != NULL ? field->rate : 0;
    *ret_state = t;
    return HR_OK;
}

/* Tables for this rate; *ret_own if the caller must destroy them. */
static enum hr_err find_tables(struct hr_op_ctx *ctx, int32_t from,
                               struct hr_polyphase **ret_polyphase, bool *ret_own)
{
    const struct resample *p = ctx->params;
    struct tables *t = ctx->state;
    enum hr_err err = HR_OK;
    size_t i = 0;

    *ret_own = false;
    pthread_mutex_lock(&t->lock);
    while (i < t->count && t->kept[i].from != from)
        i++;
    if (i == t->count) {
        err = hr__polyphase_create(from, (int32_t)p->rate, (enum hr_rate_filter)p->filter,
                                   ret_polyphase, ctx->error);
        *ret_own = err == HR_OK && i == KEPT_MAX;
        if (err == HR_OK && i < KEPT_MAX) {
            t->kept[i].from = from;
            t->kept[i].polyphase = *ret_polyphase;
            t->count++;
        }
    } else {
        *ret_polyphase = t->kept[i].polyphase;
    }
    pthread_mutex_unlock(&t->lock);
    return err;
}

/* ---- a record ---- */

static enum hr_err find_rate(struct hr_op_ctx *ctx, int32_t *ret_from)
{
    const struct tables *t = ctx->state;
    int64_t rate = t->rate;

    if (rate == 0) {
        assert(ctx->field_count > 1);
        memcpy(&rate, ctx->fields[1]->data, sizeof rate);
    }
    if (rate < 1 || rate > HR_RATE_MAX)
        return hr__fail(ctx->error, HR_ERR_RANGE, "%lld Hz is no rate", (long long)rate);
    *ret_from = (int32_t)rate;
    return HR_OK;
}

static enum hr_err set_rate(struct hr_op_ctx *ctx)
{
    const struct resample *p = ctx->params;
    void *rate;

    if (ctx->field_count < 2)
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &rate));
    *(int64_t *)rate = p->rate;
    hr__value_clear(ctx->fields[1]);
    hr__value_set_tensor(ctx->fields[1], HR_I64, 0, NULL, rate, NULL);
    return HR_OK;
}

static enum hr_err resample_apply(struct hr_op_ctx *ctx)
{
    const struct resample *p = ctx->params;
    struct hr_polyphase *polyphase;
    struct hr_sound sound;
    enum hr_err err;
    int32_t from = 0;
    bool own;

    HR_TRY(find_rate(ctx, &from));
    HR_TRY(set_rate(ctx));
    if (from == p->rate)
        return HR_OK;
    HR_TRY(hr__sound_read(ctx, 0, &sound));
    HR_TRY(find_tables(ctx, from, &polyphase, &own));
    err = hr__sound_resample(ctx, 0, &sound, polyphase);
    if (own)
        hr__polyphase_destroy(polyphase);
    return err;
}

const struct hr_op hr_op_audio_resample = {
    .name = "audio.resample",
    .summary = "change the rate of a sound",
    .doc =
        "A polyphase filter; the result has frames * rate / old rate frames, rounded up. "
        "Frames beyond the ends count as silence. **hq** passes 91.3 % of the lower "
        "Nyquist frequency and stops all from 100 % on by 120 dB, like soxr's HQ. "
        "**torchaudio** gives the numbers of torchaudio.functional.resample with its "
        "defaults: fast, and up to a tenth of the band lets aliases through. All sounds "
        "have the same rate afterwards. Ratios whose filter would take more than 64 MiB "
        "(two rates without a large common divisor) are refused.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(resample_params, struct resample),
    .infer = resample_infer,
    .binds = resample_binds,
    .open = resample_open,
    .close = resample_close,
    .apply = resample_apply,
};
