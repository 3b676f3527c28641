/*
 * ops/image_turn.h - what image.rotate and image.affine share: an affine map about the
 * middle of the image.
 */
#ifndef HR_OPS_IMAGE_TURN_H
#define HR_OPS_IMAGE_TURN_H

#include "ops/image_job.h"

struct hr_turn {
    double degrees;          /* clockwise, as torchvision's affine */
    double shift_x, shift_y; /* pixels */
    double scale;
    double shear_x, shear_y; /* degrees */
};

/* Interpolations that warping knows: nearest, bilinear (as enum hr_filter). */
extern const char *const hr__warp_interpolations[];

/* Replace the image by the turned one; with `expand` large enough to show all of it. */
HR_CHECK enum hr_err
hr__image_turn(struct hr_op_ctx *ctx, size_t field, const struct hr_turn *turn,
               int filter, bool expand, const float fill[4]);

/* number -> [-number, number]; the first must not be above the second. */
HR_CHECK enum hr_err hr__infer_interval(struct hr_infer *infer, const char *param,
                                        const struct hr_floats *range);
void hr__interval(const struct hr_floats *range, double *ret_low, double *ret_high);

#endif
