/*
 * kernel/warp.h - affine, perspective and elastic resampling without antialias.
 */
#ifndef HR_KERNEL_WARP_H
#define HR_KERNEL_WARP_H

#include "core/arena.h"
#include "kernel/pixels.h"
#include "kernel/resample.h"

/*
 * dst(x, y) = src(m[0] * (x + .5) + m[1] * (y + .5) + m[2] - .5, m[3] * (x + .5) + m[4] *
 * (y + .5) + m[5] - .5), bilinear or nearest. Outside the source the value is fill[c] (in
 * levels of src's dtype); at the border it is blended as in torchvision (only neighbours
 * inside come from the source). u8 uses fixed point with rounding, f32 uses f32. src and
 * dst have the same dtype and channels; sizes may differ; interleaved or planar.
 */
HR_CHECK enum hr_err hr__warp_run(struct hr_arena *arena, const struct hr_pixels *src,
                                  const struct hr_pixels *dst, const double m[6],
                                  enum hr_filter filter, const float fill[4]);

/* The same with both coordinates divided by p[0] * (x + .5) + p[1] * (y + .5) + 1; where
 * that is not positive, the position is outside. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__perspective_run(struct hr_arena *arena, const struct hr_pixels *src,
                    const struct hr_pixels *dst, const double m[6], const double p[2],
                    enum hr_filter filter, const float fill[4]);

/* dst(x, y) = src(x + shift_x, y + shift_y), with the finite entries of pixel (x, y) in
 * two arrays of dst's width * height. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__elastic_run(struct hr_arena *arena, const struct hr_pixels *src,
                const struct hr_pixels *dst, const float *shift_x, const float *shift_y,
                enum hr_filter filter, const float fill[4]);

#endif
