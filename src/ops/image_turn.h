/*
 * ops/image_turn.h - shared by image.rotate and image.affine: an affine map about the
 * centre of the image.
 */
#ifndef HR_OPS_IMAGE_TURN_H
#define HR_OPS_IMAGE_TURN_H

#include "ops/image_job.h"

struct hr_turn {
    double degrees;          /* clockwise, like torchvision's affine */
    double shift_x, shift_y; /* pixels */
    double scale;
    double shear_x, shear_y; /* degrees */
};

/* Interpolations for warping: nearest, bilinear (as enum hr_filter). */
extern const char *const hr__warp_interpolations[];

/* Replaces the image by the warped one; with `expand`, large enough to show all of it. */
HR_CHECK enum hr_err
hr__image_turn(struct hr_op_ctx *ctx, size_t field, const struct hr_turn *turn,
               int filter, bool expand, const float fill[4]);

/* Checks an interval: number for [-number, number], or [least, most]. */
HR_CHECK enum hr_err hr__infer_interval(struct hr_infer *infer, const char *param,
                                        const struct hr_floats *range);
void hr__interval(const struct hr_floats *range, double *ret_low, double *ret_high);

#endif
