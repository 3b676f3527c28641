/*
 * core/perm.c - see perm.h.
 *
 * The bits of an index are split into a low and a high part (equal, or low one bit
 * longer); rounds change them in turn by a hash of the other. Results outside [0, n) are
 * put through again: at most two turns on average. Eight rounds because six fail for
 * small n; below 4096 even eight do (pairs of positions, chi-square), hence the table.
 */
#include "core/perm.h"
#include "core/cpu.h"
#include "core/rng.h"

#include <string.h>

#define ROUNDS 8
#define RUN 64 /* a multiple of 8 */
#define MIX_1 0x9E3779B97F4A7C15
#define MIX_2 0xD6E8FEB86659FD93

static void draw_keys(struct hr_perm *perm, uint64_t seed, uint64_t stream)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {(uint32_t)stream, (uint32_t)(stream >> 32), 0x7065726d, 0};

    for (int i = 0; i < ROUNDS; i += 2) {
        uint32_t word[4];

        counter[3] = (uint32_t)i;
        hr__philox4x32(counter, key, word);
        perm->key[i] = (uint64_t)word[1] << 32 | word[0];
        perm->key[i + 1] = (uint64_t)word[3] << 32 | word[2];
    }
}

/* Fisher-Yates from the inside out. */
static void shuffle_table(struct hr_perm *perm, uint64_t seed, uint64_t stream)
{
    struct hr_rng rng;

    hr__rng_init(&rng, seed, 0x7461626c, stream, 0);
    for (uint32_t i = 0; i < perm->n; i++) {
        uint32_t at = (uint32_t)hr__rng_below(&rng, i + 1);

        perm->table[i] = perm->table[at];
        perm->table[at] = (uint16_t)i;
    }
}

void hr__perm_init(struct hr_perm *perm, uint64_t n, uint64_t seed, uint64_t stream,
                   uint16_t *table)
{
    memset(perm, 0, sizeof *perm);
    perm->n = n;
    if (n < HR_PERM_TABLE) {
        perm->table = table;
        shuffle_table(perm, seed, stream);
    } else {
        unsigned bits = 64 - (unsigned)__builtin_clzll(n - 1);

        perm->low_bits = (bits + 1) / 2;
        perm->high_bits = bits / 2;
        draw_keys(perm, seed, stream);
    }
}

static inline uint64_t mix(uint64_t half, uint64_t key, uint32_t bits)
{
    uint64_t x = (half ^ key) * MIX_1;

    x = (x ^ x >> 32) * MIX_2;
    return x >> (64 - bits);
}

static inline uint64_t turn(const struct hr_perm *perm, uint64_t x)
{
    uint64_t low = x & (((uint64_t)1 << perm->low_bits) - 1), high = x >> perm->low_bits;

    for (int i = 0; i < ROUNDS; i += 2) {
        high ^= mix(low, perm->key[i], perm->high_bits);
        low ^= mix(high, perm->key[i + 1], perm->low_bits);
    }
    return high << perm->low_bits | low;
}

uint64_t hr__perm_map(const struct hr_perm *perm, uint64_t at)
{
    if (perm->table != NULL)
        return perm->table[at];
    do
        at = turn(perm, at);
    while (at >= perm->n);
    return at;
}

static void turn_c(const struct hr_perm *perm, uint64_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = turn(perm, values[i]);
}

#if defined(__x86_64__)
/* turn() for `count` values, a multiple of 8. AVX-512 multiplies 64 bits in one
 * instruction: 7.2 ns per index where plain C takes 16 (n = 1281167, EPYC). AVX2 does
 * not, and came out slower than plain C (30 ns). */
typedef uint64_t lanes __attribute__((vector_size(64)));

__attribute__((target("avx512f,avx512dq"))) static void
turn_avx512(const struct hr_perm *perm, uint64_t *values, uint32_t count)
{
    const uint32_t low_bits = perm->low_bits;
    const uint32_t low_shift = 64 - low_bits, high_shift = 64 - perm->high_bits;

    for (uint32_t at = 0; at < count; at += 8) {
        lanes x, low, high;

        memcpy(&x, values + at, sizeof x);
        low = x & (((uint64_t)1 << low_bits) - 1);
        high = x >> low_bits;
        for (int i = 0; i < ROUNDS; i += 2) {
            x = (low ^ perm->key[i]) * MIX_1;
            high ^= ((x ^ x >> 32) * MIX_2) >> high_shift;
            x = (high ^ perm->key[i + 1]) * MIX_1;
            low ^= ((x ^ x >> 32) * MIX_2) >> low_shift;
        }
        x = high << low_bits | low;
        memcpy(values + at, &x, sizeof x);
    }
}
#endif

static void turn_many(const struct hr_perm *perm, uint64_t *values, uint32_t count)
{
#if defined(__x86_64__)
    if (hr__isa() == HR_ISA_AVX512) {
        turn_avx512(perm, values, (count + 7) & ~7U);
        return;
    }
#endif
    turn_c(perm, values, count);
}

/* A turn for all; those that fell outside move together and get another. */
static void
map_some(const struct hr_perm *perm, uint64_t at, uint32_t count, uint64_t *out)
{
    uint64_t values[RUN] = {0};
    uint32_t slots[RUN];

    for (uint32_t i = 0; i < count; i++) {
        values[i] = at + i;
        slots[i] = i;
    }
    while (count > 0) {
        uint32_t left = 0;

        turn_many(perm, values, count);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t value = values[i];
            uint32_t slot = slots[i];

            out[slot] = value;
            values[left] = value;
            slots[left] = slot;
            left += value >= perm->n;
        }
        count = left;
    }
}

void hr__perm_map_run(const struct hr_perm *perm, uint64_t at, size_t count,
                      uint64_t *out)
{
    if (perm->table != NULL) {
        for (size_t i = 0; i < count; i++)
            out[i] = perm->table[at + i];
        return;
    }
    for (size_t done = 0; done < count; done += RUN) {
        size_t some = count - done < RUN ? count - done : RUN;

        map_some(perm, at + done, (uint32_t)some, out + done);
    }
}
