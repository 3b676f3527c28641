/*
 * ops/chunk_cache.h - unpacked chunks that all threads share.
 *
 * The chunk that was used last goes last. A thread that wants a chunk which another
 * makes waits for it.
 */
#ifndef HR_OPS_CHUNK_CACHE_H
#define HR_OPS_CHUNK_CACHE_H

#include "headrace/buffer.h"

struct hr_chunk_cache; /* thread-safe, but for create and destroy */

HR_CHECK enum hr_err
hr__chunk_cache_create(uint64_t bytes_max, struct hr_chunk_cache **ret_cache,
                       struct hr_error *reterr);
void hr__chunk_cache_destroy(struct hr_chunk_cache *cache); /* NULL is fine */
/* From now on it keeps this much. */
void hr__chunk_cache_limit(struct hr_chunk_cache *cache, uint64_t bytes_max);

/* Makes a chunk: called without a lock. */
typedef enum hr_err hr_chunk_make_fn(void *user, struct hr_buffer **ret_buffer);

/* Chunk `number` of `owner`, with a reference for the caller. Errors are those of `make`;
 * the next call tries again. */
HR_CHECK enum hr_err
hr__chunk_cache_get(struct hr_chunk_cache *cache, const void *owner, uint64_t number,
                    hr_chunk_make_fn *make, void *user, struct hr_buffer **ret_buffer);

/* Whether it is there, or a thread makes it. */
bool hr__chunk_cache_has(struct hr_chunk_cache *cache, const void *owner,
                         uint64_t number);

#endif
