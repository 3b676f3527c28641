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

/* ---- tables: what becomes of each level of uint8, per channel ---- */

struct hr_level_tables {
    uint8_t of[4][256];
};
struct hr_level_counts {
    uint32_t of[4][256];
};

/* How often each level occurs in each channel; floats are brought to 256 levels. */
void hr__levels_count(const struct hr_pixels *image, struct hr_level_counts *ret_counts);

/* The tables of autocontrast and of equalize for a channel of uint8 with these counts. */
void hr__levels_stretch(const uint32_t count[256], uint8_t ret_table[256]);
void hr__levels_flatten(const uint32_t count[256], uint8_t ret_table[256]);

/* Stores the level for each one of `in`, both uint8 and interleaved or planar alike, of
 * one size. They may be the same. */
void hr__levels_look_up(const struct hr_pixels *in, const struct hr_level_tables *tables,
                        const struct hr_pixels *out);
/* The same for `n` interleaved pixels. */
void hr__levels_look_up_row(const struct hr_level_tables *tables, const uint8_t *in,
                            uint8_t *out, int32_t n, int32_t channels);

#endif
