/*
 * image_colours.c - runs a chain of colour steps on a record's image.
 */
#include "ops/image_colours.h"

#include <assert.h>

void hr__colour_add(struct hr_colour_chain *chain, enum hr_colour_kind kind, double value)
{
    if (chain->rounds && chain->count > 0)
        chain->steps[chain->count++] = (struct hr_colour_step){.kind = HR_COLOUR_ROUND};
    assert(chain->count < HR_COLOUR_MAX);
    chain->steps[chain->count++] =
        (struct hr_colour_step){.kind = kind, .value = (float)value};
}

enum hr_err
hr__image_colours(struct hr_op_ctx *ctx, size_t field, const struct hr_colour_step *steps,
                  int count, int32_t channels)
{
    enum hr_layout layout = hr__image_layout_of(ctx->fields[field]);
    struct hr_pixels in, out;
    struct hr_value made;
    enum hr_err err;

    HR_TRY(hr__image_read(ctx, field, &in));
    if (in.channels != 1 && in.channels != 3)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "colour ops need an image of 1 or 3 channels, not %d",
                        (int)in.channels);
    HR_TRY(hr__image_make(ctx->thread, in.width, in.height, channels, in.dtype, layout,
                          &made, &out, ctx->error));
    err = hr__colour_run(&ctx->thread->arena, &in, &out, steps, count,
                         in.dtype == HR_U8 ? 255.0f : 1.0f);
    if (err != HR_OK)
        return hr__fail(ctx->error, err, "a colour op failed");
    hr__image_replace(ctx, field, &made);
    return HR_OK;
}
