/*
 * core/perm.c - see perm.h.
 *
 * The bits of an index are split into a low and a high part (equal, or low one bit
 * longer); rounds change them in turn by a hash of the other. Results outside [0, n) are
 * put through again: at most two turns on average. Eight rounds because six fail for
 * small n; below 4096 even eight do (pairs of positions, chi-square), hence the table.
 */
#include "core/perm.h"
#include "core/alloc.h"
#include "core/rng.h"

#include <string.h>

#define TABLE_BELOW 4096
#define ROUNDS 8
#define RUN 64

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

enum hr_err
hr__perm_init(struct hr_perm *perm, uint64_t n, uint64_t seed, uint64_t stream)
{
    struct hr_perm fresh = {.n = n};

    if (n > (uint64_t)1 << 63)
        return HR_ERR_RANGE;
    if (n < TABLE_BELOW) {
        fresh.table = hr__calloc(n + 1, sizeof *fresh.table);
        if (fresh.table == NULL)
            return HR_ERR_MEMORY;
        shuffle_table(&fresh, seed, stream);
    } else {
        unsigned bits = 64 - (unsigned)__builtin_clzll(n - 1);

        fresh.low_bits = (bits + 1) / 2;
        fresh.high_bits = bits / 2;
        draw_keys(&fresh, seed, stream);
    }
    *perm = fresh;
    return HR_OK;
}

void hr__perm_finish(struct hr_perm *perm)
{
    hr__free(perm->table);
    perm->table = NULL;
}

static inline uint64_t mix(uint64_t half, uint64_t key, uint32_t bits)
{
    uint64_t x = (half ^ key) * 0x9E3779B97F4A7C15;

    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93;
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

/* First turn for all without a branch, then again for the few that fell outside. */
static void
map_some(const struct hr_perm *perm, uint64_t at, uint32_t count, uint64_t *out)
{
    const struct hr_perm local = *perm;
    uint32_t left[RUN], left_count = 0;

    for (uint32_t i = 0; i < count; i++)
        out[i] = turn(&local, at + i);
    for (uint32_t i = 0; i < count; i++) {
        left[left_count] = i;
        left_count += out[i] >= local.n;
    }
    while (left_count > 0) {
        uint32_t still = 0;

        for (uint32_t i = 0; i < left_count; i++) {
            uint32_t slot = left[i];

            out[slot] = turn(&local, out[slot]);
            left[still] = slot;
            still += out[slot] >= local.n;
        }
        left_count = still;
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
