/*
 * kernel/sound.h - the inner loops on sound, with a table per instruction set.
 *
 * A sound lies in memory as columns (hr__sound_columns): a block of samples, or a frame
 * of a spectrum, per lane. All lanes do the same operations in the same order, so nothing
 * is summed across lanes and every table gives the same bytes. sound_lanes.h has the
 * loops; sound_c.c, sound_avx2.c, sound_avx512.c and sound_neon.c compile them for 1, 8,
 * 16 and 4 lanes.
 */
#ifndef HR_KERNEL_SOUND_H
#define HR_KERNEL_SOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_SOUND_LANES 16 /* columns are handled in groups of this many */
#define HR_SOUND_PHASES 5 /* outputs of a filter that are computed together */
#define HR_RADIX_MAX 1024 /* largest prime factor of the length of a transform */
#define HR_FFT_STAGES_MAX 32

/*
 * A polyphase filter: a block of `in` samples becomes one of `out`. Outputs are in groups
 * of HR_SOUND_PHASES, of which each has the samples [start, start + taps) relative to its
 * block, and weights [tap][phase].
 */
struct hr_fir_group {
    int32_t start, taps;
    const float *weights;
};
struct hr_fir {
    int32_t in, out, groups;
    const struct hr_fir_group *group;
};

/* One stage of a transform of complex numbers (Stockham's): `count` butterflies of
 * `radix` points, each `stride` times. */
struct hr_fft_stage {
    int32_t radix, count, stride;
    const float *twiddles; /* [count][radix - 1] pairs */
    const float *roots;    /* the radix' own, pairs; for radices without code of their own
                            */
};

/*
 * A transform of `size` real samples times a window. Even sizes go through `points` =
 * size / 2 complex numbers and a last pass with `halves`; odd ones through `size`.
 */
struct hr_fft {
    int32_t size, points, stages;
    struct hr_fft_stage stage[HR_FFT_STAGES_MAX];
    const float *window; /* size */
    const float *halves; /* pairs: exp(-2 pi i k / size), k <= size / 4; NULL for odd */
};

/* Weighted sums of neighbouring bins. */
struct hr_band {
    int32_t first, count;
    const float *weights;
};

struct hr_dft; /* kernel/dft.h */

struct hr_sound_table {
    /* x: rows of `stride` floats, `in` of them; column 0 is the block that sample 0 of
     * column 0 of `y` belongs to, `lead` columns later. Row r of the output has `columns`
     * floats at y + r * y_stride; columns are a multiple of HR_SOUND_LANES. */
    void (*fir)(const struct hr_fir *fir, const float *x, size_t stride, size_t lead,
                float *y, size_t y_stride, size_t columns);
    /* Power (or magnitude, the square root) of HR_SOUND_LANES frames: sample s of frame f
     * is x[place[s] + f]. `work`: 4 * (size + 1) * HR_SOUND_LANES floats. `out`: (size /
     * 2
     * + 1) rows of HR_SOUND_LANES. */
    void (*spectrum)(const struct hr_fft *fft, const float *x, const int32_t *place,
                     bool magnitude, float *work, float *out);
    /* out row b = sum of weights * rows of `in`. */
    void (*bands)(const struct hr_band *band, size_t count, const float *in, float *out);
    /* out[i] = log2(max(in[i] + add, least)) * scale + bias, where `least` is a positive
     * normal number; NaN counts as `least`. log2 is within 3e-7. In place is fine. */
    void (*log2)(const float *in, float *out, size_t count, float add, float least,
                 float scale, float bias);

    /* to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. */
    void (*transpose)(const float *from, size_t from_stride, float *to, size_t to_stride,
                      size_t rows, size_t columns);

    /* Number k becomes the sum of number j times exp(-2 pi i j k / size). `x` has `size`
     * real parts, then as many imaginary ones, and so has `work`; returns which of them
     * has the result. For the inverse, times the size, swap real and imaginary parts
     * before and after it. */
    double *(*dft)(const struct hr_dft *dft, double *x, double *work);
    /* Of `count` numbers, with imaginary parts `stride` later, the magnitudes; and the
     * numbers divided by them (1 for 0), as `count` real parts, then imaginary ones. */
    void (*polar)(const double *x, size_t stride, size_t count, double *magnitude,
                  double *unit);
    /* Turns each number of `phase` by the angle that leads from `from` to `to`. All are
     * units as polar makes them. */
    void (*turn)(double *phase, const double *from, const double *to, size_t count);
    /* ret[0] = the sum of x[i] * a[i], ret[1] that of x[i] * b[i]; `count` is a multiple
     * of HR_SOUND_LANES. */
    void (*dots)(const float *x, const float *a, const float *b, size_t count,
                 float ret[2]);
};

/* The best table at or below hr__isa(). */
const struct hr_sound_table *hr__sound_table(void);

extern const struct hr_sound_table hr__sound_c, hr__sound_neon, hr__sound_avx2,
    hr__sound_avx512;

#endif
