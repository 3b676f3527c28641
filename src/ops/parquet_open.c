/*
 * ops/parquet_open.c - the footers of Parquet files.
 */
#include "ops/parquet_units.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "ops/parquet_where.h"
#include "store/unpack.h"
#include "store/window.h"

#define TAIL_BYTES 65536 /* that are read for the footer at first */

/* ---- opening ---- */

struct open {
    struct hr_parquet_files *files;
    struct hr_parquet_file *file;
    struct hr_window *window;
    struct hr_hasher *hasher;
    const struct hr_names *names;
    bool keep_bounds;
    struct hr_error *error;
};

static enum hr_err no_memory(const struct open *open)
{
    return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for the row groups of %s",
                    open->file->uri);
}

/* That the library of a codec is there, before rows are read. */
static enum hr_err check_codec(const struct open *open, int codec)
{
    struct hr_unpack *unpack = NULL;
    struct hr_error why = {0};
    enum hr_err code;

    if (codec != HR_PARQUET_ZSTD || open->files->has_zstd)
        return HR_OK;
    code = hr__unpack_create(HR_PACKING_ZSTD, &unpack, &why);
    if (code != HR_OK)
        return hr__fail(open->error, code, "%s: %s", open->file->uri, why.message);
    hr__unpack_destroy(unpack);
    open->files->has_zstd = true;
    return HR_OK;
}

static enum hr_err
check_chunk(const struct open *open, const struct hr_parquet_chunk *chunk, size_t column,
            int64_t rows)
{
    const char *name = open->files->columns.items[column].name;
    const char *codec = hr__parquet_codec_name(chunk->codec);

    if (chunk->reason != NULL)
        return hr__fail(open->error, HR_ERR_UNSUPPORTED,
                        "%s: column \"%s\" is %s: choose others with columns",
                        open->file->uri, name, chunk->reason);
    if (codec == NULL || chunk->codec == HR_PARQUET_LZO ||
        chunk->codec == HR_PARQUET_BROTLI || chunk->codec == HR_PARQUET_LZ4_HADOOP)
        return hr__fail(open->error, HR_ERR_UNSUPPORTED,
                        "%s: column \"%s\" is compressed by %s, which is not read: write "
                        "it with snappy, zstd, gzip or lz4_raw, or uncompressed",
                        open->file->uri, name,
                        codec != NULL ? codec : "an unknown codec");
    if (chunk->values < rows ||
        (!open->file->storages[column].is_list && chunk->values != rows))
        return hr__fail(open->error, HR_ERR_FORMAT,
                        "%s: damaged Parquet footer: column \"%s\" has %lld values in a "
                        "row group of %lld rows",
                        open->file->uri, name, (long long)chunk->values, (long long)rows);
    return check_codec(open, chunk->codec);
}

static enum hr_err add_group(struct open *open, const struct hr_parquet_meta *meta,
                             size_t number, const size_t *leaves)
{
    struct hr_parquet_files *files = open->files;
    const struct hr_parquet_chunk *chunks = meta->chunks + number * meta->column_count;
    struct hr_parquet_group *group;

    if (meta->groups[number] == 0)
        return HR_OK;
    if (!hr__array_room(&files->groups, files->group_count, &files->group_room, 1,
                        sizeof *files->groups))
        return no_memory(open);
    group = &files->groups[files->group_count];
    *group = (struct hr_parquet_group){
        .first = files->records,
        .rows = (uint64_t)meta->groups[number],
        .file = (uint32_t)(open->file - files->files),
        .number = (uint32_t)number,
        .parts = hr__calloc(files->columns.count, sizeof *group->parts)};
    if (group->parts == NULL)
        return no_memory(open);
    files->group_count++;
    for (size_t i = 0; i < files->columns.count; i++) {
        int node = meta->leaves[leaves[i]].node;

        group->parts[i].chunk = chunks[node];
        HR_TRY(check_chunk(open, &group->parts[i].chunk, i, meta->groups[number]));
        if (!open->keep_bounds)
            continue;
        group->parts[i].bounds = hr__parquet_bounds_create(
            &files->columns.items[i], &open->file->storages[i],
            &meta->stats[number * meta->column_count + (size_t)node],
            meta->orders != NULL ? (enum hr_parquet_order)meta->orders[node]
                                 : HR_PARQUET_ORDER_NONE,
            chunks[node].values);
        if (group->parts[i].bounds == NULL)
            return no_memory(open);
    }
    files->records += group->rows;
    return HR_OK;
}

static enum hr_err use_meta(struct open *open, const struct hr_parquet_meta *meta)
{
    size_t leaves[HR_SCHEMA_FIELDS_MAX];

    HR_TRY(hr__columns_find(&open->files->columns, open->names, open->file->uri,
                            meta->leaves, meta->leaf_count, leaves, open->error));
    for (size_t i = 0; i < open->files->columns.count; i++)
        open->file->storages[i] = meta->storages[leaves[i]];
    for (size_t i = 0; i < meta->group_count; i++)
        HR_TRY(add_group(open, meta, i, leaves));
    return HR_OK;
}

static enum hr_err
read_footer(struct open *open, struct hr_parquet_meta *meta, struct hr_error *reterr)
{
    uint64_t size = open->window->object->bytes;
    const void *data;
    size_t bytes;

    if (size < HR_PARQUET_TAIL + HR_PARQUET_MARK_BYTES)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "it is no Parquet file, which has more than %llu bytes",
                        (unsigned long long)size);
    if (size > TAIL_BYTES) /* one request for most footers */
        HR_TRY(
            hr__window_get(open->window, size - TAIL_BYTES, TAIL_BYTES, &data, reterr));
    HR_TRY(hr__window_get(open->window, size - HR_PARQUET_TAIL, HR_PARQUET_TAIL, &data,
                          reterr));
    HR_TRY(hr__parquet_tail(data, &bytes, reterr));
    if (bytes > size - HR_PARQUET_TAIL)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "a footer of %zu bytes does not lie inside it: it is cut", bytes);
    HR_TRY(hr__window_get(open->window, size - HR_PARQUET_TAIL - bytes, bytes, &data,
                          reterr));
    hr__hasher_add(open->hasher, data, bytes);
    return hr__parquet_meta_read(data, bytes, size, meta, reterr);
}

/* hr_shard_read_fn */
static enum hr_err read_file(void *user, size_t at, struct hr_window *window,
                             struct hr_hasher *hasher, struct hr_error *reterr)
{
    struct open *open = user;
    struct hr_parquet_file *file = &open->files->files[at];
    struct hr_parquet_meta meta = {0};
    struct hr_error why = {0};
    enum hr_err code;

    open->file = file;
    open->window = window;
    open->hasher = hasher;
    file->identity = window->object->identity;
    HR_TRY(hr__columns_map(window, at, &file->map, &file->is_mapped, reterr));
    code = read_footer(open, &meta, &why);
    if (code != HR_OK)
        code = hr__fail(reterr, code, "%s: %s", file->uri, why.message);
    else
        code = use_meta(open, &meta);
    hr__parquet_meta_finish(&meta);
    return code;
}

static enum hr_err
find_files(struct hr_parquet_files *files, const char *pattern, struct hr_error *reterr)
{
    HR_TRY(hr__shards_find(pattern, ".parquet", false, &files->shards, reterr));
    files->files = hr__shards_items(&files->shards, sizeof *files->files, reterr);
    if (files->files == NULL)
        return HR_ERR_MEMORY;
    files->file_count = files->shards.count;
    return HR_OK;
}

enum hr_err
hr__parquet_files_open(const char *pattern, const struct hr_names *columns,
                       uint64_t page_max, bool keep_bounds,
                       struct hr_parquet_files **ret_files, struct hr_error *reterr)
{
    struct hr_parquet_files *files = hr__calloc(1, sizeof *files);
    struct open open = {
        .files = files, .names = columns, .keep_bounds = keep_bounds, .error = reterr};
    enum hr_err code;

    if (files == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    pthread_mutex_init(&files->mutex, NULL);
    pthread_cond_init(&files->changed, NULL);
    files->page_max = page_max;
    files->pool = hr_pool_create(0);
    code = files->pool != NULL ? find_files(files, pattern, reterr)
                               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK)
        code =
            hr__shards_read(&files->shards, read_file, &open, &files->identity, reterr);
    if (code == HR_OK)
        *ret_files = files;
    else
        hr__parquet_files_close(files);
    return code;
}
