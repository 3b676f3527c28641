/*
 * kernel/warp.c - affine resampling, bilinear or nearest.
 *
 * Positions advance along a row in fixed point from a start computed in double. Each row
 * is split into the run where all four neighbours are inside the source (fast loops) and
 * its ends, where every neighbour is checked and those outside have the fill value.
 * Nearest pixels of a shift or a shear are copied by runs.
 */
#include "kernel/warp.h"
#include "kernel/half.h"
#include "kernel/rows.h"
#include "kernel/warp_pixel.h"

#include <math.h>
#include <string.h>

#define ONE ((int64_t)1 << HR_WARP_BITS)

struct warp {
    const struct hr_rows *rows;
    const struct hr_pixels *src, *dst;
    float fill[4]; /* whole levels for u8 */
    int64_t dx, dy;
};

/* Converts to fixed point; extreme values are clamped far outside, where sums cannot
 * overflow. */
static int64_t fixed(double value, double limit)
{
    if (!(value > -limit))
        return (int64_t)(-limit * (double)ONE);
    if (value > limit)
        return (int64_t)(limit * (double)ONE);
    return (int64_t)floor(value * (double)ONE + 0.5);
}

static bool inside(const struct hr_pixels *p, int64_t x, int64_t y)
{
    return x >= 0 && x < p->width && y >= 0 && y < p->height;
}

static float value_at(const struct warp *warp, int64_t x, int64_t y, int32_t c)
{
    const char *at;
    float value;

    if (!inside(warp->src, x, y))
        return warp->fill[c];
    at = hr__at(warp->src, (int32_t)x, (int32_t)y, c);
    if (warp->src->dtype == HR_U8)
        return (float)*(const uint8_t *)at;
    memcpy(&value, at, sizeof value);
    return value;
}

static void
put_value(const struct hr_pixels *dst, int32_t x, int32_t y, int32_t c, float value)
{
    char *at = hr__at(dst, x, y, c);

    if (dst->dtype == HR_U8)
        *(uint8_t *)at = (uint8_t)value;
    else
        memcpy(at, &value, sizeof value);
}

static float blend_f32(float a, float b, float c, float d, float fx, float fy)
{
    float above = a * (1 - fx) + b * fx, below = c * (1 - fx) + d * fx;

    return above * (1 - fy) + below * fy;
}

static void
bilinear_pixel(const struct warp *warp, int32_t to_x, int32_t to_y, int64_t x, int64_t y)
{
    int64_t ix = x >> HR_WARP_BITS, iy = y >> HR_WARP_BITS;
    int32_t fx = hr__warp_part(x), fy = hr__warp_part(y);
    float px = (float)(x & (ONE - 1)) * (1.0f / (float)ONE);
    float py = (float)(y & (ONE - 1)) * (1.0f / (float)ONE);

    for (int32_t c = 0; c < warp->dst->channels; c++) {
        float a = value_at(warp, ix, iy, c), b = value_at(warp, ix + 1, iy, c);
        float d = value_at(warp, ix, iy + 1, c), e = value_at(warp, ix + 1, iy + 1, c);

        if (warp->dst->dtype == HR_U8)
            put_value(
                warp->dst, to_x, to_y, c,
                hr__warp_blend((int32_t)a, (int32_t)b, (int32_t)d, (int32_t)e, fx, fy));
        else
            put_value(warp->dst, to_x, to_y, c, blend_f32(a, b, d, e, px, py));
    }
}

/* True if no neighbour of a position is inside the source. */
static bool all_outside(const struct warp *warp, int64_t x, int64_t y)
{
    return x < -ONE || y < -ONE || x >> HR_WARP_BITS >= warp->src->width ||
           y >> HR_WARP_BITS >= warp->src->height;
}

/* Fills pixels [from, to) of a row of the result. */
static void fill_pixels(const struct warp *warp, int32_t from, int32_t to, int32_t to_y)
{
    const struct hr_pixels *dst = warp->dst;
    uint8_t levels[4], *out = (uint8_t *)hr__at(dst, from, to_y, 0);

    if (dst->dtype != HR_U8) {
        for (int32_t i = from; i < to; i++)
            for (int32_t c = 0; c < dst->channels; c++)
                put_value(dst, i, to_y, c, warp->fill[c]);
        return;
    }
    for (int32_t c = 0; c < dst->channels; c++)
        levels[c] = (uint8_t)warp->fill[c];
    for (int32_t i = from; i < to; i++, out += dst->pixel_stride)
        for (int32_t c = 0; c < dst->channels; c++)
            out[c * dst->channel_stride] = levels[c];
}

/* Pixels near or beyond the border. */
static void any_pixels(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                       int64_t x, int64_t y)
{
    int32_t filled = from;

    for (int32_t i = from; i < to; i++) {
        int64_t at_x = x + i * warp->dx, at_y = y + i * warp->dy;

        if (all_outside(warp, at_x, at_y))
            continue;
        fill_pixels(warp, filled, i, to_y);
        bilinear_pixel(warp, i, to_y, at_x, at_y);
        filled = i + 1;
    }
    fill_pixels(warp, filled, to, to_y);
}

/* Left neighbours must be at least `spare` columns before the end: 1 for the right
 * neighbour, more where a loop reads whole words. */
static bool deep_inside(const struct warp *warp, int64_t x, int64_t y, int32_t spare)
{
    int64_t ix = x >> HR_WARP_BITS, iy = y >> HR_WARP_BITS;

    return ix >= 0 && ix < warp->src->width - spare && iy >= 0 &&
           iy < warp->src->height - 1;
}

static void gray_inside(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                        int32_t c, int64_t x, int64_t y)
{
    const char *data = hr__at(warp->src, 0, 0, c);
    uint8_t *out = (uint8_t *)hr__at(warp->dst, 0, to_y, c);
    int64_t row = warp->src->row_stride, in_step = warp->src->pixel_stride;
    int64_t out_step = warp->dst->pixel_stride;

    for (int32_t i = from; i < to; i++, x += warp->dx, y += warp->dy) {
        const uint8_t *at = (const uint8_t *)data + (y >> HR_WARP_BITS) * row +
                            (x >> HR_WARP_BITS) * in_step;

        out[i * out_step] = hr__warp_blend(at[0], at[in_step], at[row], at[row + in_step],
                                           hr__warp_part(x), hr__warp_part(y));
    }
}

static void nearest_any(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                        int64_t x, int64_t y)
{
    size_t size = hr_dtype_size(warp->src->dtype);
    const char *data = warp->src->data;
    char *out = hr__at(warp->dst, from, to_y, 0);

    for (int32_t i = from; i < to; i++, x += warp->dx, y += warp->dy) {
        const char *at = data + (y >> HR_WARP_BITS) * warp->src->row_stride +
                         (x >> HR_WARP_BITS) * warp->src->pixel_stride;

        for (int32_t c = 0; c < warp->src->channels; c++)
            memcpy(out + c * warp->dst->channel_stride,
                   at + c * warp->src->channel_stride, size);
        out += warp->dst->pixel_stride;
    }
}

static void nearest_rgb(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                        int64_t x, int64_t y)
{
    const uint8_t *data = warp->src->data;
    uint8_t *out = (uint8_t *)hr__at(warp->dst, from, to_y, 0);
    int64_t row = warp->src->row_stride;

    for (int32_t i = from; i < to; i++, x += warp->dx, y += warp->dy, out += 3) {
        const uint8_t *at = data + (y >> HR_WARP_BITS) * row + 3 * (x >> HR_WARP_BITS);

        memcpy(out, at, 3);
    }
}

/* A shift or a shear: neighbours in the result are neighbours in a row of the source, and
 * stay so until the row changes. */
static void nearest_shifted(const struct warp *warp, int32_t from, int32_t to,
                            int32_t to_y, int64_t x, int64_t y)
{
    int64_t size = warp->dst->pixel_stride;

    for (int32_t begin = from, end; begin < to; begin = end) {
        int64_t iy = (y + (begin - from) * warp->dy) >> HR_WARP_BITS;
        int64_t ix = (x >> HR_WARP_BITS) + begin - from;

        end = warp->dy == 0 ? to : begin + 1;
        while (end < to && (y + (end - from) * warp->dy) >> HR_WARP_BITS == iy)
            end++;
        memcpy(hr__at(warp->dst, begin, to_y, 0),
               hr__at(warp->src, (int32_t)ix, (int32_t)iy, 0),
               (size_t)((end - begin) * size));
    }
}

static void nearest_row(const struct warp *warp, int32_t to_y, int64_t x, int64_t y)
{
    bool contiguous = warp->src->channel_stride == warp->dst->channel_stride &&
                      hr__is_interleaved(warp->src) && hr__is_interleaved(warp->dst);
    bool rgb = contiguous && warp->src->dtype == HR_U8 && warp->src->channels == 3;
    int32_t from = 0, to = warp->dst->width;

    x += ONE / 2;
    y += ONE / 2;
    while (from < to && !inside(warp->src, (x + from * warp->dx) >> HR_WARP_BITS,
                                (y + from * warp->dy) >> HR_WARP_BITS))
        from++;
    while (to > from && !inside(warp->src, (x + (to - 1) * warp->dx) >> HR_WARP_BITS,
                                (y + (to - 1) * warp->dy) >> HR_WARP_BITS))
        to--;
    fill_pixels(warp, 0, from, to_y);
    fill_pixels(warp, to, warp->dst->width, to_y);
    x += from * warp->dx;
    y += from * warp->dy;
    if (contiguous && warp->dx == ONE)
        nearest_shifted(warp, from, to, to_y, x, y);
    else if (rgb)
        nearest_rgb(warp, from, to, to_y, x, y);
    else
        nearest_any(warp, from, to, to_y, x, y);
}

static float load_f32(const char *at)
{
    float value;

    memcpy(&value, at, sizeof value);
    return value;
}

static void float_inside(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                         int32_t c, int64_t x, int64_t y)
{
    const char *data = hr__at(warp->src, 0, 0, c);
    char *out = hr__at(warp->dst, from, to_y, c);
    int64_t row = warp->src->row_stride, step = warp->src->pixel_stride;

    for (int32_t i = from; i < to; i++, x += warp->dx, y += warp->dy) {
        const char *at = data + (y >> HR_WARP_BITS) * row + (x >> HR_WARP_BITS) * step;
        float px = (float)(x & (ONE - 1)) * (1.0f / (float)ONE);
        float py = (float)(y & (ONE - 1)) * (1.0f / (float)ONE);
        float value = blend_f32(load_f32(at), load_f32(at + step), load_f32(at + row),
                                load_f32(at + row + step), px, py);

        memcpy(out, &value, sizeof value);
        out += warp->dst->pixel_stride;
    }
}

static void inside_run(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                       int64_t x, int64_t y)
{
    struct hr_warp_run run = {.data = warp->src->data,
                              .row_stride = warp->src->row_stride,
                              .x = x,
                              .y = y,
                              .dx = warp->dx,
                              .dy = warp->dy};

    if (warp->src->dtype == HR_U8 && warp->src->channels == 3 &&
        hr__is_interleaved(warp->src) && hr__is_interleaved(warp->dst)) {
        warp->rows->warp_rgb(&run, (uint8_t *)hr__at(warp->dst, from, to_y, 0),
                             to - from);
        return;
    }
    for (int32_t c = 0; c < warp->src->channels; c++) {
        if (warp->src->dtype == HR_U8)
            gray_inside(warp, from, to, to_y, c, x, y);
        else
            float_inside(warp, from, to, to_y, c, x, y);
    }
}

static void bilinear_row(const struct warp *warp, int32_t to_y, int64_t x, int64_t y)
{
    /* reads 8 bytes from an RGB left neighbour, 2 more than two pixels */
    int32_t spare = warp->src->dtype == HR_U8 && warp->src->channels == 3 ? 2 : 1;
    int32_t from = 0, to = warp->dst->width;

    while (from < to &&
           !deep_inside(warp, x + from * warp->dx, y + from * warp->dy, spare))
        from++;
    while (to > from &&
           !deep_inside(warp, x + (to - 1) * warp->dx, y + (to - 1) * warp->dy, spare))
        to--;
    any_pixels(warp, 0, from, to_y, x, y);
    inside_run(warp, from, to, to_y, x + from * warp->dx, y + from * warp->dy);
    any_pixels(warp, to, warp->dst->width, to_y, x, y);
}

enum hr_err hr__warp_run(struct hr_arena *arena, const struct hr_pixels *src,
                         const struct hr_pixels *dst, const double m[6],
                         enum hr_filter filter, const float fill[4])
{
    struct warp warp = {.rows = hr__rows(),
                        .src = src,
                        .dst = dst,
                        .dx = fixed(m[0], 0x1p15),
                        .dy = fixed(m[3], 0x1p15)};

    (void)arena; /* no scratch is needed */
    for (int32_t c = 0; c < src->channels; c++)
        warp.fill[c] = src->dtype == HR_U8 ? (float)hr__round_u8(fill[c]) : fill[c];
    for (int32_t y = 0; y < dst->height; y++) {
        double sx = 0.5 * m[0] + m[1] * (y + 0.5) + m[2] - 0.5;
        double sy = 0.5 * m[3] + m[4] * (y + 0.5) + m[5] - 0.5;

        if (filter == HR_FILTER_NEAREST)
            nearest_row(&warp, y, fixed(sx, 0x1p32), fixed(sy, 0x1p32));
        else
            bilinear_row(&warp, y, fixed(sx, 0x1p32), fixed(sy, 0x1p32));
    }
    return HR_OK;
}
