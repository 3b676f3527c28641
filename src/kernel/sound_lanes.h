/*
 * kernel/sound_lanes.h - the loops on sound for VL lanes (kernel/vec.h). The includer
 * defines VL, and NAME for the table that it makes.
 */
#ifndef HR_KERNEL_SOUND_LANES_H
#define HR_KERNEL_SOUND_LANES_H

#include <string.h>

#include "kernel/dft_loops.h"
#include "kernel/rows.h"
#include "kernel/sound.h"
#include "kernel/sound_log.h"
#include "kernel/transpose.h"

/* ---- filter ---- */

/* Vectors of columns that are in registers together: 5 x 4 sums of 32 registers, 5 x 2 of
 * 16. */
#if VL == 8
#define FIR_VECTORS 2
#else
#define FIR_VECTORS 4
#endif

HR_INLINE void fir_part(const struct hr_fir *fir, const struct hr_fir_group *g,
                        const float *x, size_t stride, size_t row, float *y,
                        size_t y_stride, size_t rows, const int vectors)
{
    vf sum[HR_SOUND_PHASES][FIR_VECTORS];
    const float *weight = g->weights;
    size_t in = (size_t)fir->in;

    for (int p = 0; p < HR_SOUND_PHASES; p++)
        for (int v = 0; v < vectors; v++)
            sum[p][v] = vf_set(0);
    for (size_t left = (size_t)g->taps; left > 0;) {
        size_t run = in - row % in;
        const float *at = x + row % in * stride + row / in;

        run = run < left ? run : left;
        for (size_t t = 0; t < run; t++, at += stride, weight += HR_SOUND_PHASES) {
            vf tap[FIR_VECTORS];

            for (int v = 0; v < vectors; v++)
                tap[v] = vf_load(at + v * VL);
            for (int p = 0; p < HR_SOUND_PHASES; p++) {
                vf w = vf_set(weight[p]);

                for (int v = 0; v < vectors; v++)
                    sum[p][v] = vf_fma(w, tap[v], sum[p][v]);
            }
        }
        row += run;
        left -= run;
    }
    for (size_t p = 0; p < rows; p++)
        for (int v = 0; v < vectors; v++)
            vf_store(y + p * y_stride + v * VL, sum[p][v]);
}

static void fir_run(const struct hr_fir *fir, const float *x, size_t stride, size_t lead,
                    float *y, size_t y_stride, size_t columns)
{
    size_t out = (size_t)fir->out;

    for (size_t i = 0; i < (size_t)fir->groups; i++) {
        const struct hr_fir_group *g = &fir->group[i];
        size_t first = i * HR_SOUND_PHASES, c = 0;
        size_t rows = out - first < HR_SOUND_PHASES ? out - first : HR_SOUND_PHASES;
        size_t row = (size_t)((int64_t)lead * fir->in + g->start);
        float *to = y + first * y_stride;

        for (; c + FIR_VECTORS * VL <= columns; c += FIR_VECTORS * VL)
            fir_part(fir, g, x + c, stride, row, to + c, y_stride, rows, FIR_VECTORS);
        for (; c < columns; c += VL)
            fir_part(fir, g, x + c, stride, row, to + c, y_stride, rows, 1);
    }
}

/* ---- transform ---- */

/* A complex number per lane; in memory two rows of HR_SOUND_LANES. */
struct cx {
    vf re, im;
};

#define CX_FLOATS (2 * HR_SOUND_LANES)

HR_INLINE struct cx cx_load(const float *at)
{
    return (struct cx){vf_load(at), vf_load(at + HR_SOUND_LANES)};
}

HR_INLINE void cx_store(float *at, struct cx a)
{
    vf_store(at, a.re);
    vf_store(at + HR_SOUND_LANES, a.im);
}

HR_INLINE struct cx cx_add(struct cx a, struct cx b)
{
    return (struct cx){a.re + b.re, a.im + b.im};
}

HR_INLINE struct cx cx_sub(struct cx a, struct cx b)
{
    return (struct cx){a.re - b.re, a.im - b.im};
}

HR_INLINE struct cx cx_times(struct cx a, const float w[2])
{
    vf re = vf_set(w[0]), im = vf_set(w[1]);

    return (struct cx){vf_nfma(a.im, im, a.re * re), vf_fma(a.im, re, a.re * im)};
}

/* a - i * b, a + i * b */
HR_INLINE struct cx cx_turn(struct cx a, struct cx b)
{
    return (struct cx){a.re + b.im, a.im - b.re};
}

HR_INLINE struct cx cx_unturn(struct cx a, struct cx b)
{
    return (struct cx){a.re - b.im, a.im + b.re};
}

HR_INLINE struct cx cx_scaled_add(struct cx a, struct cx b, float k)
{
    return (struct cx){vf_fma(b.re, vf_set(k), a.re), vf_fma(b.im, vf_set(k), a.im)};
}

HR_INLINE void dft2(struct cx *a)
{
    struct cx sum = cx_add(a[0], a[1]);

    a[1] = cx_sub(a[0], a[1]);
    a[0] = sum;
}

HR_INLINE void dft3(struct cx *a)
{
    const float sine = 0.86602540378443864676f;
    struct cx sum = cx_add(a[1], a[2]), diff = cx_sub(a[1], a[2]);
    struct cx mid = cx_scaled_add(a[0], sum, -0.5f);

    diff.re = diff.re * vf_set(sine);
    diff.im = diff.im * vf_set(sine);
    a[0] = cx_add(a[0], sum);
    a[1] = cx_turn(mid, diff);
    a[2] = cx_unturn(mid, diff);
}

HR_INLINE void dft4(struct cx *a)
{
    struct cx s02 = cx_add(a[0], a[2]), d02 = cx_sub(a[0], a[2]);
    struct cx s13 = cx_add(a[1], a[3]), d13 = cx_sub(a[1], a[3]);

    a[0] = cx_add(s02, s13);
    a[1] = cx_turn(d02, d13);
    a[2] = cx_sub(s02, s13);
    a[3] = cx_unturn(d02, d13);
}

HR_INLINE void dft5(struct cx *a)
{
    const float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f;
    const float s1 = 0.95105651629515357212f, s2 = 0.58778525229247312917f;
    struct cx s14 = cx_add(a[1], a[4]), d14 = cx_sub(a[1], a[4]);
    struct cx s23 = cx_add(a[2], a[3]), d23 = cx_sub(a[2], a[3]);
    struct cx m1 = cx_scaled_add(cx_scaled_add(a[0], s14, c1), s23, c2);
    struct cx m2 = cx_scaled_add(cx_scaled_add(a[0], s14, c2), s23, c1);
    struct cx n1 = {d14.re * vf_set(s1), d14.im * vf_set(s1)};
    struct cx n2 = {d14.re * vf_set(s2), d14.im * vf_set(s2)};

    n1 = cx_scaled_add(n1, d23, s2);
    n2 = cx_scaled_add(n2, d23, -s1);
    a[0] = cx_add(a[0], cx_add(s14, s23));
    a[1] = cx_turn(m1, n1);
    a[2] = cx_turn(m2, n2);
    a[3] = cx_unturn(m2, n2);
    a[4] = cx_unturn(m1, n1);
}

HR_INLINE void dft8(struct cx *a)
{
    const float half = 0.70710678118654752440f;
    struct cx even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    vf h = vf_set(half);

    dft4(even);
    dft4(odd);
    odd[1] = (struct cx){(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
    odd[3] = (struct cx){(odd[3].im - odd[3].re) * h, (odd[3].re + odd[3].im) * h};
    a[0] = cx_add(even[0], odd[0]);
    a[1] = cx_add(even[1], odd[1]);
    a[2] = cx_turn(even[2], odd[2]);
    a[3] = (struct cx){even[3].re + odd[3].re, even[3].im - odd[3].im};
    a[4] = cx_sub(even[0], odd[0]);
    a[5] = cx_sub(even[1], odd[1]);
    a[6] = cx_unturn(even[2], odd[2]);
    a[7] = (struct cx){even[3].re - odd[3].re, even[3].im + odd[3].im};
}

HR_INLINE bool has_code(int radix)
{
    return radix <= 5 || radix == 8;
}

HR_INLINE void dft(struct cx *a, const int radix)
{
    if (radix == 2)
        dft2(a);
    else if (radix == 3)
        dft3(a);
    else if (radix == 4)
        dft4(a);
    else if (radix == 5)
        dft5(a);
    else
        dft8(a);
}

/* Number i that is transformed, from the samples of the frames times the window: a pair
 * of samples for even sizes, a sample for odd ones. */
HR_INLINE struct cx
load_frames(const struct hr_fft *fft, const float *x, const int32_t *place, size_t i)
{
    if (fft->halves == NULL)
        return (struct cx){vf_load(x + place[i]) * vf_set(fft->window[i]), vf_set(0)};
    return (struct cx){vf_load(x + place[2 * i]) * vf_set(fft->window[2 * i]),
                       vf_load(x + place[2 * i + 1]) * vf_set(fft->window[2 * i + 1])};
}

/* What a transform begins with. */
struct frames {
    const struct hr_fft *fft;
    const float *x;
    const int32_t *place;
};

/* A stage from `in` to `out`; the first one reads the frames instead of `in`. */
HR_INLINE void fft_stage(const struct hr_fft_stage *s, const struct frames *frames,
                         const float *in, float *out, const int radix, const bool first)
{
    size_t stride = (size_t)s->stride, count = (size_t)s->count;

    for (size_t b = 0; b < count; b++) {
        const float *twiddle = s->twiddles + b * 2 * (size_t)(radix - 1);

        for (size_t q = 0; q < (first ? 1 : stride); q++) {
            size_t at = first ? b : b * stride + q, step = first ? count : count * stride;
            float *to = out + (b * (size_t)radix * stride + q) * CX_FLOATS;
            struct cx a[8];

            for (int j = 0; j < radix; j++)
                a[j] = first ? load_frames(frames->fft, frames->x, frames->place,
                                           at + (size_t)j * step)
                             : cx_load(in + (at + (size_t)j * step) * CX_FLOATS);
            dft(a, radix);
            cx_store(to, a[0]);
            for (int j = 1; j < radix; j++)
                cx_store(to + (size_t)j * stride * CX_FLOATS,
                         cx_times(a[j], twiddle + 2 * (j - 1)));
        }
    }
}

/* A radix of any size, by its definition. */
static void fft_any(const struct hr_fft_stage *s, const float *in, float *out)
{
    size_t stride = (size_t)s->stride, count = (size_t)s->count, radix = (size_t)s->radix;

    for (size_t b = 0; b < count; b++) {
        const float *twiddle = s->twiddles + b * 2 * (radix - 1);

        for (size_t q = 0; q < stride; q++) {
            const float *from = in + (b * stride + q) * CX_FLOATS;
            float *to = out + (b * radix * stride + q) * CX_FLOATS;

            for (size_t k = 0; k < radix; k++) {
                struct cx sum = cx_load(from);

                for (size_t j = 1; j < radix; j++)
                    sum = cx_add(sum,
                                 cx_times(cx_load(from + j * count * stride * CX_FLOATS),
                                          s->roots + 2 * (j * k % radix)));
                if (k > 0)
                    sum = cx_times(sum, twiddle + 2 * (k - 1));
                cx_store(to + k * stride * CX_FLOATS, sum);
            }
        }
    }
}

/* All numbers as they are loaded, for a first stage of any radix, or none. */
static void copy_frames(const struct frames *frames, float *out)
{
    for (size_t i = 0; i < (size_t)frames->fft->points; i++)
        cx_store(out + i * CX_FLOATS,
                 load_frames(frames->fft, frames->x, frames->place, i));
}

#define STAGE(radix)                                                                     \
    (i == 0 ? fft_stage(s, frames, in, out, radix, true)                                 \
            : fft_stage(s, frames, in, out, radix, false))

static void fft_run(const struct frames *frames, float *work, float **ret_result)
{
    const struct hr_fft *fft = frames->fft;
    float *in = work, *out = work + (size_t)fft->points * CX_FLOATS;

    if (fft->stages == 0 || !has_code(fft->stage[0].radix))
        copy_frames(frames, in);
    for (int i = 0; i < fft->stages; i++) {
        const struct hr_fft_stage *s = &fft->stage[i];
        float *swap = in;

        if (s->radix == 2)
            STAGE(2);
        else if (s->radix == 3)
            STAGE(3);
        else if (s->radix == 4)
            STAGE(4);
        else if (s->radix == 5)
            STAGE(5);
        else if (s->radix == 8)
            STAGE(8);
        else
            fft_any(s, in, out);
        in = out;
        out = swap;
    }
    *ret_result = in;
}

HR_INLINE void store_power(float *at, struct cx a, bool magnitude)
{
    vf power = vf_fma(a.im, a.im, a.re * a.re);

    vf_store(at, magnitude ? vf_sqrt(power) : power);
}

/* From the transform of pairs to that of samples: bins k and points - k together. */
static void
split_halves(const struct hr_fft *fft, const float *z, bool magnitude, float *out)
{
    size_t points = (size_t)fft->points;
    struct cx first = cx_load(z);
    vf zero = vf_set(0), half = vf_set(0.5f);

    store_power(out, (struct cx){first.re + first.im, zero}, magnitude);
    store_power(out + points * HR_SOUND_LANES, (struct cx){first.re - first.im, zero},
                magnitude);
    for (size_t k = 1; 2 * k <= points; k++) {
        struct cx a = cx_load(z + k * CX_FLOATS);
        struct cx b = cx_load(z + (points - k) * CX_FLOATS);
        struct cx even = {(a.re + b.re) * half, (a.im - b.im) * half};
        struct cx odd = {(a.re - b.re) * half, (a.im + b.im) * half};

        odd = cx_times(odd, fft->halves + 2 * k);
        store_power(out + k * HR_SOUND_LANES, cx_turn(even, odd), magnitude);
        store_power(out + (points - k) * HR_SOUND_LANES, cx_unturn(even, odd), magnitude);
    }
}

static void spectrum_run(const struct hr_fft *fft, const float *x, const int32_t *place,
                         bool magnitude, float *work, float *out)
{
    for (size_t lane = 0; lane < HR_SOUND_LANES; lane += VL) {
        const struct frames frames = {fft, x + lane, place};
        float *z;

        fft_run(&frames, work + lane, &z);
        if (fft->halves != NULL)
            split_halves(fft, z, magnitude, out + lane);
        else
            for (size_t k = 0; k <= (size_t)fft->size / 2; k++)
                store_power(out + lane + k * HR_SOUND_LANES, cx_load(z + k * CX_FLOATS),
                            magnitude);
    }
}

/* ---- after the transform ---- */

static void
bands_run(const struct hr_band *band, size_t count, const float *in, float *out)
{
    for (size_t b = 0; b < count; b++)
        for (size_t lane = 0; lane < HR_SOUND_LANES; lane += VL) {
            const float *row = in + (size_t)band[b].first * HR_SOUND_LANES + lane;
            vf sum = vf_set(0);

            for (int32_t k = 0; k < band[b].count; k++)
                sum = vf_fma(vf_set(band[b].weights[k]),
                             vf_load(row + k * HR_SOUND_LANES), sum);
            vf_store(out + b * HR_SOUND_LANES + lane, sum);
        }
}

HR_INLINE void
log2_vector(const float *in, float *out, float add, float least, float scale, float bias)
{
    vf x = vf_max(vf_load(in) + vf_set(add), vf_set(least));

    vf_store(out, vf_fma(vf_log2(x), vf_set(scale), vf_set(bias)));
}

static void log2_run(const float *in, float *out, size_t count, float add, float least,
                     float scale, float bias)
{
    size_t i = 0, rest;
    float last[VL] = {0};

    for (; i + VL <= count; i += VL)
        log2_vector(in + i, out + i, add, least, scale, bias);
    rest = count - i;
    memcpy(last, in + i, rest * sizeof *last);
    log2_vector(last, last, add, least, scale, bias);
    memcpy(out + i, last, rest * sizeof *last);
}

/* ---- one output at a time ---- */

/* The sum of lanes, always in the same order. */
static float sum_lanes(const float lane[HR_SOUND_LANES])
{
    float sum[HR_SOUND_LANES / 2];

    for (int i = 0; i < HR_SOUND_LANES / 2; i++)
        sum[i] = lane[i] + lane[i + HR_SOUND_LANES / 2];
    for (int n = HR_SOUND_LANES / 4; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            sum[i] += sum[i + n];
    return sum[0];
}

static void
dots_run(const float *x, const float *a, const float *b, size_t count, float ret[2])
{
    enum { VECTORS = HR_SOUND_LANES / VL };
    float lanes[2][HR_SOUND_LANES];
    vf sum[2][VECTORS];

    for (int v = 0; v < VECTORS; v++)
        sum[0][v] = sum[1][v] = vf_set(0);
    for (size_t i = 0; i < count; i += HR_SOUND_LANES)
        for (int v = 0; v < VECTORS; v++) {
            vf at = vf_load(x + i + v * VL);

            sum[0][v] = vf_fma(at, vf_load(a + i + v * VL), sum[0][v]);
            sum[1][v] = vf_fma(at, vf_load(b + i + v * VL), sum[1][v]);
        }
    for (int k = 0; k < 2; k++) {
        for (int v = 0; v < VECTORS; v++)
            vf_store(lanes[k] + v * VL, sum[k][v]);
        ret[k] = sum_lanes(lanes[k]);
    }
}

const struct hr_sound_table NAME = {
    .dft = dft_run,
    .polar = polar_run,
    .turn = turn_run,
    .dots = dots_run,
    .fir = fir_run,
    .spectrum = spectrum_run,
    .bands = bands_run,
    .log2 = log2_run,
    .transpose = transpose_run,
};

#endif
