/*
 * image.equalize - makes the histogram of each channel flat, with a probability.
 *
 * The histogram of the whole image decides, hence not POINTWISE.
 */
#include "ops/image_levels.h"

struct equalize {
    const char *field;
    double p;
};

static const struct hr_param equalize_params[] = {
    HR_P_CHANCE(struct equalize, "probability that the image is changed"),
    HR_P_IMAGE(struct equalize),
};

static enum hr_err equalize_infer(struct hr_infer *infer)
{
    return hr__infer_colours(infer, 0);
}

static enum hr_err equalize_apply(struct hr_op_ctx *ctx)
{
    const struct equalize *p = ctx->params;
    struct hr_pixels pixels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__levels_equalize(&pixels);
    return HR_OK;
}

const struct hr_op hr_op_image_equalize = {
    .name = "image.equalize",
    .summary = "make the histogram of each channel flat, with a probability",
    .doc = "Like torchvision's RandomEqualize, and Pillow's ImageOps.equalize. float32 "
           "images are brought to 256 levels. A channel with fewer than 255 pixels "
           "outside its highest level keeps its levels.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(equalize_params, struct equalize),
    .infer = equalize_infer,
    .apply = equalize_apply,
};
