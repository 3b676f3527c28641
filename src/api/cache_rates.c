/*
 * api/cache_rates.c - see cache_rates.h. By CPU time, so that other processes disturb it
 * little; the fastest of a few passes.
 *
 * Entries in memory are written to pages that the process has not had before, which the
 * system must first clear: on virtual machines that takes several times as long as the
 * copy. The allocator would hand the passes pages that are warm, so that part is measured
 * on a mapping of its own.
 */
#include "api/cache_rates.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "headrace/buffer.h"
#include "store/cache.h"

#define SMALL_BYTES ((size_t)512)
#define LARGE_BYTES ((size_t)256 << 10)
#define SMALL_ENTRIES 64
#define LARGE_ENTRIES 16
#define PASSES 4
#define BUDGET ((uint64_t)64 << 20)
#define FRESH_BYTES ((size_t)8 << 20)

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
    hr__cache_close(r.cache);
    hr_pool_unref(r.pool);
    hr__free(r.value);
    return code;
}

/* Bytes/s at which pages that are new to the process are written; 0: not known. */
static double fresh_rate(void)
{
    uint64_t began;
    double ns;
    void *pages = mmap(NULL, FRESH_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED)
        return 0;
    began = hr__cpu_thread_ns();
    memset(pages, 1, FRESH_BYTES);
    ns = (double)(hr__cpu_thread_ns() - began);
    munmap(pages, FRESH_BYTES);
    return ns > 0 ? (double)FRESH_BYTES / ns * 1e9 : 0;
}

static enum hr_err measure_memory(struct hr_cache_medium *medium, struct hr_error *reterr)
{
    double fresh;

    HR_TRY(measure_in(NULL, medium, reterr));
    fresh = fresh_rate();
    if (fresh > 0 && (medium->write_rate == 0 || fresh < medium->write_rate))
        medium->write_rate = fresh;
    return HR_OK;
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
        return measure_memory(medium, reterr);
    HR_TRY(hr__file_make_folder(folder, 0777, reterr));
    if ((size_t)snprintf(path, sizeof path, "%s/measure-XXXXXX", folder) >= sizeof path ||
        mkdtemp(path) == NULL)
        return hr__fail(reterr, HR_ERR_IO, "cannot make a folder in %s", folder);
    code = measure_in(path, medium, reterr);
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return code;
}
