/*
 * kernel/moments.c - sums over an image, row by row in L1.
 *
 * The deviation takes a second pass: squares of differences from the mean lose no digits.
 */
#include "kernel/moments.h"

#include <assert.h>
#include <math.h>

#include "core/error.h"
#include "kernel/rows.h"

/* The sum of (level - centre) over the image, or of its square. */
static double
sum_of(const struct hr_pixels *src, float *const plane[4], float centre, bool square)
{
    const struct hr_rows *rows = hr__rows();
    const float keep[4] = {1, 1, 1, 1}, bias[4] = {-centre, -centre, -centre, -centre};
    size_t n = (size_t)src->width;
    double sum = 0;

    for (int32_t y = 0; y < src->height; y++) {
        hr__rows_get(rows, src, 0, y, src->width, plane, keep, bias, false);
        for (int32_t c = 0; c < src->channels; c++) {
            for (size_t i = 0; square && i < n; i++)
                plane[c][i] *= plane[c][i];
            sum += rows->sum(plane[c], n);
        }
    }
    return sum;
}

enum hr_err hr__pixels_moments(struct hr_arena *arena, const struct hr_pixels *src,
                               double *ret_mean, double *ret_deviation)
{
    size_t room = (size_t)src->width + HR_ROW_PAD;
    double count = (double)src->width * src->height * src->channels;
    float *plane[4] = {0};

    assert(count > 0);
    for (int32_t c = 0; c < src->channels; c++) {
        plane[c] = hr__arena_zalloc(arena, room * sizeof(float));
        if (plane[c] == NULL)
            return HR_ERR_MEMORY;
    }
    *ret_mean = sum_of(src, plane, 0, false) / count;
    *ret_deviation = sqrt(sum_of(src, plane, (float)*ret_mean, true) / count);
    return HR_OK;
}
