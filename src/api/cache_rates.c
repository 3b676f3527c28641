/*
 * api/cache_rates.c - see cache_rates.h. By CPU time, so that other processes disturb it
 * little; the fastest of a few passes.
 *
 * Entries in memory go to pages that are new to the process, which the system must first
 * clear: several times the work of the copy. On a virtual machine that returns free
 * memory to its host, the host must find the page first, which takes twenty times as long
 * as to clear it; but what was freed in the last seconds, perhaps by this process, is
 * still there. So a cache is filled until slow pages are found, or for a limited time.
 */
#include "api/cache_rates.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/file.h"
#include "headrace/buffer.h"
#include "store/cache.h"

#define SMALL_BYTES ((size_t)512)
#define LARGE_BYTES ((size_t)256 << 10)
#define SMALL_ENTRIES 64
#define LARGE_ENTRIES 16
#define PASSES 4
#define BUDGET ((uint64_t)64 << 20)
#define FILL_PART ((size_t)4 << 20)
#define FILL_PARTS 256
#define FILL_NS 150e6

struct rates {
    struct hr_cache *cache;
    struct hr_pool *pool;
    unsigned char *value;     /* LARGE_BYTES of it, that entries are copies of */
    uint64_t entry;           /* number of the next one */
    double write[2], read[2]; /* ns of a small and a large entry */
};

static struct hr_hash128 key_of(uint64_t entry)
{
    return hr__hash128(&entry, sizeof entry);
}

static bool write_entries(struct rates *r, size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hr_cache_value value;

        if (!hr__cache_room(r->cache, bytes, r->pool, &value))
            return false;
        memcpy(value.data, r->value, bytes);
        hr__cache_put(r->cache, key_of(r->entry + i), &value);
    }
    return true;
}

static bool read_entries(struct rates *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hr_cache_value value;

        if (hr__cache_get(r->cache, key_of(r->entry + i), r->pool, &value) !=
            HR_CACHE_BYTES)
            return false;
        hr_buffer_unref(value.owner);
    }
    return true;
}

static bool pass(struct rates *r, int large)
{
    size_t count = large ? LARGE_ENTRIES : SMALL_ENTRIES;
    uint64_t began = hr__cpu_thread_ns(), written;

    if (!write_entries(r, large ? LARGE_BYTES : SMALL_BYTES, count))
        return false;
    written = hr__cpu_thread_ns();
    if (!read_entries(r, count))
        return false;
    r->write[large] = fmin(r->write[large], (double)(written - began) / (double)count);
    r->read[large] =
        fmin(r->read[large], (double)(hr__cpu_thread_ns() - written) / (double)count);
    r->entry += count;
    return true;
}

/* From the times of a small and of a large entry. */
static void set_rate(const double ns[2], double *ret_ns, double *ret_rate)
{
    double per_byte = (ns[1] - ns[0]) / (double)(LARGE_BYTES - SMALL_BYTES);

    *ret_ns = ns[0];
    *ret_rate = per_byte > 0 ? 1e9 / per_byte : 0;
}

static enum hr_err
measure(struct rates *r, struct hr_cache_medium *medium, struct hr_error *reterr)
{
    struct hr_cache_stats stats;
    bool ok = true;

    for (int i = 0; i < 2; i++)
        r->write[i] = r->read[i] = HUGE_VAL;
    for (int i = 0; ok && i < PASSES; i++)
        ok = pass(r, 0) && pass(r, 1);
    if (!ok) {
        hr__cache_stats(r->cache, &stats);
        return hr__fail(reterr, HR_ERR_IO, "entries of a cache cannot be kept%s%s",
                        stats.reason[0] != '\0' ? ": " : "", stats.reason);
    }
    set_rate(r->write, &medium->write_ns, &medium->write_rate);
    set_rate(r->read, &medium->read_ns, &medium->read_rate);
    return HR_OK;
}

/* Parts that a fill may have: a small part of the memory. */
static size_t fill_parts(void)
{
    uint64_t parts = hr__memory_bytes() / 16 / FILL_PART;

    return parts < 1 ? 1 : parts < FILL_PARTS ? (size_t)parts : FILL_PARTS;
}

/* Fills an empty cache in memory. Its slabs are as large as a part, so each part has the
 * same number of new pages. */
static void fill_slabs(struct rates *r, struct hr_cache_medium *medium)
{
    double ns[FILL_PARTS], all = 0;
    size_t count = 0, parts = fill_parts();

    while (count < parts && all < FILL_NS) {
        uint64_t began = hr__cpu_thread_ns();

        if (!write_entries(r, LARGE_BYTES, FILL_PART / LARGE_BYTES))
            break;
        r->entry += FILL_PART / LARGE_BYTES;
        ns[count] = (double)(hr__cpu_thread_ns() - began);
        all += ns[count++];
    }
    if (count > 0)
        medium->write_rate = hr__cache_fill_rate(ns, count, (double)FILL_PART);
}

static enum hr_err
measure_fill(struct rates *r, struct hr_cache_medium *medium, struct hr_error *reterr)
{
    struct hr_cache_options options = {.bytes_max = 2 * (uint64_t)FILL_PARTS * FILL_PART};

    hr__cache_close(r->cache);
    r->cache = NULL;
    HR_TRY(hr__cache_open(&options, &r->cache, reterr));
    fill_slabs(r, medium);
    return HR_OK;
}

static enum hr_err
measure_in(const char *folder, struct hr_cache_medium *medium, struct hr_error *reterr)
{
    struct hr_cache_options options = {.folder = folder, .bytes_max = BUDGET};
    struct rates r = {.pool = hr_pool_create(0), .value = hr__malloc(LARGE_BYTES)};
    enum hr_err code = HR_OK;

    if (r.pool == NULL || r.value == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK) {
        memset(r.value, 1, LARGE_BYTES);
        code = hr__cache_open(&options, &r.cache, reterr);
    }
    if (code == HR_OK)
        code = measure(&r, medium, reterr);
    if (code == HR_OK && folder == NULL)
        code = measure_fill(&r, medium, reterr);
    hr__cache_close(r.cache);
    hr_pool_unref(r.pool);
    hr__free(r.value);
    return code;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

enum hr_err hr__cache_rates(const char *folder, struct hr_cache_medium *medium,
                            struct hr_error *reterr)
{
    char path[4096];
    enum hr_err code;

    if (folder == NULL)
        return measure_in(NULL, medium, reterr);
    HR_TRY(hr__file_make_folder(folder, 0777, reterr));
    if ((size_t)snprintf(path, sizeof path, "%s/measure-XXXXXX", folder) >= sizeof path ||
        mkdtemp(path) == NULL)
        return hr__fail(reterr, HR_ERR_IO, "cannot make a folder in %s", folder);
    code = measure_in(path, medium, reterr);
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return code;
}
