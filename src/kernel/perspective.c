/*
 * kernel/perspective.c - perspective and elastic resampling, bilinear or nearest.
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
    const float *shift_x, *shift_y; /* elastic: in place of m and p; else NULL */
    double *xs, *ys;                /* of the row's pixels in the source */
    int64_t *places;                /* the same of a run, in fixed point: all x, all y */
    const struct hr_rows *rows;
};

/* Far outside; sums with it cannot overflow. */
#define OUTSIDE (-0x1p20)

static void shifted_positions(const struct perspective *w, int32_t to_y, double middle)
{
    size_t first = (size_t)to_y * (size_t)w->ends.dst->width;
    const float *shift_x = w->shift_x + first, *shift_y = w->shift_y + first;
    double *restrict xs = w->xs, *restrict ys = w->ys;

    for (int32_t i = 0; i < w->ends.dst->width; i++) {
        xs[i] = i + middle + (double)shift_x[i];
        ys[i] = to_y + middle + (double)shift_y[i];
    }
}

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

/* Whether the pixel's four neighbours are in the source, and 8 bytes from the left ones
 * can be read. */
static bool is_deep(const struct perspective *w, int32_t i)
{
    return within(w->xs[i], w->ys[i], w->ends.src->width - 2, w->ends.src->height - 1);
}

/* The run of such pixels from `from` on. Returns its end. */
static int32_t rgb_run(const struct perspective *w, int32_t from, int32_t to_y)
{
    struct hr_warp_places places = {.data = w->ends.src->data,
                                    .row_stride = w->ends.src->row_stride,
                                    .x = w->places,
                                    .y = w->places + w->ends.dst->width};
    int64_t *xs = w->places, *ys = xs + w->ends.dst->width;
    int32_t end = from;

    for (; end < w->ends.dst->width && is_deep(w, end); end++) {
        xs[end - from] = (int64_t)(w->xs[end] * (double)HR_WARP_ONE);
        ys[end - from] = (int64_t)(w->ys[end] * (double)HR_WARP_ONE);
    }
    if (end > from)
        w->rows->places_rgb(&places, (uint8_t *)hr__at(w->ends.dst, from, to_y, 0),
                            end - from);
    return end;
}

/* Whether a neighbour of the pixel is in the source. */
static bool touches(const struct perspective *w, int32_t i)
{
    return within(w->xs[i] + 1, w->ys[i] + 1, w->ends.src->width + 1,
                  w->ends.src->height + 1);
}

/* Fills the run of pixels outside of the source from `from` on. Returns its end. */
static int32_t fill_run(const struct perspective *w, int32_t from, int32_t to_y)
{
    int32_t end = from;

    while (end < w->ends.dst->width && !touches(w, end))
        end++;
    hr__warp_fill_pixels(&w->ends, from, end, to_y);
    return end;
}

/* The run of pixels with neighbours on both sides of the border, or of those that no row
 * function takes. */
static int32_t edge_run(const struct perspective *w, int32_t from, int32_t to_y, bool rgb)
{
    int32_t end = from;

    for (; end < w->ends.dst->width && touches(w, end) && !(rgb && is_deep(w, end));
         end++)
        hr__warp_bilinear_pixel(&w->ends, end, to_y,
                                (int64_t)floor(w->xs[end] * (double)HR_WARP_ONE),
                                (int64_t)floor(w->ys[end] * (double)HR_WARP_ONE));
    return end;
}

static void bilinear_row(const struct perspective *w, int32_t to_y)
{
    const struct hr_pixels *src = w->ends.src, *dst = w->ends.dst;
    bool rgb = src->dtype == HR_U8 && src->channels == 3 && hr__is_interleaved(src) &&
               hr__is_interleaved(dst);
    int32_t i = 0;

    if (w->shift_x != NULL)
        shifted_positions(w, to_y, 0);
    else
        positions(w, to_y, 0.5);
    while (i < dst->width) {
        i = fill_run(w, i, to_y);
        i = edge_run(w, i, to_y, rgb);
        if (rgb)
            i = rgb_run(w, i, to_y);
    }
}

static void nearest_row(const struct perspective *w, int32_t to_y)
{
    const struct hr_pixels *src = w->ends.src, *dst = w->ends.dst;
    size_t size = hr_dtype_size(src->dtype);

    if (w->shift_x != NULL)
        shifted_positions(w, to_y, 0.5);
    else
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

static enum hr_err
run(struct hr_arena *arena, struct perspective *w, enum hr_filter filter)
{
    size_t width = (size_t)w->ends.dst->width;

    w->rows = hr__rows();
    w->xs = hr__arena_alloc(arena, 2 * width * sizeof *w->xs);
    w->places = hr__arena_alloc(arena, 2 * width * sizeof *w->places);
    if (w->xs == NULL || w->places == NULL)
        return HR_ERR_MEMORY;
    w->ys = w->xs + width;
    for (int32_t y = 0; y < w->ends.dst->height; y++) {
        if (filter == HR_FILTER_NEAREST)
            nearest_row(w, y);
        else
            bilinear_row(w, y);
    }
    return HR_OK;
}

enum hr_err
hr__perspective_run(struct hr_arena *arena, const struct hr_pixels *src,
                    const struct hr_pixels *dst, const double m[6], const double p[2],
                    enum hr_filter filter, const float fill[4])
{
    struct perspective w = {
        .p = {p[0], p[1]}
    };

    memcpy(w.m, m, sizeof w.m);
    hr__warp_ends_init(&w.ends, src, dst, fill);
    return run(arena, &w, filter);
}

enum hr_err
hr__elastic_run(struct hr_arena *arena, const struct hr_pixels *src,
                const struct hr_pixels *dst, const float *shift_x, const float *shift_y,
                enum hr_filter filter, const float fill[4])
{
    struct perspective w = {.shift_x = shift_x, .shift_y = shift_y};

    hr__warp_ends_init(&w.ends, src, dst, fill);
    return run(arena, &w, filter);
}
