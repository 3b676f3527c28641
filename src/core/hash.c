/*
 * core/hash.c - XXH3 from libxxhash. Not cryptographic: detects changes, not tampering.
 */
#define XXH_STATIC_LINKING_ONLY /* for XXH3_state_t's size: we allocate the state */
#include "core/hash.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/hash_avx2.h"

#include <stdio.h>
#include <xxhash.h>

#define WIDE_MIN 241 /* fewer bytes are hashed without vectors */

struct hr_hasher {
    XXH3_state_t state;
};

static struct hr_hash128 from_xxh(XXH128_hash_t hash)
{
    return (struct hr_hash128){.low = hash.low64, .high = hash.high64};
}

struct hr_hash128 hr__hash128(const void *data, size_t bytes)
{
#if defined(__x86_64__)
    if (bytes >= WIDE_MIN && hr__isa() >= HR_ISA_AVX2)
        return hr__hash128_avx2(data, bytes);
#endif
    return from_xxh(XXH3_128bits(data, bytes));
}

uint64_t hr__hash64(const void *data, size_t bytes, uint64_t seed)
{
#if defined(__x86_64__)
    if (bytes >= WIDE_MIN && hr__isa() >= HR_ISA_AVX2)
        return hr__hash64_avx2(data, bytes, seed);
#endif
    return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t hr__hash64_parts(const struct iovec *parts, size_t count, uint64_t seed)
{
    XXH3_state_t state;

#if defined(__x86_64__)
    if (hr__isa() >= HR_ISA_AVX2)
        return hr__hash64_parts_avx2(parts, count, seed);
#endif
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset_withSeed(&state, seed);
    for (size_t i = 0; i < count; i++)
        if (parts[i].iov_len > 0)
            (void)XXH3_64bits_update(&state, parts[i].iov_base, parts[i].iov_len);
    return XXH3_64bits_digest(&state);
}

bool hr__hash_equal(struct hr_hash128 a, struct hr_hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

void hr__hash_text(struct hr_hash128 hash, char ret_text[HR_HASH_TEXT_BYTES])
{
    snprintf(ret_text, HR_HASH_TEXT_BYTES, "%016llx%016llx",
             (unsigned long long)hash.high, (unsigned long long)hash.low);
}

bool hr__hash_parse(const char *text, struct hr_hash128 *ret_hash)
{
    uint64_t halves[2] = {0, 0};

    for (int i = 0; i < 32; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;

        if (digit < 0)
            return false;
        halves[i / 16] = halves[i / 16] << 4 | (unsigned)digit;
    }
    if (text[32] != '\0')
        return false;
    *ret_hash = (struct hr_hash128){.high = halves[0], .low = halves[1]};
    return true;
}

struct hr_hasher *hr__hasher_create(void)
{
    struct hr_hasher *hasher = hr__aligned_alloc(64, sizeof *hasher);

    if (hasher == NULL)
        return NULL;
    XXH3_INITSTATE(&hasher->state);
    (void)XXH3_128bits_reset(&hasher->state);
    return hasher;
}

void hr__hasher_add(struct hr_hasher *hasher, const void *data, size_t bytes)
{
    if (bytes != 0)
        (void)XXH3_128bits_update(&hasher->state, data, bytes);
}

struct hr_hash128 hr__hasher_value(const struct hr_hasher *hasher)
{
    return from_xxh(XXH3_128bits_digest(&hasher->state));
}

void hr__hasher_destroy(struct hr_hasher *hasher)
{
    hr__free(hasher);
}
