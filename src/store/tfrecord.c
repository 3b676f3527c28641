/*
 * store/tfrecord.c - TFRecord files.
 */
#include "store/tfrecord.h"

#include <string.h>

#include "core/crc32c.h"
#include "core/error.h"

#define OVERHEAD ((uint64_t)(HR_TFRECORD_HEAD + HR_TFRECORD_TAIL))
#define PIECE ((size_t)64 << 10) /* of a record, for its checksum */

static uint32_t mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint32_t masked_crc(const void *data, size_t bytes)
{
    return mask(hr__crc32c(0, data, bytes));
}

static uint64_t read_number(const void *at, int bytes)
{
    const unsigned char *from = at;
    uint64_t number = 0;

    for (int i = bytes; i-- > 0;)
        number = number << 8 | from[i];
    return number;
}

static void write_number(uint64_t number, int bytes, char *to)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (char)(number >> 8 * i);
}

void hr__tfrecord_frame(const void *data, size_t bytes, char ret_head[HR_TFRECORD_HEAD],
                        char ret_tail[HR_TFRECORD_TAIL])
{
    write_number(bytes, 8, ret_head);
    write_number(masked_crc(ret_head, 8), 4, ret_head + 8);
    write_number(masked_crc(data, bytes), 4, ret_tail);
}

static bool has_length(const void *head, uint64_t *ret_length)
{
    *ret_length = read_number(head, 8);
    return read_number((const char *)head + 8, 4) == masked_crc(head, 8);
}

bool hr__tfrecord_begins(const void *data, size_t bytes)
{
    uint64_t length;

    return bytes >= HR_TFRECORD_HEAD && has_length(data, &length);
}

const char *hr__tfrecord_check(const void *record, uint64_t bytes, const char **ret_data,
                               size_t *ret_bytes)
{
    uint64_t length;

    if (bytes < HR_TFRECORD_HEAD)
        return "the file ends in a record's length";
    if (!has_length(record, &length))
        return "a record's length is damaged: its checksum is wrong";
    if (bytes < OVERHEAD || length > bytes - OVERHEAD)
        return "the file ends in a record";
    *ret_data = (const char *)record + HR_TFRECORD_HEAD;
    *ret_bytes = (size_t)length;
    if (read_number(*ret_data + length, 4) != masked_crc(*ret_data, (size_t)length))
        return "a record's data is damaged: its checksum is wrong";
    return NULL;
}

/* The length at `at`; *ret_valid is false if its checksum is wrong or the file ends. */
static enum hr_err read_length(struct hr_shard_scan *scan, uint64_t at,
                               uint64_t *ret_length, bool *ret_valid)
{
    const void *head;

    *ret_valid = false;
    if (scan->window.object->bytes - at < HR_TFRECORD_HEAD)
        return HR_OK;
    HR_TRY(hr__window_get(&scan->window, at, HR_TFRECORD_HEAD, &head, scan->error));
    *ret_valid = has_length(head, ret_length);
    return HR_OK;
}

/* Whether a record with a right length is whole. */
static enum hr_err
is_whole(struct hr_shard_scan *scan, uint64_t at, uint64_t length, bool *ret_whole)
{
    uint64_t left = scan->window.object->bytes - at, data = at + HR_TFRECORD_HEAD;
    uint32_t crc = 0;
    const void *piece;

    *ret_whole = left >= OVERHEAD && length <= left - OVERHEAD;
    for (uint64_t done = 0; *ret_whole && done < length;) {
        size_t bytes = length - done < PIECE ? (size_t)(length - done) : PIECE;

        HR_TRY(hr__window_get(&scan->window, data + done, bytes, &piece, scan->error));
        crc = hr__crc32c(crc, piece, bytes);
        done += bytes;
    }
    if (!*ret_whole)
        return HR_OK;
    HR_TRY(hr__window_get(&scan->window, data + length, HR_TFRECORD_TAIL, &piece,
                          scan->error));
    *ret_whole = read_number(piece, HR_TFRECORD_TAIL) == mask(crc);
    return HR_OK;
}

/* Adds what lies between a damaged length at *at and the next record that is whole. A
 * right length is not enough: 8 bytes of data and their checksum look like one. */
static enum hr_err skip_damage(struct hr_shard_scan *scan, uint64_t *at)
{
    uint64_t from = *at, end = scan->window.object->bytes, length;
    bool whole = false;

    while (!whole && ++*at < end) {
        HR_TRY(read_length(scan, *at, &length, &whole));
        if (whole)
            HR_TRY(is_whole(scan, *at, length, &whole));
    }
    hr__hasher_add(scan->hasher, &from, sizeof from);
    return hr__shard_add(scan, from, *at);
}

static enum hr_err add_whole(struct hr_shard_scan *scan, uint64_t at, uint64_t length)
{
    const void *tail;

    HR_TRY(hr__window_get(&scan->window, at + HR_TFRECORD_HEAD + length, HR_TFRECORD_TAIL,
                          &tail, scan->error));
    hr__hasher_add(scan->hasher, &length, sizeof length);
    hr__hasher_add(scan->hasher, tail, HR_TFRECORD_TAIL);
    return hr__shard_add(scan, at, at + length + OVERHEAD);
}

enum hr_err hr__tfrecord_scan(struct hr_shard_scan *scan)
{
    uint64_t end = scan->window.object->bytes, length;
    bool valid;

    for (uint64_t at = 0; at < end;) {
        HR_TRY(read_length(scan, at, &length, &valid));
        if (!valid) {
            bool first = at == 0;

            HR_TRY(skip_damage(scan, &at));
            if (first && at == end)
                return hr__shard_fail(scan, "TFRecord file",
                                      "the checksum of the first record's length is "
                                      "wrong");
        } else if (end - at < OVERHEAD || length > end - at - OVERHEAD) {
            hr__hasher_add(scan->hasher, &at, sizeof at);
            return hr__shard_add(scan, at, end);
        } else {
            HR_TRY(add_whole(scan, at, length));
            at += length + OVERHEAD;
        }
    }
    return HR_OK;
}
