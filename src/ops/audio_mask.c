/*
 * audio_mask.c - masks of rows or columns, the same in all channels of a record.
 */
#include "ops/audio_mask.h"

#include <string.h>

enum hr_err hr__mask_infer(struct hr_infer *infer)
{
    const struct hr_field *f = infer->fields[0];

    HR_TRY(hr__infer_numbers(infer, 0));
    if (f->ndim >= 2)
        return HR_OK;
    return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                          "field \"%s\" has one dimension; a spectrum has rows and time",
                          f->name);
}

/* Draws a mask of `size` places. */
static void draw(struct hr_rng *rng, const struct hr_mask *p, int64_t size,
                 int64_t *ret_from, int64_t *ret_width)
{
    int64_t most = (int64_t)(p->share * (double)size);

    most = most < p->max ? most : p->max;
    *ret_width = (int64_t)hr__rng_below(rng, (uint64_t)most + 1);
    *ret_from = (int64_t)hr__rng_below(rng, (uint64_t)(size - *ret_width) + 1);
}

static void
blank(float *data, int64_t rows, int64_t from, int64_t width, int64_t stride, float value)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = from; i < from + width; i++)
            data[r * stride + i] = value;
}

enum hr_err hr__mask_apply(struct hr_op_ctx *ctx, bool time)
{
    const struct hr_mask *p = ctx->params;
    const struct hr_value *value = ctx->fields[0];
    int64_t size, rows, from, width;
    struct hr_sound in;
    struct hr_rng rng;
    float *data;

    HR_TRY(hr__numbers_write(ctx, 0, &in, &data));
    if (value->ndim < 2)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "a spectrum has rows and time");
    if (data != in.data)
        memcpy(data, in.data, (size_t)(in.channels * in.frames) * sizeof *data);
    rows = value->dims[value->ndim - 2];
    size = time ? in.frames : rows;
    hr__op_rng(ctx, &rng);
    for (int64_t n = 0; n < p->count; n++) {
        draw(&rng, p, size, &from, &width);
        if (time)
            blank(data, in.channels, from, width, in.frames, (float)p->value);
        else if (rows > 0)
            blank(data, in.channels / rows, from * in.frames, width * in.frames,
                  rows * in.frames, (float)p->value);
    }
    hr__sound_replace(ctx, 0, 0, in.frames, data);
    return HR_OK;
}
