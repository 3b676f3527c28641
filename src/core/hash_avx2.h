/*
 * core/hash_avx2.h - private interface between hash.c and hash_avx2.c.
 */
#ifndef HR_CORE_HASH_AVX2_H
#define HR_CORE_HASH_AVX2_H

#include "core/hash.h"

uint64_t hr__hash64_avx2(const void *data, size_t bytes, uint64_t seed);
uint64_t hr__hash64_parts_avx2(const struct iovec *parts, size_t count, uint64_t seed);
struct hr_hash128 hr__hash128_avx2(const void *data, size_t bytes);

#endif
