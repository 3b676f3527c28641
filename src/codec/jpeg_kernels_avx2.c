/*
 * codec/jpeg_kernels_avx2.c - the inner loops for AVX2.
 */
#define VEC __m256i
#define V(op) _mm256_##op
#define _mm256_xor_si _mm256_xor_si256
#define _mm256_or_si _mm256_or_si256
#define _mm256_and_si _mm256_and_si256
#define _mm256_andnot_si _mm256_andnot_si256
#define _mm256_setzero_si _mm256_setzero_si256
#define FIRST_INTEGERS _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
#define GATHER(base, index) _mm256_i32gather_epi32((const int *)(base), index, 4)
#define LANES 2
#define LOAD(p) _mm256_loadu_si256((const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((void *)(p), v)
#define EVERY_LANE(v) _mm256_broadcastsi128_si256(v)
#define IS_ALL_UPTO_0(v)                                                                 \
    (_mm256_movemask_epi8(_mm256_cmpgt_epi16(v, _mm256_setzero_si256())) == 0)

#include "codec/jpeg_rows.h"
#include "codec/jpeg_scan.h"

#include <immintrin.h>

static inline uint32_t copy_32(const uint8_t *from, uint8_t *to)
{
    __m256i v = _mm256_loadu_si256((const void *)from);

    _mm256_storeu_si256((void *)to, v);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8(-1)));
}

static inline uint64_t copy_64(const uint8_t *from, uint8_t *to)
{
    uint64_t low = copy_32(from, to);

    return low | (uint64_t)copy_32(from + 32, to + 32) << 32;
}

static inline void store_low_halves(uint16_t *to, __m256i v)
{
    __m128i low = _mm256_castsi256_si128(v), high = _mm256_extracti128_si256(v, 1);

    _mm_storeu_si128((void *)to, _mm_packus_epi32(low, high));
}

/* Two rows of two blocks, one block per lane. */
static inline void put_bytes8(__m256i rows, uint8_t *out, ptrdiff_t stride)
{
    __m256i v = _mm256_permute4x64_epi64(rows, 0xD8);

    _mm_storeu_si128((void *)out, _mm256_castsi256_si128(v));
    _mm_storeu_si128((void *)(out + stride), _mm256_extracti128_si256(v, 1));
}

/* Four rows of two blocks. */
static inline void put_rows4(__m256i rows, uint8_t *out, ptrdiff_t stride)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i v = _mm256_permutevar8x32_epi32(rows, order);
    __m128i low, high;

    low = _mm256_castsi256_si128(v);
    high = _mm256_extracti128_si256(v, 1);
    _mm_storel_epi64((void *)out, low);
    _mm_storel_epi64((void *)(out + stride), _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64((void *)(out + 2 * stride), high);
    _mm_storel_epi64((void *)(out + 3 * stride), _mm_unpackhi_epi64(high, high));
}

#include "codec/jpeg_x86.h"

static inline __m256i load_16(const uint8_t *at)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)at));
}

static inline __m128i bytes_of(__m256i v)
{
    return _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* Byte i of the 48 interleaved ones comes from byte i / 3 of colour i % 3. */
#define T(i, c) ((i) % 3 == (c) ? (i) / 3 : -1)
#define T4(i, c) T(i, c), T(i + 1, c), T(i + 2, c), T(i + 3, c)
#define T16(i, c) _mm_setr_epi8(T4(i, c), T4(i + 4, c), T4(i + 8, c), T4(i + 12, c))
#define THIRD(i)                                                                         \
    _mm_or_si128(                                                                        \
        _mm_or_si128(_mm_shuffle_epi8(r, T16(i, 0)), _mm_shuffle_epi8(g, T16(i, 1))),    \
        _mm_shuffle_epi8(b, T16(i, 2)))

static void
rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, int32_t n)
{
    int32_t i = 0;

    for (; i + 16 <= n; i += 16, out += 48) {
        struct colours c = colours_of(load_16(y + i), load_16(cb + i), load_16(cr + i));
        __m128i r = bytes_of(c.r), g = bytes_of(c.g), b = bytes_of(c.b);

        _mm_storeu_si128((void *)out, THIRD(0));
        _mm_storeu_si128((void *)(out + 16), THIRD(16));
        _mm_storeu_si128((void *)(out + 32), THIRD(32));
    }
    rgb_scalar(y + i, cb + i, cr + i, out, n - i);
}

const struct hr_jpeg_kernels hr__jpeg_kernels_avx2 = {
    .unstuff = unstuff,
    .make_skip = make_skip_gather,
    .skip = skip_mcus,
    .decode = decode_mcus,
    .idct = {c_idct_1, idct_2, idct_4, idct_8},
    .wider = wider,
    .wider_between = wider_between,
    .between = between,
    .rgb = rgb,
};
