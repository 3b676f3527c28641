/*
 * kernel/pixels.h - a rectangle of pixels in memory, and storing it in another form.
 *
 * Kernels are pure functions on arrays. Every kernel has a plain C form, which is the
 * meaning, and faster forms per instruction set that give the same bytes: resampling is
 * integer arithmetic, float work is done without contraction (-ffp-contract=off), in the
 * written order, with IEEE division and round-to-nearest-even, and no reciprocal
 * estimates.
 */
#ifndef HR_KERNEL_PIXELS_H
#define HR_KERNEL_PIXELS_H

#include "headrace/base.h"

/* Strides are in bytes. Interleaved (HWC): pixel = channels * size, channel = size.
 * Planar (CHW): pixel = size. A gray image is both. Kernels write rows only inside [0,
 * width). */
struct hr_pixels {
    void *data;
    enum hr_dtype dtype; /* as input HR_U8 or HR_F32; as output also HR_F16, HR_BF16 */
    int32_t width, height, channels; /* channels 1 to 4 */
    int64_t row_stride, pixel_stride, channel_stride;
};

/* Interleaved u8, rows one behind the other. */
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

/* x * scale[c] + bias[c] in f32, the product rounded before the sum. */
struct hr_affine {
    float scale[4], bias[4];
};

/*
 * Store src as dst: mirror if asked, then the affine steps in order in f32, then convert
 * to dst's dtype (to u8: round to nearest even, clamp to 0..255). With no steps u8 -> f32
 * keeps the value (0..255). Sizes and channels must agree. Any combination of interleaved
 * and planar.
 */
void hr__pixels_store(const struct hr_pixels *src, const struct hr_pixels *dst,
                      const struct hr_affine *steps, int step_count, bool flip_x,
                      bool flip_y);

/* Conversions of runs: round to nearest even, NaN stays NaN, overflow to infinity. */
void hr__f32_to_f16(const float *in, uint16_t *out, size_t count);
void hr__f32_to_bf16(const float *in, uint16_t *out, size_t count);
void hr__f16_to_f32(const uint16_t *in, float *out, size_t count);
void hr__bf16_to_f32(const uint16_t *in, float *out, size_t count);

#endif
