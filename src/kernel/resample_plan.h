/*
 * kernel/resample_plan.h - the two axes of a resize, shared by resample_plan.c and
 * resample.c.
 */
#ifndef HR_KERNEL_RESAMPLE_PLAN_H
#define HR_KERNEL_RESAMPLE_PLAN_H

#include "kernel/resample.h"
#include "kernel/rows.h"

struct hr_resample_plan {
    const struct hr_rows *rows; /* the table that made x.packed; must also run it */
    struct hr_axis x, y;
    int carry; /* fraction bits of the 16-bit row between the passes */
    bool nearest;
};

/* One axis: outputs [at, at + count) of `full` over [box, box + extent) of `in` elements,
 * of which those given begin at `origin`. */
struct hr_axis_spec {
    int32_t in, origin, count, full, at;
    double box, extent;
    bool flip, antialias;
    enum hr_filter filter;
    int bits_max; /* of the fixed-point weights */
};
HR_CHECK enum hr_err
hr__axis_make(struct hr_arena *arena, const struct hr_axis_spec *spec,
              struct hr_axis *ret_axis);

#endif
