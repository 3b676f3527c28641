/*
 * kernel/rows_avx512.c - the row functions for AVX-512 (F, BW, DQ, VL, VBMI).
 *
 * Ends of rows are masked, so no byte outside a row is accessed. Sums of the integer
 * resize are exact in 32 bits in any order, hence equal to plain C.
 */
#include "kernel/half.h"
#include "kernel/rows.h"

#define VL 16
#include "kernel/rows_across.h"
#include "kernel/rows_float.h"
#include "kernel/rows_x86.h"

#include <string.h>

static inline __mmask16 low_mask(size_t count)
{
    unsigned mask = count >= 16 ? 0xffffu : (1u << count) - 1;

    return (__mmask16)mask;
}

static inline __mmask64 byte_mask(size_t count)
{
    return count >= 64 ? ~0ull : (1ull << count) - 1;
}

/* Stores v * scale + bias to elements [i, i + 16) of n, or to their mirrored
 * positions. */
HR_INLINE void
finish16(float *out, size_t n, size_t i, __m512 v, float scale, float bias, bool flip)
{
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    size_t count = n - i < 16 ? n - i : 16;

    v = _mm512_add_ps(_mm512_mul_ps(v, _mm512_set1_ps(scale)), _mm512_set1_ps(bias));
    if (flip) {
        v = _mm512_permutexvar_ps(
            _mm512_sub_epi32(_mm512_set1_epi32((int)count - 1), lane), v);
        _mm512_mask_storeu_ps(out + (n - i - count), low_mask(count), v);
    } else {
        _mm512_mask_storeu_ps(out + i, low_mask(count), v);
    }
}

static void
u8_to_f32(const uint8_t *in, float *out, size_t n, float scale, float bias, bool flip)
{
    for (size_t i = 0; i < n; i += 16) {
        __m128i bytes = _mm_maskz_loadu_epi8(low_mask(n - i), in + i);

        finish16(out, n, i, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), scale, bias,
                 flip);
    }
}

static void
f32_to_f32(const float *in, float *out, size_t n, float scale, float bias, bool flip)
{
    for (size_t i = 0; i < n; i += 16)
        finish16(out, n, i, _mm512_maskz_loadu_ps(low_mask(n - i), in + i), scale, bias,
                 flip);
}

/* Byte 3 * i + c of 48 to the low byte of dword i, zero above: one permute per
 * channel. */
static inline __m512 channel_of_48(__m512i bytes, int c)
{
    const __m512i third =
        _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45);
    __m512i index = _mm512_add_epi32(third, _mm512_set1_epi32(c));

    return _mm512_cvtepi32_ps(
        _mm512_maskz_permutexvar_epi8(0x1111111111111111ull, index, bytes));
}

HR_INLINE void u8x3_loop(const uint8_t *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip)
{
    for (size_t i = 0; i < n; i += 16) {
        size_t bytes = 3 * (n - i) < 48 ? 3 * (n - i) : 48;
        __m512i p = _mm512_maskz_loadu_epi8(byte_mask(bytes), in + 3 * i);

        for (int c = 0; c < 3; c++)
            finish16(out[c], n, i, channel_of_48(p, c), scale[c], bias[c], flip);
    }
}

static void u8x3_to_f32(const uint8_t *in, float *const out[], size_t n,
                        const float scale[], const float bias[], bool flip)
{
    if (flip)
        u8x3_loop(in, out, n, scale, bias, true);
    else
        u8x3_loop(in, out, n, scale, bias, false);
}

/* Element 3 * i + c of 48, in two permutes per channel. */
static void f32x3_to_f32(const float *in, float *const out[], size_t n,
                         const float scale[], const float bias[], bool flip)
{
    static const int32_t first[3][16] = {
        {0, 3, 6, 9,  12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0},
        {1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0},
        {2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0,  0, 0, 0, 0, 0}
    };
    static const int32_t second[3][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31}
    };

    for (size_t i = 0; i < n; i += 16) {
        size_t left = 3 * (n - i);
        __m512 a = _mm512_maskz_loadu_ps(low_mask(left), in + 3 * i);
        __m512 b =
            _mm512_maskz_loadu_ps(low_mask(left < 16 ? 0 : left - 16), in + 3 * i + 16);
        __m512 d =
            _mm512_maskz_loadu_ps(low_mask(left < 32 ? 0 : left - 32), in + 3 * i + 32);

        for (int c = 0; c < 3; c++) {
            __m512 v = _mm512_permutex2var_ps(a, _mm512_loadu_si512(first[c]), b);

            v = _mm512_permutex2var_ps(v, _mm512_loadu_si512(second[c]), d);
            finish16(out[c], n, i, v, scale[c], bias[c], flip);
        }
    }
}

static void f32_to_f32x3(const float *const in[], float *out, size_t n)
{
    static const int32_t first[3][16] = {
        {0,  16, 0,  1,  17, 1,  2,  18, 2,  3,  19, 3,  4,  20, 4,  5 },
        {21, 5,  6,  22, 6,  7,  23, 7,  8,  24, 8,  9,  25, 9,  10, 26},
        {10, 11, 27, 11, 12, 28, 12, 13, 29, 13, 14, 30, 14, 15, 31, 15}
    };
    static const int32_t second[3][16] = {
        {0,  1,  16, 3,  4,  17, 6,  7,  18, 9,  10, 19, 12, 13, 20, 15},
        {0,  21, 2,  3,  22, 5,  6,  23, 8,  9,  24, 11, 12, 25, 14, 15},
        {26, 1,  2,  27, 4,  5,  28, 7,  8,  29, 10, 11, 30, 13, 14, 31}
    };

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);
        size_t left = 3 * (n - i);
        __m512 r = _mm512_maskz_loadu_ps(mask, in[0] + i);
        __m512 g = _mm512_maskz_loadu_ps(mask, in[1] + i);
        __m512 b = _mm512_maskz_loadu_ps(mask, in[2] + i);

        for (size_t part = 0; part < 3; part++) {
            size_t done = 16 * part;
            __m512 v = _mm512_permutex2var_ps(r, _mm512_loadu_si512(first[part]), g);

            v = _mm512_permutex2var_ps(v, _mm512_loadu_si512(second[part]), b);
            _mm512_mask_storeu_ps(out + 3 * i + done,
                                  low_mask(left < done ? 0 : left - done), v);
        }
    }
}

static inline __m128i levels16(const float *in, __mmask16 mask)
{
    __m512 v = _mm512_max_ps(_mm512_maskz_loadu_ps(mask, in), _mm512_setzero_ps());

    return _mm512_cvtepi32_epi8(
        _mm512_cvtps_epi32(_mm512_min_ps(v, _mm512_set1_ps(255.0f))));
}

static void f32_to_u8(const float *in, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);

        _mm_mask_storeu_epi8(out + i, mask, levels16(in + i, mask));
    }
}

static void f32_to_u8x3(const float *const in[], uint8_t *out, size_t n)
{
#define THREE(i) i, 16 + i, 32 + i
    static const uint8_t order[64] = {THREE(0),  THREE(1),  THREE(2),  THREE(3),
                                      THREE(4),  THREE(5),  THREE(6),  THREE(7),
                                      THREE(8),  THREE(9),  THREE(10), THREE(11),
                                      THREE(12), THREE(13), THREE(14), THREE(15)};
#undef THREE
    __m512i index = _mm512_loadu_si512(order);

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);
        __m512i p = _mm512_castsi128_si512(levels16(in[0] + i, mask));

        p = _mm512_inserti32x4(p, levels16(in[1] + i, mask), 1);
        p = _mm512_inserti32x4(p, levels16(in[2] + i, mask), 2);
        _mm512_mask_storeu_epi8(out + 3 * i,
                                byte_mask(3 * (n - i) < 48 ? 3 * (n - i) : 48),
                                _mm512_permutexvar_epi8(index, p));
    }
}

static void f32_to_f16(const float *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);
        __m512 v = _mm512_maskz_loadu_ps(mask, in + i);

        _mm256_mask_storeu_epi16(
            out + i, mask,
            _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}

static void f32_to_bf16(const float *in, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);
        __m512 v = _mm512_maskz_loadu_ps(mask, in + i);
        __m512i bits = _mm512_castps_si512(v), high = _mm512_srli_epi32(bits, 16);
        __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
        __m512i up =
            _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);

        up = _mm512_mask_or_epi32(_mm512_srli_epi32(up, 16), nan, high,
                                  _mm512_set1_epi32(0x40));
        _mm256_mask_storeu_epi16(out + i, mask, _mm512_cvtepi32_epi16(up));
    }
}

static void f16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);

        _mm512_mask_storeu_ps(out + i, mask,
                              _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, in + i)));
    }
}

static void bf16_to_f32(const uint16_t *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = low_mask(n - i);
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, in + i));

        _mm512_mask_storeu_epi32(out + i, mask, _mm512_slli_epi32(wide, 16));
    }
}

static inline __m512i weigh(__m512i sum, __m512i pairs, __m512i weight)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, weight));
}

/* 64 columns: two rows are interleaved, widened to 16 bits and multiplied as pairs. */
HR_INLINE void down_64(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                       int16_t *out, size_t i, size_t n, int shift)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    __m512i sum0 = half, sum1 = half, sum2 = half, sum3 = half;
    __m128i by = _mm_cvtsi32_si128(shift);
    __mmask64 mask = byte_mask(n - i);

    for (int32_t k = 0; k < taps; k += 2) {
        int32_t next = k + 1 < taps ? k + 1 : k; /* its weight is then 0 */
        __m512i a = _mm512_maskz_loadu_epi8(mask, row[k] + i);
        __m512i b = _mm512_maskz_loadu_epi8(mask, row[next] + i);
        __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
        __m512i w = _mm512_set1_epi32(pair_at(weight + k));

        sum0 = weigh(sum0, _mm512_unpacklo_epi8(low, zero), w);
        sum1 = weigh(sum1, _mm512_unpackhi_epi8(low, zero), w);
        sum2 = weigh(sum2, _mm512_unpacklo_epi8(high, zero), w);
        sum3 = weigh(sum3, _mm512_unpackhi_epi8(high, zero), w);
    }
    sum0 = _mm512_packs_epi32(_mm512_sra_epi32(sum0, by), _mm512_sra_epi32(sum1, by));
    sum2 = _mm512_packs_epi32(_mm512_sra_epi32(sum2, by), _mm512_sra_epi32(sum3, by));
    sum1 = _mm512_permutex2var_epi64(sum0, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                                     sum2);
    sum3 = _mm512_permutex2var_epi64(sum0, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15),
                                     sum2);
    _mm512_mask_storeu_epi16(out + i, (__mmask32)mask, sum1);
    _mm512_mask_storeu_epi16(out + i + 32, (__mmask32)(mask >> 32), sum3);
}

static void down_u8(const uint8_t *const row[], const int16_t weight[], int32_t taps,
                    int16_t *out, size_t n, int shift)
{
    if (taps <= 2)
        for (size_t i = 0; i < n; i += 64)
            down_64(row, weight, taps < 2 ? 1 : 2, out, i, n, shift);
    else
        for (size_t i = 0; i < n; i += 64)
            down_64(row, weight, taps, out, i, n, shift);
}

/* Word 3 * i + c of 96, in two permutes per channel. */
static void split3_i16(const int16_t *in, int16_t *const out[], size_t n)
{
    /* index below 64: the first two registers, else the third */
#define FIRST(i, c) 3 * (i) + (c) < 64 ? 3 * (i) + (c) : 0
#define SECOND(i, c) 3 * (i) + (c) < 64 ? (i) : 3 * (i) + (c)-32
#define FOUR(X, i, c) X(i, c), X(i + 1, c), X(i + 2, c), X(i + 3, c)
#define ALL(X, c)                                                                        \
    {                                                                                    \
        FOUR(X, 0, c), FOUR(X, 4, c), FOUR(X, 8, c), FOUR(X, 12, c), FOUR(X, 16, c),     \
            FOUR(X, 20, c), FOUR(X, 24, c), FOUR(X, 28, c)                               \
    }
    static const uint16_t first[3][32] = {ALL(FIRST, 0), ALL(FIRST, 1), ALL(FIRST, 2)};
    static const uint16_t second[3][32] = {ALL(SECOND, 0), ALL(SECOND, 1),
                                           ALL(SECOND, 2)};
#undef ALL
#undef FOUR
#undef SECOND
#undef FIRST

    for (size_t i = 0; i < n; i += 32) {
        __m512i a = _mm512_loadu_si512(in + 3 * i);
        __m512i b = _mm512_loadu_si512(in + 3 * i + 32);
        __m512i d = _mm512_loadu_si512(in + 3 * i + 64);

        for (int c = 0; c < 3; c++) {
            __m512i v = _mm512_permutex2var_epi16(a, _mm512_loadu_si512(first[c]), b);

            v = _mm512_permutex2var_epi16(v, _mm512_loadu_si512(second[c]), d);
            _mm512_storeu_si512(out[c] + i, v);
        }
    }
}

/*
 * The horizontal pass: one permute gathers the word pairs of 16 outputs from a window of
 * 32 or 64 words. Axes that shrink too much for that use the 8-lane forms. Layout of
 * `packed`: struct across, then per group 64 bytes of base and number of pairs, then per
 * pair 64 bytes of index and 64 of weights.
 */
enum { WINDOW_32 = ACROSS_FORMS, WINDOW_64 };

static void group_extent(const struct hr_axis *x, int32_t from, int32_t *ret_base,
                         int32_t *ret_pairs, int32_t *ret_span)
{
    int32_t base = INT32_MAX, top = 0, length = 0;

    for (int32_t i = from; i < from + 16 && i < x->count; i++) {
        int32_t start = x->start[i] - x->first;

        base = start < base ? start : base;
        top = start > top ? start : top;
        length = x->length[i] > length ? x->length[i] : length;
    }
    *ret_base = base;
    *ret_pairs = (length + 1) / 2;
    *ret_span = top - base + 2 * *ret_pairs;
}

static int window_form(const struct hr_axis *x)
{
    int32_t most = 0;

    for (int32_t i = 0; i < x->count; i += 16) {
        int32_t base, pairs, span;

        group_extent(x, i, &base, &pairs, &span);
        most = span > most ? span : most;
    }
    return most <= 32 ? WINDOW_32 : most <= 64 ? WINDOW_64 : across_form(x);
}

static size_t pack_bytes(const struct hr_axis *x)
{
    size_t groups = ((size_t)x->count + 15) / 16;

    if (window_form(x) < ACROSS_FORMS)
        return across_bytes(x);
    return 64 + groups * (64 + (size_t)x->stride / 2 * 128);
}

static void pack_group(const struct hr_axis *x, int32_t from, char **at)
{
    int32_t base, pairs, span, room = x->count - from;
    __mmask16 mask = low_mask((size_t)room);
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i rest = _mm512_mullo_epi32(lane, _mm512_set1_epi32(x->stride / 2));
    const int32_t *weights =
        (const int32_t *)(const void *)(x->coarse + (size_t)from * (size_t)x->stride);
    __m512i word;

    group_extent(x, from, &base, &pairs, &span);
    memcpy(*at, (int32_t[2]){base, pairs}, 2 * sizeof(int32_t));
    *at += 64;
    word = _mm512_maskz_sub_epi32(mask, _mm512_maskz_loadu_epi32(mask, x->start + from),
                                  _mm512_set1_epi32(base + x->first));
    word = _mm512_add_epi32(_mm512_mullo_epi32(word, _mm512_set1_epi32(0x10001)),
                            _mm512_set1_epi32(0x10000));
    for (int32_t k = 0; k < pairs; k++, *at += 128) {
        _mm512_storeu_si512(*at, word);
        _mm512_storeu_si512(*at + 64,
                            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask,
                                                        rest, weights + k, 4));
        word = _mm512_add_epi32(word, _mm512_set1_epi32(0x20002));
    }
}

static void pack(struct hr_axis *x)
{
    int form = window_form(x);
    char *at = (char *)x->packed + 64;

    if (form < ACROSS_FORMS) {
        across_pack(x, form);
        return;
    }
    ((struct across *)x->packed)->form = form;
    for (int32_t i = 0; i < x->count; i += 16)
        pack_group(x, i, &at);
}

HR_INLINE void
finish_sums(float *out, __mmask16 mask, __m512i sum, const struct hr_finish *finish)
{
    __m512 v;

    if (finish->round) {
        sum = _mm512_add_epi32(sum, _mm512_set1_epi32(1 << (finish->shift - 1)));
        sum = _mm512_sra_epi32(sum, _mm_cvtsi32_si128(finish->shift));
        sum = _mm512_max_epi32(sum, _mm512_setzero_si512());
        sum = _mm512_min_epi32(sum, _mm512_set1_epi32(255));
    }
    v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(finish->scale));
    v = _mm512_add_ps(v, _mm512_set1_ps(finish->bias));
    _mm512_mask_storeu_ps(out, mask, v);
}

/* Sums of 16 outputs for rows that share an axis; advances *at to the next group.
 * `channels` and `wide` are constants at each call. */
HR_INLINE void window_sums(const char **at, const int16_t *const row[], int channels,
                           bool wide, __m512i sum[])
{
    int32_t base = ((const int32_t *)(const void *)*at)[0];
    int32_t pairs = ((const int32_t *)(const void *)*at)[1];
    __m512i low[3], high[3];

#pragma GCC unroll 3
    for (int c = 0; c < channels; c++) {
        sum[c] = _mm512_setzero_si512();
        low[c] = _mm512_loadu_si512(row[c] + base);
        high[c] = wide ? _mm512_loadu_si512(row[c] + base + 32) : low[c];
    }
    *at += 64;
    for (int32_t k = 0; k < pairs; k++, *at += 128) {
        __m512i index = _mm512_load_si512(*at), weight = _mm512_load_si512(*at + 64);

#pragma GCC unroll 3
        for (int c = 0; c < channels; c++) {
            __m512i v = wide ? _mm512_permutex2var_epi16(low[c], index, high[c])
                             : _mm512_permutexvar_epi16(index, low[c]);

            sum[c] = weigh(sum[c], v, weight);
        }
    }
}

/* `channels` and `wide` are constants at each call. */
HR_INLINE void
across_windows(const struct hr_axis *x, const int16_t *const row[], float *const out[],
               const struct hr_finish finish[], int channels, bool wide)
{
    const char *at = (const char *)x->packed + 64;

    for (int32_t i = 0; i < x->count; i += 16) {
        __m512i sum[3];

        window_sums(&at, row, channels, wide, sum);
#pragma GCC unroll 3
        for (int c = 0; c < channels; c++)
            finish_sums(out[c] + i, low_mask((size_t)(x->count - i)), sum[c], &finish[c]);
    }
}

static void
across_i16(const struct hr_axis *x, const int16_t *const row[], float *const out[],
           const struct hr_finish finish[], int32_t channels)
{
    int form = ((const struct across *)x->packed)->form;

    if (form < ACROSS_FORMS)
        across_run(x, row, out, finish, channels, form);
    else if (channels == 3 && form == WINDOW_32)
        across_windows(x, row, out, finish, 3, false);
    else if (channels == 3)
        across_windows(x, row, out, finish, 3, true);
    else
        for (int32_t c = 0; c < channels; c++)
            across_windows(x, row + c, out + c, finish + c, 1, form == WINDOW_64);
}

/* Sum * scale is exact, so fusing the addition would not change the result. */
HR_INLINE __m512 level_of(__m512i sum, const struct hr_finish *finish)
{
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(finish->scale),
                           _mm512_set1_ps(finish->bias));
}

/* `shared` (chroma has luma's geometry), `wide` and `wide_chroma` are constants at each
 * call. */
HR_INLINE void ycc_windows(const struct hr_axis *luma, const struct hr_axis *chroma,
                           const int16_t *const row[], float *const out[],
                           const struct hr_finish finish[], const struct hr_ycc_end *by,
                           bool shared, bool wide, bool wide_chroma)
{
    const char *at = (const char *)luma->packed + 64;
    const char *at_chroma = (const char *)chroma->packed + 64;
    /* local copies: tells the compiler that stores do not alias them */
    const struct hr_finish chroma_finish = finish[1];
    const struct hr_ycc_end end = *by;
    const int16_t *const from[3] = {row[0], row[1], row[2]};
    float *const to[3] = {out[0], out[1], out[2]};

    for (int32_t i = 0; i < luma->count; i += 16) {
        __mmask16 mask = low_mask((size_t)(luma->count - i));
        __m512i sum[3];
        struct rgb p;

        window_sums(&at, from, shared ? 3 : 1, wide, sum);
        if (!shared)
            window_sums(&at_chroma, from + 1, 2, wide_chroma, sum + 1);
        p = ycc_to_rgb(_mm512_cvtepi32_ps(sum[0]), level_of(sum[1], &chroma_finish),
                       level_of(sum[2], &chroma_finish));
        _mm512_mask_storeu_ps(to[0] + i, mask, ycc_finish(p.r, &end, 0, end.round));
        _mm512_mask_storeu_ps(to[1] + i, mask, ycc_finish(p.g, &end, 1, end.round));
        _mm512_mask_storeu_ps(to[2] + i, mask, ycc_finish(p.b, &end, 2, end.round));
    }
}

static bool across_ycc(const struct hr_axis *luma, const struct hr_axis *chroma,
                       const int16_t *const row[], float *const out[],
                       const struct hr_finish finish[], const struct hr_ycc_end *end)
{
    int form = ((const struct across *)luma->packed)->form;
    int chroma_form = ((const struct across *)chroma->packed)->form;
    bool wide = form == WINDOW_64, wide_chroma = chroma_form == WINDOW_64;

    if (form < ACROSS_FORMS || chroma_form < ACROSS_FORMS)
        return false;
    if (luma == chroma && wide)
        ycc_windows(luma, luma, row, out, finish, end, true, true, true);
    else if (luma == chroma)
        ycc_windows(luma, luma, row, out, finish, end, true, false, false);
    else if (wide_chroma)
        ycc_windows(luma, chroma, row, out, finish, end, false, true, true);
    else if (wide)
        ycc_windows(luma, chroma, row, out, finish, end, false, true, false);
    else
        ycc_windows(luma, chroma, row, out, finish, end, false, false, false);
    return true;
}

const struct hr_rows hr__rows_avx512 = {
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
    .across_ycc = across_ycc,
    .pack_bytes = pack_bytes,
    .pack = pack,
    .across_f32 = x86_across_f32,
    .warp_rgb = x86_warp_rgb,
    .places_rgb = x86_places_rgb,
    HR_ROWS_FLOAT,
};
