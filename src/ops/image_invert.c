/*
 * image.invert - replaces each level by its complement, with a probability.
 */
#include <math.h>

#include "ops/image_levels.h"

struct invert {
    const char *field;
    double p;
};

static const struct hr_param invert_params[] = {
    HR_P_CHANCE(struct invert, "probability that the image is inverted"),
    HR_P_IMAGE(struct invert),
};

static enum hr_err invert_infer(struct hr_infer *infer)
{
    return hr__infer_colours(infer, 0);
}

static enum hr_err invert_apply(struct hr_op_ctx *ctx)
{
    const struct invert *p = ctx->params;
    struct hr_pixels pixels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__levels_solarize(&pixels, -INFINITY);
    return HR_OK;
}

const struct hr_op hr_op_image_invert = {
    .name = "image.invert",
    .summary = "replace each level by white minus it, with a probability",
    .doc = "Like torchvision's RandomInvert: uint8 x becomes 255 - x, float32 1 - x. "
           "`p: 1` inverts always.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_POINTWISE,
    HR_PARAMS(invert_params, struct invert),
    .infer = invert_infer,
    .apply = invert_apply,
};
