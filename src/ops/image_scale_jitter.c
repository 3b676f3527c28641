/*
 * image.scale_jitter - resizes the image to fit into a size, times a random factor.
 */
#include <math.h>

#include "ops/image_size.h"
#include "ops/move.h"

struct jitter {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints size;
    struct hr_floats scale;
    int interpolation;
    bool antialias;
};

static const struct hr_param jitter_params[] = {
    HR_P_SIZE(struct jitter),
    HR_P_FLOATS(struct jitter, scale, .fallback = "[0.1, 2]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1000), .min_open = true,
                .help = "smallest and largest factor"),
    HR_P_INTERPOLATION(struct jitter),
    HR_P_MOVED(struct jitter),
};

static enum hr_err jitter_infer(struct hr_infer *infer)
{
    const struct jitter *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_order(infer, "scale", &p->scale));
    hr__infer_moved_size(infer, HR_DIM_UNKNOWN, HR_DIM_UNKNOWN);
    return HR_OK;
}

/* The image that just fits into the size. */
static double fitting(const struct jitter *p, int64_t height, int64_t width)
{
    return fmin((double)hr__size_height(&p->size) / (double)height,
                (double)hr__size_width(&p->size) / (double)width);
}

static int64_t scaled(int64_t side, double factor)
{
    return (int64_t)fmax(1, floor((double)side * factor));
}

static void jitter_largest(const void *params, bool one, int64_t *height, int64_t *width)
{
    const struct jitter *p = params;
    double factor = p->scale.values[1];

    if (one) {
        factor *= fitting(p, *height, *width);
    } else {
        *height = hr__size_height(&p->size);
        *width = hr__size_width(&p->size);
    }
    *height = scaled(*height, factor);
    *width = scaled(*width, factor);
}

static enum hr_err jitter_apply(struct hr_op_ctx *ctx)
{
    const struct jitter *p = ctx->params;
    double factor;
    struct hr_move move;
    struct hr_rng rng;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__op_rng(ctx, &rng);
    factor = ctx->thread->surveys
                 ? p->scale.values[1]
                 : hr__rng_uniform(&rng, p->scale.values[0], p->scale.values[1]);
    factor *= fitting(p, move.height, move.width);
    return hr__move_to_size(ctx, &move, scaled(move.width, factor),
                            scaled(move.height, factor), p->interpolation, p->antialias);
}

const struct hr_op hr_op_image_scale_jitter = {
    .name = "image.scale_jitter",
    .summary = "resize to fit into a size, times a random factor",
    .doc = "Like torchvision's ScaleJitter: the image is resized so that it just fits "
           "into `size`, times a factor from `scale`; its aspect stays. "
           "image.fixed_size_crop makes images of one size of the results.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_RESAMPLING | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(jitter_params, struct jitter),
    HR_MOVE_STATE,
    .infer = jitter_infer,
    .largest = jitter_largest,
    .apply = jitter_apply,
};
