/*
 * ops/box_window.c - what the ops that crop to a window for boxes have in common.
 */
#include "ops/box_window.h"

#include "ops/move.h"

enum hr_err hr__box_window_infer(struct hr_infer *infer, const struct hr_floats *scale,
                                 const struct hr_floats *ratio)
{
    HR_TRY(hr__infer_moved(infer));
    HR_TRY(hr__infer_moved_boxes(infer));
    HR_TRY(hr__infer_order(infer, "scale", scale));
    HR_TRY(hr__infer_order(infer, "ratio", ratio));
    hr__infer_moved_size(infer, HR_DIM_UNKNOWN, HR_DIM_UNKNOWN);
    return HR_OK;
}

void hr__box_window_largest(const void *params, bool one, int64_t *height, int64_t *width)
{
    (void)params;
    (void)one;
    (void)height;
    (void)width;
}
