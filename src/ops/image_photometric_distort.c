/*
 * image.photometric_distort - changes brightness, contrast, saturation, hue and the order
 * of the channels, each with a probability.
 *
 * One kernel call, like image.color_jitter; the order of the channels costs nothing
 * there.
 */
#include "ops/image_colours.h"
#include "ops/image_size.h"

struct distort {
    const char *field;
    struct hr_floats brightness, contrast, saturation, hue;
    double p;
};

#define FACTOR(name_, fallback_, help_)                                                  \
    HR_P_FLOATS(struct distort, name_, .fallback = (fallback_), .items_min = 2,          \
                .items_max = 2, HR_RANGE(0, 1000), .help = help_)

static const struct hr_param distort_params[] = {
    FACTOR(brightness, "[0.875, 1.125]", "least and largest factor"),
    FACTOR(contrast, "[0.5, 1.5]", "least and largest factor"),
    FACTOR(saturation, "[0.5, 1.5]",
           "least and largest factor; images of one channel are unchanged"),
    HR_P_FLOATS(struct distort, hue, .fallback = "[-0.05, 0.05]", .items_min = 2,
                .items_max = 2, HR_RANGE(-0.5, 0.5), .unit = "turns",
                .help = "least and largest; images of one channel are unchanged"),
    HR_P_FLOAT(struct distort, p, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "probability of each of the five changes"),
    HR_P_IMAGE(struct distort),
};

static enum hr_err distort_infer(struct hr_infer *infer)
{
    const struct distort *p = infer->params;

    HR_TRY(hr__infer_colours(infer, 0));
    HR_TRY(hr__infer_order(infer, "brightness", &p->brightness));
    HR_TRY(hr__infer_order(infer, "contrast", &p->contrast));
    HR_TRY(hr__infer_order(infer, "saturation", &p->saturation));
    return hr__infer_order(infer, "hue", &p->hue);
}

/* Draws in torchvision's order. */
static void
draw_steps(const struct distort *p, struct hr_rng *rng, struct hr_colour_chain *chain)
{
    const struct hr_floats *ranges[] = {[HR_COLOUR_BRIGHTNESS] = &p->brightness,
                                        [HR_COLOUR_CONTRAST] = &p->contrast,
                                        [HR_COLOUR_SATURATION] = &p->saturation,
                                        [HR_COLOUR_HUE] = &p->hue};
    bool wanted[4], contrast_first;
    double values[4];

    for (int i = 0; i < 4; i++) {
        wanted[i] = hr__rng_double(rng) < p->p;
        values[i] = wanted[i]
                        ? hr__rng_uniform(rng, ranges[i]->values[0], ranges[i]->values[1])
                        : 0;
    }
    contrast_first = hr__rng_below(rng, 2) == 1;
    if (wanted[HR_COLOUR_BRIGHTNESS])
        hr__colour_add(chain, HR_COLOUR_BRIGHTNESS, values[HR_COLOUR_BRIGHTNESS]);
    if (wanted[HR_COLOUR_CONTRAST] && contrast_first)
        hr__colour_add(chain, HR_COLOUR_CONTRAST, values[HR_COLOUR_CONTRAST]);
    if (wanted[HR_COLOUR_SATURATION])
        hr__colour_add(chain, HR_COLOUR_SATURATION, values[HR_COLOUR_SATURATION]);
    if (wanted[HR_COLOUR_HUE])
        hr__colour_add(chain, HR_COLOUR_HUE, values[HR_COLOUR_HUE]);
    if (wanted[HR_COLOUR_CONTRAST] && !contrast_first)
        hr__colour_add(chain, HR_COLOUR_CONTRAST, values[HR_COLOUR_CONTRAST]);
    if (hr__rng_double(rng) < p->p)
        hr__colour_add(chain, HR_COLOUR_PERMUTE, (double)hr__rng_below(rng, 6));
}

static enum hr_err distort_apply(struct hr_op_ctx *ctx)
{
    struct hr_colour_chain chain = {.rounds = ctx->fields[0]->dtype == HR_U8};
    int32_t width, height, channels;
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    draw_steps(ctx->params, &rng, &chain);
    if (chain.count == 0)
        return HR_OK;
    return hr__image_colours(ctx, 0, chain.steps, chain.count, channels);
}

const struct hr_op hr_op_image_photometric_distort = {
    .name = "image.photometric_distort",
    .summary = "change colours and the order of the channels, each with a probability",
    .doc =
        "Like torchvision's RandomPhotometricDistort, in its order: brightness, "
        "contrast, saturation, hue (contrast with probability 1/2 after hue instead), "
        "channels. Each has probability `p`, so `p: 1` changes all of them. Rounding and "
        "hue are those of image.color_jitter.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(distort_params, struct distort),
    .infer = distort_infer,
    .apply = distort_apply,
};
