/*
 * ops/kinds.h - the kinds of field, one file each.
 */
#ifndef HR_OPS_KINDS_H
#define HR_OPS_KINDS_H

#include "op/kind.h"

extern const struct hr_kind hr__kind_image, hr__kind_mask, hr__kind_boxes,
    hr__kind_points, hr__kind_samples;

extern const char *const hr__kind_names[]; /* ends with NULL */

/* A copy of a bound field of boxes, in the arena: `*ret_count` rows of 4. */
HR_CHECK enum hr_err hr__boxes_copy(struct hr_op_ctx *ctx, size_t field,
                                    float **ret_boxes, int64_t *ret_count);

#endif
