/*
 * kernel/warp_pixel.h - bilinear interpolation of four u8 values in fixed point.
 *
 * 11 fraction bits; 7 of them are kept between the horizontal and the vertical blend, so
 * that values fit in 16 bits.
 */
#ifndef HR_KERNEL_WARP_PIXEL_H
#define HR_KERNEL_WARP_PIXEL_H

#include "kernel/rows.h"

#define HR_WARP_PART 11

/* The fraction of a position, truncated to HR_WARP_PART bits. */
static inline int32_t hr__warp_part(int64_t at)
{
    return (int32_t)(at >> (HR_WARP_BITS - HR_WARP_PART)) & ((1 << HR_WARP_PART) - 1);
}

static inline uint8_t
hr__warp_blend(int32_t a, int32_t b, int32_t c, int32_t d, int32_t fx, int32_t fy)
{
    int32_t one = 1 << HR_WARP_PART;
    int32_t above = (a * (one - fx) + b * fx + 8) >> 4;
    int32_t below = (c * (one - fx) + d * fx + 8) >> 4;

    return (uint8_t)((above * (one - fy) + below * fy + (1 << 17)) >> 18);
}

#endif
