/*
 * kernel/rows_x86.h - row functions that AVX2 and AVX-512 share unchanged.
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

/* The bytes of word k of 128 bits. */
#define WORD(k) 2 * (k), 2 * (k) + 1

/* Eight words of each row: a shuffle moves each to its position mod 8, two blends per
 * register pick them. */
static void x86_join3_u16(const uint16_t *const in[], uint16_t *out, size_t n)
{
    const __m128i red = _mm_setr_epi8(WORD(0), WORD(3), WORD(6), WORD(1), WORD(4),
                                      WORD(7), WORD(2), WORD(5));
    const __m128i green = _mm_setr_epi8(WORD(5), WORD(0), WORD(3), WORD(6), WORD(1),
                                        WORD(4), WORD(7), WORD(2));
    const __m128i blue = _mm_setr_epi8(WORD(2), WORD(5), WORD(0), WORD(3), WORD(6),
                                       WORD(1), WORD(4), WORD(7));

    if (n < 8) {
        hr__rows_c.join3_u16(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        __m128i r = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(in[0] + i)), red);
        __m128i g = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(in[1] + i)), green);
        __m128i b = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(in[2] + i)), blue);

        _mm_storeu_si128((void *)(out + 3 * i),
                         _mm_blend_epi16(_mm_blend_epi16(r, g, 0x92), b, 0x24));
        _mm_storeu_si128((void *)(out + 3 * i + 8),
                         _mm_blend_epi16(_mm_blend_epi16(r, g, 0x24), b, 0x49));
        _mm_storeu_si128((void *)(out + 3 * i + 16),
                         _mm_blend_epi16(_mm_blend_epi16(r, g, 0x49), b, 0x92));
    }
}

/*
 * Eight outputs at a time, with gathers. A lane without further taps keeps its sum:
 * adding zero could change the sign of a zero.
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

/* The weights of two neighbours as the 16-bit halves of a 32-bit word. */
static inline uint32_t parts_of(uint64_t at)
{
    uint32_t part =
        (uint32_t)(at >> (HR_WARP_BITS - HR_WARP_PART)) & ((1u << HR_WARP_PART) - 1);

    return (1u << HR_WARP_PART) + part * 65535u;
}

#define WARP_BLOCK 16

struct warp_block {
    int64_t offset[WARP_BLOCK];
    uint32_t fx[WARP_BLOCK], fy[WARP_BLOCK];
};

/* Positions of the next pixels. They are not negative, so logical shifts work, which can
 * be vectorised for 64 bits. */
static inline void
warp_places(const struct hr_warp_run *run, int64_t first, struct warp_block *block)
{
    uint64_t x = (uint64_t)(run->x + first * run->dx);
    uint64_t y = (uint64_t)(run->y + first * run->dy);

    for (uint64_t j = 0; j < WARP_BLOCK; j++) {
        uint64_t px = x + j * (uint64_t)run->dx, py = y + j * (uint64_t)run->dy;

        block->offset[j] = (int64_t)((py >> HR_WARP_BITS) * (uint64_t)run->row_stride +
                                     3 * (px >> HR_WARP_BITS));
        block->fx[j] = parts_of(px);
        block->fy[j] = parts_of(py);
    }
}

static inline __m256i load_two(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_8(a)), load_8(b), 1);
}

static inline __m256i parts_two(const uint32_t *part)
{
    int64_t both;

    memcpy(&both, part, sizeof both);
    return _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(both),
                                       _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

/*
 * Two pixels, one per 128-bit lane: 8 bytes hold both neighbours of a row; two rows
 * become one register of 16-bit pairs after the horizontal blend. The result is in the
 * low three bytes of each lane.
 */
static inline __m256i
warp_two(const uint8_t *data, int64_t row_stride, const int64_t *offset,
         const uint32_t *fx, const uint32_t *fy)
{
    const __m256i pairs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const __m256i bytes = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const uint8_t *a = data + offset[0], *b = data + offset[1];
    __m256i across = parts_two(fx), half = _mm256_set1_epi32(8);
    __m256i above = _mm256_shuffle_epi8(load_two(a, b), pairs);
    __m256i below = _mm256_shuffle_epi8(load_two(a + row_stride, b + row_stride), pairs);
    __m256i both;

    above = _mm256_add_epi32(_mm256_madd_epi16(above, across), half);
    below = _mm256_add_epi32(_mm256_madd_epi16(below, across), half);
    both = _mm256_blend_epi16(_mm256_srli_epi32(above, 4), _mm256_slli_epi32(below, 12),
                              0xaa);
    both = _mm256_add_epi32(_mm256_madd_epi16(both, parts_two(fy)),
                            _mm256_set1_epi32(1 << 17));
    return _mm256_shuffle_epi8(_mm256_srli_epi32(both, 18), bytes);
}

/* Blocks whose pixels are all in the row. Writes four bytes per pixel, so the last pixel
 * of a row must not be in a block. */
static inline uint8_t *warp_block(const uint8_t *data, int64_t row_stride,
                                  const struct warp_block *block, uint8_t *out)
{
    for (int j = 0; j < WARP_BLOCK; j += 2, out += 6) {
        __m256i two =
            warp_two(data, row_stride, block->offset + j, block->fx + j, block->fy + j);
        int32_t first = _mm_cvtsi128_si32(_mm256_castsi256_si128(two));
        int32_t second = _mm_cvtsi128_si32(_mm256_extracti128_si256(two, 1));

        memcpy(out, &first, 4);
        memcpy(out + 3, &second, 4);
    }
    return out;
}

static void x86_warp_rgb(const struct hr_warp_run *run, uint8_t *out, int32_t n)
{
    struct hr_warp_run rest = *run;
    struct warp_block block;
    int32_t i = 0;

    for (; i + WARP_BLOCK < n; i += WARP_BLOCK) {
        warp_places(run, i, &block);
        out = warp_block(run->data, run->row_stride, &block, out);
    }
    rest.x += i * run->dx;
    rest.y += i * run->dy;
    hr__rows_c.warp_rgb(&rest, out, n - i);
}

static void x86_places_rgb(const struct hr_warp_places *places, uint8_t *out, int32_t n)
{
    struct hr_warp_places rest = *places;
    uint64_t stride = (uint64_t)places->row_stride;
    struct warp_block block;

    for (; n > WARP_BLOCK; n -= WARP_BLOCK) {
        for (int j = 0; j < WARP_BLOCK; j++) {
            uint64_t x = (uint64_t)rest.x[j], y = (uint64_t)rest.y[j];

            block.offset[j] =
                (int64_t)((y >> HR_WARP_BITS) * stride + 3 * (x >> HR_WARP_BITS));
            block.fx[j] = parts_of(x);
            block.fy[j] = parts_of(y);
        }
        out = warp_block(places->data, places->row_stride, &block, out);
        rest.x += WARP_BLOCK;
        rest.y += WARP_BLOCK;
    }
    hr__rows_c.places_rgb(&rest, out, n);
}

#endif
