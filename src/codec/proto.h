/*
 * codec/proto.h - messages in the wire format of Protocol Buffers, field by field.
 *
 * A message is a run of fields: a key (number << 3 | wire type) and a value. Groups,
 * which newer writers do not use, are malformed. Nothing is read outside of the bytes.
 */
#ifndef HR_CODEC_PROTO_H
#define HR_CODEC_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hr_wire { HR_WIRE_VARINT = 0, HR_WIRE_64 = 1, HR_WIRE_BYTES = 2, HR_WIRE_32 = 5 };

struct hr_proto_bytes {
    const uint8_t *at, *end;
};

struct hr_proto_field {
    uint64_t number;
    enum hr_wire wire;
    uint64_t varint;
    struct hr_proto_bytes bytes; /* of all but a varint */
};

static inline bool hr__proto_varint(struct hr_proto_bytes *in, uint64_t *ret_number)
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

static inline bool hr__proto_bytes(struct hr_proto_bytes *in, uint64_t bytes,
                                   struct hr_proto_bytes *ret_bytes)
{
    if (bytes > (uint64_t)(in->end - in->at))
        return false;
    *ret_bytes = (struct hr_proto_bytes){in->at, in->at + bytes};
    in->at += bytes;
    return true;
}

/* The next field of a message that is not at its end; false if it is malformed. */
static inline bool
hr__proto_field(struct hr_proto_bytes *in, struct hr_proto_field *ret_field)
{
    uint64_t key, bytes;

    *ret_field = (struct hr_proto_field){0};
    if (!hr__proto_varint(in, &key) || key >> 3 == 0)
        return false;
    ret_field->number = key >> 3;
    ret_field->wire = (enum hr_wire)(key & 7);
    switch (key & 7) {
    case HR_WIRE_VARINT:
        return hr__proto_varint(in, &ret_field->varint);
    case HR_WIRE_64:
        return hr__proto_bytes(in, 8, &ret_field->bytes);
    case HR_WIRE_32:
        return hr__proto_bytes(in, 4, &ret_field->bytes);
    case HR_WIRE_BYTES:
        return hr__proto_varint(in, &bytes) &&
               hr__proto_bytes(in, bytes, &ret_field->bytes);
    default:
        return false;
    }
}

#endif
