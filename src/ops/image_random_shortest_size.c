/*
 * image.random_shortest_size - resizes the shorter side to a random length, keeping the
 * aspect.
 */
#include "ops/image_size.h"
#include "ops/move.h"

struct shortest {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints sizes, between;
    int64_t max_size;
    int interpolation;
    bool antialias;
};

static const struct hr_param shortest_params[] = {
    HR_P_INTS(struct shortest, sizes, .fallback = "[]", .items_min = 0,
              .items_max = HR_LIST_MAX, HR_RANGE(1, HR_IMAGE_SIDE_MAX), .unit = "pixels",
              .help = "lengths of the shorter side, of which one is drawn"),
    HR_P_INTS(struct shortest, between, .fallback = "[]", .items_min = 0, .items_max = 2,
              HR_RANGE(1, HR_IMAGE_SIDE_MAX), .unit = "pixels",
              .help = "instead of sizes: [least, most], and all whole numbers between"),
    HR_P_INT(struct shortest, max_size, .fallback = "0", HR_RANGE(0, HR_IMAGE_SIDE_MAX),
             .unit = "pixels",
             .help = "make both sides smaller when the longer would exceed this; 0: no "
                     "limit"),
    HR_P_INTERPOLATION(struct shortest),
    HR_P_MOVED(struct shortest),
};

static enum hr_err shortest_infer(struct hr_infer *infer)
{
    const struct shortest *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    if ((p->sizes.count > 0) == (p->between.count > 0))
        return hr__infer_fail(infer, "sizes", HR_ERR_ARGUMENT,
                              "give lengths of the shorter side: sizes, or between");
    if (p->between.count == 1)
        return hr__infer_fail(infer, "between", HR_ERR_ARGUMENT,
                              "between has two numbers, [least, most]");
    if (p->between.count == 2 && p->between.values[0] > p->between.values[1])
        return hr__infer_fail(infer, "between", HR_ERR_RANGE,
                              "between: the smaller number comes first");
    hr__infer_moved_size(infer, HR_DIM_UNKNOWN, HR_DIM_UNKNOWN);
    return HR_OK;
}

/* The scale at which the shorter side is `size`, or the longer one the limit if that is
 * smaller; sides are truncated to whole numbers, like torchvision's. */
static void
scale_to(const struct shortest *p, int64_t size, int64_t *width, int64_t *height)
{
    int64_t small = *width < *height ? *width : *height;
    int64_t large = *width < *height ? *height : *width;
    bool limited = p->max_size > 0 && size * large > p->max_size * small;
    int64_t to = limited ? p->max_size : size, from = limited ? large : small;

    *width = *width * to < from ? 1 : *width * to / from;
    *height = *height * to < from ? 1 : *height * to / from;
}

static int64_t longest(const struct shortest *p)
{
    int64_t most = p->between.count == 2 ? p->between.values[1] : 1;

    for (int i = 0; i < p->sizes.count; i++)
        most = p->sizes.values[i] > most ? p->sizes.values[i] : most;
    return most;
}

static void
shortest_largest(const void *params, bool one, int64_t *height, int64_t *width)
{
    const struct shortest *p = params;

    (void)one;
    if (*height > 0 && *width > 0)
        scale_to(p, longest(p), width, height);
}

static int64_t draw(const struct shortest *p, struct hr_rng *rng)
{
    int64_t least = p->between.values[0];

    if (p->sizes.count > 0)
        return p->sizes.values[hr__rng_below(rng, (uint64_t)p->sizes.count)];
    return least +
           (int64_t)hr__rng_below(rng, (uint64_t)(p->between.values[1] - least + 1));
}

static enum hr_err shortest_apply(struct hr_op_ctx *ctx)
{
    const struct shortest *p = ctx->params;
    int64_t width, height;
    struct hr_move move;
    struct hr_rng rng;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__op_rng(ctx, &rng);
    width = move.width;
    height = move.height;
    scale_to(p, ctx->thread->surveys ? longest(p) : draw(p, &rng), &width, &height);
    return hr__move_to_size(ctx, &move, width, height, p->interpolation, p->antialias);
}

const struct hr_op hr_op_image_random_shortest_size = {
    .name = "image.random_shortest_size",
    .summary = "resize the shorter side to a random length, keep the aspect",
    .doc = "torchvision's RandomShortestSize (`sizes`, with `max_size`) and RandomResize "
           "(`between`): training at several scales, as DETR and Mask R-CNN do. "
           "batch.pad makes batches of the results.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_RESAMPLING | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(shortest_params, struct shortest),
    HR_MOVE_STATE,
    .infer = shortest_infer,
    .largest = shortest_largest,
    .apply = shortest_apply,
};
