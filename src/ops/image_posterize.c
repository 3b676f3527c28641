/*
 * image.posterize - keeps the highest bits of each level, with a probability.
 */
#include "ops/image_levels.h"

struct posterize {
    const char *field;
    int64_t bits;
    double p;
};

static const struct hr_param posterize_params[] = {
    HR_P_INT(struct posterize, bits, .required = true, HR_RANGE(0, 8), .unit = "bits",
             .help = "highest bits of each level to keep"),
    HR_P_CHANCE(struct posterize, "probability that the image is changed"),
    HR_P_IMAGE(struct posterize),
};

static enum hr_err posterize_infer(struct hr_infer *infer)
{
    return hr__infer_colours(infer, 0);
}

static enum hr_err posterize_apply(struct hr_op_ctx *ctx)
{
    const struct posterize *p = ctx->params;
    struct hr_pixels pixels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__levels_posterize(&pixels, (int)p->bits);
    return HR_OK;
}

const struct hr_op hr_op_image_posterize = {
    .name = "image.posterize",
    .summary = "keep the highest bits of each level, with a probability",
    .doc =
        "Like torchvision's RandomPosterize. A float32 image gets 2^bits levels from 0 "
        "on, the highest of which is 1 - 2^-bits.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_POINTWISE,
    HR_PARAMS(posterize_params, struct posterize),
    .infer = posterize_infer,
    .apply = posterize_apply,
};
