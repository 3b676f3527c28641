/*
 * core/rng.h - randomness as a function: Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
 * "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11).
 *
 * A stream is named by (seed, epoch, record, node); the n-th draw from it is always the
 * same number, whichever thread asks, whenever. Key = seed; counter = (record low, record
 * high, epoch, node << 12 | block) (at most 2^12 blocks of 4 words per stream and 2^20
 * nodes; draws beyond wrap into the next block number and assert in debug builds).
 */
#ifndef HR_CORE_RNG_H
#define HR_CORE_RNG_H

#include <stdint.h>

/* One block: out = philox4x32-10(counter, key). */
void hr__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

struct hr_rng {
    uint32_t key[2], counter[4];
    uint32_t word[4];
    uint32_t used; /* words of `word` already drawn; 4 = none left */
};

/* At the first draw of the stream of that name. */
void hr__rng_init(struct hr_rng *rng, uint64_t seed, uint32_t epoch, uint64_t record,
                  uint32_t node);

/* All 32 or 64 bits. */
uint32_t hr__rng_u32(struct hr_rng *rng);
uint64_t hr__rng_u64(struct hr_rng *rng);

/* Uniform in [0, 1) with 24 bits (float) or 53 bits (double). */
float hr__rng_float(struct hr_rng *rng);
double hr__rng_double(struct hr_rng *rng);

/* Uniform in [low, high). low == high gives low and still draws. */
double hr__rng_uniform(struct hr_rng *rng, double low, double high);

/* Uniform integer in [0, n), unbiased (Lemire's multiply with rejection); n >= 1. */
uint64_t hr__rng_below(struct hr_rng *rng, uint64_t n);

#endif
