/*
 * store/hdf5_message.c - messages of a dataset: its shape, layout, filters and fill
 * value; hdf5_type.c reads its type.
 *
 * What is well-formed but not read, such as external storage, is no error: the object
 * gets the reason, and matters only to those who want that dataset.
 */
#include "store/hdf5_internal.h"

#include <string.h>

/* ---- shape ---- */

static bool read_space(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;
    unsigned version = (unsigned)hr__hdf5_take(&in, 1);
    unsigned rank = (unsigned)hr__hdf5_take(&in, 1), flags;

    flags = (unsigned)hr__hdf5_take(&in, 1);
    (void)hr__hdf5_skip(&in, version == 1 ? 5 : 1);
    object->has_space = true;
    if (in.bad || (version != 1 && version != 2))
        return false;
    if (rank == 0 || rank > HR_MAX_DIMS) {
        object->unsupported = rank == 0 ? "it is a single value, and has no first "
                                          "dimension"
                                        : "it has more than 8 dimensions";
        return true;
    }
    dataset->ndim = (int)rank;
    for (unsigned i = 0; i < rank; i++) {
        uint64_t size = hr__hdf5_take(&in, 8);

        if (size > INT64_MAX / 2)
            return false;
        dataset->dims[i] = (int64_t)size;
        object->max_dims[i] = size;
    }
    for (unsigned i = 0; i < rank && (flags & 1) != 0; i++)
        object->max_dims[i] = hr__hdf5_take(&in, 8);
    return !in.bad;
}

/* ---- layout ---- */

static bool take_chunk_dims(struct hr_hdf5_object *object, struct hr_hdf5_in *in,
                            unsigned rank, size_t bytes)
{
    object->rank = (int)rank;
    if (rank < 2 || rank > HR_MAX_DIMS + 1) {
        object->unsupported = "it has more than 8 dimensions";
        object->rank = 0;
        return rank >= 2;
    }
    for (unsigned i = 0; i < rank; i++) {
        uint64_t size = hr__hdf5_take(in, bytes);

        if (size == 0 || size > UINT32_MAX)
            return false;
        if (i < rank - 1)
            object->dataset.chunk_dims[i] = (int64_t)size;
    }
    return !in->bad;
}

static bool read_layout_old(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;
    unsigned rank = (unsigned)hr__hdf5_take(&in, 1);
    unsigned class = (unsigned)hr__hdf5_take(&in, 1);
    uint64_t at;

    (void)hr__hdf5_skip(&in, 5);
    if (class == 0) {
        object->unsupported = "its layout is that of HDF5 1.4 or before: copy it with "
                              "h5repack";
        return true;
    }
    at = hr__hdf5_take(&in, 8);
    if (class == 2) {
        dataset->layout = HR_HDF5_CHUNKED;
        object->index_at = at;
        return take_chunk_dims(object, &in, rank, 4);
    }
    dataset->at = at;
    dataset->bytes = HR_HDF5_NONE; /* as many as the elements have */
    return !in.bad;
}

/* `at` is the address of the message. */
static bool read_small(struct hr_hdf5_object *object, unsigned class,
                       struct hr_hdf5_in *in, const uint8_t *begin, uint64_t at)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;

    if (class == 0) {
        dataset->bytes = hr__hdf5_take(in, 2);
        dataset->at = at + (uint64_t)(in->at - begin);
    } else {
        dataset->at = hr__hdf5_take(in, 8);
        dataset->bytes = hr__hdf5_take(in, 8);
    }
    return !in->bad;
}

/* The index of the chunks, since version 4. */
static bool
read_index(struct hr_hdf5_object *object, unsigned flags, struct hr_hdf5_in *in)
{
    enum { SINGLE = 1, IMPLICIT, ARRAY, EXTENSIBLE, TREE2 };
    unsigned kind = (unsigned)hr__hdf5_take(in, 1);

    if (kind == SINGLE) {
        object->chunk_index = HR_HDF5_SINGLE;
        if ((flags & 2) != 0) {
            object->single_bytes = hr__hdf5_take(in, 8);
            object->single_mask = (uint32_t)hr__hdf5_take(in, 4);
        }
    } else if (kind == IMPLICIT) {
        object->chunk_index = HR_HDF5_IMPLICIT;
    } else if (kind == ARRAY) {
        object->chunk_index = HR_HDF5_ARRAY;
        (void)hr__hdf5_skip(in, 1);
    } else if (kind == EXTENSIBLE) {
        object->chunk_index = HR_HDF5_EXTENSIBLE;
        (void)hr__hdf5_skip(in, 5);
    } else if (kind == TREE2) {
        object->chunk_index = HR_HDF5_TREE2;
        (void)hr__hdf5_skip(in, 6);
    } else {
        object->unsupported = "its chunks are in an index of an unknown kind";
        return true;
    }
    object->index_at = hr__hdf5_take(in, 8);
    return !in->bad;
}

static bool read_layout(struct hr_hdf5_object *object, struct hr_hdf5_in in, uint64_t at)
{
    const uint8_t *begin = in.at;
    unsigned version = (unsigned)hr__hdf5_take(&in, 1), class, rank, flags;
    size_t bytes;

    object->has_layout = true;
    if (version == 1 || version == 2)
        return read_layout_old(object, in);
    class = (unsigned)hr__hdf5_take(&in, 1);
    if (class < 2)
        return read_small(object, class, &in, begin, at);
    if (version < 3 || version > 5 || class > 2) {
        object->unsupported = "it is put together from other datasets or of an unknown "
                              "version";
        return !in.bad;
    }
    object->dataset.layout = HR_HDF5_CHUNKED;
    if (version == 3) {
        rank = (unsigned)hr__hdf5_take(&in, 1);
        object->index_at = hr__hdf5_take(&in, 8);
        return take_chunk_dims(object, &in, rank, 4);
    }
    flags = (unsigned)hr__hdf5_take(&in, 1);
    rank = (unsigned)hr__hdf5_take(&in, 1);
    bytes = (size_t)hr__hdf5_take(&in, 1);
    if ((flags & 1) != 0)
        object->unsupported = "chunks at its edges are not filtered like the others";
    return bytes >= 1 && bytes <= 8 && take_chunk_dims(object, &in, rank, bytes) &&
           read_index(object, flags, &in);
}

/* ---- filters and the fill value ---- */

static bool
read_filter(struct hr_hdf5_object *object, struct hr_hdf5_in *in, unsigned version)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;
    unsigned id = (unsigned)hr__hdf5_take(in, 2);
    size_t name = version == 1 || id >= 256 ? (size_t)hr__hdf5_take(in, 2) : 0;
    uint32_t first = 0;
    size_t values;

    (void)hr__hdf5_skip(in, 2);
    values = (size_t)hr__hdf5_take(in, 2);
    (void)hr__hdf5_skip(in, version == 1 ? (name + 7) / 8 * 8 : name);
    if (values > 0)
        first = (uint32_t)hr__hdf5_take(in, 4);
    (void)hr__hdf5_skip(in, values > 0 ? 4 * (values - 1) : 0);
    (void)hr__hdf5_skip(in, version == 1 && values % 2 == 1 ? 4 : 0);
    if (id != HR_HDF5_DEFLATE && id != HR_HDF5_SHUFFLE && id != HR_HDF5_FLETCHER32 &&
        id != HR_HDF5_LZF)
        object->unsupported = "its chunks are filtered by something else than shuffle, "
                              "gzip, LZF and Fletcher's checksum: copy it with h5repack "
                              "-f GZIP=4";
    if (dataset->filter_count == HR_HDF5_FILTERS_MAX)
        return false;
    dataset->filters[dataset->filter_count].id = (uint16_t)id;
    dataset->filters[dataset->filter_count++].element = first;
    return !in->bad;
}

static bool read_filters(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    unsigned version = (unsigned)hr__hdf5_take(&in, 1);
    unsigned count = (unsigned)hr__hdf5_take(&in, 1);

    (void)hr__hdf5_skip(&in, version == 1 ? 6 : 0);
    if (version != 1 && version != 2)
        return false;
    object->dataset.filter_count = 0;
    for (unsigned i = 0; i < count && !in.bad; i++)
        if (!read_filter(object, &in, version))
            return false;
    return !in.bad;
}

static bool keep_fill(struct hr_hdf5_object *object, struct hr_hdf5_in *in)
{
    size_t bytes = (size_t)hr__hdf5_take(in, 4);
    const uint8_t *value = hr__hdf5_skip(in, bytes);

    if (value != NULL && bytes <= sizeof object->dataset.fill)
        memcpy(object->dataset.fill, value, bytes);
    for (size_t i = 0; value != NULL && i < bytes; i++)
        if (bytes > sizeof object->dataset.fill && value[i] != 0)
            object->unsupported = "its fill value has more than 64 bytes and is not zero";
    return value != NULL;
}

static bool read_fill(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    unsigned version = (unsigned)hr__hdf5_take(&in, 1), flags;

    if (version == 3) {
        flags = (unsigned)hr__hdf5_take(&in, 1);
        return !in.bad && ((flags & 32) == 0 || keep_fill(object, &in));
    }
    (void)hr__hdf5_skip(&in, 2);
    flags = (unsigned)hr__hdf5_take(&in, 1);
    if (in.bad || version < 1 || version > 3)
        return false;
    return flags == 0 || keep_fill(object, &in);
}

bool hr__hdf5_message(struct hr_hdf5_object *object, unsigned type, struct hr_hdf5_in in,
                      uint64_t at)
{
    switch (type) {
    case HR_HDF5_MESSAGE_SPACE:
        return read_space(object, in);
    case HR_HDF5_MESSAGE_TYPE:
        return hr__hdf5_type(object, in);
    case HR_HDF5_MESSAGE_FILL_OLD:
        return keep_fill(object, &in);
    case HR_HDF5_MESSAGE_FILES:
        object->unsupported = "its data are in other files (external storage): write "
                              "them into this file";
        return true;
    case HR_HDF5_MESSAGE_FILL:
        return read_fill(object, in);
    case HR_HDF5_MESSAGE_LAYOUT:
        return read_layout(object, in, at);
    case HR_HDF5_MESSAGE_FILTERS:
        return read_filters(object, in);
    default:
        return true;
    }
}
