/*
 * ops/image_levels.h - shared by the ops that change an image's levels with a
 * probability.
 */
#ifndef HR_OPS_IMAGE_LEVELS_H
#define HR_OPS_IMAGE_LEVELS_H

#include "kernel/levels.h"
#include "ops/image_job.h"
#include "ops/image_size.h"

/* The row of `p`. */
#define HR_P_CHANCE(struct_, help_)                                                      \
    HR_P_FLOAT(struct_, p, .fallback = "0.5", HR_RANGE(0, 1), .help = help_)

/* infer: the threshold, of parameter `param`, is not above white. */
HR_CHECK enum hr_err
hr__infer_threshold(struct hr_infer *infer, const char *param, double threshold);

/* Replaces the image in bound field `field` by a copy, which may be changed through
 * `ret_pixels`: uint8 interleaved or float32 planar. */
HR_CHECK enum hr_err
hr__image_own(struct hr_op_ctx *ctx, size_t field, struct hr_pixels *ret_pixels);

#endif
