/*
 * kernel/tint.h - brightness, contrast and saturation of uint8, to the bit as torchvision
 * computes them for uint8: whole gray levels, and results that are truncated.
 *
 * kernel/colour.h has the same changes for chains that keep fractions or round.
 * Brightness and contrast are tables for kernel/levels.h. Blends are those of a fused
 * multiply and add, as torch computes them where the machine has one.
 */
#ifndef HR_KERNEL_TINT_H
#define HR_KERNEL_TINT_H

#include "core/arena.h"
#include "kernel/levels.h"

/* level * factor. */
void hr__tint_brightness(double factor, uint8_t ret_table[256]);

/* level * factor + mean * (1 - factor). */
void hr__tint_contrast(double factor, float mean, uint8_t ret_table[256]);

/* The mean gray level of an image of 1 or 3 channels, interleaved or planar, after
 * `tables` (NULL: as it is). HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__tint_mean(struct hr_arena *arena, const struct hr_pixels *image,
                                   const struct hr_level_tables *tables, float *ret_mean);

/* Blends each pixel of `in`, after `tables` (NULL: as it is), with its gray level: 0 is
 * gray, 1 no change. Of 3 channels, and of one size with `out`, which may be `in`.
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__tint_saturate(struct hr_arena *arena, const struct hr_pixels *in,
                                       const struct hr_level_tables *tables,
                                       double factor, const struct hr_pixels *out);

#endif
