/*
 * kernel/rows_avx2.c - the row functions for AVX2 (with F16C).
 *
 * The end of a row is done by a last step that overlaps the previous one, or in plain C
 * where elements must not be written twice or the row is shorter than a register.
 */
#include "kernel/half.h"
#include "kernel/rows.h"

#define VL 8
#include "kernel/rows_across.h"
#include "kernel/rows_float.h"
#include "kernel/rows_x86.h"

#include <string.h>

static inline __m256 scaled(__m256 v, float scale, float bias)
{
    return _mm256_add_ps(_mm256_mul_ps(v, _mm256_set1_ps(scale)), _mm256_set1_ps(bias));
}

static inline __m256 mirrored(__m256 v)
{
    return _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}

/* Stores v * scale + bias to elements [i, i + 8) of n, or to their mirrored positions. */
HR_INLINE void
finish8(float *out, size_t n, size_t i, __m256 v, float scale, float bias, bool flip)
{
    v = scaled(v, scale, bias);
    _mm256_storeu_ps(flip ? out + (n - i - 8) : out + i, flip ? mirrored(v) : v);
}

static void
u8_to_f32(const uint8_t *in, float *out, size_t n, float scale, float bias, bool flip)
{
    if (n < 8) {
        hr__rows_c.u8_to_f32(in, out, n, scale, bias, flip);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(in + i)));

        finish8(out, n, i, _mm256_cvtepi32_ps(v), scale, bias, flip);
    }
}

/* May run in place, so the end must not be processed twice. */
static void
f32_to_f32(const float *in, float *out, size_t n, float scale, float bias, bool flip)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        finish8(out, n, i, _mm256_loadu_ps(in + i), scale, bias, flip);
    hr__rows_c.f32_to_f32(in + i, flip ? out : out + i, n - i, scale, bias, flip);
}

static inline __m256 channel_of_24(__m256i bytes, int c)
{
    /* lane 0 holds bytes 0..15, lane 1 bytes 8..23: there pixel 4 begins at byte 4 */
    const __m256i red =
        _mm256_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1, 4,
                         -1, -1, -1, 7, -1, -1, -1, 10, -1, -1, -1, 13, -1, -1, -1);
    __m256i index =
        _mm256_add_epi32(red, _mm256_set1_epi32(c)); /* only the low bytes matter */

    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, index));
}

HR_INLINE void u8x3_loop(const uint8_t *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip)
{
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        __m128i low = _mm_loadu_si128((const void *)(in + 3 * i));
        __m128i high = _mm_loadu_si128((const void *)(in + 3 * i + 8));
        __m256i p = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);

        for (int c = 0; c < 3; c++)
            finish8(out[c], n, i, channel_of_24(p, c), scale[c], bias[c], flip);
    }
}

static void u8x3_to_f32(const uint8_t *in, float *const out[], size_t n,
                        const float scale[], const float bias[], bool flip)
{
    if (n < 8)
        hr__rows_c.u8x3_to_f32(in, out, n, scale, bias, flip);
    else if (flip)
        u8x3_loop(in, out, n, scale, bias, true);
    else
        u8x3_loop(in, out, n, scale, bias, false);
}

/* 8 pixels: three registers, two blends and one permute per channel. */
static inline __m256 third_of(__m256 a, __m256 b, __m256 d, int c)
{
    /* positions 3 * i + c, mod 8: element k of the blend is from register (3 i + c) /
     * 8 */
    if (c == 0)
        return _mm256_permutevar8x32_ps(
            _mm256_blend_ps(_mm256_blend_ps(a, b, 0x92), d, 0x24),
            _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
    if (c == 1)
        return _mm256_permutevar8x32_ps(
            _mm256_blend_ps(_mm256_blend_ps(a, b, 0x24), d, 0x49),
            _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6));
    return _mm256_permutevar8x32_ps(_mm256_blend_ps(_mm256_blend_ps(a, b, 0x49), d, 0x92),
                                    _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
}

static void f32x3_to_f32(const float *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip)
{
    if (n < 8) {
        hr__rows_c.f32x3_to_f32(in, out, n, scale, bias, flip);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        __m256 a = _mm256_loadu_ps(in + 3 * i), b = _mm256_loadu_ps(in + 3 * i + 8);
        __m256 d = _mm256_loadu_ps(in + 3 * i + 16);

        finish8(out[0], n, i, third_of(a, b, d, 0), scale[0], bias[0], flip);
        finish8(out[1], n, i, third_of(a, b, d, 1), scale[1], bias[1], flip);
        finish8(out[2], n, i, third_of(a, b, d, 2), scale[2], bias[2], flip);
    }
}

/* The reverse: each channel's elements go to their positions mod 8, then blends. */
static void f32_to_f32x3(const float *const in[], float *out, size_t n)
{
    if (n < 8) {
        hr__rows_c.f32_to_f32x3(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 8) {
        size_t i = at + 8 <= n ? at : n - 8;
        __m256 r = _mm256_permutevar8x32_ps(_mm256_loadu_ps(in[0] + i),
                                            _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
        __m256 g = _mm256_permutevar8x32_ps(_mm256_loadu_ps(in[1] + i),
                                            _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2));
        __m256 b = _mm256_permutevar8x32_ps(_mm256_loadu_ps(in[2] + i),
                                            _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));

        _mm256_storeu_ps(out + 3 * i,
                         _mm256_blend_ps(_mm256_blend_ps(r, g, 0x92), b, 0x24));
        _mm256_storeu_ps(out + 3 * i + 8,
                         _mm256_blend_ps(_mm256_blend_ps(r, g, 0x24), b, 0x49));
        _mm256_storeu_ps(out + 3 * i + 16,
                         _mm256_blend_ps(_mm256_blend_ps(r, g, 0x49), b, 0x92));
    }
}

static inline __m256i levels8(const float *in)
{
    __m256 v = _mm256_max_ps(_mm256_loadu_ps(in), _mm256_setzero_ps());

    return _mm256_cvtps_epi32(_mm256_min_ps(v, _mm256_set1_ps(255.0f)));
}

/* Sixteen levels converted to bytes. */
static inline __m128i levels16(const float *in)
{
    __m256i words = _mm256_packs_epi32(levels8(in), levels8(in + 8));

    words = _mm256_permute4x64_epi64(words, 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words),
                            _mm256_extracti128_si256(words, 1));
}

static void f32_to_u8(const float *in, uint8_t *out, size_t n)
{
    if (n < 16) {
        hr__rows_c.f32_to_u8(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 16) {
        size_t i = at + 16 <= n ? at : n - 16;

        _mm_storeu_si128((void *)(out + i), levels16(in + i));
    }
}

/* Moves bytes of channel c of 16 pixels to their positions in part k of the 48, by
 * order[k][c]. */
static inline __m128i spread(__m128i channel, const int8_t order[16])
{
    return _mm_shuffle_epi8(channel, _mm_loadu_si128((const void *)order));
}

static void f32_to_u8x3(const float *const in[], uint8_t *out, size_t n)
{
    static const int8_t order[3][3][16] = {
        {{0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
         {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
         {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1}     },
        {{-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
         {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
         {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1}     },
        {{-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
         {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
         {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15}}
    };

    if (n < 16) {
        hr__rows_c.f32_to_u8x3(in, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += 16) {
        size_t i = at + 16 <= n ? at : n - 16;
        __m128i r = levels16(in[0] + i), g = levels16(in[1] + i);
        __m128i b = levels16(in[2] + i);

#pragma GCC unroll 3
        for (int part = 0; part < 3; part++) {
            __m128i v =
                _mm_or_si128(spread(r, order[part][0]), spread(g, order[part][1]));

            _mm_storeu_si128((void *)(out + 3 * i + 16 * part),
                             _mm_or_si128(v, spread(b, order[part][2])));
        }
    }
}

static void f32_to_f16(const float *in, uint16_t *out, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(in + i),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    hr__rows_c.f32_to_f16(in + i, out + i, n - i);
}

static void f32_to_bf16(const float *in, uint16_t *out, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(in + i);
        __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
        __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
        __m256i up =
            _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
        __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));

        up = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16),
                                _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
        _mm_storeu_si128((void *)(out + i),
                         _mm_packus_epi32(_mm256_castsi256_si128(up),
                                          _mm256_extracti128_si256(up, 1)));
    }
    hr__rows_c.f32_to_bf16(in + i, out + i, n - i);
}

static void f16_to_f32(const uint16_t *in, float *out, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const void *)(in + i))));
    hr__rows_c.f16_to_f32(in + i, out + i, n - i);
}

static void bf16_to_f32(const uint16_t *in, float *out, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(in + i)));

        _mm256_storeu_si256((void *)(out + i), _mm256_slli_epi32(wide, 16));
    }
    hr__rows_c.bf16_to_f32(in + i, out + i, n - i);
}

static inline __m256i weigh(__m256i sum, __m256i pairs, __m256i weight)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, weight));
}

/* 32 columns: two rows are interleaved, widened to 16 bits and multiplied as pairs. */
HR_INLINE void down_32(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                       int16_t *out, size_t i, int shift)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    __m256i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
    __m128i by = _mm_cvtsi32_si128(shift);

    for (int32_t k = 0; k < taps; k += 2) {
        int32_t next = k + 1 < taps ? k + 1 : k; /* its weight is then 0 */
        __m256i a = _mm256_loadu_si256((const void *)(row[k] + i));
        __m256i b = _mm256_loadu_si256((const void *)(row[next] + i));
        __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
        __m256i w = _mm256_set1_epi32(pair_at(weight + k));

        sum0 = weigh(sum0, _mm256_unpacklo_epi8(low, zero), w);
        sum1 = weigh(sum1, _mm256_unpackhi_epi8(low, zero), w);
        sum2 = weigh(sum2, _mm256_unpacklo_epi8(high, zero), w);
        sum3 = weigh(sum3, _mm256_unpackhi_epi8(high, zero), w);
    }
    sum0 = _mm256_packs_epi32(_mm256_sra_epi32(sum0, by), _mm256_sra_epi32(sum1, by));
    sum2 = _mm256_packs_epi32(_mm256_sra_epi32(sum2, by), _mm256_sra_epi32(sum3, by));
    _mm256_storeu_si256((void *)(out + i), _mm256_permute2x128_si256(sum0, sum2, 0x20));
    _mm256_storeu_si256((void *)(out + i + 16),
                        _mm256_permute2x128_si256(sum0, sum2, 0x31));
}

static void down_u8(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                    int16_t *out, size_t n, int shift)
{
    if (n < 32) {
        hr__rows_c.down_u8(row, weight, taps, out, n, shift);
        return;
    }
    for (size_t at = 0; at < n; at += 32) {
        size_t i = at + 32 <= n ? at : n - 32;

        if (taps <= 2)
            down_32(row, weight, taps < 2 ? 1 : 2, out, i, shift);
        else
            down_32(row, weight, taps, out, i, shift);
    }
}

static inline __m256i load_halves(const int16_t *low, const int16_t *high)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const void *)low)),
        _mm_loadu_si128((const void *)high), 1);
}

static inline __m256i word_order(const int8_t order[16])
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)order));
}

/* 16 pixels: three registers hold words 0..7, 8..15, 16..23 of each half; two blends
 * collect a channel and one shuffle orders it. */
static void split3_i16(const int16_t *in, int16_t *const out[], size_t n)
{
    static const int8_t place[3][16] = {
        {WORD(0), WORD(3), WORD(6), WORD(1), WORD(4), WORD(7), WORD(2), WORD(5)},
        {WORD(1), WORD(4), WORD(7), WORD(2), WORD(5), WORD(0), WORD(3), WORD(6)},
        {WORD(2), WORD(5), WORD(0), WORD(3), WORD(6), WORD(1), WORD(4), WORD(7)}
    };
    const __m256i order[3] = {word_order(place[0]), word_order(place[1]),
                              word_order(place[2])};

    for (size_t i = 0; i < n; i += 16, in += 48) {
        __m256i a = load_halves(in, in + 24), b = load_halves(in + 8, in + 32);
        __m256i d = load_halves(in + 16, in + 40);
        __m256i v0 = _mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x92), d, 0x24);
        __m256i v1 = _mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x24), d, 0x49);
        __m256i v2 = _mm256_blend_epi16(_mm256_blend_epi16(a, b, 0x49), d, 0x92);

        _mm256_storeu_si256((void *)(out[0] + i), _mm256_shuffle_epi8(v0, order[0]));
        _mm256_storeu_si256((void *)(out[1] + i), _mm256_shuffle_epi8(v1, order[1]));
        _mm256_storeu_si256((void *)(out[2] + i), _mm256_shuffle_epi8(v2, order[2]));
    }
}

static void pack(struct hr_axis *x)
{
    across_pack(x, across_form(x));
}

static void
across_i16(const struct hr_axis *x, const int16_t *const row[], float *const out[],
           const struct hr_finish finish[], int32_t channels)
{
    across_run(x, row, out, finish, channels, ((const struct across *)x->packed)->form);
}

const struct hr_rows hr__rows_avx2 = {
    .u8_to_f32 = u8_to_f32,
    .f32_to_f32 = f32_to_f32,
    .u8x3_to_f32 = u8x3_to_f32,
    .f32x3_to_f32 = f32x3_to_f32,
    .f32_to_f32x3 = f32_to_f32x3,
    .f32_to_u8 = f32_to_u8,
    .f32_to_u8x3 = f32_to_u8x3,
    .f32_to_f16 = f32_to_f16,
    .f32_to_bf16 = f32_to_bf16,
    .f16_to_f32 = f16_to_f32,
    .bf16_to_f32 = bf16_to_f32,
    .join3_u16 = x86_join3_u16,
    .down_u8 = down_u8,
    .split3_i16 = split3_i16,
    .across_i16 = across_i16,
    .pack_bytes = across_bytes,
    .pack = pack,
    .across_f32 = x86_across_f32,
    .warp_rgb = x86_warp_rgb,
    .places_rgb = x86_places_rgb,
    HR_ROWS_FLOAT,
};
