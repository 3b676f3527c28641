/*
 * image.autocontrast - stretches each channel to the whole range, with a probability.
 *
 * The range of the whole image decides, hence not POINTWISE.
 */
#include "ops/image_levels.h"

struct autocontrast {
    const char *field;
    double p;
};

static const struct hr_param autocontrast_params[] = {
    HR_P_CHANCE(struct autocontrast, "probability that the image is changed"),
    HR_P_IMAGE(struct autocontrast),
};

static enum hr_err autocontrast_infer(struct hr_infer *infer)
{
    return hr__infer_colours(infer, 0);
}

static enum hr_err autocontrast_apply(struct hr_op_ctx *ctx)
{
    const struct autocontrast *p = ctx->params;
    struct hr_pixels pixels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__levels_autocontrast(&pixels);
    return HR_OK;
}

const struct hr_op hr_op_image_autocontrast = {
    .name = "image.autocontrast",
    .summary = "stretch each channel to the whole range, with a probability",
    .doc =
        "Like torchvision's RandomAutocontrast: the least level of a channel becomes "
        "black and the largest white. A channel of one level is unchanged. uint8 images "
        "are truncated, as there, so their white may be 254.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(autocontrast_params, struct autocontrast),
    .infer = autocontrast_infer,
    .apply = autocontrast_apply,
};
