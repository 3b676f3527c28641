/*
 * store/hdf5_type.c - the types of elements.
 *
 * An element is one value, an array of them, or of a compound type: each member of it
 * that is read is a part, as the whole element is of other types. What is well-formed but
 * not read is no error: the part gets the reason, and matters only to those who want it.
 */
#include "store/hdf5_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

#define DEPTH_MAX 8
#define PARTS_MAX 4096

enum {
    CLASS_INTEGER = 0,
    CLASS_FLOAT = 1,
    CLASS_TIME = 2,
    CLASS_TEXT = 3,
    CLASS_BITS = 4,
    CLASS_OPAQUE = 5,
    CLASS_COMPOUND = 6,
    CLASS_REFERENCE = 7,
    CLASS_ENUM = 8,
    CLASS_ANY_LENGTH = 9,
    CLASS_ARRAY = 10,
};

static const char unknown_type[] = "its elements are neither numbers nor texts nor bytes";

struct type_head {
    unsigned class, version, flags;
    uint32_t bytes;
};

/* The part that is read, and where it goes: `object` NULL: nowhere. */
struct typing {
    struct hr_hdf5_object *object;
    struct hr_hdf5_in *in;
    const char *name;
    uint32_t offset;
    int depth;
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

/* The names and values of an enumeration. */
static void skip_names(const struct type_head *head, const struct type_head *base,
                       struct hr_hdf5_in *in)
{
    unsigned count = head->flags & 0xffff;

    for (unsigned i = 0; i < count && !in->bad; i++) {
        size_t bytes = strnlen((const char *)in->at, in->left) + 1;

        (void)hr__hdf5_skip(in, head->version < 3 ? (bytes + 7) / 8 * 8 : bytes);
    }
    (void)hr__hdf5_skip(in, (size_t)count * base->bytes);
}

static const char *
read_enum(struct hr_hdf5_type *type, const struct type_head *head, struct hr_hdf5_in *in)
{
    struct type_head base = take_type(in);
    const char *why;

    if (base.class != CLASS_INTEGER || base.bytes != head->bytes) {
        in->bad = true;
        return NULL;
    }
    why = read_integer(type, &base, in);
    if (why == NULL && is_bool(head, &base, *in))
        type->class = HR_HDF5_BOOL;
    skip_names(head, &base, in);
    return why;
}

static const char *read_type(struct typing typing, struct hr_hdf5_part *part);

/* Texts, and sequences of bytes. */
static const char *read_any_length(struct typing typing, const struct type_head *head,
                                   struct hr_hdf5_type *type)
{
    struct hr_hdf5_part base = {0};

    typing.object = NULL;
    (void)read_type(typing, &base);
    type->class = HR_HDF5_BYTES;
    type->is_text = (head->flags & 15) == 1;
    if (head->bytes != 16 ||
        (!type->is_text && (base.type.class != HR_HDF5_INTEGER || base.bytes != 1)))
        return "its items of any length are neither texts nor bytes";
    return NULL;
}

/* An array of a fixed shape: that is appended to the part's. */
static const char *
read_array(struct typing typing, const struct type_head *head, struct hr_hdf5_part *part)
{
    struct hr_hdf5_in *in = typing.in;
    unsigned rank = (unsigned)hr__hdf5_take(in, 1);
    struct hr_hdf5_part base = {.ndim = part->ndim};
    const char *why = NULL;

    memcpy(base.dims, part->dims, sizeof base.dims);
    (void)hr__hdf5_skip(in, head->version < 3 ? 3 : 0);
    for (unsigned i = 0; i < rank && !in->bad; i++) {
        uint64_t size = hr__hdf5_take(in, 4);

        if (base.ndim == HR_MAX_DIMS)
            why = "it has more than 8 dimensions";
        else
            base.dims[base.ndim++] = (int64_t)size;
    }
    (void)hr__hdf5_skip(in, head->version < 3 ? 4 * (size_t)rank : 0);
    typing.object = NULL; /* a compound type below is one value */
    if (why == NULL)
        why = read_type(typing, &base);
    else
        (void)read_type(typing, &base);
    *part = base;
    part->bytes = head->bytes;
    return why;
}

/* The shape of an array in files of HDF5 1.2: a member has it itself. */
static void old_shape(struct hr_hdf5_in *in, struct hr_hdf5_part *part)
{
    unsigned rank = (unsigned)hr__hdf5_take(in, 1);

    (void)hr__hdf5_skip(in, 11);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t size = hr__hdf5_take(in, 4);

        if (i < rank)
            part->dims[part->ndim++] = (int64_t)size;
    }
    if (rank > 4)
        in->bad = true;
}

/* Adds a part to the object's, unless it is compound: then its members were added. */
static void add_part(struct typing typing, const struct hr_hdf5_part *part)
{
    struct hr_hdf5_object *object = typing.object;
    struct hr_hdf5_part *made;

    if (object == NULL || part->is_compound)
        return;
    if (object->part_count == PARTS_MAX) {
        typing.in->bad = true;
        return;
    }
    if (!hr__array_room(&object->parts, object->part_count, &object->part_room, 1,
                        sizeof *made)) {
        object->no_memory = true;
        return;
    }
    made = &object->parts[object->part_count];
    *made = *part;
    made->offset = typing.offset;
    made->name = typing.name[0] != '\0' ? hr__strdup(typing.name) : NULL;
    if (typing.name[0] != '\0' && made->name == NULL)
        object->no_memory = true;
    else
        object->part_count++;
}

/* The member's name, after that of the part that it belongs to. */
static bool take_name(const struct typing *typing, const struct type_head *head,
                      char *name, size_t room)
{
    struct hr_hdf5_in *in = typing->in;
    size_t bytes = strnlen((const char *)in->at, in->left) + 1;
    const uint8_t *text =
        hr__hdf5_skip(in, head->version < 3 ? (bytes + 7) / 8 * 8 : bytes);

    return text != NULL && (size_t)snprintf(name, room, "%s%s%s", typing->name,
                                            typing->name[0] != '\0' ? "." : "",
                                            (const char *)text) < room;
}

static void read_member(struct typing typing, const struct type_head *head)
{
    struct hr_hdf5_part part = {0};
    char name[2 * HR_HDF5_NAME_MAX];
    uint64_t offset;

    if (!take_name(&typing, head, name, sizeof name)) {
        typing.in->bad = true;
        return;
    }
    offset =
        hr__hdf5_take(typing.in, head->version < 3 ? 4 : hr__hdf5_bytes_for(head->bytes));
    if (head->version == 1)
        old_shape(typing.in, &part);
    typing.name = name;
    typing.offset += (uint32_t)offset;
    part.why = read_type(typing, &part);
    if (offset > head->bytes || part.bytes > head->bytes - offset) {
        typing.in->bad = true;
        return;
    }
    if (!typing.in->bad)
        add_part(typing, &part);
}

static const char *read_compound(struct typing typing, const struct type_head *head,
                                 struct hr_hdf5_part *part)
{
    unsigned count = head->flags & 0xffff;

    if (part->ndim > 0)
        typing.object = NULL; /* an array of them is one part, which is not read */
    part->is_compound = typing.object != NULL;
    for (unsigned i = 0; i < count && !typing.in->bad; i++)
        read_member(typing, head);
    return "it is an array of a compound type";
}

/* Takes one type. Returns NULL, or why it is not read; in->bad: malformed. */
static const char *read_type(struct typing typing, struct hr_hdf5_part *part)
{
    struct hr_hdf5_in *in = typing.in;
    struct type_head head = take_type(in);
    struct hr_hdf5_type *type = &part->type;

    part->bytes = type->bytes = head.bytes;
    if (head.bytes == 0 || ++typing.depth > DEPTH_MAX)
        in->bad = true;
    if (in->bad)
        return NULL;
    switch (head.class) {
    case CLASS_INTEGER:
        return read_integer(type, &head, in);
    case CLASS_FLOAT:
        return read_float(type, &head, in);
    case CLASS_ENUM:
        return read_enum(type, &head, in);
    case CLASS_ANY_LENGTH:
        return read_any_length(typing, &head, type);
    case CLASS_ARRAY:
        return read_array(typing, &head, part);
    case CLASS_COMPOUND:
        return read_compound(typing, &head, part);
    case CLASS_TEXT:
        type->class = HR_HDF5_TEXT;
        type->is_text = true;
        type->space_padded = (head.flags & 15) == 2;
        return NULL;
    case CLASS_TIME:
        (void)hr__hdf5_skip(in, 2);
        return unknown_type;
    case CLASS_BITS:
        (void)hr__hdf5_skip(in, 4);
        return unknown_type;
    case CLASS_OPAQUE:
        (void)hr__hdf5_skip(in, head.flags & 0xff);
        return unknown_type;
    case CLASS_REFERENCE:
        return unknown_type;
    default: /* of unknown length: what follows it cannot be found */
        (void)hr__hdf5_skip(in, in->left);
        return unknown_type;
    }
}

/* Whether the part lies in an element, whatever shape its message says. */
static bool fits(const struct hr_hdf5_part *part, uint32_t stride)
{
    uint64_t bytes = part->type.bytes;

    for (int i = 0; i < part->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)part->dims[i], &bytes))
            return false;
    return part->offset <= stride && bytes <= stride - part->offset;
}

bool hr__hdf5_type(struct hr_hdf5_object *object, struct hr_hdf5_in in)
{
    struct typing typing = {.object = object, .in = &in, .name = ""};
    struct hr_hdf5_part part = {0};

    object->has_type = true;
    hr__hdf5_parts_finish(object);
    part.why = read_type(typing, &part);
    object->dataset.stride = part.bytes;
    if (in.bad)
        return false;
    add_part(typing, &part);
    for (size_t i = 0; i < object->part_count; i++)
        if (object->parts[i].why == NULL &&
            !fits(&object->parts[i], object->dataset.stride))
            return false;
    return true;
}

void hr__hdf5_parts_finish(struct hr_hdf5_object *object)
{
    for (size_t i = 0; i < object->part_count; i++)
        hr__free(object->parts[i].name);
    hr__free(object->parts);
    object->parts = NULL;
    object->part_count = object->part_room = 0;
}
