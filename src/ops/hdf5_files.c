/*
 * ops/hdf5_files.c - HDF5 files: which datasets are fields, and opening. hdf5_items.c
 * reads their items.
 */
#include "ops/hdf5_files.h"

#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/error.h"
#include "core/str.h"

/* ---- types ---- */

static enum hr_dtype dtype_of(const struct hr_hdf5_type *type)
{
    static const enum hr_dtype integers[2][9] = {
        {[1] = HR_U8, [2] = HR_U16, [4] = HR_I64, [8] = HR_I64},
        {[1] = HR_I8, [2] = HR_I16, [4] = HR_I32, [8] = HR_I64},
    };

    if (type->class == HR_HDF5_BOOL)
        return HR_BOOL;
    if (type->class == HR_HDF5_INTEGER)
        return integers[type->is_signed][type->bytes];
    if (type->is_brain)
        return HR_BF16;
    return type->bytes == 2 ? HR_F16 : type->bytes == 4 ? HR_F32 : HR_F64;
}

static bool is_number(const struct hr_hdf5_type *type)
{
    return type->class != HR_HDF5_TEXT && type->class != HR_HDF5_BYTES;
}

static enum hr_err
set_item(struct hr_hdf5_item *item, const struct hr_hdf5_dataset *dataset,
         const char *uri, struct hr_error *error)
{
    const struct hr_hdf5_type *type = &dataset->type;
    bool chunked = dataset->layout == HR_HDF5_CHUNKED;

    if (!is_number(type) && dataset->ndim + dataset->inner_ndim > 1)
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: dataset \"%.80s\": its items are several texts: leave it "
                        "out with fields",
                        uri, dataset->path);
    if (dataset->ndim + dataset->inner_ndim > HR_MAX_DIMS)
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: dataset \"%.80s\": it has more than %d dimensions: leave "
                        "it out with fields",
                        uri, dataset->path, HR_MAX_DIMS);
    *item = (struct hr_hdf5_item){
        .dataset = dataset,
        .bytes = dataset->stride,
        .slab = dataset->stride,
        .elements = 1,
        .inner = 1,
        .cells = 1,
        .npy = {.dtype = is_number(type) ? dtype_of(type) : HR_U8,
                .element_bytes = (uint8_t)(is_number(type) ? type->bytes : 1),
                .big_endian = type->big_endian && type->bytes > 1,
                .is_widened = type->class == HR_HDF5_INTEGER && !type->is_signed &&
                              type->bytes >= 4,
                .ndim = dataset->ndim + dataset->inner_ndim},
    };
    memcpy(item->npy.dims, dataset->dims, sizeof dataset->dims);
    for (int i = 0; i < dataset->inner_ndim; i++) {
        item->npy.dims[dataset->ndim + i] = dataset->inner_dims[i];
        item->inner *= (size_t)dataset->inner_dims[i];
    }
    item->scattered = item->inner * type->bytes != dataset->stride;
    for (int i = 1; i < dataset->ndim; i++) {
        if (__builtin_mul_overflow(item->bytes, (size_t)dataset->dims[i], &item->bytes) ||
            item->bytes > (size_t)INT64_MAX / 2)
            return hr__fail(error, HR_ERR_LIMIT,
                            "%s: dataset \"%.80s\": its items are larger than memory",
                            uri, dataset->path);
        item->elements *= (size_t)dataset->dims[i];
        item->slab *= chunked ? (size_t)dataset->chunk_dims[i] : 1;
        item->cells *= chunked ? (uint64_t)dataset->grid[i] : 1;
    }
    item->whole = !chunked || (item->cells == 1 && item->slab == item->bytes);
    return HR_OK;
}

/* ---- choosing datasets ---- */

static const struct hr_hdf5_dataset *find(const struct hr_hdf5 *hdf5, const char *path)
{
    for (size_t i = 0; i < hdf5->count; i++)
        if (strcmp(hdf5->datasets[i].path, path) == 0)
            return &hdf5->datasets[i];
    return NULL;
}

static enum hr_err
unknown(const struct hr_hdf5_source *file, const char *path, struct hr_error *error)
{
    const struct hr_hdf5 *hdf5 = &file->hdf5;
    const char **names = hr__calloc(hdf5->count + 1, sizeof *names);
    const char *near = NULL;
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; names != NULL && i < hdf5->count; i++) {
        names[i] = hdf5->datasets[i].path;
        hr__str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (names != NULL)
        near = hr__nearest(path, names, hdf5->count);
    memcpy(error->param, "fields", sizeof "fields");
    hr__fail(error, HR_ERR_ARGUMENT,
             "%s: no dataset is called \"%.80s\"%s%s%s; the datasets are %.400s",
             file->uri, path, near != NULL ? "; did you mean \"" : "",
             near != NULL ? near : "", near != NULL ? "\"?" : "",
             hdf5->count > 0 ? hr__str_text(&all) : "none");
    hr__str_finish(&all);
    hr__free(names);
    return HR_ERR_ARGUMENT;
}

static enum hr_err add_field(struct hr_hdf5_files *files, const char *name,
                             const char *path, const char *uri, struct hr_error *error)
{
    size_t length = strlen(name);
    char *to;

    if (files->count == HR_SCHEMA_FIELDS_MAX)
        return hr__fail(error, HR_ERR_LIMIT,
                        "%s: more datasets than a record can have fields (%d): choose "
                        "with fields",
                        uri, HR_SCHEMA_FIELDS_MAX);
    if (length == 0 || length > HR_FIELD_NAME_MAX || !hr__utf8_is_valid(name, length))
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "%s: the name of a field has 1 to %d bytes of UTF-8: name "
                        "dataset \"%.80s\" with fields={name: path}",
                        uri, HR_FIELD_NAME_MAX, path);
    to = files->names[files->count];
    memcpy(to, name, length + 1);
    for (; *to != '\0'; to++)
        *to = *to == '/' ? '_' : *to;
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->names[i], files->names[files->count]) == 0)
            return hr__fail(error, HR_ERR_ARGUMENT,
                            "%s: datasets \"%.80s\" and \"%.80s\" would be one field: "
                            "name them with fields={name: path}",
                            uri, files->paths[i], path);
    files->paths[files->count] = hr__strdup(path);
    if (files->paths[files->count] == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    files->count++;
    return HR_OK;
}

/* By the first file. */
static enum hr_err
choose(struct hr_hdf5_files *files, const struct hr_pairs *fields, struct hr_error *error)
{
    const struct hr_hdf5_source *file = &files->files[0];

    for (int i = 0; i < fields->count; i++) {
        const char *path = fields->values[i] + (fields->values[i][0] == '/');

        if (find(&file->hdf5, path) == NULL)
            return unknown(file, path, error);
        HR_TRY(add_field(files, fields->keys[i], path, file->uri, error));
    }
    for (size_t i = 0; i < file->hdf5.count && fields->count == 0; i++) {
        const struct hr_hdf5_dataset *dataset = &file->hdf5.datasets[i];

        if (dataset->why == NULL)
            HR_TRY(add_field(files, dataset->path, dataset->path, file->uri, error));
        else
            hr__str_addf(&files->note, "%s%s (%s)",
                         files->note.length == 0 ? "datasets that are left out: " : ", ",
                         dataset->path, dataset->why);
    }
    if (files->count > 0)
        return HR_OK;
    return hr__fail(error, HR_ERR_FORMAT,
                    "%s: it has no dataset that can be read%s%.200s", file->uri,
                    file->hdf5.count > 0 ? ": the first one: " : "",
                    file->hdf5.count > 0 ? file->hdf5.datasets[0].why : "");
}

/* ---- files ---- */

/* Whether the elements are as many as the file has bytes for. */
static bool in_file(const struct hr_hdf5_dataset *dataset)
{
    return dataset->layout == HR_HDF5_CONTIGUOUS && dataset->at != HR_HDF5_NONE;
}

static enum hr_err set_items(struct hr_hdf5_files *files, struct hr_hdf5_source *file,
                             struct hr_error *error)
{
    file->items = hr__calloc(files->count, sizeof *file->items);
    if (file->items == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < files->count; i++) {
        const struct hr_hdf5_dataset *dataset = find(&file->hdf5, files->paths[i]);

        if (dataset == NULL)
            return unknown(file, files->paths[i], error);
        if (dataset->why != NULL)
            return hr__fail(error, HR_ERR_UNSUPPORTED,
                            "%s: dataset \"%.80s\" cannot be read: %s", file->uri,
                            files->paths[i], dataset->why);
        HR_TRY(set_item(&file->items[i], dataset, file->uri, error));
        if (dataset->dims[0] != file->items[0].dataset->dims[0])
            return hr__fail(error, HR_ERR_SHAPE,
                            "%s: datasets \"%s\" and \"%s\" have %lld and %lld items: "
                            "choose with fields those that belong together",
                            file->uri, files->paths[0], files->paths[i],
                            (long long)file->items[0].dataset->dims[0],
                            (long long)dataset->dims[0]);
        if (dataset->chunk_bytes > files->unpacked_max)
            return hr__fail(error, HR_ERR_LIMIT,
                            "%s: dataset \"%s\": a chunk has %zu bytes, more than "
                            "unpacked_max (%llu)",
                            file->uri, files->paths[i], dataset->chunk_bytes,
                            (unsigned long long)files->unpacked_max);
        if (!in_file(dataset) && file->items[i].bytes > files->unpacked_max)
            return hr__fail(error, HR_ERR_LIMIT,
                            "%s: dataset \"%s\": an item has %zu bytes, more than "
                            "unpacked_max (%llu)",
                            file->uri, files->paths[i], file->items[i].bytes,
                            (unsigned long long)files->unpacked_max);
    }
    return HR_OK;
}

/* All files have items as the first one has. */
static enum hr_err compare(const struct hr_hdf5_files *files,
                           const struct hr_hdf5_source *file, struct hr_error *error)
{
    const struct hr_hdf5_source *first = &files->files[0];

    for (size_t i = 0; i < files->count; i++) {
        const struct hr_hdf5_item *a = &first->items[i], *b = &file->items[i];

        if (a->npy.dtype != b->npy.dtype || a->npy.ndim != b->npy.ndim ||
            is_number(&a->dataset->type) != is_number(&b->dataset->type) ||
            memcmp(a->npy.dims + 1, b->npy.dims + 1,
                   (size_t)(a->npy.ndim - 1) * sizeof *a->npy.dims) != 0)
            return hr__fail(error, HR_ERR_SHAPE,
                            "%s: items of \"%s\" differ in type or shape from those of "
                            "%s",
                            file->uri, files->paths[i], first->uri);
    }
    return HR_OK;
}

/* Shapes, and places of the chunks. */
static void add_identity(const struct hr_hdf5_files *files,
                         const struct hr_hdf5_source *file, struct hr_hasher *hasher)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct hr_hdf5_dataset *dataset = file->items[i].dataset;

        hr__hasher_add(hasher, files->paths[i], strlen(files->paths[i]) + 1);
        hr__hasher_add(hasher, dataset->dims,
                       (size_t)dataset->ndim * sizeof *dataset->dims);
        if (dataset->chunk_count > 0)
            hr__hasher_add(hasher, dataset->chunks,
                           (size_t)dataset->chunk_count * sizeof *dataset->chunks);
    }
}

struct read {
    struct hr_hdf5_files *files;
    const struct hr_pairs *fields;
};

/* hr_shard_read_fn */
static enum hr_err read_file(void *user, size_t at, struct hr_window *window,
                             struct hr_hasher *hasher, struct hr_error *error)
{
    const struct read *read = user;
    struct hr_hdf5_files *files = read->files;
    struct hr_hdf5_source *file = &files->files[at];

    file->identity = window->object->identity;
    HR_TRY(hr__hdf5_read(window, &file->hdf5, error));
    if (at == 0)
        HR_TRY(choose(files, read->fields, error));
    HR_TRY(set_items(files, file, error));
    HR_TRY(compare(files, file, error));
    add_identity(files, file, hasher);
    file->first = files->records;
    file->count = (uint64_t)file->items[0].dataset->dims[0];
    files->records += file->count;
    if (files->records >= HR_COUNT_UNKNOWN || at >= HR_SHARDS_OPEN)
        return files->records < HR_COUNT_UNKNOWN
                   ? HR_OK
                   : hr__fail(error, HR_ERR_LIMIT, "%s: more records than can be counted",
                              file->uri);
    HR_TRY(hr__store_open(file->uri, &file->object, error));
    file->open = true;
    return hr__hash_equal(file->object.identity, file->identity)
               ? HR_OK
               : hr__fail(error, HR_ERR_STATE, "%s changed while it was opened",
                          file->uri);
}

static enum hr_err
find_files(struct hr_hdf5_files *files, const char *pattern, struct hr_error *error)
{
    HR_TRY(hr__shards_find_either(pattern, ".h5", ".hdf5", &files->shards, error));
    files->files = hr__shards_items(&files->shards, sizeof *files->files, error);
    if (files->files == NULL)
        return HR_ERR_MEMORY;
    files->file_count = files->shards.count;
    return HR_OK;
}

enum hr_err hr__hdf5_files_open(const char *pattern, const struct hr_pairs *fields,
                                uint64_t unpacked_max, uint64_t cache_bytes,
                                struct hr_hdf5_files **ret_files, struct hr_error *reterr)
{
    struct hr_hdf5_files *files = hr__calloc(1, sizeof *files);
    struct read read = {files, fields};
    enum hr_err code;

    if (files == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_init(&files->note);
    files->unpacked_max = unpacked_max;
    files->pool = hr_pool_create(0);
    code = files->pool != NULL
               ? hr__chunk_cache_create(cache_bytes, &files->cache, reterr)
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK)
        code = find_files(files, pattern, reterr);
    if (code == HR_OK)
        code =
            hr__shards_read(&files->shards, read_file, &read, &files->identity, reterr);
    if (code == HR_OK)
        *ret_files = files;
    else
        hr__hdf5_files_close(files);
    return code;
}

void hr__hdf5_files_close(struct hr_hdf5_files *files)
{
    hr__chunk_cache_destroy(files->cache);
    for (size_t i = 0; i < files->file_count; i++) {
        struct hr_hdf5_source *file = &files->files[i];

        if (file->open)
            hr__store_close(&file->object);
        hr__hdf5_finish(&file->hdf5);
        hr__free(file->items);
    }
    for (size_t i = 0; i < files->count; i++)
        hr__free(files->paths[i]);
    if (files->pool != NULL)
        hr_pool_unref(files->pool);
    hr__str_finish(&files->note);
    hr__shards_finish(&files->shards);
    hr__free(files->files);
    hr__free(files);
}

/* Bytes of a chunk that is unpacked as a whole; else 0. */
static uint64_t unpacked_bytes(const struct hr_hdf5_dataset *dataset)
{
    return dataset->layout == HR_HDF5_CHUNKED && dataset->filter_count > 0
               ? dataset->chunk_bytes
               : 0;
}

static uint64_t largest_chunk(const struct hr_hdf5_files *files)
{
    uint64_t most = 0;

    for (size_t i = 0; i < files->file_count; i++)
        for (size_t f = 0; f < files->count; f++) {
            uint64_t bytes = unpacked_bytes(files->files[i].items[f].dataset);

            most = bytes > most ? bytes : most;
        }
    return most;
}

#define THREAD_CHUNKS 4

/* Chunks that are dropped make room for the next ones: memory that is freed and allocated
 * again and again stays with the system's allocator. */
void hr__hdf5_files_limit(struct hr_hdf5_files *files, uint64_t cache_bytes, bool strict)
{
    uint64_t keep = cache_bytes + THREAD_CHUNKS * largest_chunk(files);

    hr__chunk_cache_limit(files->cache, cache_bytes);
    hr__pool_keep(files->pool, strict ? (size_t)(keep > 0 ? keep : 1) : 0);
}

/* A thread has a chunk, and makes one, which takes its bytes as they are stored and, with
 * several filters, twice as they are unpacked; and it has a window for each field. */
void hr__hdf5_files_kept(const struct hr_hdf5_files *files, struct hr_op_kept *ret_kept)
{
    uint64_t chunk = largest_chunk(files);

    for (size_t i = 0; i < files->file_count; i++)
        for (size_t f = 0; f < files->count; f++) {
            const struct hr_hdf5_dataset *dataset = files->files[i].items[f].dataset;

            ret_kept->fixed += dataset->chunk_count * sizeof *dataset->chunks;
        }
    ret_kept->least = chunk;
    ret_kept->thread = THREAD_CHUNKS * chunk + (files->count + 1) * HR_WINDOW_MAX;
}
