/*
 * image.center_crop - a window of fixed size at the centre.
 */
#include <math.h>

#include "ops/image_job.h"
#include "ops/image_size.h"

struct center {
    const char *field;
    struct hr_ints size;
};

static const struct hr_param center_params[] = {
    HR_P_SIZE(struct center),
    HR_P_IMAGE(struct center),
};

static enum hr_err center_infer(struct hr_infer *infer)
{
    const struct center *p = infer->params;

    HR_TRY(hr__infer_image(infer, 0));
    hr__infer_size(infer->fields[0], hr__size_width(&p->size), hr__size_height(&p->size));
    return HR_OK;
}

static enum hr_err center_apply(struct hr_op_ctx *ctx)
{
    static const float black[4] = {0};
    const struct center *p = ctx->params;
    int32_t to_width = hr__size_width(&p->size), to_height = hr__size_height(&p->size);
    int32_t width, height, channels, add_x, add_y;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    add_x = to_width > width ? to_width - width : 0;
    add_y = to_height > height ? to_height - height : 0;
    HR_TRY(hr__image_frame(ctx, 0, add_x / 2, add_y / 2, (add_x + 1) / 2, (add_y + 1) / 2,
                           HR_PAD_CONSTANT, black));
    width += add_x;
    height += add_y;
    return hr__image_crop(ctx, 0, (int32_t)rint((width - to_width) / 2.0),
                          (int32_t)rint((height - to_height) / 2.0), to_width, to_height);
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
    .infer = center_infer,
    .apply = center_apply,
};
