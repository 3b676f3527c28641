/*
 * image.clip - clamps values to an interval.
 */
#include "ops/image_colours.h"
#include "ops/image_size.h"

struct clip {
    const char *field;
    double min, max;
};

static const struct hr_param clip_params[] = {
    HR_P_FLOAT(struct clip, min, .required = true, .unit = "levels",
               .help = "smaller values become this"),
    HR_P_FLOAT(struct clip, max, .required = true, .unit = "levels",
               .help = "larger values become this"),
    HR_P_IMAGE(struct clip),
};

static enum hr_err clip_infer(struct hr_infer *infer)
{
    const struct clip *p = infer->params;

    HR_TRY(hr__infer_pixels(infer, 0));
    if (p->min > p->max)
        return hr__infer_fail(infer, "min", HR_ERR_RANGE, "min is above max");
    if (infer->fields[0]->dtype == HR_U8 && (p->max < 0 || p->min > 255))
        return hr__infer_fail(
            infer, "min", HR_ERR_RANGE,
            "the image is uint8, 0..255: no level lies between %g and %g", p->min,
            p->max);
    return HR_OK;
}

static enum hr_err clip_apply(struct hr_op_ctx *ctx)
{
    const struct clip *p = ctx->params;
    const struct hr_colour_step step = {
        .kind = HR_COLOUR_CLIP, .value = (float)p->min, .value2 = (float)p->max};
    int32_t width, height, channels;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    return hr__image_colours(ctx, 0, &step, 1, channels);
}

const struct hr_op hr_op_image_clip = {
    .name = "image.clip",
    .summary = "clamp values to an interval",
    .doc = "In the image's own range: 0..255, 0..1, or that of a normalised image. "
           "Images of 1 or 3 channels.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_POINTWISE,
    HR_PARAMS(clip_params, struct clip),
    .infer = clip_infer,
    .apply = clip_apply,
};
