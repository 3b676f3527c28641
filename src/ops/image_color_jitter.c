/*
 * image.color_jitter - changes brightness, contrast, saturation and hue at random, in
 * random order.
 *
 * The chain is one kernel call; contrast needs the mean of the whole image, hence
 * STATISTIC. Values of a uint8 image are rounded after each step, as separate ops would
 * do.
 */
#include "ops/image_colours.h"
#include "ops/image_size.h"

struct jitter {
    const char *field;
    struct hr_floats brightness, contrast, saturation, hue;
};

#define FACTOR(name_, help_)                                                             \
    HR_P_FLOATS(struct jitter, name_, .fallback = "0", .items_min = 1, .items_max = 2,   \
                HR_RANGE(0, 1000), .help = help_)

static const struct hr_param jitter_params[] = {
    FACTOR(brightness, "factor: b for [max(0, 1 - b), 1 + b], or [least, most]; 0: no "
                       "change"),
    FACTOR(contrast, "factor, like brightness"),
    FACTOR(saturation, "factor, like brightness; images of one channel are unchanged"),
    HR_P_FLOATS(struct jitter, hue, .fallback = "0", .items_min = 1, .items_max = 2,
                HR_RANGE(-0.5, 0.5), .unit = "turns",
                .help = "h for [-h, h], or [least, most]; images of one channel are "
                        "unchanged"),
    HR_P_IMAGE(struct jitter),
};

/* The interval to draw from; false if the step does nothing. */
static bool interval(const struct hr_floats *range, double centre, double floor,
                     double *ret_low, double *ret_high)
{
    if (range->count == 2) {
        *ret_low = range->values[0];
        *ret_high = range->values[1];
    } else {
        *ret_low = centre - range->values[0];
        *ret_high = centre + range->values[0];
    }
    if (*ret_low < floor)
        *ret_low = floor;
    return *ret_low != centre || *ret_high != centre;
}

static enum hr_err
check_range(struct hr_infer *infer, const char *param, const struct hr_floats *range)
{
    if (range->count == 1 && range->values[0] < 0)
        return hr__infer_fail(infer, param, HR_ERR_RANGE,
                              "%s must be a number >= 0, or [least, most]", param);
    return hr__infer_order(infer, param, range);
}

static enum hr_err jitter_infer(struct hr_infer *infer)
{
    const struct jitter *p = infer->params;

    HR_TRY(hr__infer_colours(infer, 0));
    HR_TRY(check_range(infer, "brightness", &p->brightness));
    HR_TRY(check_range(infer, "contrast", &p->contrast));
    HR_TRY(check_range(infer, "saturation", &p->saturation));
    return check_range(infer, "hue", &p->hue);
}

#define KINDS 4

/* Draws in torchvision's order: the order of the steps, then each step's value. */
static void
draw_steps(const struct jitter *p, struct hr_rng *rng, struct hr_colour_chain *chain)
{
    const struct hr_floats *ranges[KINDS] = {&p->brightness, &p->contrast, &p->saturation,
                                             &p->hue};
    int order[KINDS] = {0, 1, 2, 3};
    double low, high, values[KINDS];
    bool wanted[KINDS];

    for (int i = KINDS - 1; i > 0; i--) {
        int k = (int)hr__rng_below(rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    for (int i = 0; i < KINDS; i++) {
        bool hue = i == HR_COLOUR_HUE;
        wanted[i] = interval(ranges[i], hue ? 0 : 1, hue ? -0.5 : 0, &low, &high);
        values[i] = wanted[i] ? hr__rng_uniform(rng, low, high) : 0;
    }
    for (int i = 0; i < KINDS; i++)
        if (wanted[order[i]])
            hr__colour_add(chain, (enum hr_colour_kind)order[i], values[order[i]]);
}

static enum hr_err jitter_apply(struct hr_op_ctx *ctx)
{
    const struct jitter *p = ctx->params;
    struct hr_colour_chain chain = {.rounds = ctx->fields[0]->dtype == HR_U8};
    int32_t width, height, channels;
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    draw_steps(p, &rng, &chain);
    if (chain.count == 0)
        return HR_OK;
    return hr__image_colours(ctx, 0, chain.steps, chain.count, channels);
}

const struct hr_op hr_op_image_color_jitter = {
    .name = "image.color_jitter",
    .summary = "change brightness, contrast, saturation and hue at random",
    .doc =
        "Like torchvision's ColorJitter: four steps in random order. Hue is rotated "
        "exactly, in HSV. uint8 images are rounded to the nearest level after each step "
        "(torchvision truncates). Saturation and hue do not change images of one "
        "channel or of three equal ones.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(jitter_params, struct jitter),
    .infer = jitter_infer,
    .apply = jitter_apply,
};
