/*
 * kernel/blur.c - Gaussian blur, vertical pass then horizontal, one output row at a time.
 *
 * A ring buffer holds as many f32 rows as the vertical kernel has taps; each source row
 * is converted once and stays in L1. The vertically blurred row is extended by its
 * reflected borders and blurred horizontally. Taps at equal distance share a
 * multiplication. Running sums do not apply to Gaussian weights.
 */
#include "kernel/blur.h"
#include "core/error.h"
#include "kernel/rows.h"

#include <math.h>
#include <string.h>

struct taps {
    float *weight; /* radius + 1 weights, the centre first */
    int32_t radius;
};

struct blur {
    const struct hr_rows *rows;
    const struct hr_pixels *src, *dst;
    struct taps x, y;
    float **row; /* [source row * channels + channel]: its row in the ring */
    const float **window;
    float *middle[2][4]; /* of even and odd rows, with space for the border before it */
    float *out[4];
    int32_t loaded; /* source rows loaded into the ring so far */
};

/* Reflects an index beyond the border: ... 2 1 [0 1 2] 1 0 1 ... */
static int32_t reflect(int64_t i, int32_t n)
{
    int64_t period = 2 * ((int64_t)n - 1);

    if (i >= 0 && i < n)
        return (int32_t)i;
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

/* Allocates a scratch row with at least `before` elements in front of it, rounded up for
 * alignment. */
static float *make_row(struct hr_arena *arena, int32_t width, int32_t before)
{
    size_t front = ((size_t)before + 15) & ~(size_t)15;
    float *block = hr__arena_zalloc(
        arena, (front + (size_t)width + (size_t)before + HR_ROW_PAD) * sizeof *block);

    return block == NULL ? NULL : block + front;
}

/* The ring has a slot per tap, or per row if there are fewer rows, so it holds all rows
 * that an output needs at once, reflected ones included. */
static enum hr_err make_ring(struct blur *blur, struct hr_arena *arena)
{
    size_t channels = (size_t)blur->src->channels, height = (size_t)blur->src->height;
    size_t taps = 2 * (size_t)blur->y.radius + 1, slots = taps < height ? taps : height;

    blur->row = hr__arena_alloc(arena, height * channels * sizeof *blur->row);
    blur->window = hr__arena_alloc(arena, taps * sizeof *blur->window);
    if (blur->row == NULL || blur->window == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < slots * channels; i++) {
        blur->row[i] = make_row(arena, blur->src->width, 0);
        if (blur->row[i] == NULL)
            return HR_ERR_MEMORY;
    }
    for (size_t i = slots * channels; i < height * channels; i++)
        blur->row[i] = blur->row[i - slots * channels];
    return HR_OK;
}

static enum hr_err make_rows(struct blur *blur, struct hr_arena *arena)
{
    for (int32_t c = 0; c < blur->src->channels; c++) {
        blur->middle[0][c] = make_row(arena, blur->src->width, blur->x.radius);
        blur->middle[1][c] = make_row(arena, blur->src->width, blur->x.radius);
        blur->out[c] = make_row(arena, blur->src->width, 0);
        if (blur->middle[0][c] == NULL || blur->middle[1][c] == NULL ||
            blur->out[c] == NULL)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

static void load_up_to(struct blur *blur, int32_t last)
{
    size_t channels = (size_t)blur->src->channels;

    for (; blur->loaded <= last && blur->loaded < blur->src->height; blur->loaded++)
        hr__rows_get(blur->rows, blur->src, 0, blur->loaded, blur->src->width,
                     blur->row + (size_t)blur->loaded * channels, hr__affine_keep.scale,
                     hr__affine_keep.bias, false);
}

static void down(struct blur *blur, int32_t y)
{
    int32_t width = blur->src->width, channels = blur->src->channels;
    int32_t rx = blur->x.radius, ry = blur->y.radius;

    load_up_to(blur, y + ry);
    for (int32_t c = 0; c < channels; c++) {
        float *middle = blur->middle[y & 1][c];

        for (int32_t d = -ry; d <= ry; d++) {
            size_t row = (size_t)reflect((int64_t)y + d, blur->src->height);

            blur->window[d + ry] = blur->row[row * (size_t)channels + (size_t)c];
        }
        blur->rows->blur_down(blur->window, blur->y.weight, ry, middle, (size_t)width);
        for (int32_t d = 1; d <= rx; d++) {
            middle[-d] = middle[reflect(-d, width)];
            middle[width - 1 + d] = middle[reflect((int64_t)width - 1 + d, width)];
        }
    }
}

static void across(struct blur *blur, int32_t y)
{
    int32_t width = blur->src->width;

    for (int32_t c = 0; c < blur->src->channels; c++)
        blur->rows->blur_across(blur->middle[y & 1][c], blur->x.weight, blur->x.radius,
                                blur->out[c], (size_t)width);
    hr__rows_put(blur->rows, (const float *const *)blur->out, blur->dst, 0, y, width);
}

enum hr_err hr__blur_run(struct hr_arena *arena, const struct hr_pixels *src,
                         const struct hr_pixels *dst, int32_t size_x, int32_t size_y,
                         float sigma_x, float sigma_y)
{
    struct blur blur = {.rows = hr__rows(), .src = src, .dst = dst};

    HR_TRY(make_taps(arena, size_x, sigma_x, &blur.x));
    HR_TRY(make_taps(arena, size_y, sigma_y, &blur.y));
    HR_TRY(make_ring(&blur, arena));
    HR_TRY(make_rows(&blur, arena));
    /* A row is read at unaligned positions just after it was written; working on another
     * row in between lets the stores retire. */
    down(&blur, 0);
    for (int32_t y = 0; y < src->height; y++) {
        if (y + 1 < src->height)
            down(&blur, y + 1);
        across(&blur, y);
    }
    return HR_OK;
}
