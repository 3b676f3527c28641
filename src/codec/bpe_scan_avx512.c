/*
 * codec/bpe_scan_avx512.c - the scanner of pattern r50k with AVX-512.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

struct masks;
static inline uint64_t mask_ascii(const uint8_t *bytes, struct masks *m);
static inline size_t list_bits(uint64_t bits, uint32_t base, uint32_t *to);

#define SCAN_NAME hr__bpe_scan_r50k_avx512
#define MASKS mask_ascii
#define LIST_BITS
#include "codec/bpe_scan_rows.h"

/* Bytes in [low, low + count). */
static inline uint64_t within(__m512i bytes, char low, char count)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8(low)),
                                  _mm512_set1_epi8(count));
}

static inline uint64_t mask_ascii(const uint8_t *bytes, struct masks *m)
{
    __m512i b = _mm512_loadu_si512(bytes);
    uint64_t wide;

    wide = _mm512_movepi8_mask(b);
    m->letter = within(_mm512_or_si512(b, _mm512_set1_epi8(0x20)), 'a', 26);
    m->number = within(b, '0', 10);
    m->space = _mm512_cmpeq_epi8_mask(b, _mm512_set1_epi8(' '));
    m->white = m->space | within(b, '\t', 5);
    m->apostrophe = _mm512_cmpeq_epi8_mask(b, _mm512_set1_epi8('\''));
    m->other = ~(m->letter | m->number | m->white | wide);
    return wide;
}

/* Sixteen numbers at a time, of which those whose bit is set move to the front. */
static inline size_t list_bits(uint64_t bits, uint32_t base, uint32_t *to)
{
    const __m512i count =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i numbers = _mm512_add_epi32(count, _mm512_set1_epi32((int)base));
    uint32_t *from = to;

    for (int i = 0; i < 4; i++, bits >>= 16) {
        __mmask16 some = (__mmask16)bits;

        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(some, numbers));
        numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
        to += __builtin_popcount(some);
    }
    return (size_t)(to - from);
}
