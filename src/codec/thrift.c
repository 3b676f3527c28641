/*
 * codec/thrift.c - see thrift.h.
 */
#include "codec/thrift.h"

#define DEPTH_MAX 16 /* of structs and lists that are skipped */

static uint8_t read_byte(struct hr_thrift *thrift)
{
    if (thrift->bad || thrift->at >= thrift->bytes) {
        thrift->bad = true;
        return 0;
    }
    return thrift->data[thrift->at++];
}

static uint64_t read_varint(struct hr_thrift *thrift)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = read_byte(thrift);

        number |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128)
            return number;
    }
    thrift->bad = true;
    return 0;
}

static int64_t read_zigzag(struct hr_thrift *thrift)
{
    uint64_t number = read_varint(thrift);

    return (int64_t)(number >> 1 ^ (~(number & 1) + 1));
}

static void move(struct hr_thrift *thrift, uint64_t bytes)
{
    if (thrift->bad || bytes > thrift->bytes - thrift->at)
        thrift->bad = true;
    else
        thrift->at += (size_t)bytes;
}

bool hr__thrift_next(struct hr_thrift *thrift, struct hr_thrift_field *field)
{
    uint8_t byte = read_byte(thrift);
    int64_t id;

    if (byte == 0)
        return false;
    id = byte >> 4 != 0 ? field->id + (byte >> 4) : read_zigzag(thrift);
    field->type = (enum hr_thrift_type)(byte & 15);
    if (id < INT16_MIN || id > INT16_MAX || field->type < HR_THRIFT_TRUE ||
        field->type > HR_THRIFT_STRUCT)
        thrift->bad = true;
    field->id = (int)id;
    return !thrift->bad;
}

static size_t read_count(struct hr_thrift *thrift, enum hr_thrift_type *ret_type)
{
    uint8_t byte = read_byte(thrift);
    uint64_t count = byte >> 4;

    *ret_type = (enum hr_thrift_type)(byte & 15);
    if (count == 15)
        count = read_varint(thrift);
    if (thrift->bad || count > thrift->bytes - thrift->at) { /* each takes a byte */
        thrift->bad = true;
        return 0;
    }
    return (size_t)count;
}

static void skip(struct hr_thrift *thrift, enum hr_thrift_type type, int depth);

/* Of a list or map, where a bool takes a byte. */
static void skip_element(struct hr_thrift *thrift, enum hr_thrift_type type, int depth)
{
    if (type == HR_THRIFT_TRUE || type == HR_THRIFT_FALSE)
        (void)read_byte(thrift);
    else
        skip(thrift, type, depth);
}

static void skip_list(struct hr_thrift *thrift, int depth)
{
    enum hr_thrift_type type;

    for (size_t count = read_count(thrift, &type); count > 0 && !thrift->bad; count--)
        skip_element(thrift, type, depth);
}

static void skip_map(struct hr_thrift *thrift, int depth)
{
    uint64_t count = read_varint(thrift);
    uint8_t types = count > 0 ? read_byte(thrift) : 0;

    if (count > thrift->bytes)
        thrift->bad = true;
    for (; count > 0 && !thrift->bad; count--) {
        skip_element(thrift, (enum hr_thrift_type)(types >> 4), depth);
        skip_element(thrift, (enum hr_thrift_type)(types & 15), depth);
    }
}

static void skip(struct hr_thrift *thrift, enum hr_thrift_type type, int depth)
{
    struct hr_thrift_field field = {0};

    if (depth == DEPTH_MAX)
        thrift->bad = true;
    if (thrift->bad)
        return;
    switch (type) {
    case HR_THRIFT_TRUE:
    case HR_THRIFT_FALSE:
        return; /* the type is the value */
    case HR_THRIFT_I8:
        (void)read_byte(thrift);
        return;
    case HR_THRIFT_I16:
    case HR_THRIFT_I32:
    case HR_THRIFT_I64:
        (void)read_varint(thrift);
        return;
    case HR_THRIFT_DOUBLE:
        move(thrift, 8);
        return;
    case HR_THRIFT_BINARY:
        move(thrift, read_varint(thrift));
        return;
    case HR_THRIFT_LIST:
    case HR_THRIFT_SET:
        skip_list(thrift, depth + 1);
        return;
    case HR_THRIFT_MAP:
        skip_map(thrift, depth + 1);
        return;
    case HR_THRIFT_STRUCT:
        while (hr__thrift_next(thrift, &field))
            skip(thrift, field.type, depth + 1);
        return;
    }
    thrift->bad = true;
}

void hr__thrift_skip(struct hr_thrift *thrift, enum hr_thrift_type type)
{
    skip(thrift, type, 0);
}

int64_t hr__thrift_int(struct hr_thrift *thrift, const struct hr_thrift_field *field)
{
    if (field->type == HR_THRIFT_I8)
        return (int8_t)read_byte(thrift);
    if (field->type < HR_THRIFT_I16 || field->type > HR_THRIFT_I64) {
        thrift->bad = true;
        return 0;
    }
    return hr__thrift_element(thrift);
}

bool hr__thrift_bool(struct hr_thrift *thrift, const struct hr_thrift_field *field)
{
    if (field->type != HR_THRIFT_TRUE && field->type != HR_THRIFT_FALSE)
        thrift->bad = true;
    return field->type == HR_THRIFT_TRUE;
}

const void *hr__thrift_binary(struct hr_thrift *thrift,
                              const struct hr_thrift_field *field, size_t *ret_bytes)
{
    uint64_t bytes;
    const void *data;

    if (field->type != HR_THRIFT_BINARY)
        thrift->bad = true;
    bytes = read_varint(thrift);
    data = thrift->data + thrift->at;
    move(thrift, bytes);
    *ret_bytes = thrift->bad ? 0 : (size_t)bytes;
    return thrift->bad ? "" : data;
}

bool hr__thrift_struct(struct hr_thrift *thrift, const struct hr_thrift_field *field)
{
    if (field->type != HR_THRIFT_STRUCT)
        thrift->bad = true;
    return !thrift->bad;
}

size_t hr__thrift_list(struct hr_thrift *thrift, const struct hr_thrift_field *field,
                       enum hr_thrift_type type)
{
    enum hr_thrift_type found;
    size_t count;

    if (field->type != HR_THRIFT_LIST)
        thrift->bad = true;
    count = read_count(thrift, &found);
    if (count > 0 && found != type)
        thrift->bad = true;
    return thrift->bad ? 0 : count;
}

int64_t hr__thrift_element(struct hr_thrift *thrift)
{
    int64_t number = read_zigzag(thrift);

    return thrift->bad ? 0 : number;
}
