/*
 * kernel/rows_x86.h - row functions that AVX2 and AVX-512 share as they are.
 */
#ifndef HR_KERNEL_ROWS_X86_H
#define HR_KERNEL_ROWS_X86_H

#include "kernel/rows.h"
#include "kernel/warp_pixel.h"

#include <immintrin.h>
#include <string.h>

static inline int32_t pair_at(const int16_t *weight)
{
    int32_t pair;

    memcpy(&pair, weight, sizeof pair);
    return pair;
}

/*
 * Eight outputs at a time by gathers. A lane whose taps have ended keeps its sum, as
 * adding a zero could change the sign of one.
 */
static void x86_across_f32(const struct hr_axis *x, const float *row, float *out,
                           float scale, float bias)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i rest = _mm256_mullo_epi32(lane, _mm256_set1_epi32(x->stride));
    int32_t i = 0;

    for (; i + 8 <= x->count; i += 8) {
        const float *weight = x->fine + (size_t)i * (size_t)x->stride;
        __m256i length = _mm256_loadu_si256((const void *)(x->length + i));
        __m256i start = _mm256_sub_epi32(_mm256_loadu_si256((const void *)(x->start + i)),
                                         _mm256_set1_epi32(x->first));
        __m256 sum = _mm256_mul_ps(_mm256_i32gather_ps(weight, rest, 4),
                                   _mm256_i32gather_ps(row, start, 4));

        for (int32_t k = 1; k < x->stride; k++) {
            __m256i more = _mm256_cmpgt_epi32(length, _mm256_set1_epi32(k));
            __m256 v;

            if (_mm256_testz_si256(more, more))
                break;
            v = _mm256_mul_ps(_mm256_i32gather_ps(weight + k, rest, 4),
                              _mm256_i32gather_ps(row + k, start, 4));
            sum = _mm256_blendv_ps(sum, _mm256_add_ps(sum, v), _mm256_castsi256_ps(more));
        }
        sum = _mm256_mul_ps(sum, _mm256_set1_ps(scale));
        _mm256_storeu_ps(out + i, _mm256_add_ps(sum, _mm256_set1_ps(bias)));
    }
    for (; i < x->count; i++) {
        const float *weight = x->fine + (size_t)i * (size_t)x->stride;
        const float *at = row + (x->start[i] - x->first);
        float sum = weight[0] * at[0];

        for (int32_t k = 1; k < x->length[i]; k++)
            sum += weight[k] * at[k];
        out[i] = sum * scale + bias;
    }
}

static inline __m128i load_8(const uint8_t *at)
{
    return _mm_loadl_epi64((const void *)at);
}

static inline __m128i parts_of(int32_t part)
{
    return _mm_set1_epi32((1 << HR_WARP_PART) - part + part * 65536);
}

/* One pixel in 128 bits: 8 bytes hold both neighbours of a row; two rows become one
 * register of 16-bit pairs after the horizontal blend. */
static inline uint32_t
warp_one(const uint8_t *at, int64_t row_stride, int32_t fx, int32_t fy)
{
    const __m128i pairs =
        _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    const __m128i bytes =
        _mm_setr_epi8(0, 4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i across = parts_of(fx), half = _mm_set1_epi32(8);
    __m128i above = _mm_madd_epi16(_mm_shuffle_epi8(load_8(at), pairs), across);
    __m128i below =
        _mm_madd_epi16(_mm_shuffle_epi8(load_8(at + row_stride), pairs), across);
    __m128i both = _mm_blend_epi16(_mm_srli_epi32(_mm_add_epi32(above, half), 4),
                                   _mm_slli_epi32(_mm_add_epi32(below, half), 12), 0xaa);

    both = _mm_add_epi32(_mm_madd_epi16(both, parts_of(fy)), _mm_set1_epi32(1 << 17));
    return (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(_mm_srli_epi32(both, 18), bytes));
}

static void x86_warp_rgb(const struct hr_warp_run *run, uint8_t *out, int32_t n)
{
    int64_t x = run->x, y = run->y;

    for (int32_t i = 0; i < n; i++, x += run->dx, y += run->dy) {
        uint32_t pixel = warp_one(run->data + (y >> HR_WARP_BITS) * run->row_stride +
                                      3 * (x >> HR_WARP_BITS),
                                  run->row_stride, hr__warp_part(x), hr__warp_part(y));

        memcpy(out + 3 * i, &pixel, i + 1 < n ? 4 : 3);
    }
}

#endif
