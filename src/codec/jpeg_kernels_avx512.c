/*
 * codec/jpeg_kernels_avx512.c - the inner loops for AVX-512 (F, BW, DQ, VL, VBMI).
 */
#define VEC __m512i
#define V(op) _mm512_##op
#define _mm512_xor_si _mm512_xor_si512
#define _mm512_or_si _mm512_or_si512
#define _mm512_and_si _mm512_and_si512
#define _mm512_andnot_si _mm512_andnot_si512
#define _mm512_setzero_si _mm512_setzero_si512
#define FIRST_INTEGERS                                                                   \
    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define GATHER(base, index) _mm512_i32gather_epi32(index, base, 4)
#define LANES 4
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define EVERY_LANE(v) _mm512_broadcast_i32x4(v)
#define IS_ALL_UPTO_0(v) (_mm512_cmpgt_epi16_mask(v, _mm512_setzero_si512()) == 0)

#include "codec/jpeg_rows.h"
#include "codec/jpeg_scan.h"

#include <immintrin.h>

static inline uint64_t copy_64(const uint8_t *from, uint8_t *to)
{
    __m512i v = _mm512_loadu_si512(from);

    _mm512_storeu_si512(to, v);
    return _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(-1));
}

static inline void store_low_halves(uint16_t *to, __m512i v)
{
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16(v));
}

/* Two rows of four blocks, one block per lane. */
static inline void put_bytes8(__m512i rows, uint8_t *out, ptrdiff_t stride)
{
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    __m512i v = _mm512_permutexvar_epi64(order, rows);

    _mm256_storeu_si256((void *)out, _mm512_castsi512_si256(v));
    _mm256_storeu_si256((void *)(out + stride), _mm512_extracti64x4_epi64(v, 1));
}

/* Four rows of four blocks. */
static inline void put_rows4(__m512i rows, uint8_t *out, ptrdiff_t stride)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i v = _mm512_permutexvar_epi32(order, rows);

    _mm_storeu_si128((void *)out, _mm512_castsi512_si128(v));
    _mm_storeu_si128((void *)(out + stride), _mm512_extracti32x4_epi32(v, 1));
    _mm_storeu_si128((void *)(out + 2 * stride), _mm512_extracti32x4_epi32(v, 2));
    _mm_storeu_si128((void *)(out + 3 * stride), _mm512_extracti32x4_epi32(v, 3));
}

#include "codec/jpeg_x86.h"

static inline __mmask64 low_bytes(int32_t n)
{
    return n >= 64 ? ~0ull : (1ull << n) - 1;
}

static inline __m512i load_32(const uint8_t *at, __mmask32 mask)
{
    return _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mask, at));
}

static inline __m256i bytes_of(__m512i v)
{
    return _mm512_cvtusepi16_epi8(_mm512_max_epi16(v, _mm512_setzero_si512()));
}

/* Byte i of the 96 interleaved ones: red and green are in one register, blue in
 * another. */
#define T(i) ((i) % 3 == 2 ? 64 + (i) / 3 : (i) % 3 * 32 + (i) / 3)
#define T8(i) T(i), T(i + 1), T(i + 2), T(i + 3), T(i + 4), T(i + 5), T(i + 6), T(i + 7)
#define T64(i)                                                                           \
    T8(i), T8(i + 8), T8(i + 16), T8(i + 24), T8(i + 32), T8(i + 40), T8(i + 48),        \
        T8(i + 56)
static const uint8_t thirds[2][64] __attribute__((aligned(64))) = {{T64(0)}, {T64(64)}};

static void
rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, int32_t n)
{
    const __m512i first = _mm512_load_si512(thirds[0]),
                  second = _mm512_load_si512(thirds[1]);

    for (int32_t i = 0; i < n; i += 32, out += 96) {
        int32_t rest = n - i < 32 ? n - i : 32;
        __mmask32 in = (__mmask32)low_bytes(rest);
        struct colours c =
            colours_of(load_32(y + i, in), load_32(cb + i, in), load_32(cr + i, in));
        __m512i rg =
            _mm512_inserti64x4(_mm512_castsi256_si512(bytes_of(c.r)), bytes_of(c.g), 1);
        __m512i b = _mm512_castsi256_si512(bytes_of(c.b));

        _mm512_mask_storeu_epi8(out, low_bytes(3 * rest),
                                _mm512_permutex2var_epi8(rg, first, b));
        if (rest > 21)
            _mm256_mask_storeu_epi8(
                out + 64, (__mmask32)low_bytes(3 * rest - 64),
                _mm512_castsi512_si256(_mm512_permutex2var_epi8(rg, second, b)));
    }
}

const struct hr_jpeg_kernels hr__jpeg_kernels_avx512 = {
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
