/*
 * image.resize - resizes to a fixed height and width.
 */
#include "ops/image_size.h"
#include "ops/move.h"

struct resize {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints size;
    int interpolation;
    bool antialias;
};

static const struct hr_param resize_params[] = {
    HR_P_SIZE(struct resize),
    HR_P_INTERPOLATION(struct resize),
    HR_P_MOVED(struct resize),
};

static enum hr_err resize_infer(struct hr_infer *infer)
{
    const struct resize *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    hr__infer_moved_size(infer, hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

static enum hr_err resize_apply(struct hr_op_ctx *ctx)
{
    const struct resize *p = ctx->params;
    struct hr_move move;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__move_resize(&move, hr__size_width(&p->size), hr__size_height(&p->size),
                    p->interpolation, p->antialias);
    return hr__move(ctx, &move);
}

const struct hr_op hr_op_image_resize = {
    .name = "image.resize",
    .summary = "resize to a fixed height and width",
    .doc =
        "Differs from torchvision: one number means a square of that side. To resize "
        "the shorter side and keep the aspect, use image.resize_shortest. uint8 "
        "images are rounded to whole levels; `nearest` is torchvision's NEAREST_EXACT.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_RESAMPLING | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(resize_params, struct resize),
    HR_MOVE_STATE,
    .infer = resize_infer,
    .apply = resize_apply,
};
