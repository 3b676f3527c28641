/*
 * image.flip - mirrors an image with a probability.
 */
#include "ops/image_job.h"
#include "ops/image_size.h"

struct flip {
    const char *field;
    double p;
    int direction;
};

static const char *const directions[] = {"horizontal", "vertical", NULL};

static const struct hr_param flip_params[] = {
    HR_P_FLOAT(struct flip, p, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "probability that the image is mirrored"),
    HR_P_ENUM(struct flip, direction, .fallback = "horizontal", .names = directions,
              .help = "horizontal swaps left and right"),
    HR_P_IMAGE(struct flip),
};

static enum hr_err flip_infer(struct hr_infer *infer)
{
    return hr__infer_image(infer, 0);
}

static enum hr_err flip_apply(struct hr_op_ctx *ctx)
{
    const struct flip *p = ctx->params;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    return hr__image_flip(ctx, 0, p->direction == 0, p->direction == 1);
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
    .infer = flip_infer,
    .apply = flip_apply,
};
