/*
 * image.random_resized_crop - a random window, resized: the usual crop for training.
 */
#include "kernel/resample.h"
#include "ops/image_area.h"
#include "ops/image_size.h"

struct rrc {
    struct hr_area area; /* first */
    struct hr_ints size;
    int interpolation;
    bool antialias;
};

static const struct hr_param rrc_params[] = {
    HR_P_SIZE(struct rrc),
    HR_P_AREA,
    HR_P_INTERPOLATION(struct rrc),
    HR_P_AREA_MOVED,
};

static enum hr_err rrc_infer(struct hr_infer *infer)
{
    const struct rrc *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_area(infer, &p->area));
    hr__infer_moved_size(infer, hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

static enum hr_err rrc_apply(struct hr_op_ctx *ctx)
{
    const struct rrc *p = ctx->params;
    struct hr_move move;
    struct hr_rng rng;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__op_rng(ctx, &rng);
    hr__move_area(&move, &p->area, &rng);
    hr__move_resize(&move, hr__size_width(&p->size), hr__size_height(&p->size),
                    p->interpolation, p->antialias);
    return hr__move(ctx, &move);
}

const struct hr_op hr_op_image_random_resized_crop = {
    .name = "image.random_resized_crop",
    .summary = "a random window of the image, resized to a fixed size",
    .doc =
        "Like torchvision's RandomResizedCrop, with draws in the same order: area and "
        "aspect are drawn up to ten times until the window fits, then its position; else "
        "the largest centred window of a permitted aspect is used. Pixels outside the "
        "window do not affect the result.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_RESAMPLING | HR_TRAIT_CROPS | HR_TRAIT_DEFERS |
              HR_TRAIT_SHRINKS,
    HR_PARAMS(rrc_params, struct rrc),
    HR_MOVE_STATE,
    .infer = rrc_infer,
    .apply = rrc_apply,
};
