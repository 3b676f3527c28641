/*
 * core/rng.c - Philox4x32-10 and the draws made from it.
 *
 * Plain C: a record draws about eight numbers, 15 ns next to 100 us in kernels. Those
 * that draw noise for each pixel take many words at once.
 */
#include "core/rng.h"

#include <assert.h>
#include <math.h>

/* Values of hr_rng.used: all words of the block are drawn; no block was made yet. */
#define EMPTY 4
#define FRESH 5

void hr__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * c0;
        uint64_t b = (uint64_t)0xCD9E8D57 * c2;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void hr__rng_init(struct hr_rng *rng, uint64_t key, uint32_t epoch, uint64_t record)
{
    rng->key[0] = (uint32_t)key;
    rng->key[1] = (uint32_t)(key >> 32);
    rng->counter[0] = (uint32_t)record;
    rng->counter[1] = (uint32_t)(record >> 32);
    rng->counter[2] = epoch;
    rng->counter[3] = 0;
    rng->used = FRESH;
}

uint32_t hr__rng_u32(struct hr_rng *rng)
{
    if (rng->used >= EMPTY) {
        assert(rng->counter[3] != 0 || rng->used == FRESH);
        hr__philox4x32(rng->counter, rng->key, rng->word);
        rng->counter[3]++;
        rng->used = 0;
    }
    return rng->word[rng->used++];
}

/* Blocks side by side, which compilers turn into vectors. */
#define SIDE 8

/* The next SIDE blocks of the stream. */
static void make_blocks(const struct hr_rng *rng, uint32_t *ret_words)
{
    uint32_t c0[SIDE], c1[SIDE], c2[SIDE], c3[SIDE];
    uint32_t k0 = rng->key[0], k1 = rng->key[1];

    for (uint32_t i = 0; i < SIDE; i++) {
        c0[i] = rng->counter[0];
        c1[i] = rng->counter[1];
        c2[i] = rng->counter[2];
        c3[i] = rng->counter[3] + i;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < SIDE; i++) {
            uint64_t a = (uint64_t)0xD2511F53 * c0[i];
            uint64_t b = (uint64_t)0xCD9E8D57 * c2[i];

            c0[i] = (uint32_t)(b >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)b;
            c2[i] = (uint32_t)(a >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)a;
        }
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    for (int i = 0; i < SIDE; i++, ret_words += 4) {
        ret_words[0] = c0[i];
        ret_words[1] = c1[i];
        ret_words[2] = c2[i];
        ret_words[3] = c3[i];
    }
}

void hr__rng_words(struct hr_rng *rng, uint32_t *ret_words, size_t count)
{
    for (; count > 0 && rng->used < EMPTY; count--)
        *ret_words++ = hr__rng_u32(rng);
    for (; count >= 4 * SIDE && rng->counter[3] <= UINT32_MAX - SIDE; count -= 4 * SIDE) {
        make_blocks(rng, ret_words);
        rng->counter[3] += SIDE;
        rng->used = EMPTY;
        ret_words += 4 * SIDE;
    }
    for (; count > 0; count--)
        *ret_words++ = hr__rng_u32(rng);
}

uint64_t hr__rng_u64(struct hr_rng *rng)
{
    uint64_t low = hr__rng_u32(rng);

    return (uint64_t)hr__rng_u32(rng) << 32 | low;
}

float hr__rng_float(struct hr_rng *rng)
{
    return (float)(hr__rng_u32(rng) >> 8) * 0x1p-24F;
}

double hr__rng_double(struct hr_rng *rng)
{
    return (double)(hr__rng_u64(rng) >> 11) * 0x1p-53;
}

double hr__rng_uniform(struct hr_rng *rng, double low, double high)
{
    double at = hr__rng_double(rng);
    double value = low + (high - low) * at;

    if (!(low < high))
        return low;
    if (isinf(high - low))
        value = low * (1 - at) + high * at;
    /* Rounding may reach the open end of the interval. */
    return value < high ? value : nextafter(high, low);
}

uint64_t hr__rng_below(struct hr_rng *rng, uint64_t n)
{
    unsigned __int128 product;
    uint64_t floor;

    assert(n >= 1);
    product = (unsigned __int128)hr__rng_u64(rng) * n;
    if ((uint64_t)product >= n)
        return (uint64_t)(product >> 64);
    floor = -n % n; /* 2^64 mod n: smaller low products would bias the result */
    while ((uint64_t)product < floor)
        product = (unsigned __int128)hr__rng_u64(rng) * n;
    return (uint64_t)(product >> 64);
}

double hr__rng_normal(struct hr_rng *rng)
{
    const double pi = 3.14159265358979323846;
    double far = 1 - hr__rng_double(rng), angle = 2 * pi * hr__rng_double(rng);

    return sqrt(-2 * log(far)) * cos(angle);
}

/* Marsaglia, Tsang: "A Simple Method for Generating Gamma Variables", 2000. A shape below
 * 1 is that of shape + 1 times a power of a uniform number. */
double hr__rng_log_gamma(struct hr_rng *rng, double shape)
{
    double less = 0, d, c;

    assert(shape > 0);
    if (shape < 1) {
        less = log(1 - hr__rng_double(rng)) / shape;
        shape += 1;
    }
    d = shape - 1.0 / 3;
    c = 1 / sqrt(9 * d);
    for (;;) {
        double x = hr__rng_normal(rng), t = 1 + c * x, v = t * t * t;
        double u = 1 - hr__rng_double(rng);

        if (v > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + less;
    }
}

double hr__rng_beta(struct hr_rng *rng, double a, double b)
{
    double x = hr__rng_log_gamma(rng, a), y = hr__rng_log_gamma(rng, b);

    return 1 / (1 + exp(y - x));
}

void hr__rng_dirichlet(struct hr_rng *rng, double alpha, int count, double *ret_shares)
{
    double most = -INFINITY, sum = 0;

    for (int i = 0; i < count; i++) {
        ret_shares[i] = hr__rng_log_gamma(rng, alpha);
        most = fmax(most, ret_shares[i]);
    }
    for (int i = 0; i < count; i++) {
        ret_shares[i] = exp(ret_shares[i] - most);
        sum += ret_shares[i];
    }
    for (int i = 0; i < count; i++)
        ret_shares[i] /= sum;
}
