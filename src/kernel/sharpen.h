/*
 * kernel/sharpen.h - blends an image with a smoothed one, in place: torchvision's
 * adjust_sharpness, uint8 to the bit.
 */
#ifndef HR_KERNEL_SHARPEN_H
#define HR_KERNEL_SHARPEN_H

#include "core/arena.h"
#include "kernel/pixels.h"

/*
 * Each level but those at the border becomes smooth + factor * (level - smooth), where
 * smooth is the mean of 3 x 3 levels, the middle one counted five times. 0 smooths, 1
 * changes nothing, 2 sharpens. uint8 (0..255) or float32 (0..1), interleaved or planar.
 * An image with a side below 3 stays as it is. HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__sharpen(struct hr_arena *arena, const struct hr_pixels *image, double factor);

#endif
