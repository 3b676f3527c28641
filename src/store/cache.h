/*
 * store/cache.h - records that were made once, by key: in memory or in a folder.
 *
 * A value is bytes, or a mark: a key without bytes, that the maker gives a meaning. Keys
 * are 128-bit hashes. A cache is filled until its budget is used up and then only read:
 * where every record is wanted once per epoch, removing one to make room for another only
 * adds work (docs/decisions/0048-cache.md).
 *
 * In a folder, each process appends to files of its own and reads those of all; what
 * counts is in docs/formats/cache.md. Every value has a checksum: a damaged one is not
 * found. All functions may be called by any thread.
 */
#ifndef HR_STORE_CACHE_H
#define HR_STORE_CACHE_H

#include "core/hash.h"
#include "headrace/buffer.h"

struct hr_cache;

struct hr_cache_options {
    const char *folder;   /* NULL: in memory */
    uint64_t bytes_max;   /* 0, with a folder: while the disk has room */
    struct hr_hash128 of; /* values of caches with another one are never found */
};

/* HR_ERR_IO if the folder cannot be made or read. */
HR_CHECK enum hr_err hr__cache_open(const struct hr_cache_options *options,
                                    struct hr_cache **ret_cache, struct hr_error *reterr);
void hr__cache_close(struct hr_cache *cache);

enum hr_cache_found { HR_CACHE_NONE, HR_CACHE_BYTES, HR_CACHE_MARK };

/* Where a value lies: `bytes` bytes at `data`, in memory that `owner` keeps; the caller
 * has one reference to it. */
struct hr_cache_value {
    struct hr_buffer *owner;
    void *data;
    size_t bytes;
};

/* Sets *ret_value if it is BYTES; aligned to 64. `pool` gives memory for what is read
 * from a folder. */
HR_CHECK enum hr_cache_found
hr__cache_get(struct hr_cache *cache, struct hr_hash128 key, struct hr_pool *pool,
              struct hr_cache_value *ret_value);
/* Whether there is a value or a mark. Reads no value and is not counted. */
bool hr__cache_holds(struct hr_cache *cache, struct hr_hash128 key);

/* Memory for a value of `bytes` bytes, > 0, aligned to 64. False if the cache is full, or
 * there is no memory. Then hr__cache_put or hr_buffer_unref(value->owner). */
HR_CHECK bool hr__cache_room(struct hr_cache *cache, size_t bytes, struct hr_pool *pool,
                             struct hr_cache_value *ret_value);
/* Takes over the reference. A value that cannot be written is not kept; see
 * hr_cache_stats.full. */
void hr__cache_put(struct hr_cache *cache, struct hr_hash128 key,
                   struct hr_cache_value *value);
void hr__cache_mark(struct hr_cache *cache, struct hr_hash128 key);
/* The value is of no use: it is not found any more, and may be put again. */
void hr__cache_forget(struct hr_cache *cache, struct hr_hash128 key);

struct hr_cache_stats {
    uint64_t entries, bytes; /* bytes: what counts against the budget */
    uint64_t hits, misses;
    uint64_t damaged; /* values that were not what was written */
    uint64_t evicted; /* other caches that were removed from the folder */
    bool full;        /* nothing is added any more */
    char reason[192]; /* why */
};
void hr__cache_stats(struct hr_cache *cache, struct hr_cache_stats *ret_stats);

#endif
