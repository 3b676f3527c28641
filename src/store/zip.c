/*
 * store/zip.c - the members of ZIP files. The directory at the end of the file counts; of
 * a member's own header only its length is used.
 */
#include "store/zip.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/unpack.h"

#define END_BYTES 22
#define COMMENT_MAX 65535
#define LOCATOR_BYTES 20
#define END64_BYTES 56
#define ENTRY_BYTES 46
#define LOCAL_BYTES 30
#define DIRECTORY_MAX ((uint64_t)64 << 20)
#define PIECE ((size_t)128 << 10)

struct directory {
    uint64_t at, bytes, entries;
};

static uint64_t number(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static enum hr_err
damaged(const struct hr_window *window, const char *what, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "%s: its ZIP directory is damaged: %s",
                    window->object->uri, what);
}

/* ---- the directory's place ---- */

static enum hr_err find_large(struct hr_window *window, uint64_t end,
                              struct directory *directory, struct hr_error *reterr)
{
    const void *data;
    const uint8_t *at;
    uint64_t offset;

    if (end < LOCATOR_BYTES)
        return damaged(window, "its zip64 part is missing", reterr);
    HR_TRY(hr__window_get(window, end - LOCATOR_BYTES, LOCATOR_BYTES, &data, reterr));
    at = data;
    offset = number(at + 8, 8);
    if (memcmp(at, "PK\6\7", 4) != 0 || offset > end || end - offset < END64_BYTES)
        return damaged(window, "its zip64 part is missing", reterr);
    HR_TRY(hr__window_get(window, offset, END64_BYTES, &data, reterr));
    at = data;
    if (memcmp(at, "PK\6\6", 4) != 0)
        return damaged(window, "its zip64 part is missing", reterr);
    directory->entries = number(at + 32, 8);
    directory->bytes = number(at + 40, 8);
    directory->at = number(at + 48, 8);
    return HR_OK;
}

static enum hr_err find_directory(struct hr_window *window, struct directory *directory,
                                  struct hr_error *reterr)
{
    uint64_t size = window->object->bytes, end;
    size_t tail = size < END_BYTES + COMMENT_MAX ? (size_t)size : END_BYTES + COMMENT_MAX;
    const uint8_t *at = NULL;
    const void *data;
    size_t i;

    if (size < END_BYTES)
        return damaged(window, "the file is too short", reterr);
    HR_TRY(hr__window_get(window, size - tail, tail, &data, reterr));
    for (i = tail - END_BYTES + 1; i-- > 0;) {
        at = (const uint8_t *)data + i;
        if (memcmp(at, HR_ZIP_MAGIC_EMPTY, 4) == 0 &&
            number(at + 20, 2) == tail - i - END_BYTES)
            break;
    }
    if (i == SIZE_MAX)
        return damaged(window, "its end is missing: the file may be cut", reterr);
    end = size - tail + i;
    directory->entries = number(at + 10, 2);
    directory->bytes = number(at + 12, 4);
    directory->at = number(at + 16, 4);
    if (directory->entries == UINT16_MAX || directory->bytes == UINT32_MAX ||
        directory->at == UINT32_MAX)
        HR_TRY(find_large(window, end, directory, reterr));
    if (directory->at > end || directory->bytes > end - directory->at)
        return damaged(window, "it is not inside the file", reterr);
    if (directory->entries > HR_ZIP_MEMBERS_MAX || directory->bytes > DIRECTORY_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "%s: more than %d members",
                        window->object->uri, HR_ZIP_MEMBERS_MAX);
    return HR_OK;
}

/* ---- entries ---- */

/* Replaces the numbers that have no room in an entry by those of its zip64 part. */
static bool
read_extra(const uint8_t *extra, size_t bytes, uint64_t *values[3], uint64_t saturated)
{
    while (bytes >= 4) {
        size_t length = (size_t)number(extra + 2, 2), at = 4;

        if (length > bytes - 4)
            return false;
        for (int i = 0; i < 3 && number(extra, 2) == 1; i++) {
            if (*values[i] != saturated)
                continue;
            if (at + 8 > 4 + length)
                return false;
            *values[i] = number(extra + at, 8);
            at += 8;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return true;
}

static enum hr_err
add_member(struct hr_window *window, struct hr_zip *zip, const uint8_t *entry,
           size_t name_bytes, size_t extra_bytes, struct hr_error *reterr)
{
    const char *name = (const char *)entry + ENTRY_BYTES;
    unsigned method = (unsigned)number(entry + 10, 2);
    struct hr_zip_member *member;
    uint64_t *values[3];

    if (name_bytes == 0 || name[name_bytes - 1] == '/')
        return HR_OK;
    if (memchr(name, '\0', name_bytes) != NULL)
        return damaged(window, "a name has a zero byte", reterr);
    if (!hr__array_room(&zip->members, zip->count, &zip->room, 1, sizeof *zip->members))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    member = &zip->members[zip->count];
    *member = (struct hr_zip_member){.name = hr__strndup(name, name_bytes),
                                     .crc = (uint32_t)number(entry + 16, 4),
                                     .deflated = method == 8,
                                     .at = number(entry + 42, 4),
                                     .bytes = number(entry + 20, 4),
                                     .unpacked = number(entry + 24, 4)};
    if (member->name == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    zip->count++;
    values[0] = &member->unpacked;
    values[1] = &member->bytes;
    values[2] = &member->at;
    if (!read_extra(entry + ENTRY_BYTES + name_bytes, extra_bytes, values, UINT32_MAX))
        return damaged(window, "an extra field is cut", reterr);
    if ((entry[8] & 1) != 0 || (method != 0 && method != 8))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "%s: member %s is %s: only stored and deflated members are read",
                        window->object->uri, member->name,
                        (entry[8] & 1) != 0 ? "encrypted"
                                            : "compressed by another method");
    if (method == 0 && member->bytes != member->unpacked)
        return damaged(window, "a stored member has two sizes", reterr);
    return HR_OK;
}

static enum hr_err
read_entries(struct hr_window *window, struct hr_zip *zip,
             const struct directory *directory, struct hr_error *reterr)
{
    uint64_t left = directory->bytes;
    const uint8_t *at;
    const void *data;

    HR_TRY(
        hr__window_get(window, directory->at, (size_t)directory->bytes, &data, reterr));
    at = data;
    for (uint64_t i = 0; i < directory->entries; i++) {
        size_t name, extra, bytes;

        if (left < ENTRY_BYTES || memcmp(at, "PK\1\2", 4) != 0)
            return damaged(window, "an entry is missing", reterr);
        name = (size_t)number(at + 28, 2);
        extra = (size_t)number(at + 30, 2);
        bytes = ENTRY_BYTES + name + extra + (size_t)number(at + 32, 2);
        if (bytes > left)
            return damaged(window, "an entry is cut", reterr);
        HR_TRY(add_member(window, zip, at, name, extra, reterr));
        at += bytes;
        left -= bytes;
    }
    return HR_OK;
}

/* A member begins after its own header; `end` is where the directory begins. */
static enum hr_err place_member(struct hr_window *window, struct hr_zip_member *member,
                                uint64_t end, struct hr_error *reterr)
{
    const uint8_t *head;
    const void *data;
    size_t name_bytes, skip;

    if (member->at > end || end - member->at < LOCAL_BYTES)
        return damaged(window, "a member is not inside the file", reterr);
    HR_TRY(hr__window_get(window, member->at, LOCAL_BYTES, &data, reterr));
    head = data;
    if (memcmp(head, HR_ZIP_MAGIC, 4) != 0)
        return damaged(window, "a member does not begin where it says", reterr);
    name_bytes = (size_t)number(head + 26, 2);
    skip = LOCAL_BYTES + name_bytes + (size_t)number(head + 28, 2);
    if (end - member->at < skip)
        return damaged(window, "a member is not inside the file", reterr);
    HR_TRY(hr__window_get(window, member->at + LOCAL_BYTES, name_bytes, &data, reterr));
    if (name_bytes != strlen(member->name) || memcmp(data, member->name, name_bytes) != 0)
        return damaged(window, "a member has two names", reterr);
    member->at += skip;
    if (member->at > end || member->bytes > end - member->at)
        return damaged(window, "a member is not inside the file", reterr);
    return HR_OK;
}

enum hr_err
hr__zip_read(struct hr_window *window, struct hr_zip *ret_zip, struct hr_error *reterr)
{
    struct directory directory = {0};

    HR_TRY(find_directory(window, &directory, reterr));
    HR_TRY(read_entries(window, ret_zip, &directory, reterr));
    for (size_t i = 0; i < ret_zip->count; i++)
        HR_TRY(place_member(window, &ret_zip->members[i], directory.at, reterr));
    return HR_OK;
}

void hr__zip_finish(struct hr_zip *zip)
{
    for (size_t i = 0; i < zip->count; i++)
        hr__free(zip->members[i].name);
    hr__free(zip->members);
    *zip = (struct hr_zip){0};
}

/* ---- a member ---- */

struct unpack {
    struct hr_unpack *unpack; /* of a deflated member */
    uint8_t *to;
    uint64_t done; /* bytes unpacked */
    bool ended;
};

static enum hr_err
inflate_piece(struct unpack *u, const struct hr_zip_member *member, const uint8_t *data,
              size_t bytes, struct hr_error *reterr)
{
    struct hr_unpack_io io = {data, bytes, u->to + u->done,
                              (size_t)(member->unpacked - u->done)};
    enum hr_unpack_event event;

    while (io.in_bytes > 0 && !u->ended) {
        size_t in = io.in_bytes, out = io.out_bytes;

        HR_TRY(hr__unpack_run(u->unpack, false, &io, &event, reterr));
        u->ended = event == HR_UNPACK_END;
        if (!u->ended && io.in_bytes == in && io.out_bytes == out)
            return hr__fail(reterr, HR_ERR_FORMAT, "it is longer than it says");
    }
    u->done = member->unpacked - io.out_bytes;
    return io.in_bytes > 0 ? hr__fail(reterr, HR_ERR_FORMAT, "more follows its end")
                           : HR_OK;
}

static enum hr_err
unpack_all(struct hr_window *window, const struct hr_zip_member *member, struct unpack *u,
           uint32_t *ret_crc, struct hr_error *reterr)
{
    uLong crc = 0;

    if (member->deflated) {
        HR_TRY(hr__unpack_create(HR_PACKING_DEFLATE, &u->unpack, reterr));
        HR_TRY(hr__unpack_begin(u->unpack, reterr));
    }
    for (uint64_t at = 0; at < member->bytes;) {
        size_t bytes = member->bytes - at < PIECE ? (size_t)(member->bytes - at) : PIECE;
        const void *data;

        HR_TRY(hr__window_get(window, member->at + at, bytes, &data, reterr));
        at += bytes;
        if (member->deflated) {
            uint64_t done = u->done;

            HR_TRY(inflate_piece(u, member, data, bytes, reterr));
            crc = crc32_z(crc, u->to + done, (size_t)(u->done - done));
            continue;
        }
        crc = crc32_z(crc, data, bytes);
        if (u->to != NULL)
            memcpy(u->to + u->done, data, bytes);
        u->done += bytes;
    }
    *ret_crc = (uint32_t)crc;
    return HR_OK;
}

enum hr_err hr__zip_unpack(struct hr_window *window, const struct hr_zip_member *member,
                           void *to, struct hr_error *reterr)
{
    struct unpack u = {.to = to};
    struct hr_error why = {0};
    uint32_t crc;
    enum hr_err code;

    assert(to != NULL || !member->deflated);
    code = unpack_all(window, member, &u, &crc, &why);
    hr__unpack_destroy(u.unpack);
    if (code == HR_OK && (u.done < member->unpacked || (member->deflated && !u.ended) ||
                          crc != member->crc))
        code = hr__fail(&why, HR_ERR_FORMAT, "its checksum is wrong");
    if (code == HR_OK)
        return HR_OK;
    if (code != HR_ERR_FORMAT)
        return hr__fail(reterr, code, "%s", why.message);
    return hr__fail(reterr, code, "%s: member %s is damaged: %s (bytes %llu to %llu)",
                    window->object->uri, member->name, why.message,
                    (unsigned long long)member->at,
                    (unsigned long long)(member->at + member->bytes));
}
