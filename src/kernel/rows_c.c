/*
 * kernel/rows_c.c - the row functions in plain C: every other table must give the same
 * bytes.
 *
 * Written for readability and auto-vectorisation, without intrinsics.
 */
#include "kernel/half.h"
#include "kernel/warp_pixel.h"

#define VL 1
#include "kernel/rows.h"
#include "kernel/rows_float.h"

#include <math.h>

static void
c_u8_to_f32(const uint8_t *in, float *out, size_t n, float scale, float bias, bool flip)
{
    for (size_t i = 0; i < n; i++)
        out[flip ? n - 1 - i : i] = (float)in[i] * scale + bias;
}

static void
c_f32_to_f32(const float *in, float *out, size_t n, float scale, float bias, bool flip)
{
    if (flip)
        for (size_t i = 0; i < n; i++)
            out[n - 1 - i] = in[i] * scale + bias;
    else
        for (size_t i = 0; i < n; i++)
            out[i] = in[i] * scale + bias;
}

static void c_u8x3_to_f32(const uint8_t *in, float *const out[], size_t n,
                          const float scale[], const float bias[], bool flip)
{
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < n; i++)
            out[c][flip ? n - 1 - i : i] = (float)in[3 * i + c] * scale[c] + bias[c];
}

static void c_f32x3_to_f32(const float *in, float *const out[], size_t n,
                           const float scale[], const float bias[], bool flip)
{
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < n; i++)
            out[c][flip ? n - 1 - i : i] = in[3 * i + c] * scale[c] + bias[c];
}

static void c_f32_to_f32x3(const float *const in[], float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[3 * i + c] = in[c][i];
}

static void c_f32_to_u8(const float *in, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hr__round_u8(in[i]);
}

static void c_f32_to_u8x3(const float *const in[], uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[3 * i + c] = hr__round_u8(in[c][i]);
}

static void c_f32_to_f16(const float *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hr__half(in[i]);
}

static void c_f32_to_bf16(const float *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hr__bhalf(in[i]);
}

static void c_f16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hr__unhalf(in[i]);
}

static void c_bf16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = hr__unbhalf(in[i]);
}

static void c_join3_u16(const uint16_t *const in[], uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[3 * i + c] = in[c][i];
}

static void c_down_u8(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                      int16_t *out, size_t n, int shift)
{
    int32_t half = shift > 0 ? 1 << (shift - 1) : 0;

    for (size_t i = 0; i < n; i++) {
        int32_t sum = half;

        for (int32_t k = 0; k < taps; k++)
            sum += weight[k] * row[k][i];
        sum >>= shift;
        out[i] = (int16_t)(sum < -32768 ? -32768 : sum > 32767 ? 32767 : sum);
    }
}

static void c_split3_i16(const int16_t *in, int16_t *const out[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            out[c][i] = in[3 * i + c];
}

static void across_one(const struct hr_axis *x, const int16_t *row, float *out,
                       const struct hr_finish *finish)
{
    int32_t half = 1 << (finish->shift - 1);

    for (int32_t i = 0; i < x->count; i++) {
        const int16_t *weight = x->coarse + (size_t)i * (size_t)x->stride;
        const int16_t *at = row + (x->start[i] - x->first);
        int32_t sum = 0;

        for (int32_t k = 0; k < x->length[i]; k++)
            sum += weight[k] * at[k];
        if (finish->round) {
            sum = (sum + half) >> finish->shift;
            sum = sum < 0 ? 0 : sum > 255 ? 255 : sum;
        }
        out[i] = (float)sum * finish->scale + finish->bias;
    }
}

static void
c_across_i16(const struct hr_axis *x, const int16_t *const row[], float *const out[],
             const struct hr_finish finish[], int32_t channels)
{
    for (int32_t c = 0; c < channels; c++)
        across_one(x, row[c], out[c], &finish[c]);
}

static size_t c_pack_bytes(const struct hr_axis *x)
{
    (void)x;
    return 0;
}

static void c_pack(struct hr_axis *x)
{
    (void)x;
}

static void c_across_f32(const struct hr_axis *x, const float *row, float *out,
                         float scale, float bias)
{
    for (int32_t i = 0; i < x->count; i++) {
        const float *weight = x->fine + (size_t)i * (size_t)x->stride;
        const float *at = row + (x->start[i] - x->first);
        float sum = weight[0] * at[0];

        for (int32_t k = 1; k < x->length[i]; k++)
            sum += weight[k] * at[k];
        out[i] = sum * scale + bias;
    }
}

static inline void
rgb_pixel(const uint8_t *data, int64_t row_stride, int64_t x, int64_t y, uint8_t *out)
{
    const uint8_t *at = data + (y >> HR_WARP_BITS) * row_stride + 3 * (x >> HR_WARP_BITS);
    const uint8_t *below = at + row_stride;
    int32_t fx = hr__warp_part(x), fy = hr__warp_part(y);

    for (int c = 0; c < 3; c++)
        out[c] = hr__warp_blend(at[c], at[c + 3], below[c], below[c + 3], fx, fy);
}

static void c_warp_rgb(const struct hr_warp_run *run, uint8_t *out, int32_t n)
{
    int64_t x = run->x, y = run->y;

    for (int32_t i = 0; i < n; i++, x += run->dx, y += run->dy)
        rgb_pixel(run->data, run->row_stride, x, y, out + 3 * i);
}

static void c_places_rgb(const struct hr_warp_places *places, uint8_t *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        rgb_pixel(places->data, places->row_stride, places->x[i], places->y[i],
                  out + 3 * i);
}

const struct hr_rows hr__rows_c = {
    .u8_to_f32 = c_u8_to_f32,
    .f32_to_f32 = c_f32_to_f32,
    .u8x3_to_f32 = c_u8x3_to_f32,
    .f32x3_to_f32 = c_f32x3_to_f32,
    .f32_to_f32x3 = c_f32_to_f32x3,
    .f32_to_u8 = c_f32_to_u8,
    .f32_to_u8x3 = c_f32_to_u8x3,
    .f32_to_f16 = c_f32_to_f16,
    .f32_to_bf16 = c_f32_to_bf16,
    .f16_to_f32 = c_f16_to_f32,
    .bf16_to_f32 = c_bf16_to_f32,
    .join3_u16 = c_join3_u16,
    .down_u8 = c_down_u8,
    .split3_i16 = c_split3_i16,
    .across_i16 = c_across_i16,
    .pack_bytes = c_pack_bytes,
    .pack = c_pack,
    .across_f32 = c_across_f32,
    .warp_rgb = c_warp_rgb,
    .places_rgb = c_places_rgb,
    HR_ROWS_FLOAT,
};
