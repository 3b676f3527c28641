/*
 * image.random_resized_crop - a random window, resized: the usual crop for training.
 */
#include <math.h>

#include "kernel/resample.h"
#include "ops/image_size.h"
#include "ops/move.h"

struct rrc {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints size;
    struct hr_floats scale, ratio;
    int interpolation;
    bool antialias;
};

static const struct hr_param rrc_params[] = {
    HR_P_SIZE(struct rrc),
    HR_P_FLOATS(struct rrc, scale, .fallback = "[0.08, 1]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1), .min_open = true,
                .help = "smallest and largest fraction of the area to keep"),
    HR_P_FLOATS(struct rrc, ratio, .fallback = "[0.75, 1.3333333333333333]",
                .items_min = 2, .items_max = 2, HR_RANGE(0, 1000), .min_open = true,
                .help = "smallest and largest width / height of the window"),
    HR_P_INTERPOLATION(struct rrc),
    HR_P_MOVED(struct rrc),
};

static enum hr_err rrc_infer(struct hr_infer *infer)
{
    const struct rrc *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    if (p->scale.values[0] > p->scale.values[1])
        return hr__infer_fail(infer, "scale", HR_ERR_RANGE,
                              "scale: the smaller number comes first");
    if (p->ratio.values[0] > p->ratio.values[1])
        return hr__infer_fail(infer, "ratio", HR_ERR_RANGE,
                              "ratio: the smaller number comes first");
    hr__infer_moved_size(infer, hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

struct window {
    int32_t x, y, width, height;
};

/* Like torchvision: ten tries, each draws area, aspect, position; then the centre. */
static struct window
choose(const struct rrc *p, struct hr_rng *rng, int32_t width, int32_t height)
{
    double low = log(p->ratio.values[0]), high = log(p->ratio.values[1]);
    double area = (double)width * height, aspect = (double)width / height;
    struct window window = {0, 0, width, height};

    for (int i = 0; i < 10; i++) {
        double part = area * hr__rng_uniform(rng, p->scale.values[0], p->scale.values[1]);
        double shape = exp(hr__rng_uniform(rng, low, high));
        double w = rint(sqrt(part * shape)), h = rint(sqrt(part / shape));
        if (w < 1 || h < 1 || w > width || h > height)
            continue;
        window.width = (int32_t)w;
        window.height = (int32_t)h;
        window.y = (int32_t)hr__rng_below(rng, (uint64_t)(height - window.height) + 1);
        window.x = (int32_t)hr__rng_below(rng, (uint64_t)(width - window.width) + 1);
        return window;
    }
    if (aspect < p->ratio.values[0])
        window.height = (int32_t)fmin(rint(width / p->ratio.values[0]), height);
    else if (aspect > p->ratio.values[1])
        window.width = (int32_t)fmin(rint(height * p->ratio.values[1]), width);
    window.height = window.height < 1 ? 1 : window.height;
    window.width = window.width < 1 ? 1 : window.width;
    window.x = (width - window.width) / 2;
    window.y = (height - window.height) / 2;
    return window;
}

static enum hr_err rrc_apply(struct hr_op_ctx *ctx)
{
    const struct rrc *p = ctx->params;
    struct window window;
    struct hr_move move;
    struct hr_rng rng;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__op_rng(ctx, &rng);
    window = choose(p, &rng, move.width, move.height);
    hr__move_crop(&move, window.x, window.y, window.width, window.height);
    hr__move_resize(&move, hr__size_width(&p->size), hr__size_height(&p->size),
                    p->interpolation, p->antialias);
    return hr__move(ctx, &move);
}

const struct hr_op hr_op_image_random_resized_crop = {
    .name = "image.random_resized_crop",
    .summary = "a random window of the image, resized to a fixed size",
    .doc =
        "Like torchvision's RandomResizedCrop, with draws in the same order: area and "
        "aspect are drawn up to ten times until the window fits, then its position; else "
        "the largest centred window of a permitted aspect is used. Pixels outside the "
        "window do not affect the result.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_RESAMPLING | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(rrc_params, struct rrc),
    HR_MOVE_STATE,
    .infer = rrc_infer,
    .apply = rrc_apply,
};
