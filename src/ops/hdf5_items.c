/*
 * ops/hdf5_items.c - where the items of HDF5 files are, and what is in them.
 */
#include "ops/hdf5_files.h"

#include <assert.h>
#include <string.h>

#include "core/bisect.h"
#include "core/error.h"
#include "store/reader.h"

struct hr_hdf5_source *
hr__hdf5_files_of(const struct hr_hdf5_files *files, uint64_t index)
{
    return &files->files[HR_BISECT(files->files, files->file_count, first, index)];
}

static void set_place(struct hr_hdf5_source *file, uint64_t at, uint64_t bytes,
                      struct hr_shard_place *ret_place)
{
    *ret_place = (struct hr_shard_place){.uri = file->uri,
                                         .identity = file->identity,
                                         .object = file->open ? &file->object : NULL,
                                         .offset = at,
                                         .bytes = bytes};
}

bool hr__hdf5_item_place(struct hr_hdf5_source *file, size_t field, uint64_t index,
                         struct hr_shard_place *ret_place)
{
    const struct hr_hdf5_item *item = &file->items[field];

    if (item->dataset->layout != HR_HDF5_CONTIGUOUS || item->dataset->at == HR_HDF5_NONE)
        return false;
    set_place(file, item->dataset->at + (index - file->first) * item->bytes, item->bytes,
              ret_place);
    return true;
}

/* Large bytes through the reader, others through the window: see struct hr_hdf5_slab. */
static enum hr_err
read_place(const struct hr_hdf5_read *read, const struct hr_shard_place *place,
           const void **ret_data, struct hr_buffer **ret_owner)
{
    struct hr_range range; /* 4 kB, not cleared */

    *ret_owner = NULL;
    if (read->reader != NULL && hr__shard_ahead(place, &range)) {
        HR_TRY(hr__reader_take(read->reader, &range, ret_owner, read->error));
        *ret_data = hr_buffer_data(*ret_owner);
        return HR_OK;
    }
    HR_TRY(hr__shard_window(read->window, place, read->error));
    return hr__window_get(read->window, place->offset, (size_t)place->bytes, ret_data,
                          read->error);
}

/* What makes a chunk. */
struct make {
    const struct hr_hdf5_read *read;
    const struct hr_hdf5_dataset *dataset;
    const struct hr_hdf5_chunk *chunk;
};

static enum hr_err make_chunk(void *user, struct hr_buffer **ret_buffer)
{
    const struct make *make = user;
    struct hr_pool *pool = make->read->files->pool;
    struct hr_error *error = make->read->error, why = {0};
    struct hr_buffer *buffer = NULL, *scratch = NULL, *stored = NULL;
    size_t room = HR_HDF5_ROOM(make->dataset);
    struct hr_shard_place place;
    const void *data = NULL;
    enum hr_err code;

    set_place(make->read->file, make->chunk->at, make->chunk->bytes, &place);
    HR_TRY(read_place(make->read, &place, &data, &stored));
    if (hr_pool_get(pool, room, &buffer) != HR_OK ||
        hr_pool_get(pool, room, &scratch) != HR_OK)
        code =
            hr__fail(error, HR_ERR_MEMORY, "out of memory for a chunk of %s", place.uri);
    else
        code = hr__hdf5_unpack(make->dataset, make->chunk, data, hr_buffer_data(buffer),
                               hr_buffer_data(scratch), &why);
    if (code == HR_ERR_FORMAT)
        hr__fail(error, code, "%s: byte %llu: %s", place.uri,
                 (unsigned long long)place.offset, why.message);
    hr_buffer_unref(stored);
    hr_buffer_unref(scratch);
    if (code == HR_OK)
        *ret_buffer = buffer;
    else
        hr_buffer_unref(buffer);
    return code;
}

/* Chunk `cell` of an item, and where the item begins in it. */
static const struct hr_hdf5_chunk *
chunk_of(const struct hr_hdf5_source *file, const struct hr_hdf5_item *item,
         uint64_t index, uint64_t cell, size_t *ret_offset)
{
    const struct hr_hdf5_dataset *dataset = item->dataset;
    uint64_t row = index - file->first, rows = (uint64_t)dataset->chunk_dims[0];
    uint64_t number = row / rows * item->cells + cell;

    assert(number < dataset->chunk_count);
    *ret_offset = (size_t)(row % rows) * item->slab;
    return &dataset->chunks[number];
}

static bool
is_as_stored(const struct hr_hdf5_dataset *dataset, const struct hr_hdf5_chunk *chunk)
{
    return hr__hdf5_is_plain(dataset, chunk) && chunk->bytes >= dataset->chunk_bytes;
}

enum hr_err hr__hdf5_slab(const struct hr_hdf5_read *read, uint64_t cell,
                          struct hr_hdf5_slab *ret_slab)
{
    const struct hr_hdf5_item *item = &read->file->items[read->field];
    const struct hr_hdf5_dataset *dataset = item->dataset;
    size_t offset, left;
    const struct hr_hdf5_chunk *chunk =
        chunk_of(read->file, item, read->index, cell, &offset);
    struct hr_buffer *buffer = NULL;
    struct hr_shard_place place;
    const void *data = NULL;

    left = item->slab > 0 ? (dataset->chunk_bytes - offset) / item->slab : 1;
    *ret_slab =
        (struct hr_hdf5_slab){.count = read->count < left ? read->count : (uint32_t)left};
    if (chunk->at == HR_HDF5_NONE)
        return HR_OK;
    if (is_as_stored(dataset, chunk)) {
        set_place(read->file, chunk->at + offset, item->slab * ret_slab->count, &place);
        HR_TRY(read_place(read, &place, &data, &buffer));
        ret_slab->data = data;
        ret_slab->owner = buffer;
        return HR_OK;
    }
    /* members of a compound type share the list of chunks, and so the unpacked ones */
    HR_TRY(hr__chunk_cache_get(read->files->cache, dataset->chunks,
                               (uint64_t)(chunk - dataset->chunks), make_chunk,
                               &(struct make){read, dataset, chunk}, &buffer));
    ret_slab->owner = buffer;
    ret_slab->data = (const char *)hr_buffer_data(buffer) + offset;
    return HR_OK;
}

bool hr__hdf5_slab_ahead(struct hr_hdf5_files *files, struct hr_hdf5_source *file,
                         size_t field, uint64_t index, uint64_t cell,
                         struct hr_range *ret_range)
{
    const struct hr_hdf5_item *item = &file->items[field];
    const struct hr_hdf5_dataset *dataset = item->dataset;
    size_t offset;
    const struct hr_hdf5_chunk *chunk = chunk_of(file, item, index, cell, &offset);
    struct hr_shard_place place;

    if (chunk->at == HR_HDF5_NONE)
        return false;
    if (is_as_stored(dataset, chunk))
        set_place(file, chunk->at + offset, item->slab, &place);
    else
        set_place(file, chunk->at, chunk->bytes, &place);
    return hr__shard_ahead(&place, ret_range) &&
           (is_as_stored(dataset, chunk) ||
            !hr__chunk_cache_has(files->cache, dataset->chunks,
                                 (uint64_t)(chunk - dataset->chunks)));
}

bool hr__hdf5_convert(const struct hr_hdf5_item *item, const char *from, char *to,
                      size_t count)
{
    const struct hr_hdf5_dataset *dataset = item->dataset;
    size_t step = item->inner * hr_dtype_size(item->npy.dtype);

    if (!item->scattered)
        return hr__npy_convert(&item->npy, from, to,
                               count * item->elements * item->inner);
    for (size_t i = 0; i < count * item->elements; i++)
        if (!hr__npy_convert(&item->npy, from + i * dataset->stride + dataset->offset,
                             to + i * step, item->inner))
            return false;
    return true;
}

/* Copies the part of a slab that the dataset has, from dimension `dim` on. */
static void copy_slab(const struct hr_hdf5_dataset *dataset, const int64_t at[], int dim,
                      const char *from, char *to)
{
    size_t from_step = dataset->stride, to_step = from_step;
    int64_t first = at[dim] * dataset->chunk_dims[dim];
    int64_t count = dataset->dims[dim] - first;

    if (count > dataset->chunk_dims[dim])
        count = dataset->chunk_dims[dim];
    for (int i = dim + 1; i < dataset->ndim; i++) {
        from_step *= (size_t)dataset->chunk_dims[i];
        to_step *= (size_t)dataset->dims[i];
    }
    to += (size_t)first * to_step;
    if (dim == dataset->ndim - 1) {
        memcpy(to, from, (size_t)count * to_step);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        copy_slab(dataset, at, dim + 1, from + (size_t)i * from_step,
                  to + (size_t)i * to_step);
}

void hr__hdf5_place_slab(const struct hr_hdf5_item *item, uint64_t cell, const char *slab,
                         char *to)
{
    const struct hr_hdf5_dataset *dataset = item->dataset;
    int64_t at[HR_MAX_DIMS] = {0};

    if (dataset->ndim == 1) {
        memcpy(to, slab, item->bytes);
        return;
    }
    for (int i = dataset->ndim - 1; i > 0; i--) {
        at[i] = (int64_t)(cell % (uint64_t)dataset->grid[i]);
        cell /= (uint64_t)dataset->grid[i];
    }
    copy_slab(dataset, at, 1, slab, to);
}

void hr__hdf5_fill(const struct hr_hdf5_dataset *dataset, char *to, size_t bytes)
{
    size_t element = dataset->stride;

    if (element > sizeof dataset->fill) {
        memset(to, 0, bytes);
        return;
    }
    for (size_t i = 0; i + element <= bytes; i += element)
        memcpy(to + i, dataset->fill, element);
}
