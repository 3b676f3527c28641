/*
 * store/hdf5_chunks.c - where the elements of a dataset are.
 */
#include "store/hdf5_internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define TREE_DEPTH_MAX 16
#define FEW_CHUNKS 4096 /* that a file of any size may have */
#define CHUNK_BYTES_MAX ((uint64_t)4 << 30)

/* ---- the index of the chunks ---- */

enum hr_err hr__hdf5_add_chunk(struct hr_hdf5_listing *listing, uint64_t number,
                               uint64_t address, uint64_t bytes, uint32_t mask)
{
    struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    const struct hr_hdf5_file *file = listing->file;

    if (number >= dataset->chunk_count) /* the dataset has become smaller */
        return HR_OK;
    if (address == HR_HDF5_NONE)
        return HR_OK;
    if (address > file->end || bytes > file->end - address || bytes > UINT32_MAX)
        return hr__fail(file->error, HR_ERR_FORMAT,
                        "%s: it is cut or damaged: a chunk at byte %llu lies outside",
                        file->window->object->uri,
                        (unsigned long long)(file->base + address));
    dataset->chunks[number] =
        (struct hr_hdf5_chunk){file->base + address, (uint32_t)bytes, mask};
    return HR_OK;
}

/* The number of the chunk whose first element is at these places. HR_HDF5_NONE: outside.
 */
static uint64_t number_of(const struct hr_hdf5_dataset *dataset, struct hr_hdf5_in *in)
{
    uint64_t number = 0;

    for (int i = 0; i < dataset->ndim; i++) {
        uint64_t place = hr__hdf5_take(in, 8) / (uint64_t)dataset->chunk_dims[i];

        if (place >= (uint64_t)dataset->grid[i])
            return HR_HDF5_NONE;
        number = number * (uint64_t)dataset->grid[i] + place;
    }
    return number;
}

static enum hr_err read_tree(struct hr_hdf5_listing *listing, uint64_t at, int depth)
{
    enum { HEAD = 24 };

    const struct hr_hdf5_file *file = listing->file;
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    size_t key = 8 + 8 * (size_t)listing->object->rank, pair = key + 8;
    const uint8_t *data;
    unsigned count, level;

    HR_TRY(hr__hdf5_get(file, at, HEAD, &data));
    level = data[5];
    count = data[6] | (unsigned)data[7] << 8;
    if (memcmp(data, "TREE", 4) != 0 || data[4] != 1 || depth == TREE_DEPTH_MAX ||
        ++listing->nodes > file->end / HEAD)
        return hr__hdf5_damaged(file, at, "the tree of a dataset's chunks");
    for (unsigned i = 0; i < count; i++) {
        struct hr_hdf5_in in;
        uint64_t bytes, number, child;
        uint32_t mask;

        HR_TRY(hr__hdf5_get(file, at + HEAD + i * pair, pair, &data));
        in = (struct hr_hdf5_in){data, pair, false};
        bytes = hr__hdf5_take(&in, 4);
        mask = (uint32_t)hr__hdf5_take(&in, 4);
        number = number_of(dataset, &in);
        in = (struct hr_hdf5_in){data + key, 8, false};
        child = hr__hdf5_take(&in, 8);
        HR_TRY(level == 0 ? hr__hdf5_add_chunk(listing, number, child, bytes, mask)
                          : read_tree(listing, child, depth + 1));
    }
    return HR_OK;
}

/* ---- trees of version 2 ---- */

/* hr_hdf5_record_fn: a chunk; its places count in chunks. */
static enum hr_err add_record(void *user, const struct hr_hdf5_record *record)
{
    enum { PLAIN = 10, FILTERED = 11 };

    struct hr_hdf5_listing *listing = user;
    const struct hr_hdf5_dataset *dataset = &listing->object->dataset;
    size_t places = 8 * (size_t)dataset->ndim;
    struct hr_hdf5_in in = {record->data, record->bytes, false};
    uint64_t address, bytes = dataset->chunk_bytes, number = 0;
    uint32_t mask = 0;

    if (record->type == PLAIN ? record->bytes != 8 + places
                              : record->type != FILTERED || record->bytes < places + 13 ||
                                    record->bytes > places + 20)
        return hr__hdf5_damaged(listing->file, listing->object->index_at,
                                "an index of chunks");
    address = hr__hdf5_take(&in, 8);
    if (record->type == FILTERED) {
        bytes = hr__hdf5_take(&in, record->bytes - places - 12);
        mask = (uint32_t)hr__hdf5_take(&in, 4);
    }
    for (int i = 0; i < dataset->ndim; i++) {
        uint64_t place = hr__hdf5_take(&in, 8);

        if (place >= (uint64_t)dataset->grid[i])
            return HR_OK;
        number = number * (uint64_t)dataset->grid[i] + place;
    }
    return hr__hdf5_add_chunk(listing, number, address, bytes, mask);
}

static enum hr_err list_chunks(struct hr_hdf5_listing *listing)
{
    struct hr_hdf5_object *object = listing->object;
    struct hr_hdf5_dataset *dataset = &object->dataset;

    if (object->index_at == HR_HDF5_NONE)
        return HR_OK;
    if (object->chunk_index == HR_HDF5_TREE)
        return read_tree(listing, object->index_at, 0);
    if (object->chunk_index == HR_HDF5_TREE2)
        return hr__hdf5_records(listing->file, object->index_at, add_record, listing);
    if (object->chunk_index == HR_HDF5_SINGLE)
        return hr__hdf5_add_chunk(listing, 0, object->index_at,
                                  dataset->filter_count > 0 ? object->single_bytes
                                                            : dataset->chunk_bytes,
                                  object->single_mask);
    return hr__hdf5_read_array(listing);
}

/* ---- layout ---- */

static enum hr_err no_sizes(const struct hr_hdf5_file *file)
{
    return hr__fail(file->error, HR_ERR_FORMAT,
                    "%s: damaged: the sizes of a dataset and of its chunks",
                    file->window->object->uri);
}

static enum hr_err
set_contiguous(const struct hr_hdf5_file *file, struct hr_hdf5_dataset *dataset)
{
    uint64_t bytes = dataset->stride;

    for (int i = 0; i < dataset->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)dataset->dims[i], &bytes))
            return no_sizes(file);
    if (dataset->at == HR_HDF5_NONE || bytes == 0) { /* nothing was written */
        dataset->at = HR_HDF5_NONE;
        dataset->bytes = bytes;
        return bytes <= INT64_MAX ? HR_OK : no_sizes(file);
    }
    if (dataset->bytes < bytes || dataset->at > file->end ||
        bytes > file->end - dataset->at)
        return hr__fail(file->error, HR_ERR_FORMAT,
                        "%s: it is cut or damaged: %llu bytes of a dataset at byte %llu "
                        "lie outside",
                        file->window->object->uri, (unsigned long long)bytes,
                        (unsigned long long)(file->base + dataset->at));
    dataset->bytes = bytes;
    dataset->at += file->base;
    return HR_OK;
}

static enum hr_err
set_grid(const struct hr_hdf5_file *file, struct hr_hdf5_object *object)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;
    uint64_t bytes = dataset->stride, count = 1;

    if (object->rank != dataset->ndim + 1)
        return no_sizes(file);
    for (int i = 0; i < dataset->ndim; i++) {
        uint64_t chunk = (uint64_t)dataset->chunk_dims[i];
        uint64_t places = ((uint64_t)dataset->dims[i] + chunk - 1) / chunk;

        dataset->grid[i] = (int64_t)places;
        if (__builtin_mul_overflow(bytes, chunk, &bytes) ||
            __builtin_mul_overflow(count, places, &count))
            return no_sizes(file);
    }
    if (bytes > CHUNK_BYTES_MAX)
        return no_sizes(file);
    dataset->chunk_bytes = (size_t)bytes;
    dataset->chunk_count = count;
    if (count > HR_HDF5_CHUNKS_MAX)
        object->unsupported = "it has more than 16,777,216 chunks: copy it with larger "
                              "ones, with h5repack -l CHUNK=...";
    else if (count > FEW_CHUNKS && count > file->end)
        object->unsupported = "it has more chunks than its file has bytes";
    return HR_OK;
}

enum hr_err
hr__hdf5_layout(const struct hr_hdf5_file *file, struct hr_hdf5_object *object)
{
    struct hr_hdf5_listing listing = {.file = file, .object = object};
    struct hr_hdf5_dataset *dataset = &object->dataset;

    if (dataset->layout == HR_HDF5_CONTIGUOUS)
        return set_contiguous(file, dataset);
    HR_TRY(set_grid(file, object));
    if (object->unsupported != NULL)
        return HR_OK;
    dataset->chunks =
        hr__malloc((size_t)dataset->chunk_count * sizeof *dataset->chunks + 1);
    if (dataset->chunks == NULL)
        return hr__fail(file->error, HR_ERR_MEMORY, "out of memory for the chunks of %s",
                        file->window->object->uri);
    for (uint64_t i = 0; i < dataset->chunk_count; i++)
        dataset->chunks[i] = (struct hr_hdf5_chunk){.at = HR_HDF5_NONE};
    return list_chunks(&listing);
}
