/*
 * kernel/levels.h - changes the levels of an image in place, as torchvision's v2
 * functions of the same names do: uint8 to the bit.
 *
 * Images are uint8 (white is 255) or float32 (white is 1) of 1 to 4 channels, interleaved
 * or planar. Plain C, which compilers vectorise; integers, or f32 in a fixed order.
 */
#ifndef HR_KERNEL_LEVELS_H
#define HR_KERNEL_LEVELS_H

#include "kernel/pixels.h"

/* Levels >= threshold become white - level: -INFINITY inverts the image. */
void hr__levels_solarize(const struct hr_pixels *image, float threshold);

/* Keeps the `bits` (0 to 8) highest bits of each level; a float becomes the lower end of
 * one of 2^bits intervals. */
void hr__levels_posterize(const struct hr_pixels *image, int bits);

/* Stretches each channel so that it has both black and white; one of a single level stays
 * as it is. uint8 is truncated, floats are clamped to 0..1. */
void hr__levels_autocontrast(const struct hr_pixels *image);

/* Makes the histogram of each channel flat. Floats are brought to 256 levels. A channel
 * with fewer than 255 pixels outside its highest level keeps its levels. */
void hr__levels_equalize(const struct hr_pixels *image);

/* Channel c becomes what channel order[c] was. */
void hr__levels_permute(const struct hr_pixels *image, const int order[4]);

#endif
