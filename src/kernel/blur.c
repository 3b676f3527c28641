/*
 * kernel/blur.c - Gaussian blur, down the columns then across, one output row at a time.
 *
 * A ring holds as many f32 rows as the vertical kernel has taps; each source row is
 * converted once and stays in L1. The blurred row gets its reflected borders and is
 * blurred across. Equal distances share one multiplication. No sliding sums: Gaussian
 * weights give nothing to slide.
 */
#include "kernel/blur.h"
#include "core/error.h"
#include "kernel/rows.h"

#include <math.h>
#include <string.h>

struct taps {
    float *weight; /* radius + 1, the middle one first */
    int32_t radius;
};

struct blur {
    const struct hr_rows *rows;
    const struct hr_pixels *src, *dst;
    struct taps x, y;
    float **ring; /* [slot * channels + channel] */
    const float **window;
    float *middle;
    float *out[4];
    int32_t loaded; /* source rows in the ring so far */
};

/* Index of a row or column beyond the border: ... 2 1 [0 1 2] 1 0 1 ... */
static int32_t reflect(int64_t i, int32_t n)
{
    int64_t period = 2 * ((int64_t)n - 1);

    if (n == 1)
        return 0;
    i %= period;
    if (i < 0)
        i += period;
    return (int32_t)(i < n ? i : period - i);
}

static enum hr_err
make_taps(struct hr_arena *arena, int32_t size, float sigma, struct taps *taps)
{
    int32_t radius = size / 2;
    double *raw, sum = 0, kept, dropped = 0;

    if (size < 1 || size % 2 == 0 || isnan(sigma))
        return HR_ERR_ARGUMENT;
    raw = hr__arena_alloc(arena, ((size_t)radius + 1) * sizeof *raw);
    taps->weight = hr__arena_alloc(arena, ((size_t)radius + 1) * sizeof *taps->weight);
    if (raw == NULL || taps->weight == NULL)
        return HR_ERR_MEMORY;
    for (int32_t d = 0; d <= radius; d++) {
        double far = (double)d / (double)sigma;

        raw[d] = d == 0 ? 1 : sigma > 0 ? exp(-0.5 * far * far) : 0;
        sum += d == 0 ? raw[d] : 2 * raw[d];
    }
    for (; radius > 0; radius--) {
        dropped += 2 * raw[radius] / sum;
        if (!(dropped < 0.25 / 255))
            break;
    }
    kept = raw[0];
    for (int32_t d = 1; d <= radius; d++)
        kept += 2 * raw[d];
    for (int32_t d = 0; d <= radius; d++)
        taps->weight[d] = (float)(raw[d] / kept);
    taps->radius = radius;
    return HR_OK;
}

static enum hr_err set_scratch(struct blur *blur, struct hr_arena *arena)
{
    size_t channels = (size_t)blur->src->channels;
    size_t taps = 2 * (size_t)blur->y.radius + 1;
    size_t slots = taps < (size_t)blur->src->height ? taps : (size_t)blur->src->height;
    size_t room = (size_t)blur->src->width + HR_ROW_PAD;

    blur->ring = hr__arena_alloc(arena, slots * channels * sizeof *blur->ring);
    blur->window = hr__arena_alloc(arena, taps * sizeof *blur->window);
    blur->middle =
        hr__arena_zalloc(arena, (room + 2 * (size_t)blur->x.radius) * sizeof(float));
    if (blur->ring == NULL || blur->window == NULL || blur->middle == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < slots * channels + channels; i++) {
        float *row = hr__arena_zalloc(arena, room * sizeof(float));

        if (row == NULL)
            return HR_ERR_MEMORY;
        if (i < slots * channels)
            blur->ring[i] = row;
        else
            blur->out[i - slots * channels] = row;
    }
    return HR_OK;
}

/* The ring has as many slots as there are taps, or rows when there are fewer: the rows
 * that any output needs, reflected ones included, are in it together. */
static float **slot_of(const struct blur *blur, int32_t row)
{
    int32_t taps = 2 * blur->y.radius + 1;
    int32_t slots = taps < blur->src->height ? taps : blur->src->height;

    return blur->ring + (size_t)(row % slots) * (size_t)blur->src->channels;
}

static void load_up_to(struct blur *blur, int32_t last)
{
    for (; blur->loaded <= last && blur->loaded < blur->src->height; blur->loaded++)
        hr__rows_get(blur->rows, blur->src, 0, blur->loaded, blur->src->width,
                     slot_of(blur, blur->loaded), hr__affine_keep.scale,
                     hr__affine_keep.bias, false);
}

static void blur_row(struct blur *blur, int32_t y, int32_t c, float *out)
{
    int32_t width = blur->src->width, rx = blur->x.radius, ry = blur->y.radius;
    float *middle = blur->middle + rx;

    for (int32_t d = -ry; d <= ry; d++)
        blur->window[d + ry] =
            slot_of(blur, reflect((int64_t)y + d, blur->src->height))[c];
    blur->rows->blur_down(blur->window, blur->y.weight, ry, middle, (size_t)width);
    for (int32_t d = 1; d <= rx; d++) {
        middle[-d] = middle[reflect(-d, width)];
        middle[width - 1 + d] = middle[reflect((int64_t)width - 1 + d, width)];
    }
    blur->rows->blur_across(middle, blur->x.weight, rx, out, (size_t)width);
}

enum hr_err hr__blur_run(struct hr_arena *arena, const struct hr_pixels *src,
                         const struct hr_pixels *dst, int32_t size_x, int32_t size_y,
                         float sigma_x, float sigma_y)
{
    struct blur blur = {.rows = hr__rows(), .src = src, .dst = dst};

    HR_TRY(make_taps(arena, size_x, sigma_x, &blur.x));
    HR_TRY(make_taps(arena, size_y, sigma_y, &blur.y));
    HR_TRY(set_scratch(&blur, arena));
    for (int32_t y = 0; y < src->height; y++) {
        load_up_to(&blur, y + blur.y.radius);
        for (int32_t c = 0; c < src->channels; c++)
            blur_row(&blur, y, c, blur.out[c]);
        hr__rows_put(blur.rows, (const float *const *)blur.out, dst, 0, y, src->width);
    }
    return HR_OK;
}
