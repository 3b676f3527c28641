/*
 * kernel/rows_float.h - colour and blur rows, one source for every instruction set.
 *
 * Included by each rows_*.c after defining VL. Rows are scratch rows: up to VL - 1
 * elements after the end may be read and written. Each lane does what plain C does with
 * one element, so the bytes are the same.
 */
#ifndef HR_KERNEL_ROWS_FLOAT_H
#define HR_KERNEL_ROWS_FLOAT_H

#include "kernel/rows.h"
#include "kernel/vec.h"

#include <string.h>

struct rgb {
    vf r, g, b;
};

static inline vf vf_clamp(vf v, vf top)
{
    return vf_min(vf_max(v, vf_set(0.0f)), top);
}

static inline vf luma(struct rgb p)
{
    return vf_set(.2989f) * p.r + vf_set(.587f) * p.g + vf_set(.114f) * p.b;
}

/*
 * Computes hue in sixths of a turn with one division, shifts and wraps it; then every
 * channel is a clamped ramp of it between the smallest and the largest channel. Needs
 * neither saturation nor a switch over six cases.
 */
static inline struct rgb rotate_hue(struct rgb p, vf shift)
{
    vf zero = vf_set(0.0f), one = vf_set(1.0f), two = vf_set(2.0f), six = vf_set(6.0f);
    vf high = vf_max(p.r, vf_max(p.g, p.b)), low = vf_min(p.r, vf_min(p.g, p.b));
    vf range = high - low, unit = one / vf_if_eq(range, zero, one, range);
    vf third = vf_set(4.0f) + (p.r - p.g) * unit;
    vf second = two + (p.b - p.r) * unit;
    vf h = vf_if_eq(high, p.r, (p.g - p.b) * unit, vf_if_eq(high, p.g, second, third));

    h = h + shift;
    h = h - six * vf_floor(h * vf_set(1.0f / 6.0f));
    p.r = low + range * vf_clamp(vf_abs(h - vf_set(3.0f)) - one, one);
    p.g = low + range * vf_clamp(two - vf_abs(h - two), one);
    p.b = low + range * vf_clamp(two - vf_abs(h - vf_set(4.0f)), one);
    return p;
}

static inline struct rgb blend(struct rgb p, vf factor, vf other, vf top)
{
    p.r = vf_clamp(p.r * factor + other, top);
    p.g = vf_clamp(p.g * factor + other, top);
    p.b = vf_clamp(p.b * factor + other, top);
    return p;
}

static inline vf between(vf v, vf low, vf high)
{
    return vf_min(vf_max(v, low), high);
}

static inline struct rgb tone_rgb(const struct hr_tone *tone, struct rgb p, vf top)
{
    vf a = vf_set(tone->a), b = vf_set(tone->b);
    vf gray;

    switch (tone->kind) {
    case HR_COLOUR_BRIGHTNESS:
        p.r = vf_clamp(p.r * a, top);
        p.g = vf_clamp(p.g * a, top);
        p.b = vf_clamp(p.b * a, top);
        return p;
    case HR_COLOUR_CONTRAST:
        return blend(p, a, b, top);
    case HR_COLOUR_SATURATION:
        return blend(p, a, luma(p) * b, top);
    case HR_COLOUR_HUE:
        return rotate_hue(p, a);
    case HR_COLOUR_GRAY:
        gray = luma(p);
        return (struct rgb){gray, gray, gray};
    case HR_COLOUR_CLIP:
        p.r = between(p.r, a, b);
        p.g = between(p.g, a, b);
        p.b = between(p.b, a, b);
        return p;
    default:
        p.r = vf_rint(p.r * a) * b;
        p.g = vf_rint(p.g * a) * b;
        p.b = vf_rint(p.b * a) * b;
        return p;
    }
}

static inline vf tone_gray(const struct hr_tone *tone, vf v, vf top)
{
    vf a = vf_set(tone->a), b = vf_set(tone->b);

    switch (tone->kind) {
    case HR_COLOUR_BRIGHTNESS:
        return vf_clamp(v * a, top);
    case HR_COLOUR_CONTRAST:
        return vf_clamp(v * a + b, top);
    case HR_COLOUR_CLIP:
        return between(v, a, b);
    case HR_COLOUR_ROUND:
        return vf_rint(v * a) * b;
    default:
        return v;
    }
}

static void row_colour_rgb(const struct hr_tone *tones, int count, float max,
                           float *const plane[], size_t n)
{
    vf top = vf_set(max);

    for (size_t i = 0; i < n; i += VL) {
        struct rgb p = {vf_load(plane[0] + i), vf_load(plane[1] + i),
                        vf_load(plane[2] + i)};

        for (int t = 0; t < count; t++)
            p = tone_rgb(&tones[t], p, top);
        vf_store(plane[0] + i, p.r);
        vf_store(plane[1] + i, p.g);
        vf_store(plane[2] + i, p.b);
    }
}

static void
row_colour_gray(const struct hr_tone *tones, int count, float max, float *row, size_t n)
{
    vf top = vf_set(max);

    for (size_t i = 0; i < n; i += VL) {
        vf v = vf_load(row + i);

        for (int t = 0; t < count; t++)
            v = tone_gray(&tones[t], v, top);
        vf_store(row + i, v);
    }
}

/* The whole gray level of whole levels, added up as by fused multiply and add. */
static inline vf whole_luma(struct rgb p)
{
    vf sum = vf_fma(p.g, vf_set(.587f), p.r * vf_set(.2989f));

    return vf_floor(vf_fma(p.b, vf_set(.114f), sum));
}

static void row_whole_gray(float *const plane[], float *out, size_t n)
{
    for (size_t i = 0; i < n; i += VL) {
        struct rgb p = {vf_load(plane[0] + i), vf_load(plane[1] + i),
                        vf_load(plane[2] + i)};

        vf_store(out + i, whole_luma(p));
    }
}

static inline vf whole_blend(vf v, vf factor, vf gray, vf rest)
{
    return vf_floor(vf_clamp(vf_fma(gray, rest, v * factor), vf_set(255.0f)));
}

static void row_whole_saturate(float *const plane[], float factor, float rest, size_t n)
{
    vf a = vf_set(factor), b = vf_set(rest);

    for (size_t i = 0; i < n; i += VL) {
        struct rgb p = {vf_load(plane[0] + i), vf_load(plane[1] + i),
                        vf_load(plane[2] + i)};
        vf gray = whole_luma(p);

        vf_store(plane[0] + i, whole_blend(p.r, a, gray, b));
        vf_store(plane[1] + i, whole_blend(p.g, a, gray, b));
        vf_store(plane[2] + i, whole_blend(p.b, a, gray, b));
    }
}

/* a * b + c of small whole numbers a, rounded once: in double, product and sum are exact.
 */
static inline float rounded_once(float a, float b, float c)
{
#if VL == 1
    return (float)((double)a * (double)b + (double)c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

static void row_sharpen_u8(const uint8_t *above, const uint8_t *middle,
                           const uint8_t *below, uint16_t *restrict scratch,
                           uint8_t *restrict out, int32_t n, int32_t turn, float rest)
{
    uint16_t *restrict columns = scratch, *restrict smooth = scratch + n;

    for (int32_t i = 0; i < n; i++)
        columns[i] = (uint16_t)(above[i] + middle[i] + below[i]);
    for (int32_t i = turn; i < n - turn; i++)
        smooth[i] = (uint16_t)((columns[i - turn] + columns[i] + columns[i + turn] +
                                4 * middle[i] + 6));
    /* the quotient by 13, exact below 2^15 */
    for (int32_t i = turn; i < n - turn; i++)
        smooth[i] = (uint16_t)((uint32_t)smooth[i] * 5042 >> 16);
    for (int32_t i = turn; i < n - turn; i++) {
        int level = middle[i];
        float value = rounded_once((float)(smooth[i] - level), rest, (float)level);

        value = value > 0 ? value : 0;
        out[i] = (uint8_t)(int)(value < 255 ? value : 255);
    }
}

HR_INLINE struct rgb ycc_to_rgb(vf y, vf cb, vf cr)
{
    return (struct rgb){y + vf_set(1.402f) * cr,
                        y - vf_set(.344136f) * cb - vf_set(.714136f) * cr,
                        y + vf_set(1.772f) * cb};
}

HR_INLINE vf ycc_finish(vf v, const struct hr_ycc_end *end, int c, bool round)
{
    v = vf_clamp(v, vf_set(end->top));
    v = round ? vf_rint(v * vf_set(end->unit)) : v;
    return v * vf_set(end->scale[c]) + vf_set(end->bias[c]);
}

HR_INLINE void ycc_step(const float *const in[], float *const out[], size_t i,
                        const struct hr_ycc_end *end, bool round)
{
    struct rgb p = ycc_to_rgb(vf_load(in[0] + i), vf_load(in[1] + i), vf_load(in[2] + i));

    vf_store(out[0] + i, ycc_finish(p.r, end, 0, round));
    vf_store(out[1] + i, ycc_finish(p.g, end, 1, round));
    vf_store(out[2] + i, ycc_finish(p.b, end, 2, round));
}

HR_INLINE void ycc_loop(const float *const in[], float *const out[], size_t n,
                        const struct hr_ycc_end *by_value, bool round)
{
    const struct hr_ycc_end end = *by_value; /* a copy that `out` cannot alias */
    float rest[3][VL], *const last[3] = {rest[0], rest[1], rest[2]};
    size_t i = 0;

    for (; i + VL <= n; i += VL)
        ycc_step(in, out, i, &end, round);
    if (i < n) {
        const float *const from[3] = {in[0] + i, in[1] + i, in[2] + i};

        ycc_step(from, last, 0, &end, round);
        for (int c = 0; c < 3; c++)
            memcpy(out[c] + i, rest[c], (n - i) * sizeof(float));
    }
}

static void row_ycc_rgb(const float *const in[], float *const out[], size_t n,
                        const struct hr_ycc_end *end)
{
    if (end->round)
        ycc_loop(in, out, n, end, true);
    else
        ycc_loop(in, out, n, end, false);
}

/* Sixteen partial sums of every sixteenth element in f32, added in double: the order does
 * not depend on VL. */
static double row_sum(const float *row, size_t n)
{
    float part[16] = {0};
    double sum = 0;
    size_t i = 0;

#if VL > 1
    vf lane[16 / VL];

    for (size_t l = 0; l < 16 / VL; l++)
        lane[l] = vf_set(0.0f);
    for (; i + 16 <= n; i += 16)
        for (size_t l = 0; l < 16 / VL; l++)
            lane[l] = lane[l] + vf_load(row + i + l * VL);
    for (size_t l = 0; l < 16 / VL; l++)
        vf_store(part + l * VL, lane[l]);
#endif
    for (; i < n; i++)
        part[i % 16] += row[i];
    for (i = 0; i < 16; i++)
        sum += (double)part[i];
    return sum;
}

/* If `radius` is a constant, weights and row pointers stay in registers. */
HR_INLINE void blur_down_n(const float *const row[], const float weight[], int32_t radius,
                           float *out, size_t n)
{
    for (size_t i = 0; i < n; i += VL) {
        vf sum = vf_load(row[radius] + i) * vf_set(weight[0]);

#pragma GCC unroll 5
        for (int32_t k = 1; k <= radius; k++)
            sum = sum + (vf_load(row[radius - k] + i) + vf_load(row[radius + k] + i)) *
                            vf_set(weight[k]);
        vf_store(out + i, sum);
    }
}

HR_INLINE void blur_across_n(const float *row, const float weight[], int32_t radius,
                             float *out, size_t n)
{
    for (size_t i = 0; i < n; i += VL) {
        vf sum = vf_load(row + i) * vf_set(weight[0]);

#pragma GCC unroll 5
        for (int32_t k = 1; k <= radius; k++)
            sum = sum + (vf_load(row + i - k) + vf_load(row + i + k)) * vf_set(weight[k]);
        vf_store(out + i, sum);
    }
}

static void row_blur_down(const float *const rows[], const float weights[],
                          int32_t radius, float *restrict out, size_t n)
{
    const float *row[11];
    float weight[6];

    if (radius > 5) {
        blur_down_n(rows, weights, radius, out, n);
        return;
    }
    for (int32_t k = 0; k < 2 * radius + 1; k++)
        row[k] = rows[k];
    for (int32_t k = 0; k <= radius; k++)
        weight[k] = weights[k];
    switch (radius) {
    case 1:
        blur_down_n(row, weight, 1, out, n);
        break;
    case 2:
        blur_down_n(row, weight, 2, out, n);
        break;
    case 3:
        blur_down_n(row, weight, 3, out, n);
        break;
    case 4:
        blur_down_n(row, weight, 4, out, n);
        break;
    case 5:
        blur_down_n(row, weight, 5, out, n);
        break;
    default:
        blur_down_n(row, weight, 0, out, n);
        break;
    }
}

static void row_blur_across(const float *row, const float weights[], int32_t radius,
                            float *restrict out, size_t n)
{
    float weight[6];

    if (radius > 5) {
        blur_across_n(row, weights, radius, out, n);
        return;
    }
    for (int32_t k = 0; k <= radius; k++)
        weight[k] = weights[k];
    switch (radius) {
    case 1:
        blur_across_n(row, weight, 1, out, n);
        break;
    case 2:
        blur_across_n(row, weight, 2, out, n);
        break;
    case 3:
        blur_across_n(row, weight, 3, out, n);
        break;
    case 4:
        blur_across_n(row, weight, 4, out, n);
        break;
    case 5:
        blur_across_n(row, weight, 5, out, n);
        break;
    default:
        blur_across_n(row, weight, 0, out, n);
        break;
    }
}

/* The last elements are done singly: source rows have no padding. */
static void row_down_f32(const float *const row[], const float weight[], int32_t taps,
                         float *out, size_t n)
{
    size_t i = 0;

    for (; i + VL <= n; i += VL) {
        vf sum = vf_load(row[0] + i) * vf_set(weight[0]);

        for (int32_t k = 1; k < taps; k++)
            sum = sum + vf_load(row[k] + i) * vf_set(weight[k]);
        vf_store(out + i, sum);
    }
    for (; i < n; i++) {
        float sum = row[0][i] * weight[0];

        for (int32_t k = 1; k < taps; k++)
            sum += row[k][i] * weight[k];
        out[i] = sum;
    }
}

#define HR_ROWS_FLOAT                                                                    \
    .colour_rgb = row_colour_rgb, .colour_gray = row_colour_gray, .sum = row_sum,        \
    .whole_gray = row_whole_gray, .whole_saturate = row_whole_saturate,                  \
    .sharpen_u8 = row_sharpen_u8, .ycc_rgb = row_ycc_rgb, .blur_down = row_blur_down,    \
    .blur_across = row_blur_across, .down_f32 = row_down_f32

#endif
