/*
 * kind_mask.c - masks: an image of labels. Moving one takes the nearest pixel, so that no
 * label is made that was not there, and fills with the label that the op names.
 */
#include "kernel/resample.h"
#include "ops/image_job.h"
#include "ops/kinds.h"

static bool mask_accepts(const struct hr_field *field)
{
    return field->dtype == HR_U8 && field->ndim == 3;
}

static enum hr_err
mask_move(struct hr_op_ctx *ctx, size_t field, const struct hr_move *move)
{
    struct hr_move nearest = *move;

    nearest.filter = HR_FILTER_NEAREST;
    nearest.antialias = false;
    for (int i = 0; i < 4; i++)
        nearest.fill[i] = (float)move->mask_fill;
    return hr__image_move(ctx, field, &nearest);
}

static enum hr_err
mask_warp(struct hr_op_ctx *ctx, size_t field, const struct hr_warp *warp)
{
    struct hr_warp nearest = *warp;

    nearest.filter = HR_FILTER_NEAREST;
    for (int i = 0; i < 4; i++)
        nearest.fill[i] = (float)warp->mask_fill;
    return hr__image_warp(ctx, field, &nearest);
}

const struct hr_kind hr__kind_mask = {
    .name = "mask",
    .wants = "uint8 [height, width, channels]",
    .meaning = HR_MEANING_MASK,
    .meaning_last = HR_MEANING_MASK,
    .pixels = true,
    .accepts = mask_accepts,
    .move = mask_move,
    .warp = mask_warp,
};
