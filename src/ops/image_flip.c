/*
 * image.flip - mirrors an image with a probability.
 */
#include "ops/move.h"

struct flip {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    double p;
    int direction;
};

static const char *const directions[] = {"horizontal", "vertical", NULL};

static const struct hr_param flip_params[] = {
    HR_P_FLOAT(struct flip, p, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "probability that the image is mirrored"),
    HR_P_ENUM(struct flip, direction, .fallback = "horizontal", .names = directions,
              .help = "horizontal swaps left and right"),
    HR_P_MOVED(struct flip),
};

static enum hr_err flip_infer(struct hr_infer *infer)
{
    return hr__infer_moved(infer);
}

static enum hr_err flip_apply(struct hr_op_ctx *ctx)
{
    const struct flip *p = ctx->params;
    struct hr_move move;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__move_begin(ctx, &move));
    move.flip_x = p->direction == 0;
    move.flip_y = p->direction == 1;
    return hr__move(ctx, &move);
}

const struct hr_op hr_op_image_flip = {
    .name = "image.flip",
    .summary = "mirror the image with a probability",
    .doc =
        "Like torchvision's RandomHorizontalFlip and RandomVerticalFlip. `p: 1` mirrors "
        "always.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GEOMETRIC | HR_TRAIT_DEFERS,
    HR_PARAMS(flip_params, struct flip),
    HR_MOVE_STATE,
    .infer = flip_infer,
    .apply = flip_apply,
};
