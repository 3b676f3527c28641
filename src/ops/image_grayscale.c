/*
 * image.grayscale - replaces colours by their luma.
 */
#include "ops/image_colours.h"
#include "ops/image_size.h"

struct grayscale {
    const char *field;
    int64_t channels;
    double p;
};

static const struct hr_param grayscale_params[] = {
    HR_P_INT(struct grayscale, channels, .fallback = "1", HR_RANGE(1, 3),
             .help = "1, or 3 for the same value three times"),
    HR_P_FLOAT(struct grayscale, p, .fallback = "1", HR_RANGE(0, 1),
               .help = "probability of the conversion"),
    HR_P_IMAGE(struct grayscale),
};

static enum hr_err grayscale_infer(struct hr_infer *infer)
{
    const struct grayscale *p = infer->params;
    struct hr_field *field = infer->fields[0];
    int64_t before;

    HR_TRY(hr__infer_colours(infer, 0));
    before = hr__field_channels(field)->size;
    if (p->channels == 2)
        return hr__infer_fail(infer, "channels", HR_ERR_RANGE, "channels is 1 or 3");
    if (p->p < 1 && before != p->channels)
        return hr__infer_fail(
            infer, "channels", HR_ERR_SHAPE,
            "with p below 1 all images must keep their number of channels: "
            "channels must be 3, and the image must have 3");
    hr__dim_set(hr__field_channels(field), p->channels);
    return HR_OK;
}

static enum hr_err grayscale_apply(struct hr_op_ctx *ctx)
{
    static const struct hr_colour_step gray = {.kind = HR_COLOUR_GRAY};
    const struct grayscale *p = ctx->params;
    int32_t width, height, channels;
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p)
        return HR_OK;
    if (channels == p->channels && channels == 1)
        return HR_OK;
    return hr__image_colours(ctx, 0, &gray, 1, (int32_t)p->channels);
}

const struct hr_op hr_op_image_grayscale = {
    .name = "image.grayscale",
    .summary = "replace colours by their luma",
    .doc =
        "0.2989 R + 0.587 G + 0.114 B, like torchvision; uint8 images are rounded to the "
        "nearest level. `channels: 3` with `p: 0.1` is RandomGrayscale.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_POINTWISE | HR_TRAIT_SHRINKS,
    HR_PARAMS(grayscale_params, struct grayscale),
    .infer = grayscale_infer,
    .apply = grayscale_apply,
};
