/*
 * image.resize_shortest - resizes the shorter side to a fixed length, keeping the aspect.
 */
#include "ops/image_size.h"
#include "ops/move.h"

struct shortest {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    int64_t size, max_size;
    int interpolation;
    bool antialias;
};

static const struct hr_param shortest_params[] = {
    HR_P_INT(struct shortest, size, .required = true, HR_RANGE(1, HR_IMAGE_SIDE_MAX),
             .unit = "pixels", .help = "length of the shorter side"),
    HR_P_INT(struct shortest, max_size, .fallback = "0", HR_RANGE(0, HR_IMAGE_SIDE_MAX),
             .unit = "pixels",
             .help = "make both sides smaller when the longer would exceed this; 0: no "
                     "limit"),
    HR_P_INTERPOLATION(struct shortest),
    HR_P_MOVED(struct shortest),
};

/* Truncates to whole numbers, like torchvision. */
static void sides(const struct shortest *p, int64_t *width, int64_t *height)
{
    int64_t *small = *width < *height ? width : height;
    int64_t *large = *width < *height ? height : width;
    int64_t new_small = p->size, new_large = p->size * *large / *small;

    if (p->max_size > 0 && new_large > p->max_size) {
        new_small = p->max_size * new_small / new_large;
        new_large = p->max_size;
    }
    *small = new_small < 1 ? 1 : new_small;
    *large = new_large;
}

static enum hr_err shortest_infer(struct hr_infer *infer)
{
    const struct shortest *p = infer->params;
    struct hr_field *field = infer->fields[0];
    int64_t width, height;

    HR_TRY(hr__infer_moved(infer));
    if (p->max_size > 0 && p->max_size < p->size)
        return hr__infer_fail(infer, "max_size", HR_ERR_RANGE,
                              "max_size %lld is below size %lld", (long long)p->max_size,
                              (long long)p->size);
    width = hr__field_width(field)->size;
    height = hr__field_height(field)->size;
    if (width > 0 && height > 0)
        sides(p, &width, &height);
    else
        width = height = -1;
    hr__infer_moved_size(infer, width, height);
    return HR_OK;
}

static enum hr_err shortest_apply(struct hr_op_ctx *ctx)
{
    const struct shortest *p = ctx->params;
    int64_t width, height;
    struct hr_move move;

    HR_TRY(hr__move_begin(ctx, &move));
    width = move.width;
    height = move.height;
    sides(p, &width, &height);
    return hr__move_to_size(ctx, &move, width, height, p->interpolation, p->antialias);
}

const struct hr_op hr_op_image_resize_shortest = {
    .name = "image.resize_shortest",
    .summary = "resize the shorter side to a length, keep the aspect",
    .doc =
        "torchvision's Resize with one number, `max_size` included: the longer side is "
        "cut off to a whole number. A limit below `size` is refused; one equal to it is "
        "allowed here.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_RESAMPLING | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(shortest_params, struct shortest),
    HR_MOVE_STATE,
    .infer = shortest_infer,
    .apply = shortest_apply,
};
