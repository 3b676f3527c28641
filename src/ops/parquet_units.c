/*
 * ops/parquet_units.c - what is kept of Parquet files: pages, dictionaries, and columns
 * of row groups as they are stored.
 */
#include "ops/parquet_units.h"

#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/error.h"
#include "store/reader.h"

#define KEEP_UNITS_LEAST 2 /* in a run with a memory budget: a page, its dictionary */
#define UNIT_BYTES ((uint64_t)1 << 20) /* of one, until some were made */

/* ---- the cache ---- */

/* files->mutex is held. */
static void drop_oldest(struct hr_parquet_files *files)
{
    struct hr_parquet_unit *unit = (void *)files->cached_units.oldest;

    hr__lru_remove(&files->cached_units, &unit->link);
    files->cached_bytes -= unit->bytes;
    files->cached--;
    hr_buffer_unref(unit->buffer);
    unit->buffer = NULL;
}

/* The largest unit of each column; *ret_max is that of all. files->mutex is held. */
static uint64_t row_bytes(const struct hr_parquet_files *files, uint64_t *ret_max)
{
    uint64_t bytes = 0;

    *ret_max = 0;
    for (size_t i = 0; i < files->columns.count; i++) {
        uint64_t unit = files->unit_max[i] > 0 ? files->unit_max[i] : UNIT_BYTES;

        bytes += unit;
        *ret_max = unit > *ret_max ? unit : *ret_max;
    }
    return bytes;
}

/* Whether the units are no more than what stays whatever cache_bytes is. files->mutex is
 * held. */
static bool are_few(const struct hr_parquet_files *files)
{
    uint64_t max;

    if (files->strict)
        return files->cached_bytes <= KEEP_UNITS_LEAST * row_bytes(files, &max);
    return files->cached <= HR_PARQUET_KEEP_UNITS * files->columns.count;
}

/* files->mutex is held. */
static void trim(struct hr_parquet_files *files)
{
    while (files->cached_bytes > files->cache_bytes && !are_few(files))
        drop_oldest(files);
}

void hr__parquet_files_limit(struct hr_parquet_files *files, uint64_t cache_bytes,
                             bool strict)
{
    pthread_mutex_lock(&files->mutex);
    files->cache_bytes = cache_bytes;
    files->strict = strict;
    trim(files);
    pthread_mutex_unlock(&files->mutex);
    hr__pool_keep(files->pool, strict ? 1 : 0);
}

/* A thread has a page of each column, and makes one, which takes its bytes as they are
 * stored, as they are unpacked, and as they are decoded. */
void hr__parquet_files_kept(struct hr_parquet_files *files, struct hr_op_kept *ret_kept)
{
    uint64_t row, max, columns = files->columns.count;

    pthread_mutex_lock(&files->mutex);
    row = row_bytes(files, &max);
    pthread_mutex_unlock(&files->mutex);
    ret_kept->fixed = files->group_count *
                      (sizeof *files->groups + columns * sizeof(struct hr_parquet_part));
    ret_kept->least = KEEP_UNITS_LEAST * row;
    ret_kept->thread = row + 2 * max;
}

enum hr_err
hr__parquet_unit_make(struct hr_parquet_make *make, struct hr_parquet_unit *unit,
                      hr_parquet_make_fn *run, struct hr_buffer **ret_buffer)
{
    struct hr_parquet_files *files = make->files;
    struct hr_buffer *buffer = NULL;
    uint64_t bytes = 0;
    enum hr_err code = run(make, &buffer, &bytes);

    pthread_mutex_lock(&files->mutex);
    unit->busy = false;
    if (code == HR_OK) {
        unit->buffer = hr_buffer_ref(buffer);
        unit->bytes = bytes;
        hr__lru_add(&files->cached_units, &unit->link);
        files->cached_bytes += bytes;
        files->cached++;
        if (bytes > files->unit_max[make->column])
            files->unit_max[make->column] = bytes;
        trim(files);
    }
    pthread_cond_broadcast(&files->changed);
    pthread_mutex_unlock(&files->mutex);
    *ret_buffer = buffer;
    return code;
}

struct hr_buffer *
hr__parquet_unit_find(struct hr_parquet_files *files, struct hr_parquet_unit *unit)
{
    if (unit->buffer == NULL)
        return NULL;
    hr__lru_use(&files->cached_units, &unit->link);
    return hr_buffer_ref(unit->buffer);
}

enum hr_err
hr__parquet_unit_get(struct hr_parquet_make *make, struct hr_parquet_unit *unit,
                     hr_parquet_make_fn *run, struct hr_buffer **ret_buffer)
{
    struct hr_parquet_files *files = make->files;

    pthread_mutex_lock(&files->mutex);
    while (unit->buffer == NULL && unit->busy)
        pthread_cond_wait(&files->changed, &files->mutex);
    *ret_buffer = hr__parquet_unit_find(files, unit);
    if (*ret_buffer == NULL)
        unit->busy = true;
    pthread_mutex_unlock(&files->mutex);
    return *ret_buffer != NULL ? HR_OK
                               : hr__parquet_unit_make(make, unit, run, ret_buffer);
}

/* ---- columns of row groups in other stores ---- */

void hr__parquet_raw_range(const struct hr_parquet_make *make, struct hr_range *ret_range)
{
    const struct hr_parquet_file *file = &make->files->files[make->group->file];

    ret_range->offset = make->part->chunk.at;
    ret_range->bytes = make->part->chunk.bytes;
    ret_range->identity = file->identity;
    memcpy(ret_range->uri, file->uri, strlen(file->uri) + 1);
}

static enum hr_err
read_range(struct hr_parquet_make *make, const struct hr_range *range, void *to)
{
    struct hr_object object;
    struct hr_buffer *buffer;
    size_t bytes;
    enum hr_err code;
    bool waited;

    if (make->reader != NULL) {
        code = hr__reader_take(make->reader, range, &buffer, make->error);
        if (code == HR_OK) {
            memcpy(to, hr_buffer_data(buffer), (size_t)range->bytes);
            hr_buffer_unref(buffer);
        }
        if (code != HR_ERR_LIMIT)
            return code;
    }
    HR_TRY(hr__range_open(range, &object, &bytes, make->error));
    code = hr__store_read(&object, range->offset, to, bytes, NULL, &waited, make->error);
    hr__store_close(&object);
    return code;
}

/* hr_parquet_make_fn: the stored bytes. */
static enum hr_err
fetch(struct hr_parquet_make *make, struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    struct hr_range *range = hr__malloc(sizeof *range);
    enum hr_err code;

    if (range == NULL)
        return hr__fail(make->error, HR_ERR_MEMORY, "out of memory");
    hr__parquet_raw_range(make, range);
    *ret_bytes = range->bytes;
    *ret_buffer = NULL;
    if (range->bytes > make->files->page_max)
        code = hr__fail(make->error, HR_ERR_LIMIT,
                        "%s: row group %u: column \"%s\" is larger than page_max (%llu "
                        "bytes)",
                        range->uri, (unsigned)make->group->number,
                        make->files->columns.items[make->column].name,
                        (unsigned long long)make->files->page_max);
    else if ((*ret_buffer = hr_buffer_create((size_t)range->bytes)) == NULL)
        code = hr__fail(make->error, HR_ERR_MEMORY, "out of memory for %llu bytes",
                        (unsigned long long)range->bytes);
    else
        code = read_range(make, range, hr_buffer_data(*ret_buffer));
    if (code != HR_OK) {
        hr_buffer_unref(*ret_buffer);
        *ret_buffer = NULL;
    }
    hr__free(range);
    return code;
}

enum hr_err hr__parquet_raw_get(struct hr_parquet_make *make, const uint8_t **ret_data,
                                struct hr_buffer **ret_owner)
{
    const struct hr_parquet_file *file = &make->files->files[make->group->file];

    *ret_owner = NULL;
    if (file->is_mapped) {
        *ret_data = (const uint8_t *)file->map.data + make->part->chunk.at;
        return HR_OK;
    }
    HR_TRY(hr__parquet_unit_get(make, &make->part->raw, fetch, ret_owner));
    *ret_data = hr_buffer_data(*ret_owner);
    return HR_OK;
}
