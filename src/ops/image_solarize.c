/*
 * image.solarize - inverts the levels from a threshold on, with a probability.
 */
#include "ops/image_levels.h"

struct solarize {
    const char *field;
    double threshold, p;
};

static const struct hr_param solarize_params[] = {
    HR_P_FLOAT(struct solarize, threshold, .required = true, HR_RANGE(0, 255),
               .unit = "levels", .help = "levels at or above it are inverted"),
    HR_P_CHANCE(struct solarize, "probability that the image is changed"),
    HR_P_IMAGE(struct solarize),
};

static enum hr_err solarize_infer(struct hr_infer *infer)
{
    const struct solarize *p = infer->params;

    HR_TRY(hr__infer_colours(infer, 0));
    return hr__infer_threshold(infer, "threshold", p->threshold);
}

static enum hr_err solarize_apply(struct hr_op_ctx *ctx)
{
    const struct solarize *p = ctx->params;
    struct hr_pixels pixels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__levels_solarize(&pixels, (float)p->threshold);
    return HR_OK;
}

const struct hr_op hr_op_image_solarize = {
    .name = "image.solarize",
    .summary = "invert bright levels, with a probability",
    .doc =
        "Like torchvision's RandomSolarize. The threshold is in the image's own range: "
        "0..255 for uint8, 0..1 for float32.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_POINTWISE,
    HR_PARAMS(solarize_params, struct solarize),
    .infer = solarize_infer,
    .apply = solarize_apply,
};
