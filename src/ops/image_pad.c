/*
 * image.pad - pads the image.
 */
#include "ops/image_padding.h"
#include "ops/image_size.h"
#include "ops/move.h"

struct pad {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_ints padding;
    struct hr_floats fill;
    int mode;
    int64_t mask_fill;
};

static const struct hr_param pad_params[] = {
    HR_P_INTS(struct pad, padding, .required = true, .items_min = 1, .items_max = 4,
              HR_RANGE(0, HR_IMAGE_SIDE_MAX), .unit = "pixels",
              .help = "one number for all sides, [left and right, top and bottom], or "
                      "[left, top, right, bottom]"),
    HR_P_FILL(struct pad),
    HR_P_MASK_FILL(struct pad),
    HR_P_PAD_MODE(struct pad),
    HR_P_MOVED(struct pad),
};

static int64_t grown(int64_t size, int32_t before, int32_t after)
{
    return size < 0 ? -1 : size + before + after;
}

static enum hr_err pad_infer(struct hr_infer *infer)
{
    const struct pad *p = infer->params;
    struct hr_field *field = infer->fields[0];
    struct hr_sides sides = hr__sides(&p->padding);

    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_pixels(infer, 0));
    if (p->padding.count == 3)
        return hr__infer_fail(infer, "padding", HR_ERR_ARGUMENT,
                              "padding has 1, 2 or 4 numbers, not 3");
    HR_TRY(hr__infer_fill(infer, &p->fill));
    hr__infer_moved_size(infer,
                         grown(hr__field_width(field)->size, sides.left, sides.right),
                         grown(hr__field_height(field)->size, sides.top, sides.bottom));
    return HR_OK;
}

static enum hr_err pad_apply(struct hr_op_ctx *ctx)
{
    const struct pad *p = ctx->params;
    struct hr_sides sides = hr__sides(&p->padding);
    struct hr_move move;

    HR_TRY(hr__move_begin(ctx, &move));
    move.pad_mode = p->mode;
    hr__fill_levels(&p->fill, move.fill);
    move.mask_fill = (int32_t)p->mask_fill;
    hr__move_pad(&move, sides.left, sides.top, sides.right, sides.bottom);
    return hr__move_made(ctx, &move);
}

const struct hr_op hr_op_image_pad = {
    .name = "image.pad",
    .summary = "pad the image",
    .doc =
        "Like torchvision's Pad. `reflect` reflects repeatedly if the padding is wider "
        "than the image, which torchvision rejects.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(pad_params, struct pad),
    HR_MOVE_STATE,
    .infer = pad_infer,
    .apply = pad_apply,
};
