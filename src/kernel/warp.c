/*
 * kernel/warp.c - affine resampling, bilinear or nearest.
 *
 * Positions advance along a row in fixed point from a start computed in double. Each row
 * is split into the run where all four neighbours are inside the source (fast loops) and
 * its ends, where every neighbour is checked and those outside have the fill value.
 * Nearest pixels of a shift or a shear are copied by runs.
 */
#include "kernel/warp.h"
#include "kernel/rows.h"
#include "kernel/warp_sample.h"

#include <math.h>
#include <string.h>

#define ONE HR_WARP_ONE

struct warp {
    const struct hr_rows *rows;
    struct hr_warp_ends ends;
    int64_t dx, dy;
};

/* Pixels near or beyond the border. */
static void any_pixels(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                       int64_t x, int64_t y)
{
    int32_t filled = from;

    for (int32_t i = from; i < to; i++) {
        int64_t at_x = x + i * warp->dx, at_y = y + i * warp->dy;

        if (hr__warp_all_outside(&warp->ends, at_x, at_y))
            continue;
        hr__warp_fill_pixels(&warp->ends, filled, i, to_y);
        hr__warp_bilinear_pixel(&warp->ends, i, to_y, at_x, at_y);
        filled = i + 1;
    }
    hr__warp_fill_pixels(&warp->ends, filled, to, to_y);
}

static void gray_inside(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                        int32_t c, int64_t x, int64_t y)
{
    const char *data = hr__at(warp->ends.src, 0, 0, c);
    uint8_t *out = (uint8_t *)hr__at(warp->ends.dst, 0, to_y, c);
    int64_t row = warp->ends.src->row_stride, in_step = warp->ends.src->pixel_stride;
    int64_t out_step = warp->ends.dst->pixel_stride;

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
    size_t size = hr_dtype_size(warp->ends.src->dtype);
    const char *data = warp->ends.src->data;
    char *out = hr__at(warp->ends.dst, from, to_y, 0);

    for (int32_t i = from; i < to; i++, x += warp->dx, y += warp->dy) {
        const char *at = data + (y >> HR_WARP_BITS) * warp->ends.src->row_stride +
                         (x >> HR_WARP_BITS) * warp->ends.src->pixel_stride;

        for (int32_t c = 0; c < warp->ends.src->channels; c++)
            memcpy(out + c * warp->ends.dst->channel_stride,
                   at + c * warp->ends.src->channel_stride, size);
        out += warp->ends.dst->pixel_stride;
    }
}

static void nearest_rgb(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                        int64_t x, int64_t y)
{
    const uint8_t *data = warp->ends.src->data;
    uint8_t *out = (uint8_t *)hr__at(warp->ends.dst, from, to_y, 0);
    int64_t row = warp->ends.src->row_stride;

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
    int64_t size = warp->ends.dst->pixel_stride;

    for (int32_t begin = from, end; begin < to; begin = end) {
        int64_t iy = (y + (begin - from) * warp->dy) >> HR_WARP_BITS;
        int64_t ix = (x >> HR_WARP_BITS) + begin - from;

        end = warp->dy == 0 ? to : begin + 1;
        while (end < to && (y + (end - from) * warp->dy) >> HR_WARP_BITS == iy)
            end++;
        memcpy(hr__at(warp->ends.dst, begin, to_y, 0),
               hr__at(warp->ends.src, (int32_t)ix, (int32_t)iy, 0),
               (size_t)((end - begin) * size));
    }
}

static void nearest_row(const struct warp *warp, int32_t to_y, int64_t x, int64_t y)
{
    bool contiguous = warp->ends.src->channel_stride == warp->ends.dst->channel_stride &&
                      hr__is_interleaved(warp->ends.src) &&
                      hr__is_interleaved(warp->ends.dst);
    bool rgb =
        contiguous && warp->ends.src->dtype == HR_U8 && warp->ends.src->channels == 3;
    int32_t from = 0, to = warp->ends.dst->width;

    x += ONE / 2;
    y += ONE / 2;
    while (from < to &&
           !hr__warp_inside(warp->ends.src, (x + from * warp->dx) >> HR_WARP_BITS,
                            (y + from * warp->dy) >> HR_WARP_BITS))
        from++;
    while (to > from &&
           !hr__warp_inside(warp->ends.src, (x + (to - 1) * warp->dx) >> HR_WARP_BITS,
                            (y + (to - 1) * warp->dy) >> HR_WARP_BITS))
        to--;
    hr__warp_fill_pixels(&warp->ends, 0, from, to_y);
    hr__warp_fill_pixels(&warp->ends, to, warp->ends.dst->width, to_y);
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
    const char *data = hr__at(warp->ends.src, 0, 0, c);
    char *out = hr__at(warp->ends.dst, from, to_y, c);
    int64_t row = warp->ends.src->row_stride, step = warp->ends.src->pixel_stride;

    for (int32_t i = from; i < to; i++, x += warp->dx, y += warp->dy) {
        const char *at = data + (y >> HR_WARP_BITS) * row + (x >> HR_WARP_BITS) * step;
        float px = (float)(x & (ONE - 1)) * (1.0f / (float)ONE);
        float py = (float)(y & (ONE - 1)) * (1.0f / (float)ONE);
        float value =
            hr__warp_blend_f32(load_f32(at), load_f32(at + step), load_f32(at + row),
                               load_f32(at + row + step), px, py);

        memcpy(out, &value, sizeof value);
        out += warp->ends.dst->pixel_stride;
    }
}

static void inside_run(const struct warp *warp, int32_t from, int32_t to, int32_t to_y,
                       int64_t x, int64_t y)
{
    struct hr_warp_run run = {.data = warp->ends.src->data,
                              .row_stride = warp->ends.src->row_stride,
                              .x = x,
                              .y = y,
                              .dx = warp->dx,
                              .dy = warp->dy};

    if (warp->ends.src->dtype == HR_U8 && warp->ends.src->channels == 3 &&
        hr__is_interleaved(warp->ends.src) && hr__is_interleaved(warp->ends.dst)) {
        warp->rows->warp_rgb(&run, (uint8_t *)hr__at(warp->ends.dst, from, to_y, 0),
                             to - from);
        return;
    }
    for (int32_t c = 0; c < warp->ends.src->channels; c++) {
        if (warp->ends.src->dtype == HR_U8)
            gray_inside(warp, from, to, to_y, c, x, y);
        else
            float_inside(warp, from, to, to_y, c, x, y);
    }
}

static void bilinear_row(const struct warp *warp, int32_t to_y, int64_t x, int64_t y)
{
    /* reads 8 bytes from an RGB left neighbour, 2 more than two pixels */
    int32_t spare =
        warp->ends.src->dtype == HR_U8 && warp->ends.src->channels == 3 ? 2 : 1;
    int32_t from = 0, to = warp->ends.dst->width;

    while (from < to && !hr__warp_deep_inside(&warp->ends, x + from * warp->dx,
                                              y + from * warp->dy, spare))
        from++;
    while (to > from && !hr__warp_deep_inside(&warp->ends, x + (to - 1) * warp->dx,
                                              y + (to - 1) * warp->dy, spare))
        to--;
    any_pixels(warp, 0, from, to_y, x, y);
    inside_run(warp, from, to, to_y, x + from * warp->dx, y + from * warp->dy);
    any_pixels(warp, to, warp->ends.dst->width, to_y, x, y);
}

enum hr_err hr__warp_run(struct hr_arena *arena, const struct hr_pixels *src,
                         const struct hr_pixels *dst, const double m[6],
                         enum hr_filter filter, const float fill[4])
{
    struct warp warp = {.rows = hr__rows(),
                        .dx = hr__warp_fixed(m[0], 0x1p15),
                        .dy = hr__warp_fixed(m[3], 0x1p15)};

    (void)arena; /* no scratch is needed */
    hr__warp_ends_init(&warp.ends, src, dst, fill);
    for (int32_t y = 0; y < dst->height; y++) {
        double sx = 0.5 * m[0] + m[1] * (y + 0.5) + m[2] - 0.5;
        double sy = 0.5 * m[3] + m[4] * (y + 0.5) + m[5] - 0.5;

        if (filter == HR_FILTER_NEAREST)
            nearest_row(&warp, y, hr__warp_fixed(sx, 0x1p32), hr__warp_fixed(sy, 0x1p32));
        else
            bilinear_row(&warp, y, hr__warp_fixed(sx, 0x1p32),
                         hr__warp_fixed(sy, 0x1p32));
    }
    return HR_OK;
}
