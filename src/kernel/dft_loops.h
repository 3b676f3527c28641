/*
 * kernel/dft_loops.h - the loops of kernel/dft.h, compiled for each instruction set.
 *
 * Real and imaginary parts are in arrays of their own and no sum crosses numbers, so the
 * compiler's vectors do what plain C does, in its order, and the bytes are the same.
 */
#ifndef HR_KERNEL_DFT_LOOPS_H
#define HR_KERNEL_DFT_LOOPS_H

#include <math.h>

#include "kernel/dft.h"
#include "kernel/rows.h"

struct dx {
    double re, im;
};

static inline struct dx dx_add(struct dx a, struct dx b)
{
    return (struct dx){a.re + b.re, a.im + b.im};
}

static inline struct dx dx_sub(struct dx a, struct dx b)
{
    return (struct dx){a.re - b.re, a.im - b.im};
}

static inline struct dx dx_times(struct dx a, double re, double im)
{
    return (struct dx){a.re * re - a.im * im, a.re * im + a.im * re};
}

/* a - i * b */
static inline struct dx dx_turn(struct dx a, struct dx b)
{
    return (struct dx){a.re + b.im, a.im - b.re};
}

/* a + i * b */
static inline struct dx dx_unturn(struct dx a, struct dx b)
{
    return (struct dx){a.re - b.im, a.im + b.re};
}

static inline struct dx dx_scaled(struct dx a, double k)
{
    return (struct dx){a.re * k, a.im * k};
}

HR_INLINE void dx_dft(struct dx *a, const size_t radix)
{
    if (radix == 2) {
        struct dx sum = dx_add(a[0], a[1]);

        a[1] = dx_sub(a[0], a[1]);
        a[0] = sum;
    } else if (radix == 3) {
        struct dx sum = dx_add(a[1], a[2]);
        struct dx diff = dx_scaled(dx_sub(a[1], a[2]), 0.86602540378443864676);
        struct dx mid = dx_add(a[0], dx_scaled(sum, -0.5));

        a[0] = dx_add(a[0], sum);
        a[1] = dx_turn(mid, diff);
        a[2] = dx_unturn(mid, diff);
    } else if (radix == 4) {
        struct dx s02 = dx_add(a[0], a[2]), d02 = dx_sub(a[0], a[2]);
        struct dx s13 = dx_add(a[1], a[3]), d13 = dx_sub(a[1], a[3]);

        a[0] = dx_add(s02, s13);
        a[1] = dx_turn(d02, d13);
        a[2] = dx_sub(s02, s13);
        a[3] = dx_unturn(d02, d13);
    } else {
        const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
        const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
        struct dx s14 = dx_add(a[1], a[4]), d14 = dx_sub(a[1], a[4]);
        struct dx s23 = dx_add(a[2], a[3]), d23 = dx_sub(a[2], a[3]);
        struct dx m1 = dx_add(a[0], dx_add(dx_scaled(s14, c1), dx_scaled(s23, c2)));
        struct dx m2 = dx_add(a[0], dx_add(dx_scaled(s14, c2), dx_scaled(s23, c1)));
        struct dx n1 = dx_add(dx_scaled(d14, s1), dx_scaled(d23, s2));
        struct dx n2 = dx_sub(dx_scaled(d14, s2), dx_scaled(d23, s1));

        a[0] = dx_add(a[0], dx_add(s14, s23));
        a[1] = dx_turn(m1, n1);
        a[2] = dx_turn(m2, n2);
        a[3] = dx_unturn(m2, n2);
        a[4] = dx_unturn(m1, n1);
    }
}

/* From `x` to `y`: real parts, then `size` numbers later imaginary ones. */
HR_INLINE void dft_stage(const struct hr_dft_stage *s, size_t size,
                         const double *restrict x, double *restrict y, const size_t radix)
{
    size_t step = s->count * s->stride;

    for (size_t b = 0; b < s->count; b++) {
        const double *w = s->twiddles + b * 2 * (radix - 1);
        const double *from = x + b * s->stride;
        double *to = y + b * radix * s->stride;

        for (size_t q = 0; q < s->stride; q++) {
            struct dx a[5];

            for (size_t j = 0; j < radix; j++)
                a[j] = (struct dx){from[q + j * step], from[q + j * step + size]};
            dx_dft(a, radix);
            for (size_t k = 0; k < radix; k++) {
                if (k > 0)
                    a[k] = dx_times(a[k], w[2 * k - 2], w[2 * k - 1]);
                to[q + k * s->stride] = a[k].re;
                to[q + k * s->stride + size] = a[k].im;
            }
        }
    }
}

/* A radix of any size, by its definition. */
static void dft_stage_any(const struct hr_dft_stage *s, size_t size,
                          const double *restrict x, double *restrict y)
{
    size_t step = s->count * s->stride;

    for (size_t b = 0; b < s->count; b++)
        for (size_t k = 0; k < s->radix; k++)
            for (size_t q = 0; q < s->stride; q++) {
                const double *from = x + b * s->stride + q;
                double *to = y + (b * s->radix + k) * s->stride + q;
                struct dx sum = {from[0], from[size]};

                for (size_t j = 1; j < s->radix; j++) {
                    const double *root = s->roots + 2 * (j * k % s->radix);
                    struct dx a = {from[j * step], from[j * step + size]};

                    sum = dx_add(sum, dx_times(a, root[0], root[1]));
                }
                if (k > 0) {
                    const double *w = s->twiddles + 2 * (b * (s->radix - 1) + k - 1);

                    sum = dx_times(sum, w[0], w[1]);
                }
                to[0] = sum.re;
                to[size] = sum.im;
            }
}

/* See struct hr_sound_table for these. */

static double *dft_run(const struct hr_dft *dft, double *x, double *y)
{
    for (int i = 0; i < dft->stages; i++) {
        const struct hr_dft_stage *s = &dft->stage[i];
        double *swap = x;

        if (s->radix == 2)
            dft_stage(s, dft->size, x, y, 2);
        else if (s->radix == 3)
            dft_stage(s, dft->size, x, y, 3);
        else if (s->radix == 4)
            dft_stage(s, dft->size, x, y, 4);
        else if (s->radix == 5)
            dft_stage(s, dft->size, x, y, 5);
        else
            dft_stage_any(s, dft->size, x, y);
        x = y;
        y = swap;
    }
    return x;
}

static void
polar_run(const double *x, size_t stride, size_t count, double *magnitude, double *unit)
{
    for (size_t k = 0; k < count; k++) {
        double re = x[k], im = x[k + stride], size = sqrt(re * re + im * im);

        magnitude[k] = size;
        unit[k] = size > 0 ? re / size : 1;
        unit[k + count] = size > 0 ? im / size : 0;
    }
}

static void turn_run(double *phase, const double *from, const double *to, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct dx a = {phase[k], phase[k + count]};
        double size;

        a = dx_times(a, to[k], to[k + count]);
        a = dx_times(a, from[k], -from[k + count]);
        size = sqrt(a.re * a.re + a.im * a.im);
        phase[k] = a.re / size;
        phase[k + count] = a.im / size;
    }
}

#endif
