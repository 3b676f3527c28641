/*
 * core/hash.h - XXH3 (128 and 64 bits) for fingerprints, digests and checksums.
 */
#ifndef HR_CORE_HASH_H
#define HR_CORE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct hr_hash128 {
    uint64_t low, high;
};

#define HR_HASH_TEXT_BYTES 33 /* 32 hex digits and the terminating NUL */

struct hr_hash128 hr__hash128(const void *data, size_t bytes);
uint64_t hr__hash64(const void *data, size_t bytes, uint64_t seed);
/* The same of the parts' bytes, one part after another. */
uint64_t hr__hash64_parts(const struct iovec *parts, size_t count, uint64_t seed);
bool hr__hash_equal(struct hr_hash128 a, struct hr_hash128 b);
void hr__hash_text(struct hr_hash128 hash,
                   char ret_text[HR_HASH_TEXT_BYTES]); /* high half first */
/* Reads what hr__hash_text writes; false if it is not 32 hex digits. */
bool hr__hash_parse(const char *text, struct hr_hash128 *ret_hash);

/* Streaming. create returns NULL when out of memory. */
struct hr_hasher;
struct hr_hasher *hr__hasher_create(void);
void hr__hasher_add(struct hr_hasher *hasher, const void *data, size_t bytes);
struct hr_hash128 hr__hasher_value(const struct hr_hasher *hasher);
void hr__hasher_destroy(struct hr_hasher *hasher);

#endif
