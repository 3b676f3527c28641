/*
 * kernel/sinc.c - the filter's table, and one output after the other.
 */
#include "kernel/sinc.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "kernel/shape.h"
#include "kernel/sound.h"

/* The error of the interpolation falls with the square of it: at 512 it is 106 dB below
 * a tone at the Nyquist frequency, less below lower ones. */
#define SINC_PHASES 512

struct hr_sinc {
    double step;
    int64_t reach; /* samples before the one at or before an output's time */
    size_t taps;   /* a multiple of HR_SOUND_LANES */
    float *rows;   /* [SINC_PHASES + 1][taps] */
};

/* The weights of an output whose time is `part` of a sample after sample `reach`. */
static void fill_row(const struct hr_shape *shape, int64_t reach, size_t taps,
                     double part, float *row)
{
    double sum = 0;

    for (size_t k = 0; k < taps; k++)
        sum += hr__shape_at(shape, (double)((int64_t)k - reach) - part);
    for (size_t k = 0; k < taps; k++)
        row[k] = (float)(hr__shape_at(shape, (double)((int64_t)k - reach) - part) / sum);
}

enum hr_err
hr__sinc_create(double step, struct hr_sinc **ret_sinc, struct hr_error *reterr)
{
    struct hr_shape shape = hr__shape_of(1 / step, HR_RATE_HQ);
    struct hr_sinc *s = hr__calloc(1, sizeof *s);

    assert(step >= 1.0 / 64 && step <= 64);
    if (s == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    s->step = step;
    s->reach = (int64_t)ceil(shape.half);
    s->taps =
        (2 * (size_t)s->reach + 2 + HR_SOUND_LANES - 1) / HR_SOUND_LANES * HR_SOUND_LANES;
    s->rows = hr__calloc((SINC_PHASES + 1) * s->taps, sizeof *s->rows);
    if (s->rows == NULL) {
        hr__sinc_destroy(s);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    for (size_t p = 0; p <= SINC_PHASES; p++)
        fill_row(&shape, s->reach, s->taps, (double)p / SINC_PHASES,
                 s->rows + p * s->taps);
    *ret_sinc = s;
    return HR_OK;
}

void hr__sinc_destroy(struct hr_sinc *s)
{
    if (s == NULL)
        return;
    hr__free(s->rows);
    hr__free(s);
}

enum hr_err hr__sinc_run(const struct hr_sinc *s, struct hr_arena *arena, const float *in,
                         int64_t count, float *out, int64_t out_count)
{
    const struct hr_sound_table *table = hr__sound_table();
    size_t before = (size_t)s->reach, room = before + (size_t)count + s->taps;
    float *x = hr__arena_alloc(arena, room * sizeof *x), sums[2];

    if (x == NULL)
        return HR_ERR_MEMORY;
    memset(x, 0, room * sizeof *x);
    if (count > 0)
        memcpy(x + before, in, (size_t)count * sizeof *x);
    for (int64_t i = 0; i < out_count; i++) {
        double time = (double)i * s->step, phase;
        int64_t at = (int64_t)time;
        const float *row;
        float part;

        if (at >= count) {
            memset(out + i, 0, (size_t)(out_count - i) * sizeof *out);
            break;
        }
        phase = (time - (double)at) * SINC_PHASES;
        row = s->rows + (size_t)phase * s->taps;
        part = (float)(phase - floor(phase));
        table->dots(x + at, row, row + s->taps, s->taps, sums);
        out[i] = sums[0] + part * (sums[1] - sums[0]);
    }
    return HR_OK;
}
