/*
 * ops/image_turn.h - shared by image.rotate, image.affine and ops/augment.h: an affine
 * map of the image, which the other fields of the list follow.
 */
#ifndef HR_OPS_IMAGE_TURN_H
#define HR_OPS_IMAGE_TURN_H

#include "ops/image_size.h"
#include "ops/move.h"

struct hr_turn {
    double degrees;          /* clockwise, like torchvision's affine */
    double shift_x, shift_y; /* pixels */
    double scale;
    double shear_x, shear_y; /* degrees */
    const double *center;    /* [x, y] in pixels from the top left; NULL: the middle */
    float fill[4];
    int32_t mask_fill;
};

/* Interpolations for warping: nearest, bilinear (as enum hr_filter). */
extern const char *const hr__warp_interpolations[];

/* infer: fields that can be turned; those with pixels are uint8 or float32. */
HR_CHECK enum hr_err hr__infer_turned(struct hr_infer *infer);

/* `center` of an op; none: the middle of the image. */
#define HR_P_CENTER(struct_)                                                             \
    HR_P_FLOATS(struct_, center, .fallback = "[]", .items_min = 0, .items_max = 2,       \
                HR_RANGE(-HR_IMAGE_SIDE_MAX, HR_IMAGE_SIDE_MAX), .unit = "pixels",       \
                .help = "[x, y] from the top left corner of the point that stays in "    \
                        "place; []: the middle of the image")
HR_CHECK enum hr_err
hr__infer_center(struct hr_infer *infer, const struct hr_floats *center);
const double *hr__center(const struct hr_floats *center);

/* Warps all bound fields; with `expand`, the result is large enough to show all of the
 * image when it turns about its middle. */
HR_CHECK enum hr_err
hr__turn(struct hr_op_ctx *ctx, const struct hr_turn *turn, int filter, bool expand);

/* Checks an interval: number for [-number, number], or [least, most]. */
HR_CHECK enum hr_err hr__infer_interval(struct hr_infer *infer, const char *param,
                                        const struct hr_floats *range);
void hr__interval(const struct hr_floats *range, double *ret_low, double *ret_high);

#endif
