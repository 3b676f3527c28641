/*
 * image.zoom_out - places the image at random on a larger canvas.
 */
#include <math.h>

#include "ops/image_padding.h"
#include "ops/move.h"

struct zoom {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_floats fill, side_range;
    double p;
    int64_t mask_fill;
};

static const struct hr_param zoom_params[] = {
    HR_P_FILL(struct zoom),
    HR_P_MASK_FILL(struct zoom),
    HR_P_FLOATS(struct zoom, side_range, .fallback = "[1, 4]", .items_min = 2,
                .items_max = 2, HR_RANGE(1, 1000),
                .help = "smallest and largest canvas, in sides of the image"),
    HR_P_FLOAT(struct zoom, p, .fallback = "0.5", HR_RANGE(0, 1),
               .help = "probability that the image is placed on a canvas"),
    HR_P_MOVED(struct zoom),
};

static enum hr_err zoom_infer(struct hr_infer *infer)
{
    const struct zoom *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_pixels(infer, 0));
    HR_TRY(hr__infer_fill(infer, &p->fill));
    HR_TRY(hr__infer_order(infer, "side_range", &p->side_range));
    hr__infer_moved_size(infer, HR_DIM_UNKNOWN, HR_DIM_UNKNOWN);
    return HR_OK;
}

static void zoom_largest(const void *params, bool one, int64_t *height, int64_t *width)
{
    const struct zoom *p = params;

    (void)one;
    *height = (int64_t)floor((double)*height * p->side_range.values[1]);
    *width = (int64_t)floor((double)*width * p->side_range.values[1]);
}

/* Draws in torchvision's order: whether, the canvas, its left side, its top. */
static enum hr_err zoom_apply(struct hr_op_ctx *ctx)
{
    const struct zoom *p = ctx->params;
    double factor, width, height;
    int32_t left, top;
    struct hr_move move;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    if (hr__rng_double(&rng) >= p->p && !ctx->thread->surveys)
        return HR_OK;
    HR_TRY(hr__move_begin(ctx, &move));
    factor = ctx->thread->surveys ? p->side_range.values[1]
                                  : hr__rng_uniform(&rng, p->side_range.values[0],
                                                    p->side_range.values[1]);
    width = floor(move.width * factor);
    height = floor(move.height * factor);
    if (width > HR_IMAGE_EXTENT_MAX || height > HR_IMAGE_EXTENT_MAX)
        return hr__fail(ctx->error, HR_ERR_LIMIT,
                        "a canvas of %.0fx%.0f is too large: lower side_range", width,
                        height);
    left = (int32_t)((width - move.width) * hr__rng_double(&rng));
    top = (int32_t)((height - move.height) * hr__rng_double(&rng));
    hr__fill_levels(&p->fill, move.fill);
    move.mask_fill = (int32_t)p->mask_fill;
    hr__move_pad(&move, left, top, (int32_t)width - move.width - left,
                 (int32_t)height - move.height - top);
    return hr__move_made(ctx, &move);
}

const struct hr_op hr_op_image_zoom_out = {
    .name = "image.zoom_out",
    .summary = "place the image at random on a larger canvas",
    .doc = "Like torchvision's RandomZoomOut: both sides of the canvas are those of the "
           "image times one number.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GROWS,
    HR_PARAMS(zoom_params, struct zoom),
    HR_MOVE_STATE,
    .infer = zoom_infer,
    .largest = zoom_largest,
    .apply = zoom_apply,
};
