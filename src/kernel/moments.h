/*
 * kernel/moments.h - mean and deviation of all levels of an image.
 */
#ifndef HR_KERNEL_MOMENTS_H
#define HR_KERNEL_MOMENTS_H

#include "core/arena.h"
#include "kernel/pixels.h"

/* Over all channels of an image of u8 or f32 with at least one pixel; the deviation is
 * that of the population. Levels are compared with the mean in f32 and summed in f64.
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__pixels_moments(struct hr_arena *arena, const struct hr_pixels *src, double *ret_mean,
                   double *ret_deviation);

#endif
