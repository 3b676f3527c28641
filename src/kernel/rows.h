/*
 * kernel/rows.h - the inner loops: functions on one row, with a table per instruction
 * set.
 *
 * All kernels are built on this table. rows_c.c defines the results; the other tables
 * have the same functions for AVX2, AVX-512 and NEON and give the same bytes. hr__rows()
 * returns the best table that the machine supports.
 */
#ifndef HR_KERNEL_ROWS_H
#define HR_KERNEL_ROWS_H

#include "kernel/colour.h"
#include "kernel/pixels.h"

/* For functions whose parameters are constants at each call, so that loops unroll. */
#define HR_INLINE static inline __attribute__((always_inline))

#define HR_ROW_PAD 64 /* readable elements after the end of a scratch row */

/*
 * One axis of a resampling: output i is the sum of `length[i]` source elements from
 * `start[i]` (absolute), weighted by [i * stride]. `fine` has the weights in f32,
 * `coarse` in fixed point with `bits` fraction bits, summing to exactly 1 << bits.
 * Weights beyond the length are zero up to the stride, which is even.
 */
struct hr_axis {
    int32_t count, stride;
    int32_t first, last; /* source elements that are read: [first, last) */
    int32_t *start, *length;
    float *fine;
    int16_t *coarse;
    int bits;
    int32_t *pick; /* NEAREST: the source element of each output; else NULL */
    void *packed;  /* for the horizontal pass: layout private to the table that made it */
};

/* End of the horizontal pass: sum -> (rounded to a level if `round`) * scale + bias. */
struct hr_finish {
    float scale, bias;
    bool round;
    int shift; /* fraction bits of the sum */
};

/* A colour step with precomputed constants: CONTRAST x * a + b, SATURATION x * a + luma *
 * b, HUE a in sixths of a turn, ROUND rint(x * a) * b. */
struct hr_tone {
    enum hr_colour_kind kind;
    float a, b;
};

/* Conversion from YCbCr to RGB. Rows hold levels divided by `unit`, a power of two;
 * chroma has 128 subtracted. RGB is clamped to 0..top, rounded to levels if `round`, then
 * * scale[c] + bias[c]; without `round`, scale[c] includes the unit. */
struct hr_ycc_end {
    float unit, top;
    float scale[3], bias[3];
    bool round;
};

/*
 * Output pixels along a row of a warp, at positions x + i * dx (HR_WARP_BITS fraction
 * bits). All four neighbours are inside `data`, and 8 bytes from each left neighbour are
 * readable.
 */
#define HR_WARP_BITS 28
struct hr_warp_run {
    const uint8_t *data;
    int64_t row_stride;
    int64_t x, y, dx, dy;
};

/* The same at any positions. */
struct hr_warp_places {
    const uint8_t *data;
    int64_t row_stride;
    const int64_t *x, *y;
};

struct hr_rows {
    /* On contiguous runs. out = in * scale + bias; `flip` writes the run mirrored. */
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
    void (*join3_u16)(const uint16_t *const in[], uint16_t *out, size_t n);

    /* out[i] = saturate(sum of weight[k] * row[k][i], rounded, >> shift). `taps` may be
     * odd. */
    void (*down_u8)(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                    int16_t *out, size_t n, int shift);
    void (*split3_i16)(const int16_t *in, int16_t *const out[], size_t n);
    /* Each row is a scratch row whose first element is x->first; one hr_finish per
     * row. */
    void (*across_i16)(const struct hr_axis *x, const int16_t *const row[],
                       float *const out[], const struct hr_finish finish[],
                       int32_t channels);
    /* Size of x->packed in bytes, 0 if unused; and filling it. */
    size_t (*pack_bytes)(const struct hr_axis *x);
    void (*pack)(struct hr_axis *x);

    /* out[i] = sum of weight[k] * row[k][i], in the order of k. */
    void (*down_f32)(const float *const row[], const float weight[], int32_t taps,
                     float *out, size_t n);
    void (*across_f32)(const struct hr_axis *x, const float *row, float *out, float scale,
                       float bias);

    /* In place on scratch rows; may change up to HR_ROW_PAD elements after the end. */
    void (*colour_rgb)(const struct hr_tone *tones, int count, float max,
                       float *const plane[], size_t n);
    void (*colour_gray)(const struct hr_tone *tones, int count, float max, float *row,
                        size_t n);
    /* Rows of whole levels, 0 to 255, as kernel/tint.h has it: their whole gray levels;
     * and, in place, their blend gray * rest + level * factor. */
    void (*whole_gray)(float *const plane[], float *out, size_t n);
    void (*whole_saturate)(float *const plane[], float factor, float rest, size_t n);
    /* kernel/sharpen.h on a row of n levels, of which `turn` at each end stay: out =
     * level
     * + rest * (smooth - level). `scratch` has room for 2 * n numbers. */
    void (*sharpen_u8)(const uint8_t *above, const uint8_t *middle, const uint8_t *below,
                       uint16_t *scratch, uint8_t *out, int32_t n, int32_t turn,
                       float rest);
    /* JFIF's matrix on rows of Y, Cb, Cr, then hr_ycc_end. Reads up to HR_ROW_PAD
     * elements after the rows, writes none; may run in place. */
    void (*ycc_rgb)(const float *const in[], float *const out[], size_t n,
                    const struct hr_ycc_end *end);
    /* across_i16 of the three rows followed by ycc_rgb, with the same result. May be
     * NULL, or return false without doing anything; then call the two. */
    bool (*across_ycc)(const struct hr_axis *luma, const struct hr_axis *chroma,
                       const int16_t *const row[], float *const out[],
                       const struct hr_finish finish[], const struct hr_ycc_end *end);
    double (*sum)(const float *row, size_t n);

    /* weight[0] is the centre. blur_across reads `radius` elements before and after its
     * `row`. All rows are scratch rows, including `out`. */
    void (*blur_down)(const float *const row[], const float weight[], int32_t radius,
                      float *out, size_t n);
    void (*blur_across)(const float *row, const float weight[], int32_t radius,
                        float *out, size_t n);

    /* Bilinear interpolation inside a u8 RGB image; see warp.c. */
    void (*warp_rgb)(const struct hr_warp_run *run, uint8_t *out, int32_t n);
    void (*places_rgb)(const struct hr_warp_places *places, uint8_t *out, int32_t n);
};

/* The best table at or below hr__isa(). */
const struct hr_rows *hr__rows(void);

extern const struct hr_rows hr__rows_c;
extern const struct hr_rows hr__rows_neon;
extern const struct hr_rows hr__rows_avx2;
extern const struct hr_rows hr__rows_avx512;

/*
 * Reads pixels [x, x + n) of row y into one f32 run per channel as value * scale[c] +
 * bias[c]; and writes them back. `flip` mirrors the run. scale 1 with bias -0 keeps every
 * value.
 */
void hr__rows_get(const struct hr_rows *rows, const struct hr_pixels *src, int32_t x,
                  int32_t y, int32_t n, float *const plane[], const float scale[],
                  const float bias[], bool flip);
void hr__rows_put(const struct hr_rows *rows, const float *const plane[],
                  const struct hr_pixels *dst, int32_t x, int32_t y, int32_t n);

/* Applies steps `from` to `count` - 1 to runs, in place. */
void hr__rows_affine(const struct hr_rows *rows, float *const plane[], int32_t channels,
                     int32_t n, const struct hr_affine *steps, int from, int count);

/* True if f32 runs can be written directly to dst; sets where they begin. */
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
