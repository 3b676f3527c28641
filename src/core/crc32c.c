/*
 * core/crc32c.c - CRC-32C with the processor's instruction where there is one, else with
 * tables, eight bytes at a time (Kounavis and Berry, "Novel Table Lookup-Based Algorithms
 * for High-Performance CRC Generation", 2008).
 *
 * The instruction takes 3 cycles and can start in each, so three parts of a run of bytes
 * are summed side by side and joined by a carry-less product (Gopal et al., "Fast CRC
 * Computation for iSCSI Polynomial Using CRC32 Instruction", 2011).
 */
#include "core/crc32c.h"

#include <pthread.h>
#include <string.h>

#include "core/cpu.h"

#define POLYNOMIAL 0x82f63b78u /* bits reversed */

static uint32_t tables[8][256]; /* tables[k]: a byte that k bytes follow */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
}

static uint32_t with_tables(uint32_t crc, const unsigned char *at, size_t bytes)
{
    pthread_once(&once, make_tables);
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 |
                              (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);

        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^
              tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^ tables[3][at[4]] ^
              tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
    }
    for (; bytes > 0; at++, bytes--)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 255];
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define LANE_MAX 128 /* words of 8 bytes */
#define LANE_MIN 4

/* shifts[k]: x^(64 k - 33) modulo the polynomial, bits reversed. The product of a CRC and
 * this, reduced by the instruction, is the CRC after k words of zeros. */
static uint32_t shifts[2 * LANE_MAX + 1];
static pthread_once_t shifts_once = PTHREAD_ONCE_INIT;

static void make_shifts(void)
{
    uint32_t power = 0x80000000u; /* x^0 */

    for (int i = 0, k = 1; k <= 2 * LANE_MAX; i++) {
        if (i == 64 * k - 33)
            shifts[k++] = power;
        power = power >> 1 ^ (power & 1 ? POLYNOMIAL : 0);
    }
}

__attribute__((target("crc32,sse4.2,pclmul"))) static uint64_t
shift(uint64_t crc, size_t words)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                           _mm_cvtsi32_si128((int)shifts[words]), 0);

    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Three runs of `words` words. */
__attribute__((target("crc32,sse4.2,pclmul"))) static uint64_t
three_lanes(uint64_t a, const unsigned char *at, size_t words)
{
    uint64_t b = 0, c = 0, word[3];

    for (size_t i = 0; i < words; i++, at += 8) {
        memcpy(&word[0], at, 8);
        memcpy(&word[1], at + 8 * words, 8);
        memcpy(&word[2], at + 16 * words, 8);
        a = _mm_crc32_u64(a, word[0]);
        b = _mm_crc32_u64(b, word[1]);
        c = _mm_crc32_u64(c, word[2]);
    }
    return shift(a, 2 * words) ^ shift(b, words) ^ c;
}

__attribute__((target("crc32,sse4.2,pclmul"))) static uint32_t
with_instruction(uint32_t crc, const unsigned char *at, size_t bytes)
{
    uint64_t wide = crc, word;

    if (bytes >= 3 * 8 * LANE_MIN)
        pthread_once(&shifts_once, make_shifts);
    while (bytes >= 3 * 8 * LANE_MIN) {
        size_t words = bytes / 24 < LANE_MAX ? bytes / 24 : LANE_MAX;

        wide = three_lanes(wide, at, words);
        at += 24 * words;
        bytes -= 24 * words;
    }
    for (; bytes >= 8; at += 8, bytes -= 8) {
        memcpy(&word, at, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; bytes > 0; at++, bytes--)
        crc = _mm_crc32_u8(crc, *at);
    return crc;
}

uint32_t hr__crc32c(uint32_t crc, const void *data, size_t bytes)
{
    /* HR_ISA_AVX2 includes SSE 4.2 and PCLMULQDQ. */
    return ~(hr__isa() >= HR_ISA_AVX2 ? with_instruction(~crc, data, bytes)
                                      : with_tables(~crc, data, bytes));
}
#else
uint32_t hr__crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return ~with_tables(~crc, data, bytes);
}
#endif
