/*
 * kernel/pixels.h - a rectangle of pixels in memory, and storing it in another form.
 *
 * Kernels are pure functions on arrays. Each has a plain C version, which defines the
 * result, and faster ones per instruction set that give the same bytes: resampling uses
 * integer arithmetic; float code is compiled without contraction (-ffp-contract=off) and
 * runs in source order, with IEEE division, round-to-nearest-even and no reciprocal
 * estimates.
 */
#ifndef HR_KERNEL_PIXELS_H
#define HR_KERNEL_PIXELS_H

#include "headrace/base.h"

/* Strides are in bytes. Interleaved (HWC): pixel = channels * size, channel = size.
 * Planar (CHW): pixel = size. A gray image is both. Kernels write rows only within [0,
 * width). */
struct hr_pixels {
    void *data;
    enum hr_dtype dtype; /* input: HR_U8 or HR_F32; output: also HR_F16, HR_BF16 */
    int32_t width, height, channels; /* channels 1 to 4 */
    int64_t row_stride, pixel_stride, channel_stride;
};

/* Interleaved u8, rows contiguous. */
static inline struct hr_pixels
hr__pixels_u8(void *data, int32_t width, int32_t height, int32_t channels)
{
    return (struct hr_pixels){.data = data,
                              .dtype = HR_U8,
                              .width = width,
                              .height = height,
                              .channels = channels,
                              .row_stride = (int64_t)width * channels,
                              .pixel_stride = channels,
                              .channel_stride = 1};
}

/* x * scale[c] + bias[c] in f32; the product is rounded before the addition. */
struct hr_affine {
    float scale[4], bias[4];
};

/*
 * Stores src as dst: mirrors if requested, applies the affine steps in order in f32, and
 * converts to dst's dtype (to u8: round to nearest even, clamp to 0..255). Without steps
 * u8 -> f32 keeps the value (0..255). Sizes and channels must be equal. Any combination
 * of interleaved and planar.
 */
void hr__pixels_store(const struct hr_pixels *src, const struct hr_pixels *dst,
                      const struct hr_affine *steps, int step_count, bool flip_x,
                      bool flip_y);

/* Convert contiguous arrays: round to nearest even; NaN stays NaN, overflow gives
 * infinity. */
void hr__f32_to_f16(const float *in, uint16_t *out, size_t count);
void hr__f32_to_bf16(const float *in, uint16_t *out, size_t count);
void hr__f16_to_f32(const uint16_t *in, float *out, size_t count);
void hr__bf16_to_f32(const uint16_t *in, float *out, size_t count);

#endif
