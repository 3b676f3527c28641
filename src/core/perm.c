/*
 * core/perm.c - see perm.h.
 *
 * The bits of an index are split into a low and a high half (of equal size, or the low
 * one a bit larger); each round changes one half by a hash of the other, alternating. A
 * result outside [0, n) goes through the network again (cycle walking): two passes on
 * average at most. Eight rounds, because six fail the statistical tests for small n.
 * Below 4096 eight fail too (chi-square over pairs of positions), hence the table.
 */
#include "core/perm.h"

#include <assert.h>
#include <string.h>

#define ROUNDS 8
#define MIX_1 0x9E3779B97F4A7C15
#define MIX_2 0xD6E8FEB86659FD93

/* Inside-out Fisher-Yates. */
static void shuffle_table(struct hr_perm *perm, struct hr_rng *rng)
{
    for (uint32_t i = 0; i < perm->n; i++) {
        uint32_t at = (uint32_t)hr__rng_below(rng, i + 1);

        perm->table[i] = perm->table[at];
        perm->table[at] = (uint16_t)i;
    }
}

void hr__perm_init(struct hr_perm *perm, uint64_t n, struct hr_rng *rng, uint16_t *table)
{
    assert(n <= (uint64_t)1 << 63);
    memset(perm, 0, sizeof *perm);
    perm->n = n;
    if (n < HR_PERM_TABLE) {
        perm->table = table;
        shuffle_table(perm, rng);
    } else {
        unsigned bits = 64 - (unsigned)__builtin_clzll(n - 1);

        perm->low_bits = (bits + 1) / 2;
        perm->high_bits = bits / 2;
        for (int i = 0; i < ROUNDS; i++)
            perm->key[i] = hr__rng_u64(rng);
    }
}

static inline uint64_t mix(uint64_t half, uint64_t key, uint32_t bits)
{
    uint64_t x = (half ^ key) * MIX_1;

    x = (x ^ x >> 32) * MIX_2;
    return x >> (64 - bits);
}

static inline uint64_t permute_once(const struct hr_perm *perm, uint64_t x)
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
    assert(at < perm->n);
    if (perm->table != NULL)
        return perm->table[at];
    do
        at = permute_once(perm, at);
    while (at >= perm->n);
    return at;
}
