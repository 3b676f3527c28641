/*
 * store/index_pack.c - sorts the names of a folder and packs them: the common prefix and
 * suffix once, then the middles, contiguously.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "store/index_internal.h"
#include <endian.h>
#include <stdlib.h>
#include <string.h>

static int compare_entries(const void *a, const void *b)
{
    const struct hr_index_entry *x = a, *y = b;
    int order;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    order = memcmp(x->name, y->name, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static uint32_t
same_front(const struct hr_index_entry *a, const struct hr_index_entry *b, uint32_t most)
{
    uint32_t at = 0;

    while (at < most && at < b->bytes && a->name[at] == b->name[at])
        at++;
    return at;
}

static uint32_t
same_end(const struct hr_index_entry *a, const struct hr_index_entry *b, uint32_t most)
{
    const char *a_end = a->name + a->bytes, *b_end = b->name + b->bytes;
    uint32_t at = 0;

    while (at < most && at < b->bytes &&
           a_end[-1 - (int64_t)at] == b_end[-1 - (int64_t)at])
        at++;
    return at;
}

/* Names hold no NUL, so those shorter than the key sort correctly when padded. */
static uint64_t sort_key(const struct hr_index_entry *entry, uint32_t prefix)
{
    uint64_t key = 0;
    size_t left = entry->bytes - prefix;

    memcpy(&key, entry->name + prefix, left < 8 ? left : 8);
    return be64toh(key);
}

static void find_shared(struct hr_index_lister *lister, uint32_t *ret_prefix,
                        uint32_t *ret_suffix, uint64_t *ret_total)
{
    struct hr_index_entry *files = lister->files;
    uint32_t prefix, suffix, least;
    uint64_t total = 0;

    for (size_t i = 0; i < lister->file_count; i++)
        files[i].name = lister->text.data + files[i].at;
    prefix = suffix = least = files[0].bytes < UINT16_MAX ? files[0].bytes : UINT16_MAX;
    for (size_t i = 0; i < lister->file_count; i++) {
        prefix = same_front(&files[0], &files[i], prefix);
        suffix = same_end(&files[0], &files[i], suffix);
        least = files[i].bytes < least ? files[i].bytes : least;
        total += files[i].bytes;
    }
    if (suffix > least - prefix)
        suffix = least - prefix;
    *ret_prefix = prefix;
    *ret_suffix = suffix;
    *ret_total = total;
}

enum hr_err hr__index_pack(struct hr_index_lister *lister, struct hr_index_folder *folder,
                           struct hr_error *reterr)
{
    struct hr_index_entry *files = lister->files;
    size_t count = lister->file_count;
    uint32_t prefix, suffix, at;
    uint64_t total;
    size_t bytes;
    uint32_t *offset;
    char *pool;

    if (count == 0)
        return HR_OK;
    find_shared(lister, &prefix, &suffix, &total);
    total = total - (uint64_t)count * (prefix + suffix) + prefix + suffix;
    if (count >= UINT32_MAX || total > UINT32_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "too many files in one folder");
    for (size_t i = 0; i < count; i++)
        files[i].key = sort_key(&files[i], prefix);
    qsort(files, count, sizeof *files, compare_entries);
    bytes = (count + 1) * sizeof *offset + (size_t)total;
    offset = hr__malloc(bytes);
    if (offset == NULL)
        return HR_ERR_MEMORY;
    pool = (char *)(offset + count + 1);
    memcpy(pool, files[0].name, prefix);
    memcpy(pool + prefix, files[0].name + files[0].bytes - suffix, suffix);
    at = prefix + suffix;
    for (size_t i = 0; i < count; i++) {
        size_t middle = files[i].bytes - prefix - suffix;

        offset[i] = at;
        memcpy(pool + at, files[i].name + prefix, middle);
        at += (uint32_t)middle;
    }
    offset[count] = at;
    folder->block = offset;
    folder->heap_bytes += bytes;
    folder->names = (struct hr_index_names){
        .offset = offset,
        .pool = pool,
        .pool_bytes = at,
        .count = (uint32_t)count,
        .prefix_bytes = (uint16_t)prefix,
        .suffix_bytes = (uint16_t)suffix,
    };
    return HR_OK;
}
