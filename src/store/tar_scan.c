/*
 * store/tar_scan.c - finds the records of a tar archive by reading its headers.
 */
#include "store/tar.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

struct scan {
    struct hr_shard_scan *shard;
    struct hr_tar_member member;
    uint64_t at; /* of the next header */
    /* The record that members are being added to. */
    bool open;
    uint64_t from, end;
    size_t key_bytes;
    char key[HR_TAR_NAME_MAX];
};

static enum hr_err close_record(struct scan *scan)
{
    if (!scan->open)
        return HR_OK;
    scan->open = false;
    return hr__shard_add(scan->shard, scan->from, scan->end);
}

enum hr_err hr__tar_look(struct hr_window *window, uint64_t at, uint64_t end,
                         struct hr_tar_member *ret_member, struct hr_error *why,
                         struct hr_error *reterr)
{
    size_t need = HR_TAR_BLOCK;
    const void *data;
    enum hr_err code;

    do {
        if (at > end || need > end - at)
            return HR_ERR_RANGE;
        HR_TRY(hr__window_get(window, at, need, &data, reterr));
        code = hr__tar_parse(data, need, ret_member, &need, why);
    } while (code == HR_ERR_RANGE);
    return code;
}

static enum hr_err parse(struct scan *scan, uint64_t at, struct hr_error *why)
{
    struct hr_window *window = &scan->shard->window;

    return hr__tar_look(window, at, window->object->bytes, &scan->member, why,
                        scan->shard->error);
}

static enum hr_err add_member(struct scan *scan)
{
    struct hr_tar_member *member = &scan->member;
    uint64_t end = member->data + member->bytes;
    uint64_t left = scan->shard->window.object->bytes - scan->at;
    size_t key, ending;

    if (!hr__tar_key(member, &key, &ending))
        return HR_OK;
    hr__hasher_add(scan->shard->hasher, member->name, member->name_bytes + 1);
    hr__hasher_add(scan->shard->hasher, &member->bytes, sizeof member->bytes);
    if (!scan->open || scan->key_bytes != key ||
        memcmp(scan->key, member->name, key) != 0) {
        HR_TRY(close_record(scan));
        memcpy(scan->key, member->name, key);
        scan->key_bytes = key;
        scan->from = scan->at;
        scan->open = true;
    }
    scan->end = scan->at + (end < left ? end : left);
    return HR_OK;
}

/* From a damaged header to the next that is whole, or from the header of a member that is
 * refused to the next header. What lies between is a record, so that reading it reports
 * the damage. */
static enum hr_err skip_damage(struct scan *scan, bool refused)
{
    uint64_t from = scan->at, bytes = scan->shard->window.object->bytes;
    enum hr_err code = refused ? HR_OK : HR_ERR_FORMAT;

    HR_TRY(close_record(scan));
    if (refused)
        scan->at += scan->member.next;
    while (code != HR_OK && scan->at < bytes) {
        scan->at += HR_TAR_BLOCK;
        code = scan->at < bytes ? parse(scan, scan->at, NULL) : HR_OK;
        if (code != HR_OK && code != HR_ERR_FORMAT && code != HR_ERR_END &&
            code != HR_ERR_RANGE)
            return code;
    }
    if (scan->at > bytes)
        scan->at = bytes;
    hr__hasher_add(scan->shard->hasher, &from, sizeof from);
    return hr__shard_add(scan->shard, from, scan->at);
}

/* A block of zeros ends an archive if another one or nothing follows. */
static enum hr_err is_end(struct scan *scan, bool *ret_end)
{
    enum hr_err code = parse(scan, scan->at + HR_TAR_BLOCK, NULL);

    *ret_end = code == HR_ERR_END || code == HR_ERR_RANGE;
    return *ret_end || code == HR_OK || code == HR_ERR_FORMAT ? HR_OK : code;
}

static enum hr_err scan_members(struct scan *scan)
{
    struct hr_error why = {0};
    bool end = false;
    enum hr_err code;

    for (scan->at = 0; !end && scan->at < scan->shard->window.object->bytes;) {
        code = parse(scan, scan->at, &why);
        if (code == HR_OK) {
            HR_TRY(add_member(scan));
            scan->at += scan->member.next;
        } else if (code == HR_ERR_END) {
            HR_TRY(is_end(scan, &end));
            scan->at += HR_TAR_BLOCK;
        } else if (code != HR_ERR_FORMAT && code != HR_ERR_RANGE) {
            return code;
        } else {
            bool first = scan->at == 0;

            HR_TRY(skip_damage(scan, code == HR_ERR_FORMAT && scan->member.next > 0));
            if (first && scan->at == scan->shard->window.object->bytes)
                return hr__shard_fail(scan->shard, "tar archive",
                                      why.message[0] != '\0' ? why.message
                                                             : "it is too short");
        }
    }
    return close_record(scan);
}

enum hr_err hr__tar_scan(struct hr_shard_scan *shard)
{
    struct scan *scan = hr__calloc(1, sizeof *scan);
    enum hr_err code;

    if (scan == NULL)
        return hr__fail(shard->error, HR_ERR_MEMORY, "out of memory");
    scan->shard = shard;
    code = scan_members(scan);
    hr__free(scan);
    return code;
}
