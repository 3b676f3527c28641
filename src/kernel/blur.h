/*
 * kernel/blur.h - separable Gaussian blur with borders reflected about the edge pixel
 * (torchvision's gaussian_blur). f32 arithmetic in a fixed order; u8 images are rounded
 * once, at the end.
 */
#ifndef HR_KERNEL_BLUR_H
#define HR_KERNEL_BLUR_H

#include "core/arena.h"
#include "kernel/pixels.h"

/* size_x, size_y: odd, >= 1. Weights are exp(-d^2 / (2 sigma^2)), normalised; outer taps
 * with a total weight below 0.25/255 are dropped and the rest renormalised. src and dst
 * have the same size, channels and dtype (u8 or f32), are interleaved or planar, and do
 * not overlap. A side shorter than the radius reflects repeatedly. HR_ERR_MEMORY,
 * HR_ERR_ARGUMENT. */
HR_CHECK enum hr_err hr__blur_run(struct hr_arena *arena, const struct hr_pixels *src,
                                  const struct hr_pixels *dst, int32_t size_x,
                                  int32_t size_y, float sigma_x, float sigma_y);

#endif
