/*
 * core/rng.h - randomness as a function: Philox4x32-10 (Salmon, Moraes, Dror, Shaw:
 * "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11).
 *
 * A stream is named by (key, epoch, record); its n-th draw is always the same number,
 * whichever thread asks, whenever. Philox's key is `key`; its counter is (record low,
 * record high, epoch, block), so that a stream has 2^32 blocks of 4 words and two streams
 * of one key never share a block. Draws beyond the last block start over at the first one
 * of the same stream, and assert in debug builds. How records and nodes become keys:
 * hr__record_rng in op/op.h, docs/decisions/0015-identity-and-randomness.md.
 */
#ifndef HR_CORE_RNG_H
#define HR_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* One block: out = philox4x32-10(counter, key). */
void hr__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

struct hr_rng {
    uint32_t key[2], counter[4];
    uint32_t word[4];
    uint32_t used; /* words of `word` already drawn; 4 or more = none left */
};

/* Positions the generator at the first draw of the stream. */
void hr__rng_init(struct hr_rng *rng, uint64_t key, uint32_t epoch, uint64_t record);

/* A bijection of 64 bits that spreads small numbers (the finalizer of SplitMix64); 0
 * stays 0. */
static inline uint64_t hr__rng_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

/* All 32 or 64 bits. */
uint32_t hr__rng_u32(struct hr_rng *rng);
uint64_t hr__rng_u64(struct hr_rng *rng);

/* The next `count` words, as that many calls of hr__rng_u32 give them. */
void hr__rng_words(struct hr_rng *rng, uint32_t *ret_words, size_t count);

/* Uniform in [0, 1) with 24 bits (float) or 53 bits (double). */
float hr__rng_float(struct hr_rng *rng);
double hr__rng_double(struct hr_rng *rng);

/* Uniform in [low, high). low == high gives low and still draws. */
double hr__rng_uniform(struct hr_rng *rng, double low, double high);

/* Normal with mean 0 and deviation 1 (Box and Muller; the second number is not used). */
double hr__rng_normal(struct hr_rng *rng);

/* The logarithm of a draw of the gamma distribution with this shape (> 0) and scale 1:
 * the draw itself may be smaller than any double. */
double hr__rng_log_gamma(struct hr_rng *rng, double shape);

/* Beta distributed, a and b > 0: in [0, 1]. */
double hr__rng_beta(struct hr_rng *rng, double a, double b);

/* `count` shares, which add up to 1, of the Dirichlet distribution whose parameters are
 * all `alpha` (> 0). */
void hr__rng_dirichlet(struct hr_rng *rng, double alpha, int count, double *ret_shares);

/* Uniform integer in [0, n), unbiased (Lemire's multiply with rejection); n >= 1. */
uint64_t hr__rng_below(struct hr_rng *rng, uint64_t n);

#endif
