/*
 * image.affine - rotates, shifts, scales and shears the image at random, in one warp.
 */
#include <math.h>

#include "ops/image_padding.h"
#include "ops/image_size.h"
#include "ops/image_turn.h"

struct affine {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    struct hr_floats degrees, translate, scale, shear, center, fill;
    int interpolation;
    int64_t mask_fill;
};

static const struct hr_param affine_params[] = {
    HR_P_FLOATS(struct affine, degrees, .required = true, .items_min = 1, .items_max = 2,
                HR_RANGE(-360, 360), .unit = "degrees",
                .help = "[least, most], clockwise; one number d means [-d, d]"),
    HR_P_FLOATS(struct affine, translate, .fallback = "[0, 0]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1),
                .help = "largest shift as a fraction of [width, height]"),
    HR_P_FLOATS(struct affine, scale, .fallback = "[1, 1]", .items_min = 2,
                .items_max = 2, HR_RANGE(0, 1000), .min_open = true,
                .help = "[least, most] magnification"),
    HR_P_FLOATS(struct affine, shear, .fallback = "[0, 0]", .items_min = 1,
                .items_max = 4, HR_RANGE(-89, 89), .unit = "degrees",
                .help =
                    "along x: one number s for [-s, s], or [least, most]; along y too: "
                    "four numbers"),
    HR_P_CENTER(struct affine),
    HR_P_ENUM(struct affine, interpolation, .fallback = "nearest",
              .names = hr__warp_interpolations,
              .help = "how values between pixels are computed"),
    HR_P_FILL(struct affine),
    HR_P_MASK_FILL(struct affine),
    HR_P_MOVED(struct affine),
};

static enum hr_err affine_infer(struct hr_infer *infer)
{
    const struct affine *p = infer->params;
    const double *shear = p->shear.values;

    HR_TRY(hr__infer_turned(infer));
    HR_TRY(hr__infer_interval(infer, "degrees", &p->degrees));
    HR_TRY(hr__infer_interval(infer, "scale", &p->scale));
    HR_TRY(hr__infer_center(infer, &p->center));
    if (p->shear.count == 3)
        return hr__infer_fail(infer, "shear", HR_ERR_ARGUMENT,
                              "shear has 1, 2 or 4 numbers, not 3");
    if (p->shear.count != 4)
        HR_TRY(hr__infer_interval(infer, "shear", &p->shear));
    else if (shear[0] > shear[1] || shear[2] > shear[3])
        return hr__infer_fail(infer, "shear", HR_ERR_RANGE,
                              "shear: the smaller number of each pair comes first");
    return hr__infer_fill(infer, &p->fill);
}

static double draw_shift(struct hr_rng *rng, double part, int32_t size)
{
    return rint(hr__rng_uniform(rng, -part * size, part * size));
}

/* In torchvision's order: angle, shift, scale, shear. */
static struct hr_turn
draw(const struct affine *p, struct hr_rng *rng, int32_t width, int32_t height)
{
    struct hr_floats shear_x = {
        .count = p->shear.count < 2 ? 1 : 2,
        .values = {p->shear.values[0], p->shear.values[1]}
    };
    struct hr_turn turn = {.center = hr__center(&p->center),
                           .mask_fill = (int32_t)p->mask_fill};
    double low, high;

    hr__interval(&p->degrees, &low, &high);
    turn.degrees = hr__rng_uniform(rng, low, high);
    turn.shift_x = draw_shift(rng, p->translate.values[0], width);
    turn.shift_y = draw_shift(rng, p->translate.values[1], height);
    turn.scale = hr__rng_uniform(rng, p->scale.values[0], p->scale.values[1]);
    hr__interval(&shear_x, &low, &high);
    turn.shear_x = hr__rng_uniform(rng, low, high);
    if (p->shear.count == 4)
        turn.shear_y = hr__rng_uniform(rng, p->shear.values[2], p->shear.values[3]);
    hr__fill_levels(&p->fill, turn.fill);
    return turn;
}

static enum hr_err affine_apply(struct hr_op_ctx *ctx)
{
    const struct affine *p = ctx->params;
    int32_t width, height, channels;
    struct hr_turn turn;
    struct hr_rng rng;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    turn = draw(p, &rng, width, height);
    return hr__turn(ctx, &turn, p->interpolation, false);
}

const struct hr_op hr_op_image_affine = {
    .name = "image.affine",
    .summary = "rotate, shift, scale and shear the image at random",
    .doc = "Like torchvision's RandomAffine. Every quantity is drawn, even "
           "if its interval is a single number.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_WARPS,
    HR_PARAMS(affine_params, struct affine),
    HR_MOVE_STATE,
    .infer = affine_infer,
    .apply = affine_apply,
};
