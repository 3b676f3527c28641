/*
 * core/crc32c.c - CRC-32C with the processor's instruction where there is one, else with
 * tables, eight bytes at a time (Kounavis and Berry, "Novel Table Lookup-Based Algorithms
 * for High-Performance CRC Generation", 2008).
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
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t
with_instruction(uint32_t crc, const unsigned char *at, size_t bytes)
{
    uint64_t wide = crc, word;

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
    /* Every processor with AVX2 has SSE 4.2. */
    return ~(hr__isa() >= HR_ISA_AVX2 ? with_instruction(~crc, data, bytes)
                                      : with_tables(~crc, data, bytes));
}
#else
uint32_t hr__crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return ~with_tables(~crc, data, bytes);
}
#endif
