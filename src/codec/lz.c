/*
 * codec/lz.c - blocks of Snappy and LZ4: literals, and copies of earlier output.
 *
 * Every length is checked against what is left of input and output before it is used.
 */
#include "codec/lz.h"

#include <string.h>

struct lz {
    const uint8_t *in, *end;
    uint8_t *begin, *out, *limit;
};

/* Copies `bytes` bytes of input to the output. */
static bool add_literal(struct lz *lz, size_t bytes)
{
    if (bytes > (size_t)(lz->end - lz->in) || bytes > (size_t)(lz->limit - lz->out))
        return false;
    if (bytes <= 16 && lz->end - lz->in >= 16)
        memcpy(lz->out, lz->in, 16);
    else
        memcpy(lz->out, lz->in, bytes);
    lz->in += bytes;
    lz->out += bytes;
    return true;
}

/* Copies `bytes` bytes from `offset` before the end of the output. */
static bool add_copy(struct lz *lz, size_t offset, size_t bytes)
{
    const uint8_t *from = lz->out - offset;
    uint8_t *to = lz->out;

    if (offset == 0 || offset > (size_t)(lz->out - lz->begin) ||
        bytes > (size_t)(lz->limit - lz->out))
        return false;
    lz->out += bytes;
    if (offset >= 16) {
        for (; to < lz->out; to += 16, from += 16)
            memcpy(to, from, 16);
    } else if (offset >= 8) {
        for (; to < lz->out; to += 8, from += 8)
            memcpy(to, from, 8);
    } else {
        while (to < lz->out)
            *to++ = *from++;
    }
    return true;
}

/* ---- Snappy ---- */

static bool read_little(struct lz *lz, unsigned bytes, size_t *ret_number)
{
    size_t number = 0;

    if ((size_t)(lz->end - lz->in) < bytes)
        return false;
    for (unsigned i = 0; i < bytes; i++)
        number |= (size_t)*lz->in++ << 8 * i;
    *ret_number = number;
    return true;
}

/* The number of bytes that the block unpacks to. */
static bool read_length(struct lz *lz, uint64_t *ret_length)
{
    *ret_length = 0;
    for (unsigned shift = 0; shift < 35 && lz->in < lz->end; shift += 7) {
        uint8_t byte = *lz->in++;

        *ret_length |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool snappy_element(struct lz *lz)
{
    uint8_t tag = *lz->in++;
    size_t length = tag >> 2, offset;

    switch (tag & 3) {
    case 0:
        if (length >= 60 && !read_little(lz, (unsigned)length - 59, &length))
            return false;
        return add_literal(lz, length + 1);
    case 1:
        if (!read_little(lz, 1, &offset))
            return false;
        return add_copy(lz, (size_t)(tag >> 5) << 8 | offset, (length & 7) + 4);
    case 2:
        return read_little(lz, 2, &offset) && add_copy(lz, offset, length + 1);
    default:
        return read_little(lz, 4, &offset) && add_copy(lz, offset, length + 1);
    }
}

bool hr__snappy_unpack(const void *data, size_t bytes, void *to, size_t room)
{
    struct lz lz = {.in = data, .begin = to, .out = to};
    uint64_t length;

    lz.end = lz.in + bytes;
    lz.limit = lz.out + room;
    if (!read_length(&lz, &length) || length != room)
        return false;
    while (lz.in < lz.end)
        if (!snappy_element(&lz))
            return false;
    return lz.out == lz.limit;
}

/* ---- LZ4 ---- */

/* A length that continues while bytes are 255. */
static bool read_more(struct lz *lz, size_t *length)
{
    uint8_t byte = 255;

    while (byte == 255) {
        if (lz->in == lz->end)
            return false;
        byte = *lz->in++;
        *length += byte;
    }
    return true;
}

bool hr__lz4_unpack(const void *data, size_t bytes, void *to, size_t room)
{
    struct lz lz = {.in = data, .begin = to, .out = to};

    lz.end = lz.in + bytes;
    lz.limit = lz.out + room;
    while (lz.in < lz.end) {
        uint8_t token = *lz.in++;
        size_t literal = token >> 4, match = token & 15, offset;

        if ((literal == 15 && !read_more(&lz, &literal)) || !add_literal(&lz, literal))
            return false;
        if (lz.in == lz.end) /* the last sequence has no match */
            return match == 0 && lz.out == lz.limit;
        if (!read_little(&lz, 2, &offset) || (match == 15 && !read_more(&lz, &match)) ||
            !add_copy(&lz, offset, match + 4))
            return false;
    }
    return false;
}
