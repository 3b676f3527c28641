/*
 * kernel/warp_sample.h - one pixel of a warp at any position of the source.
 *
 * Positions are in fixed point (HR_WARP_BITS). A neighbour outside of the source has the
 * fill value.
 */
#ifndef HR_KERNEL_WARP_SAMPLE_H
#define HR_KERNEL_WARP_SAMPLE_H

#include "kernel/half.h"
#include "kernel/warp_pixel.h"

#include <math.h>
#include <string.h>

#define HR_WARP_ONE ((int64_t)1 << HR_WARP_BITS)

struct hr_warp_ends {
    const struct hr_pixels *src, *dst;
    float fill[4]; /* whole levels for u8 */
};

/* Converts to fixed point; extreme values are clamped far outside, where sums cannot
 * overflow. */
static inline int64_t hr__warp_fixed(double value, double limit)
{
    if (!(value > -limit))
        return (int64_t)(-limit * (double)HR_WARP_ONE);
    if (value > limit)
        return (int64_t)(limit * (double)HR_WARP_ONE);
    return (int64_t)floor(value * (double)HR_WARP_ONE + 0.5);
}

static inline bool hr__warp_inside(const struct hr_pixels *p, int64_t x, int64_t y)
{
    return x >= 0 && x < p->width && y >= 0 && y < p->height;
}

static inline float
hr__warp_value_at(const struct hr_warp_ends *ends, int64_t x, int64_t y, int32_t c)
{
    const char *at;
    float value;

    if (!hr__warp_inside(ends->src, x, y))
        return ends->fill[c];
    at = hr__at(ends->src, (int32_t)x, (int32_t)y, c);
    if (ends->src->dtype == HR_U8)
        return (float)*(const uint8_t *)at;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void hr__warp_put_value(const struct hr_pixels *dst, int32_t x, int32_t y,
                                      int32_t c, float value)
{
    char *at = hr__at(dst, x, y, c);

    if (dst->dtype == HR_U8)
        *(uint8_t *)at = (uint8_t)value;
    else
        memcpy(at, &value, sizeof value);
}

static inline float
hr__warp_blend_f32(float a, float b, float c, float d, float fx, float fy)
{
    float above = a * (1 - fx) + b * fx, below = c * (1 - fx) + d * fx;

    return above * (1 - fy) + below * fy;
}

static inline void hr__warp_bilinear_pixel(const struct hr_warp_ends *ends, int32_t to_x,
                                           int32_t to_y, int64_t x, int64_t y)
{
    int64_t ix = x >> HR_WARP_BITS, iy = y >> HR_WARP_BITS;
    int32_t fx = hr__warp_part(x), fy = hr__warp_part(y);
    float px = (float)(x & (HR_WARP_ONE - 1)) * (1.0f / (float)HR_WARP_ONE);
    float py = (float)(y & (HR_WARP_ONE - 1)) * (1.0f / (float)HR_WARP_ONE);

    for (int32_t c = 0; c < ends->dst->channels; c++) {
        float a = hr__warp_value_at(ends, ix, iy, c),
              b = hr__warp_value_at(ends, ix + 1, iy, c);
        float d = hr__warp_value_at(ends, ix, iy + 1, c),
              e = hr__warp_value_at(ends, ix + 1, iy + 1, c);

        if (ends->dst->dtype == HR_U8)
            hr__warp_put_value(
                ends->dst, to_x, to_y, c,
                hr__warp_blend((int32_t)a, (int32_t)b, (int32_t)d, (int32_t)e, fx, fy));
        else
            hr__warp_put_value(ends->dst, to_x, to_y, c,
                               hr__warp_blend_f32(a, b, d, e, px, py));
    }
}

/* True if no neighbour of a position is inside the source. */
static inline bool
hr__warp_all_outside(const struct hr_warp_ends *ends, int64_t x, int64_t y)
{
    return x < -HR_WARP_ONE || y < -HR_WARP_ONE ||
           x >> HR_WARP_BITS >= ends->src->width ||
           y >> HR_WARP_BITS >= ends->src->height;
}

/* Fills pixels [from, to) of a row of the result. */
static inline void hr__warp_fill_pixels(const struct hr_warp_ends *ends, int32_t from,
                                        int32_t to, int32_t to_y)
{
    const struct hr_pixels *dst = ends->dst;
    uint8_t levels[4], *out = (uint8_t *)hr__at(dst, from, to_y, 0);

    if (dst->dtype != HR_U8) {
        for (int32_t i = from; i < to; i++)
            for (int32_t c = 0; c < dst->channels; c++)
                hr__warp_put_value(dst, i, to_y, c, ends->fill[c]);
        return;
    }
    for (int32_t c = 0; c < dst->channels; c++)
        levels[c] = (uint8_t)ends->fill[c];
    for (int32_t i = from; i < to; i++, out += dst->pixel_stride)
        for (int32_t c = 0; c < dst->channels; c++)
            out[c * dst->channel_stride] = levels[c];
}

/* Left neighbours must be at least `spare` columns before the end: 1 for the right
 * neighbour, more where a loop reads whole words. */
static inline bool
hr__warp_deep_inside(const struct hr_warp_ends *ends, int64_t x, int64_t y, int32_t spare)
{
    int64_t ix = x >> HR_WARP_BITS, iy = y >> HR_WARP_BITS;

    return ix >= 0 && ix < ends->src->width - spare && iy >= 0 &&
           iy < ends->src->height - 1;
}

static inline void
hr__warp_ends_init(struct hr_warp_ends *ends, const struct hr_pixels *src,
                   const struct hr_pixels *dst, const float fill[4])
{
    ends->src = src;
    ends->dst = dst;
    for (int32_t c = 0; c < src->channels; c++)
        ends->fill[c] = src->dtype == HR_U8 ? (float)hr__round_u8(fill[c]) : fill[c];
}

#endif
