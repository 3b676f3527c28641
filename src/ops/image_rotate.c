/*
 * image.rotate - rotates the image by a random angle.
 */
#include "ops/image_padding.h"
#include "ops/image_size.h"
#include "ops/image_turn.h"

struct rotate {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_floats degrees, center, fill;
    int interpolation;
    bool expand;
    int64_t mask_fill;
};

static const struct hr_param rotate_params[] = {
    HR_P_FLOATS(struct rotate, degrees, .required = true, .items_min = 1, .items_max = 2,
                HR_RANGE(-360, 360), .unit = "degrees",
                .help = "[least, most], counter-clockwise; one number d means [-d, d]"),
    HR_P_ENUM(struct rotate, interpolation, .fallback = "nearest",
              .names = hr__warp_interpolations,
              .help = "how values between pixels are computed"),
    HR_P_BOOL(struct rotate, expand, .fallback = "false",
              .help = "enlarge the image to show all of it"),
    HR_P_CENTER(struct rotate),
    HR_P_FILL(struct rotate),
    HR_P_MASK_FILL(struct rotate),
    HR_P_MOVED(struct rotate),
};

static enum hr_err rotate_infer(struct hr_infer *infer)
{
    const struct rotate *p = infer->params;

    HR_TRY(hr__infer_turned(infer));
    HR_TRY(hr__infer_interval(infer, "degrees", &p->degrees));
    HR_TRY(hr__infer_center(infer, &p->center));
    HR_TRY(hr__infer_fill(infer, &p->fill));
    if (p->expand && p->center.count > 0)
        return hr__infer_fail(infer, "center", HR_ERR_ARGUMENT,
                              "expand shows an image that turns about its middle: leave "
                              "out center, or expand");
    if (p->expand)
        hr__infer_moved_size(infer, -1, -1);
    return HR_OK;
}

static enum hr_err rotate_apply(struct hr_op_ctx *ctx)
{
    const struct rotate *p = ctx->params;
    struct hr_turn turn = {
        .scale = 1, .center = hr__center(&p->center), .mask_fill = (int32_t)p->mask_fill};
    double low, high;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    hr__interval(&p->degrees, &low, &high);
    turn.degrees = -hr__rng_uniform(&rng, low, high);
    hr__fill_levels(&p->fill, turn.fill);
    return hr__turn(ctx, &turn, p->interpolation, p->expand);
}

const struct hr_op hr_op_image_rotate = {
    .name = "image.rotate",
    .summary = "rotate the image by a random angle",
    .doc = "Like torchvision's RandomRotation. `degrees: [90, 90]` rotates "
           "by a fixed angle. uint8 images are rounded to the nearest level. `expand` "
           "chooses the smallest size that shows everything; torchvision may add a line.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_WARPS,
    HR_PARAMS(rotate_params, struct rotate),
    HR_MOVE_STATE,
    .infer = rotate_infer,
    .apply = rotate_apply,
};
