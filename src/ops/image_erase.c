/*
 * image.erase - replaces a random rectangle by a value or by noise, with a probability.
 */
#include <math.h>

#include "ops/image_levels.h"
#include "ops/image_padding.h"

struct erase {
    const char *field;
    struct hr_floats scale, ratio, value;
    bool random;
    double p;
};

static const struct hr_param erase_params[] = {
    HR_P_CHANCE(struct erase, "probability that a rectangle is erased"),
    HR_P_FLOATS(struct erase, scale, .fallback = "[0.02, 0.33]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1),
                .help = "smallest and largest fraction of the area to erase"),
    HR_P_FLOATS(struct erase, ratio, .fallback = "[0.3, 3.3]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1000), .min_open = true,
                .help = "smallest and largest height / width of the rectangle"),
    HR_P_FLOATS(struct erase, value, .fallback = "0", .items_min = 1, .items_max = 4,
                HR_RANGE(-1e6, 1e6), .unit = "levels",
                .help = "what takes its place, one number or one per channel, in the "
                        "image's own range"),
    HR_P_BOOL(struct erase, random, .fallback = "false",
              .help = "noise takes its place: normal of deviation 1 in float32, every "
                      "level as likely in uint8"),
    HR_P_IMAGE(struct erase),
};

static enum hr_err erase_infer(struct hr_infer *infer)
{
    const struct erase *p = infer->params;

    HR_TRY(hr__infer_pixels(infer, 0));
    HR_TRY(hr__infer_order(infer, "scale", &p->scale));
    HR_TRY(hr__infer_order(infer, "ratio", &p->ratio));
    return hr__infer_fill_of(infer, "value", &p->value);
}

struct window {
    int32_t x, y, width, height;
};

/* Draws as torchvision does: ten tries of area and aspect; a rectangle as high or as wide
 * as the image is none. */
static bool choose(const struct erase *p, struct hr_rng *rng, int32_t width,
                   int32_t height, struct window *ret_window)
{
    double low = log(p->ratio.values[0]), high = log(p->ratio.values[1]);
    double area = (double)width * height;

    for (int i = 0; i < 10; i++) {
        double part = area * hr__rng_uniform(rng, p->scale.values[0], p->scale.values[1]);
        double shape = exp(hr__rng_uniform(rng, low, high));
        double h = rint(sqrt(part * shape)), w = rint(sqrt(part / shape));

        if (h >= height || w >= width)
            continue;
        ret_window->height = (int32_t)h;
        ret_window->width = (int32_t)w;
        ret_window->y = (int32_t)hr__rng_below(rng, (uint64_t)(height - h) + 1);
        ret_window->x = (int32_t)hr__rng_below(rng, (uint64_t)(width - w) + 1);
        return true;
    }
    return false;
}

static void
put_noise(const struct hr_pixels *pixels, const struct window *window, struct hr_rng *rng)
{
    float fill[4];

    for (int32_t y = window->y; y < window->y + window->height; y++) {
        for (int32_t x = window->x; x < window->x + window->width; x++) {
            for (int32_t c = 0; c < pixels->channels; c++)
                fill[c] = pixels->dtype == HR_U8 ? (float)hr__rng_below(rng, 256)
                                                 : (float)hr__rng_normal(rng);
            hr__image_fill(pixels, x, y, 1, fill);
        }
    }
}

static enum hr_err erase_apply(struct hr_op_ctx *ctx)
{
    const struct erase *p = ctx->params;
    int32_t width, height, channels;
    struct hr_pixels pixels;
    struct window window;
    struct hr_rng rng;
    float fill[4];

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p || !choose(p, &rng, width, height, &window))
        return HR_OK;
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    hr__fill_levels(&p->value, fill);
    if (p->random)
        put_noise(&pixels, &window, &rng);
    for (int32_t y = 0; !p->random && y < window.height; y++)
        hr__image_fill(&pixels, window.x, window.y + y, window.width, fill);
    return HR_OK;
}

const struct hr_op hr_op_image_erase = {
    .name = "image.erase",
    .summary = "replace a random rectangle, with a probability",
    .doc =
        "Like torchvision's RandomErasing, also after image.normalize: `random: true` is "
        "its value \"random\", except for uint8, where torchvision wraps normal numbers "
        "around. Masks and boxes stay as they are.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(erase_params, struct erase),
    .infer = erase_infer,
    .apply = erase_apply,
};
