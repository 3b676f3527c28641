/*
 * kernel/rows.h - the inner loops: functions on one row, one table per instruction set.
 *
 * All kernels are written over this table. rows_c.c is the meaning; the other tables are
 * the same functions for AVX2, AVX-512 and NEON and give the same bytes. A missing
 * instruction set costs nothing: hr__rows() falls to the next lower table.
 */
#ifndef HR_KERNEL_ROWS_H
#define HR_KERNEL_ROWS_H

#include "kernel/colour.h"
#include "kernel/pixels.h"

/* For functions whose parameters are constants in each use, so that loops unroll. */
#define HR_INLINE static inline __attribute__((always_inline))

#define HR_ROW_PAD 64 /* elements that a scratch row has behind its end, readable */

/*
 * One axis of a resampling: output i is the sum of `length[i]` source elements from
 * `start[i]` (absolute) with the weights at [i * stride]. `fine` are the weights in f32,
 * `coarse` the same in fixed point with `bits` fraction bits, summing to exactly 1 <<
 * bits. Weights beyond the length are zero up to the stride, which is even.
 */
struct hr_axis {
    int32_t count, stride;
    int32_t first, last; /* source elements that are touched: [first, last) */
    int32_t *start, *length;
    float *fine;
    int16_t *coarse;
    int bits;
    int32_t *pick; /* NEAREST: the source element of each output; else NULL */
    void *packed;  /* of the horizontal pass: layout private to the table that made it */
};

/* How the horizontal pass ends: sum -> (rounded level if `round`) * scale + bias. */
struct hr_finish {
    float scale, bias;
    bool round;
    int shift; /* fraction bits of the sum */
};

/* A colour step with its constants worked out: CONTRAST x * a + b, SATURATION x * a +
 * luma * b, HUE a in sixths of a turn, ROUND rint(x * a) * b. */
struct hr_tone {
    enum hr_colour_kind kind;
    float a, b;
};

/* How YCbCr ends as RGB. Rows hold levels divided by `unit`, a power of two, chroma with
 * 128 taken off. RGB is clamped to 0..top, `round`ed to levels, then * scale[c] +
 * bias[c]; without `round` scale[c] has the unit in it. */
struct hr_ycc_end {
    float unit, top;
    float scale[3], bias[3];
    bool round;
};

/*
 * Output pixels along a row of a warp: position x + i * dx (HR_WARP_BITS fraction bits),
 * all four neighbours inside `data`, and 8 bytes from each left neighbour readable.
 */
#define HR_WARP_BITS 28
struct hr_warp_run {
    const uint8_t *data;
    int64_t row_stride;
    int64_t x, y, dx, dy;
};

struct hr_rows {
    /* Contiguous runs. out = in * scale + bias; `flip` writes the run mirrored. */
    void (*u8_to_f32)(const uint8_t *in, float *out, size_t n, float scale, float bias,
                      bool flip);
    void (*f32_to_f32)(const float *in, float *out, size_t n, float scale, float bias,
                       bool flip);
    void (*u8x3_to_f32)(const uint8_t *in, float *const out[], size_t n,
                        const float scale[], const float bias[], bool flip);
    void (*f32x3_to_f32)(const float *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip);
    void (*f32_to_f32x3)(const float *const in[], float *out, size_t n);
    void (*f32_to_u8)(const float *in, uint8_t *out, size_t n);
    void (*f32_to_u8x3)(const float *const in[], uint8_t *out, size_t n);
    void (*f32_to_f16)(const float *in, uint16_t *out, size_t n);
    void (*f32_to_bf16)(const float *in, uint16_t *out, size_t n);
    void (*f16_to_f32)(const uint16_t *in, float *out, size_t n);
    void (*bf16_to_f32)(const uint16_t *in, float *out, size_t n);

    /* out[i] = saturated (sum of weight[k] * row[k][i], rounded, >> shift). `taps` may be
     * odd. */
    void (*down_u8)(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                    int16_t *out, size_t n, int shift);
    void (*split3_i16)(const int16_t *in, int16_t *const out[], size_t n);
    /* Each row is a scratch row that begins at element x->first; one finish per row. */
    void (*across_i16)(const struct hr_axis *x, const int16_t *const row[],
                       float *const out[], const struct hr_finish finish[],
                       int32_t channels);
    /* Bytes of x->packed and filling it; 0 bytes = not needed. */
    size_t (*pack_bytes)(const struct hr_axis *x);
    void (*pack)(struct hr_axis *x);

    /* out[i] = sum of weight[k] * row[k][i], in the order of k. */
    void (*down_f32)(const float *const row[], const float weight[], int32_t taps,
                     float *out, size_t n);
    void (*across_f32)(const struct hr_axis *x, const float *row, float *out, float scale,
                       float bias);

    /* In place on scratch rows; up to HR_ROW_PAD elements behind the end may change. */
    void (*colour_rgb)(const struct hr_tone *tones, int count, float max,
                       float *const plane[], size_t n);
    void (*colour_gray)(const struct hr_tone *tones, int count, float max, float *row,
                        size_t n);
    /* JFIF's matrix on rows of Y, Cb, Cr, and the end. Reads up to HR_ROW_PAD elements
     * behind the rows, writes none; may run in place. */
    void (*ycc_rgb)(const float *const in[], float *const out[], size_t n,
                    const struct hr_ycc_end *end);
    /* across_i16 of the three rows and ycc_rgb in one go, with the same result. May be
     * NULL, or do nothing and return false: then they go one by one. */
    bool (*across_ycc)(const struct hr_axis *luma, const struct hr_axis *chroma,
                       const int16_t *const row[], float *const out[],
                       const struct hr_finish finish[], const struct hr_ycc_end *end);
    double (*sum)(const float *row, size_t n);

    /* weight[0] is the middle one. `row` of blur_across has `radius` elements before and
     * behind it. Rows are scratch rows, also `out`. */
    void (*blur_down)(const float *const row[], const float weight[], int32_t radius,
                      float *out, size_t n);
    void (*blur_across)(const float *row, const float weight[], int32_t radius,
                        float *out, size_t n);

    /* Bilinear inside of a u8 RGB image: see warp.c. */
    void (*warp_rgb)(const struct hr_warp_run *run, uint8_t *out, int32_t n);
};

/* The best table at or below hr__isa(). */
const struct hr_rows *hr__rows(void);

extern const struct hr_rows hr__rows_c;
extern const struct hr_rows hr__rows_neon;
extern const struct hr_rows hr__rows_avx2;
extern const struct hr_rows hr__rows_avx512;

/*
 * Pixels [x, x + n) of row y as one f32 run per channel: value * scale[c] + bias[c], and
 * back. `flip` mirrors the run. scale 1 with bias -0 keeps every value.
 */
void hr__rows_get(const struct hr_rows *rows, const struct hr_pixels *src, int32_t x,
                  int32_t y, int32_t n, float *const plane[], const float scale[],
                  const float bias[], bool flip);
void hr__rows_put(const struct hr_rows *rows, const float *const plane[],
                  const struct hr_pixels *dst, int32_t x, int32_t y, int32_t n);

/* Steps `from` to `count` on runs, in place. */
void hr__rows_affine(const struct hr_rows *rows, float *const plane[], int32_t channels,
                     int32_t n, const struct hr_affine *steps, int from, int count);

/* Whether f32 runs can be written straight into dst, and where they begin. */
bool hr__rows_direct(const struct hr_pixels *dst, int32_t x, int32_t y, float *plane[]);

extern const struct hr_affine hr__affine_keep;

static inline bool hr__is_planar(const struct hr_pixels *p)
{
    return p->pixel_stride == (int64_t)hr_dtype_size(p->dtype);
}

static inline bool hr__is_interleaved(const struct hr_pixels *p)
{
    int64_t size = (int64_t)hr_dtype_size(p->dtype);

    return p->channel_stride == size && p->pixel_stride == size * p->channels;
}

static inline char *hr__at(const struct hr_pixels *p, int32_t x, int32_t y, int32_t c)
{
    return (char *)p->data + y * p->row_stride + x * p->pixel_stride +
           c * p->channel_stride;
}

#endif
