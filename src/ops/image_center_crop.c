/*
 * image.center_crop - a window of fixed size at the centre.
 */
#include <math.h>

#include "ops/image_size.h"
#include "ops/move.h"

struct center {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints size;
};

static const struct hr_param center_params[] = {
    HR_P_SIZE(struct center),
    HR_P_MOVED(struct center),
};

static enum hr_err center_infer(struct hr_infer *infer)
{
    const struct center *p = infer->params;

    HR_TRY(hr__infer_moved(infer));
    hr__infer_moved_size(infer, hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

static enum hr_err center_apply(struct hr_op_ctx *ctx)
{
    const struct center *p = ctx->params;
    int32_t to_width = hr__size_width(&p->size), to_height = hr__size_height(&p->size);
    int32_t add_x, add_y;
    struct hr_move move;

    HR_TRY(hr__move_begin(ctx, &move));
    add_x = to_width > move.width ? to_width - move.width : 0;
    add_y = to_height > move.height ? to_height - move.height : 0;
    hr__move_pad(&move, add_x / 2, add_y / 2, (add_x + 1) / 2, (add_y + 1) / 2);
    hr__move_crop(&move, (int32_t)rint((move.width + add_x - to_width) / 2.0),
                  (int32_t)rint((move.height + add_y - to_height) / 2.0), to_width,
                  to_height);
    return hr__move(ctx, &move);
}

const struct hr_op hr_op_image_center_crop = {
    .name = "image.center_crop",
    .summary = "crop the centre of the image",
    .doc = "As torchvision: a smaller image is framed with zeros first; half a pixel is "
           "rounded to even.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(center_params, struct center),
    HR_MOVE_STATE,
    .infer = center_infer,
    .apply = center_apply,
};
