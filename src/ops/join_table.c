/*
 * ops/join_table.c - a hash table of the keys of records, in groups of equal ones.
 */
#include "ops/join_table.h"

#include <string.h>

#include "core/alloc.h"

const char *hr__join_key(const struct hr_join_keys *keys, size_t at, size_t *ret_bytes)
{
    size_t from = at * sizeof(int64_t), to = from + sizeof(int64_t);

    if (!keys->integers) {
        from = at > 0 ? (size_t)keys->ends[at - 1] : 0;
        to = (size_t)keys->ends[at];
    }
    *ret_bytes = to - from;
    return keys->bytes + from;
}

bool hr__join_key_add(struct hr_join_keys *keys, size_t at, const char *key, size_t bytes)
{
    if (!hr__array_room(&keys->bytes, keys->length, &keys->room, bytes + 1, 1))
        return false;
    if (bytes > 0)
        memcpy(keys->bytes + keys->length, key, bytes);
    keys->length += bytes;
    if (!keys->integers)
        keys->ends[at] = keys->length;
    return true;
}

void hr__join_keys_finish(struct hr_join_keys *keys)
{
    hr__free(keys->bytes);
    hr__free(keys->ends);
}

void hr__join_table_finish(struct hr_join_table *t)
{
    hr__join_keys_finish(&t->keys);
    hr__free(t->buckets);
    hr__free(t->next_group);
    hr__free(t->last);
    hr__free(t->size);
    hr__free(t->next);
}

bool hr__join_keys_init(struct hr_join_keys *keys, size_t count, bool integers)
{
    *keys = (struct hr_join_keys){.integers = integers};
    if (!integers)
        keys->ends = hr__calloc(count + 1, sizeof *keys->ends);
    return integers || keys->ends != NULL;
}

bool hr__join_table_init(struct hr_join_table *t, size_t records, bool integers)
{
    size_t buckets = 16;

    while (buckets < records + records / 2)
        buckets *= 2;
    *t = (struct hr_join_table){.mask = (uint32_t)(buckets - 1)};
    t->buckets = hr__malloc(buckets * sizeof *t->buckets);
    t->next_group = hr__calloc(records + 1, sizeof *t->next_group);
    t->last = hr__calloc(records + 1, sizeof *t->last);
    t->size = hr__calloc(records + 1, sizeof *t->size);
    t->next = hr__calloc(records + 1, sizeof *t->next);
    if (!hr__join_keys_init(&t->keys, records, integers) || t->buckets == NULL ||
        t->next_group == NULL || t->last == NULL || t->size == NULL || t->next == NULL)
        return false;
    memset(t->buckets, 0xff, buckets * sizeof *t->buckets); /* HR_JOIN_NONE */
    return true;
}

uint32_t hr__join_table_find(const struct hr_join_table *t, uint64_t hash,
                             const char *key, size_t bytes)
{
    for (uint32_t at = t->buckets[hash & t->mask]; at != HR_JOIN_NONE;
         at = t->next_group[at]) {
        size_t length;
        const char *other = hr__join_key(&t->keys, at, &length);

        if (length == bytes && memcmp(other, key, bytes) == 0)
            return at;
    }
    return HR_JOIN_NONE;
}

void hr__join_table_enter(struct hr_join_table *t, uint32_t record, uint64_t hash)
{
    size_t bytes;
    const char *key = hr__join_key(&t->keys, record, &bytes);
    uint32_t group = hr__join_table_find(t, hash, key, bytes),
             *bucket = &t->buckets[hash & t->mask];

    t->next[record] = HR_JOIN_NONE;
    if (group == HR_JOIN_NONE) {
        t->next_group[record] = *bucket;
        t->last[record] = record;
        t->size[record] = 1;
        *bucket = record;
        return;
    }
    t->next[t->last[group]] = record;
    t->last[group] = record;
    t->size[group]++;
}
