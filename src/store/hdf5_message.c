/*
 * store/hdf5_message.c - messages of a dataset: its shape, type, layout, filters and fill
 * value.
 *
 * What is well-formed but not read, such as compound types, is no error here: the object
 * gets the reason, and matters only to those who want that dataset.
 */
#include "store/hdf5_internal.h"

#include <string.h>

/* ---- shape ---- */

static bool read_space(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    struct hr_hdf5_dataset *dataset = &object->dataset;
    unsigned version = (unsigned)hr__hdf5_take(&in, 1);
    unsigned rank = (unsigned)hr__hdf5_take(&in, 1);

    (void)hr__hdf5_skip(&in, version == 1 ? 6 : 2);
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
    }
    return !in.bad;
}

/* ---- type ---- */

enum {
    CLASS_INTEGER = 0,
    CLASS_FLOAT = 1,
    CLASS_TEXT = 3,
    CLASS_ENUM = 8,
    CLASS_ANY_LENGTH = 9,
};

struct type_head {
    unsigned class, version, flags;
    uint32_t bytes;
};

static struct type_head take_type(struct hr_hdf5_in *in)
{
    unsigned first = (unsigned)hr__hdf5_take(in, 1);
    unsigned flags = (unsigned)hr__hdf5_take(in, 3);

    return (struct type_head){first & 15, first >> 4, flags,
                              (uint32_t)hr__hdf5_take(in, 4)};
}

/* NULL, or why numbers of this kind are not read. */
static const char *read_integer(struct hr_hdf5_type *type, const struct type_head *head,
                                struct hr_hdf5_in *in)
{
    unsigned offset = (unsigned)hr__hdf5_take(in, 2);
    unsigned bits = (unsigned)hr__hdf5_take(in, 2);

    type->class = HR_HDF5_INTEGER;
    type->big_endian = (head->flags & 1) != 0;
    type->is_signed = (head->flags & 8) != 0;
    if (offset == 0 && bits == 8 * head->bytes &&
        (head->bytes == 1 || head->bytes == 2 || head->bytes == 4 || head->bytes == 8))
        return NULL;
    return "its integers do not have 8, 16, 32 or 64 bits";
}

static const char *
read_float(struct hr_hdf5_type *type, const struct type_head *head, struct hr_hdf5_in *in)
{
    static const struct {
        uint32_t bytes;
        unsigned exponent, mantissa, bias;
    } known[] = {
        {2, 5,  10, 15  },
        {2, 8,  7,  127 },
        {4, 8,  23, 127 },
        {8, 11, 52, 1023}
    };
    unsigned offset = (unsigned)hr__hdf5_take(in, 2);
    unsigned bits = (unsigned)hr__hdf5_take(in, 2), exponent, mantissa, bias;

    (void)hr__hdf5_skip(in, 1);
    exponent = (unsigned)hr__hdf5_take(in, 1);
    (void)hr__hdf5_skip(in, 1);
    mantissa = (unsigned)hr__hdf5_take(in, 1);
    bias = (unsigned)hr__hdf5_take(in, 4);
    type->class = HR_HDF5_FLOAT;
    type->big_endian = (head->flags & 1) != 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (offset == 0 && bits == 8 * head->bytes && known[i].bytes == head->bytes &&
            known[i].exponent == exponent && known[i].mantissa == mantissa &&
            known[i].bias == bias && (head->flags & 64) == 0) {
            type->is_brain = head->bytes == 2 && exponent == 8;
            return NULL;
        }
    return "its floats are not those of IEEE with 16, 32 or 64 bits";
}

/* Whether the names are those of a bool, as h5py writes it. */
static bool
is_bool(const struct type_head *head, const struct type_head *base, struct hr_hdf5_in in)
{
    static const char plain[] = "FALSE\0TRUE\0\0\1",
                      padded[] = "FALSE\0\0\0TRUE\0\0\0\0\0\1";
    const char *wanted = head->version < 3 ? padded : plain;
    size_t bytes = head->version < 3 ? sizeof padded - 1 : sizeof plain - 1;

    return base->bytes == 1 && (head->flags & 0xffff) == 2 && in.left >= bytes &&
           memcmp(in.at, wanted, bytes) == 0;
}

static const char *
read_enum(struct hr_hdf5_type *type, const struct type_head *head, struct hr_hdf5_in *in)
{
    struct type_head base = take_type(in);
    const char *why;

    if (base.class != CLASS_INTEGER || base.bytes != head->bytes)
        return "its enumeration is not one of integers";
    why = read_integer(type, &base, in);
    if (why == NULL && is_bool(head, &base, *in))
        type->class = HR_HDF5_BOOL;
    return why;
}

/* Texts, and sequences of bytes. */
static const char *read_any_length(struct hr_hdf5_type *type,
                                   const struct type_head *head, struct hr_hdf5_in *in)
{
    struct type_head base = take_type(in);

    type->class = HR_HDF5_BYTES;
    type->is_text = (head->flags & 15) == 1;
    if (head->bytes != 16 ||
        (!type->is_text && (base.class != CLASS_INTEGER || base.bytes != 1)))
        return "its items of any length are neither texts nor bytes";
    return NULL;
}

static bool read_type(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    struct hr_hdf5_type *type = &object->dataset.type;
    struct type_head head = take_type(&in);
    const char *why = "its elements are neither numbers nor texts nor bytes";

    object->has_type = true;
    type->bytes = head.bytes;
    if (in.bad || head.bytes == 0)
        return false;
    if (head.class == CLASS_INTEGER)
        why = read_integer(type, &head, &in);
    else if (head.class == CLASS_FLOAT)
        why = read_float(type, &head, &in);
    else if (head.class == CLASS_ENUM)
        why = read_enum(type, &head, &in);
    else if (head.class == CLASS_ANY_LENGTH)
        why = read_any_length(type, &head, &in);
    else if (head.class == CLASS_TEXT)
        why = NULL;
    if (head.class == CLASS_TEXT) {
        type->class = HR_HDF5_TEXT;
        type->is_text = true;
        type->space_padded = (head.flags & 15) == 2;
    }
    if (why != NULL)
        object->unsupported = why;
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
    enum { SINGLE = 1, IMPLICIT, ARRAY };
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
    } else {
        object->unsupported = "it can grow, and its chunks are in one of the newest "
                              "indexes: write it with libver=\"earliest\", or copy it "
                              "with h5repack --high=1";
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
        return read_type(object, in);
    case HR_HDF5_MESSAGE_FILL_OLD:
        return keep_fill(object, &in);
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
