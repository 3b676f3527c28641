/*
 * kind_image.c - images: moved with the interpolation and the fill that the op names.
 */
#include "ops/image_job.h"
#include "ops/kinds.h"

static bool image_accepts(const struct hr_field *field)
{
    return (field->dtype == HR_U8 || field->dtype == HR_F32) && field->ndim == 3;
}

static enum hr_err
image_move(struct hr_op_ctx *ctx, size_t field, const struct hr_move *move)
{
    return hr__image_move(ctx, field, move);
}

static enum hr_err
image_warp(struct hr_op_ctx *ctx, size_t field, const struct hr_warp *warp)
{
    return hr__image_warp(ctx, field, warp);
}

const struct hr_kind hr__kind_image = {
    .name = "image",
    .wants = "uint8 or float32 [height, width, channels]",
    .meaning = HR_MEANING_IMAGE_U8,
    .meaning_f32 = HR_MEANING_IMAGE_UNIT,
    .meaning_last = HR_MEANING_IMAGE_NORMAL,
    .pixels = true,
    .accepts = image_accepts,
    .move = image_move,
    .warp = image_warp,
};
