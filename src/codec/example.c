/*
 * codec/example.c - see codec/example.h.
 *
 * Fields that are not known are skipped.
 */
#include "codec/example.h"
#include "codec/proto.h"

#include <string.h>

/* ---- features ---- */

void hr__example_begin(struct hr_example_walk *walk, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    *walk = (struct hr_example_walk){0};
    if (bytes > 0)
        walk->example = (struct hr_proto_bytes){at, at + bytes};
}

/* A feature is one of three lists; of several the last one. */
static bool read_feature(struct hr_proto_bytes in, struct hr_example_feature *ret_feature)
{
    struct hr_proto_field field;

    while (in.at < in.end) {
        if (!hr__proto_field(&in, &field))
            return false;
        if (field.number > 3)
            continue;
        if (field.wire != HR_WIRE_BYTES)
            return false;
        ret_feature->kind = (enum hr_example_kind)field.number;
        ret_feature->list = field.bytes;
    }
    return true;
}

/* An entry of the map: a name and a feature. */
static bool read_entry(struct hr_proto_bytes in, struct hr_example_feature *ret_feature)
{
    struct hr_proto_field field;

    *ret_feature = (struct hr_example_feature){0};
    while (in.at < in.end) {
        if (!hr__proto_field(&in, &field))
            return false;
        if (field.number > 2)
            continue;
        if (field.wire != HR_WIRE_BYTES)
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
    struct hr_proto_field field;

    for (;;) {
        bool inside = walk->features.at < walk->features.end;
        struct hr_proto_bytes *in = inside ? &walk->features : &walk->example;

        if (in->at == in->end)
            return false;
        walk->malformed = !hr__proto_field(in, &field) ||
                          (field.number == 1 && field.wire != HR_WIRE_BYTES);
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
static bool take_run(struct hr_proto_bytes *in, struct hr_proto_field *ret_field)
{
    do
        if (!hr__proto_field(in, ret_field))
            return false;
    while (ret_field->number != 1 && in->at < in->end);
    return true;
}

/* Items of a run; -1 if it is malformed for this kind. */
static int64_t count_run(enum hr_example_kind kind, const struct hr_proto_field *field)
{
    struct hr_proto_bytes in = field->bytes;
    int64_t count = 0;
    uint64_t number;

    if (field->number != 1)
        return 0;
    switch (kind) {
    case HR_EXAMPLE_BYTES:
        return field->wire == HR_WIRE_BYTES ? 1 : -1;
    case HR_EXAMPLE_FLOATS:
        if (field->wire == HR_WIRE_32)
            return 1;
        return field->wire == HR_WIRE_BYTES && (in.end - in.at) % 4 == 0
                   ? (in.end - in.at) / 4
                   : -1;
    case HR_EXAMPLE_INTS:
        if (field->wire == HR_WIRE_VARINT)
            return 1;
        if (field->wire != HR_WIRE_BYTES)
            return -1;
        for (; in.at < in.end; count++)
            if (!hr__proto_varint(&in, &number))
                return -1;
        return count;
    case HR_EXAMPLE_NONE:
        break;
    }
    return 0;
}

int64_t hr__example_count(const struct hr_example_feature *feature)
{
    struct hr_proto_bytes in = feature->list;
    struct hr_proto_field field;
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
    struct hr_proto_bytes in = feature->list;
    struct hr_proto_field field;
    uint64_t number;

    while (in.at < in.end && take_run(&in, &field)) {
        if (field.number != 1)
            continue;
        if (field.wire == HR_WIRE_VARINT)
            *to++ = (int64_t)field.varint;
        else
            while (field.bytes.at < field.bytes.end &&
                   hr__proto_varint(&field.bytes, &number))
                *to++ = (int64_t)number;
    }
}

void hr__example_floats(const struct hr_example_feature *feature, float *to)
{
    struct hr_proto_bytes in = feature->list;
    struct hr_proto_field field;

    while (in.at < in.end && take_run(&in, &field)) {
        size_t bytes = (size_t)(field.bytes.end - field.bytes.at);

        if (field.number != 1)
            continue;
        memcpy(to, field.bytes.at, bytes); /* little-endian, as everything here */
        to += bytes / 4;
    }
}

void hr__example_strings(const struct hr_example_feature *feature,
                         struct hr_proto_bytes *to)
{
    struct hr_proto_bytes in = feature->list;
    struct hr_proto_field field;

    while (in.at < in.end && take_run(&in, &field))
        if (field.number == 1)
            *to++ = field.bytes;
}
