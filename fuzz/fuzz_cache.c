/*
 * fuzz/fuzz_cache.c - any bytes as the files of a cache in a folder: as they are, then
 * with the head and all checksums of entries repaired. What is found has the checksum
 * that its entry says, and the cache can be added to.
 *
 * The last third of the bytes, in steps of 64, is the file of values, the rest the index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "store/cache_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ENTRY ((size_t)64)

static char folder[64], inner[128];

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[192];

    snprintf(path, sizeof path, "%s/%s", inner, name);
    if (hr__file_replace(path, data, bytes, NULL) != HR_OK)
        abort();
}

/* Nobody has it open, so it can be evicted. */
static void remove_all(void)
{
    (void)hr__cache_evict(folder, "/none");
}

static struct hr_cache *open_cache(void)
{
    struct hr_cache_options options = {.folder = folder, .bytes_max = 1 << 20};
    struct hr_cache *cache = NULL;

    if (hr__cache_open(&options, &cache, NULL) != HR_OK)
        abort();
    return cache;
}

static void use(const char *index, size_t index_bytes)
{
    static struct hr_pool *pool;
    struct hr_cache *cache = open_cache();
    struct hr_cache_value value;

    if (pool == NULL)
        pool = hr_pool_create(0);
    if (pool == NULL)
        abort();
    for (size_t at = ENTRY; at + ENTRY <= index_bytes; at += ENTRY) {
        struct hr_hash128 key;

        memcpy(&key, index + at, sizeof key);
        if (hr__cache_get(cache, key, pool, &value) != HR_CACHE_BYTES)
            continue;
        if (value.bytes == 0 || value.bytes > 1 << 20)
            abort();
        hr_buffer_unref(value.owner);
    }
    if (hr__cache_room(cache, 100, pool, &value)) {
        struct hr_hash128 key = {1, 2};

        memset(value.data, 7, 100);
        hr__cache_put(cache, key, &value);
        if (!hr__cache_holds(cache, key))
            abort();
    }
    hr__cache_close(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t values = bytes / 3 / ENTRY * ENTRY, index = bytes - values;
    struct hr_hash128 none = {0, 0};
    char name[HR_CACHE_NAME_BYTES], *copy;

    if (bytes > 1 << 16)
        return 0;
    snprintf(folder, sizeof folder, "/dev/shm/fuzz-cache-%d", (int)getpid());
    hr__cache_name(none, name);
    snprintf(inner, sizeof inner, "%s/%s", folder, name);
    copy = hr__malloc(index + ENTRY);
    if (copy == NULL)
        return 0;
    if (index > 0)
        memcpy(copy, data, index);
    for (int repaired = 0; repaired < 2; repaired++) {
        if (hr__file_make_folder(inner, 0777, NULL) != HR_OK)
            abort();
        if (repaired && index >= ENTRY)
            memcpy(copy, "HRCACHE\0\1\0\0\0", 12);
        for (size_t at = ENTRY; repaired && at + ENTRY <= index; at += ENTRY) {
            uint32_t crc = hr__crc32c(0, copy + at, ENTRY - sizeof crc);

            memcpy(copy + at + ENTRY - sizeof crc, &crc, sizeof crc);
        }
        write_file("a.values", data + index, values);
        write_file("a.index", copy, index);
        use(copy, index);
        remove_all();
    }
    hr__free(copy);
    (void)rmdir(folder);
    return 0;
}
