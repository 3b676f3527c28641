/*
 * image_levels.c - a copy of an image that an op may change in place.
 */
#include "ops/image_levels.h"

enum hr_err
hr__infer_threshold(struct hr_infer *infer, const char *param, double threshold)
{
    bool bytes = infer->fields[0]->dtype == HR_U8;

    if (threshold <= (bytes ? 255 : 1))
        return HR_OK;
    return hr__infer_fail(
        infer, param, HR_ERR_RANGE, "the image is %s, so %s is at most %s, not %g",
        bytes ? "uint8, 0..255" : "float32, 0..1", param, bytes ? "255" : "1", threshold);
}

enum hr_err
hr__image_own(struct hr_op_ctx *ctx, size_t field, struct hr_pixels *ret_pixels)
{
    enum hr_layout layout = hr__image_layout_of(ctx->fields[field]);
    struct hr_value made;
    struct hr_pixels in;

    HR_TRY(hr__image_read(ctx, field, &in));
    HR_TRY(hr__image_make(ctx->thread, in.width, in.height, in.channels, in.dtype, layout,
                          &made, ret_pixels, ctx->error));
    hr__pixels_store(&in, ret_pixels, NULL, 0, false, false);
    hr__image_replace(ctx, field, &made);
    return HR_OK;
}
