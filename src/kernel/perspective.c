/*
 * kernel/perspective.c - perspective resampling, bilinear or nearest.
 *
 * The positions of a row are computed first, in double, in a loop without branches that
 * compilers vectorise. Then each pixel is fetched by itself, in fixed point: neighbours
 * of the result are not at equal distances in the source, as they are in warp.c.
 */
#include "kernel/warp.h"
#include "kernel/warp_sample.h"

struct perspective {
    struct hr_warp_ends ends;
    double m[6], p[2];
    double *xs, *ys; /* of the row's pixels in the source */
};

/* Far outside; sums with it cannot overflow. */
#define OUTSIDE (-0x1p20)

static void positions(const struct perspective *w, int32_t to_y, double shift)
{
    double y = to_y + 0.5, *restrict xs = w->xs, *restrict ys = w->ys;
    double x0 = w->m[1] * y + w->m[2], y0 = w->m[4] * y + w->m[5];
    double d0 = w->p[1] * y + 1, dx = w->m[0], dy = w->m[3], dd = w->p[0];

    for (int32_t i = 0; i < w->ends.dst->width; i++) {
        double x = i + 0.5, below = dd * x + d0;
        double at_x = (dx * x + x0) / below - shift, at_y = (dy * x + y0) / below - shift;

        xs[i] = below > 0 ? at_x : OUTSIDE;
        ys[i] = below > 0 ? at_y : OUTSIDE;
    }
}

/* Whether both coordinates are at least 0 and below width and height; then they fit into
 * fixed point. */
static bool within(double x, double y, int32_t width, int32_t height)
{
    return x >= 0 && y >= 0 && x < width && y < height;
}

static void rgb_pixel(const struct hr_pixels *src, int64_t x, int64_t y, uint8_t *out)
{
    const uint8_t *at = (const uint8_t *)src->data +
                        (y >> HR_WARP_BITS) * src->row_stride + 3 * (x >> HR_WARP_BITS);
    const uint8_t *below = at + src->row_stride;
    int32_t fx = hr__warp_part(x), fy = hr__warp_part(y);

    for (int c = 0; c < 3; c++)
        out[c] = hr__warp_blend(at[c], at[c + 3], below[c], below[c + 3], fx, fy);
}

static void bilinear_row(const struct perspective *w, int32_t to_y)
{
    const struct hr_pixels *src = w->ends.src, *dst = w->ends.dst;
    bool rgb = src->dtype == HR_U8 && src->channels == 3 && hr__is_interleaved(src) &&
               hr__is_interleaved(dst);

    positions(w, to_y, 0.5);
    for (int32_t i = 0; i < dst->width; i++) {
        if (rgb && within(w->xs[i], w->ys[i], src->width - 1, src->height - 1))
            rgb_pixel(src, (int64_t)(w->xs[i] * (double)HR_WARP_ONE),
                      (int64_t)(w->ys[i] * (double)HR_WARP_ONE),
                      (uint8_t *)hr__at(dst, i, to_y, 0));
        else if (within(w->xs[i] + 1, w->ys[i] + 1, src->width + 1, src->height + 1))
            hr__warp_bilinear_pixel(&w->ends, i, to_y,
                                    (int64_t)floor(w->xs[i] * (double)HR_WARP_ONE),
                                    (int64_t)floor(w->ys[i] * (double)HR_WARP_ONE));
        else
            hr__warp_fill_pixels(&w->ends, i, i + 1, to_y);
    }
}

static void nearest_row(const struct perspective *w, int32_t to_y)
{
    const struct hr_pixels *src = w->ends.src, *dst = w->ends.dst;
    size_t size = hr_dtype_size(src->dtype);

    positions(w, to_y, 0);
    for (int32_t i = 0; i < dst->width; i++) {
        if (!within(w->xs[i], w->ys[i], src->width, src->height)) {
            hr__warp_fill_pixels(&w->ends, i, i + 1, to_y);
            continue;
        }
        for (int32_t c = 0; c < src->channels; c++)
            memcpy(hr__at(dst, i, to_y, c),
                   hr__at(src, (int32_t)w->xs[i], (int32_t)w->ys[i], c), size);
    }
}

enum hr_err
hr__perspective_run(struct hr_arena *arena, const struct hr_pixels *src,
                    const struct hr_pixels *dst, const double m[6], const double p[2],
                    enum hr_filter filter, const float fill[4])
{
    struct perspective w = {
        .p = {p[0], p[1]}
    };
    size_t width = (size_t)dst->width;

    memcpy(w.m, m, sizeof w.m);
    hr__warp_ends_init(&w.ends, src, dst, fill);
    w.xs = hr__arena_alloc(arena, 2 * width * sizeof *w.xs);
    if (w.xs == NULL)
        return HR_ERR_MEMORY;
    w.ys = w.xs + width;
    for (int32_t y = 0; y < dst->height; y++) {
        if (filter == HR_FILTER_NEAREST)
            nearest_row(&w, y);
        else
            bilinear_row(&w, y);
    }
    return HR_OK;
}
