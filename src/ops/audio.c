/*
 * audio.c - what the ops on sound share.
 */
#include "ops/audio.h"

#include <assert.h>
#include <string.h>

#include "kernel/polyphase.h"
#include "op/kind.h"

const char *const hr__rate_filters[] = {"hq", "torchaudio", NULL};

double hr__draw_from(struct hr_rng *rng, const struct hr_floats *interval)
{
    return hr__rng_uniform(rng, interval->values[0],
                           interval->values[interval->count - 1]);
}

enum hr_err hr__infer_sound(struct hr_infer *infer, size_t field)
{
    const struct hr_field *f = infer->fields[field];
    char text[128];

    assert(field < infer->field_count);
    if (f->kind == HR_FIELD_TENSOR && f->meaning == HR_MEANING_SAMPLES)
        return HR_OK;
    if (f->meaning == HR_MEANING_ENCODED)
        return hr__infer_fail(
            infer, f->name, HR_ERR_TYPE,
            "field \"%s\" is encoded bytes, not samples: put audio.decode before it",
            f->name);
    return hr__infer_fail(infer, f->name, HR_ERR_TYPE,
                          "field \"%s\" is %s, not a sound: declare it samples with "
                          "record.kind",
                          f->name, hr__field_text(f, text, sizeof text));
}

enum hr_err hr__infer_rate(struct hr_infer *infer, size_t field, const char *what)
{
    const struct hr_field *f = infer->fields[field];

    HR_TRY(hr__infer_sound(infer, field));
    if (f->rate > 0)
        return HR_OK;
    return hr__infer_fail(infer, f->name, HR_ERR_TYPE,
                          "the sounds in field \"%s\" may have different rates, and %s "
                          "needs one: put audio.resample before it, or give audio.decode "
                          "the `rate` that all files have",
                          f->name, what);
}

enum hr_err hr__infer_numbers(struct hr_infer *infer, size_t field)
{
    struct hr_field *f = infer->fields[field];
    char text[128];

    if (f->kind != HR_FIELD_TENSOR || f->dtype != HR_F32 || f->ndim < 1 ||
        hr__field_has_pixels(f))
        return hr__infer_fail(infer, f->name, HR_ERR_TYPE,
                              "field \"%s\" is %s; this needs a float32 tensor with a "
                              "dimension, and no image",
                              f->name, hr__field_text(f, text, sizeof text));
    if (hr__kind_of(f) != NULL) {
        f->meaning = HR_MEANING_NONE;
        f->layout = HR_LAYOUT_NONE;
        f->rate = 0;
    }
    return HR_OK;
}

struct hr_dim *hr__field_frames(struct hr_field *field)
{
    assert(field->ndim > 0);
    return &field->dims[field->ndim - 1];
}

enum hr_err
hr__sound_read(struct hr_op_ctx *ctx, size_t field, struct hr_sound *ret_sound)
{
    const struct hr_value *value = ctx->fields[field];
    void *copy;

    if (value->kind != HR_VALUE_TENSOR || value->dtype != HR_F32 || value->ndim < 1)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "the field is no float32 tensor of samples");
    *ret_sound = (struct hr_sound){.data = value->data, .channels = 1};
    ret_sound->frames = value->dims[value->ndim - 1];
    for (int i = 0; i < value->ndim - 1; i++)
        ret_sound->channels *= value->dims[i];
    if (hr__value_contiguous(value))
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, (size_t)hr__value_count(value) * sizeof(float) + 1, &copy));
    hr__value_copy(value, copy);
    ret_sound->data = copy;
    return HR_OK;
}

enum hr_err hr__sound_alloc(struct hr_op_ctx *ctx, int64_t channels, int64_t frames,
                            int64_t more, float **ret_data)
{
    int64_t count;
    void *memory;

    if (__builtin_mul_overflow(channels, frames, &count) ||
        __builtin_add_overflow(count, more, &count) || count > INT64_MAX / 8)
        return hr__fail(ctx->error, HR_ERR_LIMIT, "%lld times %lld numbers are too many",
                        (long long)channels, (long long)frames);
    HR_TRY(hr__op_alloc(ctx, (size_t)count * sizeof(float) + 1, &memory));
    *ret_data = memory;
    return HR_OK;
}

void hr__sound_replace(struct hr_op_ctx *ctx, size_t field, int64_t rows, int64_t frames,
                       float *data)
{
    struct hr_value *value = ctx->fields[field];
    int64_t dims[HR_MAX_DIMS];
    int ndim = value->ndim;

    assert(ndim > 0 && ndim + (rows > 0) <= HR_MAX_DIMS);
    memcpy(dims, value->dims, sizeof dims);
    if (rows > 0)
        dims[ndim++ - 1] = rows;
    dims[ndim - 1] = frames;
    hr__value_clear(value);
    hr__value_set_tensor(value, HR_F32, ndim, dims, data, NULL);
}

enum hr_err hr__numbers_write(struct hr_op_ctx *ctx, size_t field,
                              struct hr_sound *ret_sound, float **ret_data)
{
    const struct hr_value *value = ctx->fields[field];

    HR_TRY(hr__sound_read(ctx, field, ret_sound));
    if (value->shared || value->owner != NULL || ret_sound->data != value->data)
        return hr__sound_alloc(ctx, ret_sound->channels, ret_sound->frames, 0, ret_data);
    *ret_data = value->data;
    return HR_OK;
}

enum hr_err
hr__sound_resample(struct hr_op_ctx *ctx, size_t field, const struct hr_sound *sound,
                   const struct hr_polyphase *polyphase)
{
    int64_t frames = hr__polyphase_count(polyphase, sound->frames);
    int64_t room = hr__polyphase_room(polyphase, sound->frames);
    float *data = NULL;

    HR_TRY(hr__sound_alloc(ctx, sound->channels, frames, room - frames, &data));
    for (int64_t c = 0; c < sound->channels; c++)
        if (hr__polyphase_run(polyphase, &ctx->thread->arena,
                              sound->data + c * sound->frames, sound->frames,
                              data + c * frames) != HR_OK)
            return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory to resample");
    hr__sound_replace(ctx, field, 0, frames, data);
    return HR_OK;
}
