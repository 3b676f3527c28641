/*
 * codec/bpe_scan_avx2.c - the scanner of pattern r50k with AVX2.
 */
#include <immintrin.h>
#include <stdint.h>

struct masks;
static inline uint64_t mask_ascii(const uint8_t *bytes, struct masks *m);

#define SCAN_NAME hr__bpe_scan_r50k_avx2
#define MASKS mask_ascii
#define LOWEST_BIT(bits) _tzcnt_u64(bits)
#include "codec/bpe_scan_rows.h"

/* Bytes in [low, low + count). */
static inline __m256i within(__m256i bytes, char low, char count)
{
    __m256i from = _mm256_sub_epi8(bytes, _mm256_set1_epi8(low));

    return _mm256_cmpeq_epi8(_mm256_min_epu8(from, _mm256_set1_epi8((char)(count - 1))),
                             from);
}

static inline uint64_t join(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
}

static inline uint64_t mask_ascii(const uint8_t *bytes, struct masks *m)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)bytes);
    __m256i b = _mm256_loadu_si256((const __m256i *)(bytes + 32));
    const __m256i lower = _mm256_set1_epi8(0x20), space = _mm256_set1_epi8(' '),
                  apostrophe = _mm256_set1_epi8('\'');
    uint64_t wide;

    wide = join(a, b);
    m->letter = join(within(_mm256_or_si256(a, lower), 'a', 26),
                     within(_mm256_or_si256(b, lower), 'a', 26));
    m->number = join(within(a, '0', 10), within(b, '0', 10));
    m->space = join(_mm256_cmpeq_epi8(a, space), _mm256_cmpeq_epi8(b, space));
    m->white = m->space | join(within(a, '\t', 5), within(b, '\t', 5));
    m->apostrophe =
        join(_mm256_cmpeq_epi8(a, apostrophe), _mm256_cmpeq_epi8(b, apostrophe));
    m->other = ~(m->letter | m->number | m->white | wide);
    return wide;
}
