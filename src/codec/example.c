/*
 * codec/example.c - see codec/example.h.
 *
 * A message is a run of fields: a key (number << 3 | wire type) and a value. Fields that
 * are not known are skipped; groups, which no writer of examples uses, are malformed.
 */
#include "codec/example.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct field {
    uint64_t number;
    enum wire wire;
    uint64_t varint;
    struct hr_example_bytes bytes; /* of all but a varint */
};

static bool take_varint(struct hr_example_bytes *in, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;

        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct hr_example_bytes *in, uint64_t bytes,
                       struct hr_example_bytes *ret_bytes)
{
    if (bytes > (uint64_t)(in->end - in->at))
        return false;
    *ret_bytes = (struct hr_example_bytes){in->at, in->at + bytes};
    in->at += bytes;
    return true;
}

/* The next field of a message that is not at its end; false if it is malformed. */
static bool take_field(struct hr_example_bytes *in, struct field *ret_field)
{
    uint64_t key, bytes;

    *ret_field = (struct field){0};
    if (!take_varint(in, &key) || key >> 3 == 0)
        return false;
    ret_field->number = key >> 3;
    ret_field->wire = (enum wire)(key & 7);
    switch (key & 7) {
    case WIRE_VARINT:
        return take_varint(in, &ret_field->varint);
    case WIRE_64:
        return take_bytes(in, 8, &ret_field->bytes);
    case WIRE_32:
        return take_bytes(in, 4, &ret_field->bytes);
    case WIRE_BYTES:
        return take_varint(in, &bytes) && take_bytes(in, bytes, &ret_field->bytes);
    default:
        return false;
    }
}

/* ---- features ---- */

void hr__example_begin(struct hr_example_walk *walk, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    *walk = (struct hr_example_walk){0};
    if (bytes > 0)
        walk->example = (struct hr_example_bytes){at, at + bytes};
}

/* A feature is one of three lists; of several the last one. */
static bool
read_feature(struct hr_example_bytes in, struct hr_example_feature *ret_feature)
{
    struct field field;

    while (in.at < in.end) {
        if (!take_field(&in, &field))
            return false;
        if (field.number > 3)
            continue;
        if (field.wire != WIRE_BYTES)
            return false;
        ret_feature->kind = (enum hr_example_kind)field.number;
        ret_feature->list = field.bytes;
    }
    return true;
}

/* An entry of the map: a name and a feature. */
static bool read_entry(struct hr_example_bytes in, struct hr_example_feature *ret_feature)
{
    struct field field;

    *ret_feature = (struct hr_example_feature){0};
    while (in.at < in.end) {
        if (!take_field(&in, &field))
            return false;
        if (field.number > 2)
            continue;
        if (field.wire != WIRE_BYTES)
            return false;
        if (field.number == 1)
            ret_feature->name = field.bytes;
        else if (!read_feature(field.bytes, ret_feature))
            return false;
    }
    return true;
}

bool hr__example_next(struct hr_example_walk *walk,
                      struct hr_example_feature *ret_feature)
{
    struct field field;

    for (;;) {
        bool inside = walk->features.at < walk->features.end;
        struct hr_example_bytes *in = inside ? &walk->features : &walk->example;

        if (in->at == in->end)
            return false;
        walk->malformed =
            !take_field(in, &field) || (field.number == 1 && field.wire != WIRE_BYTES);
        if (!walk->malformed && field.number == 1 && inside)
            walk->malformed = !read_entry(field.bytes, ret_feature);
        if (walk->malformed)
            return false;
        if (field.number == 1 && inside)
            return true;
        if (field.number == 1)
            walk->features = field.bytes;
    }
}

/* ---- items ---- */

/* The next run of items of a list: one item, or several that are packed. */
static bool take_run(struct hr_example_bytes *in, struct field *ret_field)
{
    do
        if (!take_field(in, ret_field))
            return false;
    while (ret_field->number != 1 && in->at < in->end);
    return true;
}

/* Items of a run; -1 if it is malformed for this kind. */
static int64_t count_run(enum hr_example_kind kind, const struct field *field)
{
    struct hr_example_bytes in = field->bytes;
    int64_t count = 0;
    uint64_t number;

    if (field->number != 1)
        return 0;
    switch (kind) {
    case HR_EXAMPLE_BYTES:
        return field->wire == WIRE_BYTES ? 1 : -1;
    case HR_EXAMPLE_FLOATS:
        if (field->wire == WIRE_32)
            return 1;
        return field->wire == WIRE_BYTES && (in.end - in.at) % 4 == 0
                   ? (in.end - in.at) / 4
                   : -1;
    case HR_EXAMPLE_INTS:
        if (field->wire == WIRE_VARINT)
            return 1;
        if (field->wire != WIRE_BYTES)
            return -1;
        for (; in.at < in.end; count++)
            if (!take_varint(&in, &number))
                return -1;
        return count;
    case HR_EXAMPLE_NONE:
        break;
    }
    return 0;
}

int64_t hr__example_count(const struct hr_example_feature *feature)
{
    struct hr_example_bytes in = feature->list;
    struct field field;
    int64_t count = 0;

    while (in.at < in.end) {
        int64_t more = take_run(&in, &field) ? count_run(feature->kind, &field) : -1;

        if (more < 0)
            return -1;
        count += more;
    }
    return count;
}

void hr__example_ints(const struct hr_example_feature *feature, int64_t *to)
{
    struct hr_example_bytes in = feature->list;
    struct field field;
    uint64_t number;

    while (in.at < in.end && take_run(&in, &field)) {
        if (field.number != 1)
            continue;
        if (field.wire == WIRE_VARINT)
            *to++ = (int64_t)field.varint;
        else
            while (field.bytes.at < field.bytes.end && take_varint(&field.bytes, &number))
                *to++ = (int64_t)number;
    }
}

void hr__example_floats(const struct hr_example_feature *feature, float *to)
{
    struct hr_example_bytes in = feature->list;
    struct field field;

    while (in.at < in.end && take_run(&in, &field)) {
        size_t bytes = (size_t)(field.bytes.end - field.bytes.at);

        if (field.number != 1)
            continue;
        memcpy(to, field.bytes.at, bytes); /* little-endian, as everything here */
        to += bytes / 4;
    }
}

void hr__example_strings(const struct hr_example_feature *feature,
                         struct hr_example_bytes *to)
{
    struct hr_example_bytes in = feature->list;
    struct field field;

    while (in.at < in.end && take_run(&in, &field))
        if (field.number == 1)
            *to++ = field.bytes;
}
