/*
 * kernel/warp.h - affine resampling without antialias: rotation, shear, translation.
 */
#ifndef HR_KERNEL_WARP_H
#define HR_KERNEL_WARP_H

#include "core/arena.h"
#include "kernel/pixels.h"
#include "kernel/resample.h"

/*
 * dst(x, y) = src(m[0] * (x + .5) + m[1] * (y + .5) + m[2] - .5, m[3] * (x + .5) + m[4] *
 * (y + .5) + m[5] - .5), bilinear or nearest; outside the source the value is fill[c]
 * (levels of src's dtype), blended at the border as torchvision does (a sample counts the
 * source only where inside). u8 in fixed point with rounding, f32 in f32. Same dtype and
 * channels in and out; sizes may differ; interleaved or planar.
 */
HR_CHECK enum hr_err hr__warp_run(struct hr_arena *arena, const struct hr_pixels *src,
                                  const struct hr_pixels *dst, const double m[6],
                                  enum hr_filter filter, const float fill[4]);

#endif
