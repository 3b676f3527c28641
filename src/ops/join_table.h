/*
 * ops/join_table.h - a hash table of the keys of records, in groups of equal ones.
 *
 * Keys are kept, so that equal hashes are no equal keys. Integers are kept as their 8
 * bytes. A caller that looks up many keys first fetches what each lookup will read.
 */
#ifndef HR_OPS_JOIN_TABLE_H
#define HR_OPS_JOIN_TABLE_H

#include "core/error.h"

#include <stddef.h>
#include <stdint.h>

#define HR_JOIN_NONE UINT32_MAX

/* Keys, one after the other. */
struct hr_join_keys {
    bool integers;
    char *bytes;
    size_t length, room;
    uint64_t *ends; /* of texts: where each ends */
};

/* Keys for up to `count` records; false if out of memory. Call hr__join_keys_finish()
 * also after failure. */
HR_CHECK bool hr__join_keys_init(struct hr_join_keys *keys, size_t count, bool integers);
void hr__join_keys_finish(struct hr_join_keys *keys);

/* Adds the key of record `at`, the one after the last; an integer has 8 bytes. False if
 * out of memory. */
HR_CHECK bool
hr__join_key_add(struct hr_join_keys *keys, size_t at, const char *key, size_t bytes);

/* The key of record `at`; valid until the next one is added. */
const char *hr__join_key(const struct hr_join_keys *keys, size_t at, size_t *ret_bytes);

/* Groups of records with equal keys. */
struct hr_join_table {
    struct hr_join_keys keys;
    uint32_t *buckets, mask;
    /* By record. Of the first one of a group: the next group of its bucket, the last
     * record and the number of records of the group; of all: the next of the group. */
    uint32_t *next_group, *last, *size, *next;
};

/* For fewer than HR_JOIN_NONE records; false if out of memory. Call
 * hr__join_table_finish() also after failure. */
HR_CHECK bool hr__join_table_init(struct hr_join_table *t, size_t records, bool integers);
void hr__join_table_finish(struct hr_join_table *t);

/* The first record with the key, whose hash is given, or HR_JOIN_NONE. */
uint32_t hr__join_table_find(const struct hr_join_table *t, uint64_t hash,
                             const char *key, size_t bytes);

/* Puts a record, whose key is in t->keys, last in the group of its key. */
void hr__join_table_enter(struct hr_join_table *t, uint32_t record, uint64_t hash);

/* Prefetches the bucket of a hash. */
static inline void hr__join_table_fetch(const struct hr_join_table *t, uint64_t hash)
{
    __builtin_prefetch(&t->buckets[hash & t->mask], 1);
}

/* Prefetches the first group of the bucket, which is in the cache. */
static inline void
hr__join_table_fetch_group(const struct hr_join_table *t, uint64_t hash)
{
    uint32_t at = t->buckets[hash & t->mask];

    if (at == HR_JOIN_NONE)
        return;
    if (t->keys.integers)
        __builtin_prefetch(t->keys.bytes + at * sizeof(int64_t));
    else
        __builtin_prefetch(&t->keys.ends[at]);
    __builtin_prefetch(&t->last[at], 1);
    __builtin_prefetch(&t->size[at]);
}

#endif
