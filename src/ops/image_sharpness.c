/*
 * image.sharpness - smooths or sharpens with a random strength, with a probability.
 */
#include "kernel/sharpen.h"
#include "ops/image_levels.h"

struct sharpness {
    const char *field;
    struct hr_floats factor;
    double p;
};

static const struct hr_param sharpness_params[] = {
    HR_P_FLOATS(struct sharpness, factor, .required = true, .items_min = 1,
                .items_max = 2, HR_RANGE(0, 1000),
                .help = "0 smooths, 1 changes nothing, 2 sharpens: one number, or "
                        "[least, most] to draw from"),
    HR_P_CHANCE(struct sharpness, "probability that the image is changed"),
    HR_P_IMAGE(struct sharpness),
};

static enum hr_err sharpness_infer(struct hr_infer *infer)
{
    const struct sharpness *p = infer->params;

    HR_TRY(hr__infer_colours(infer, 0));
    return hr__infer_order(infer, "factor", &p->factor);
}

static enum hr_err sharpness_apply(struct hr_op_ctx *ctx)
{
    const struct sharpness *p = ctx->params;
    struct hr_pixels pixels;
    struct hr_rng rng;
    double factor;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    factor =
        hr__rng_uniform(&rng, p->factor.values[0], p->factor.values[p->factor.count - 1]);
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    if (hr__sharpen(&ctx->thread->arena, &pixels, factor) != HR_OK)
        return hr__fail(ctx->error, HR_ERR_MEMORY, "out of memory to sharpen an image");
    return HR_OK;
}

const struct hr_op hr_op_image_sharpness = {
    .name = "image.sharpness",
    .summary = "smooth or sharpen the image, with a probability",
    .doc = "Like torchvision's RandomAdjustSharpness, whose factor is one number: the "
           "image is blended with one that is smoothed by 3x3 weights. The outermost "
           "pixels do not change. uint8 images are truncated, as there.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(sharpness_params, struct sharpness),
    .infer = sharpness_infer,
    .apply = sharpness_apply,
};
