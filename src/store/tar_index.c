/*
 * store/tar_index.c - finds the records of tar archives by reading their headers.
 */
#include "store/tar.h"
#include "store/window.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

struct shard {
    char *uri;
    struct hr_hash128 identity;
    uint64_t first; /* number of its first record */
};

struct place {
    uint64_t at, bytes;
};

struct hr_tar_index {
    struct shard *shards;
    size_t shard_count;
    struct place *records;
    uint64_t count, room;
    struct hr_hash128 identity;
};

struct scan {
    struct hr_tar_index *index;
    struct hr_hasher *hasher;
    struct hr_window window;
    struct hr_tar_member member;
    struct hr_error *error;
    uint64_t at; /* of the next header */
    /* The record that members are being added to. */
    bool open;
    struct place record;
    size_t key_bytes;
    char key[HR_TAR_NAME_MAX];
};

static enum hr_err add_record(struct scan *scan, uint64_t at, uint64_t end)
{
    struct hr_tar_index *index = scan->index;
    uint64_t room = index->room > 0 ? 2 * index->room : 1024;
    struct place *records;

    assert(at < end);
    if (index->count == index->room) {
        records = hr__realloc(index->records, (size_t)room * sizeof *records);
        if (records == NULL)
            return hr__fail(scan->error, HR_ERR_MEMORY,
                            "out of memory for the index of %s", scan->window.uri);
        index->records = records;
        index->room = room;
    }
    index->records[index->count++] = (struct place){.at = at, .bytes = end - at};
    return HR_OK;
}

static enum hr_err close_record(struct scan *scan)
{
    if (!scan->open)
        return HR_OK;
    scan->open = false;
    return add_record(scan, scan->record.at, scan->record.at + scan->record.bytes);
}

/* Parses the header at `at`; HR_ERR_RANGE if the archive ends within it. */
static enum hr_err parse(struct scan *scan, uint64_t at, struct hr_error *error)
{
    size_t need = HR_TAR_BLOCK;
    const void *data;
    enum hr_err code;

    do {
        if (at > scan->window.object.bytes || need > scan->window.object.bytes - at)
            return HR_ERR_RANGE;
        HR_TRY(hr__window_get(&scan->window, at, need, &data, scan->error));
        code = hr__tar_parse(data, need, &scan->member, &need, error);
    } while (code == HR_ERR_RANGE);
    return code;
}

static enum hr_err add_member(struct scan *scan)
{
    struct hr_tar_member *member = &scan->member;
    uint64_t end = member->data + member->bytes;
    uint64_t left = scan->window.object.bytes - scan->at;
    size_t key, ending;

    if (!hr__tar_key(member, &key, &ending))
        return HR_OK;
    hr__hasher_add(scan->hasher, member->name, member->name_bytes + 1);
    hr__hasher_add(scan->hasher, &member->bytes, sizeof member->bytes);
    if (!scan->open || scan->key_bytes != key ||
        memcmp(scan->key, member->name, key) != 0) {
        HR_TRY(close_record(scan));
        memcpy(scan->key, member->name, key);
        scan->key_bytes = key;
        scan->record.at = scan->at;
        scan->open = true;
    }
    scan->record.bytes = scan->at + (end < left ? end : left) - scan->record.at;
    return HR_OK;
}

/* From a damaged header to the next that is whole. What lies between is a record, so that
 * reading it reports the damage. */
static enum hr_err skip_damage(struct scan *scan)
{
    uint64_t from = scan->at, bytes = scan->window.object.bytes;
    enum hr_err code = HR_ERR_FORMAT;

    HR_TRY(close_record(scan));
    while (code != HR_OK && scan->at < bytes) {
        scan->at += HR_TAR_BLOCK;
        code = scan->at < bytes ? parse(scan, scan->at, NULL) : HR_OK;
        if (code != HR_OK && code != HR_ERR_FORMAT && code != HR_ERR_END &&
            code != HR_ERR_RANGE)
            return code;
    }
    if (scan->at > bytes)
        scan->at = bytes;
    hr__hasher_add(scan->hasher, &from, sizeof from);
    return add_record(scan, from, scan->at);
}

/* There is no header in the file. Compressed archives are often called .tar, too. */
static enum hr_err fail_all(struct scan *scan, const struct hr_error *why)
{
    const unsigned char *data;
    const void *got;

    if (scan->window.object.bytes >= 4 &&
        hr__window_get(&scan->window, 0, 4, &got, NULL) == HR_OK) {
        data = got;
        if ((data[0] == 0x1f && data[1] == 0x8b) ||
            (data[0] == 0x28 && data[1] == 0xb5 && data[2] == 0x2f && data[3] == 0xfd))
            return hr__fail(scan->error, HR_ERR_UNSUPPORTED,
                            "%s is compressed, and a record in a compressed archive "
                            "cannot be found without reading all before it: unpack it "
                            "(gunzip, unzstd)",
                            scan->window.uri);
    }
    return hr__fail(scan->error, HR_ERR_FORMAT, "%s: no tar archive: byte 0: %s",
                    scan->window.uri,
                    why->message[0] != '\0' ? why->message : "it is too short");
}

/* A block of zeros ends an archive if another one or nothing follows. */
static enum hr_err is_end(struct scan *scan, bool *ret_end)
{
    enum hr_err code = parse(scan, scan->at + HR_TAR_BLOCK, NULL);

    *ret_end = code == HR_ERR_END || code == HR_ERR_RANGE;
    return *ret_end || code == HR_OK || code == HR_ERR_FORMAT ? HR_OK : code;
}

static enum hr_err scan_shard(struct scan *scan, const char *uri)
{
    struct hr_error why = {0};
    bool end = false;
    enum hr_err code;

    HR_TRY(hr__window_open(&scan->window, uri, scan->error));
    for (scan->at = 0; !end && scan->at < scan->window.object.bytes;) {
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

            HR_TRY(skip_damage(scan));
            if (first && scan->at == scan->window.object.bytes)
                return fail_all(scan, &why);
        }
    }
    return close_record(scan);
}

static enum hr_err scan_all(struct scan *scan, const char *const *uris, size_t count)
{
    struct hr_tar_index *index = scan->index;

    for (size_t i = 0; i < count; i++) {
        struct shard *shard = &index->shards[index->shard_count];

        shard->uri = hr__strdup(uris[i]);
        if (shard->uri == NULL)
            return hr__fail(scan->error, HR_ERR_MEMORY, "out of memory");
        index->shard_count++;
        shard->first = index->count;
        HR_TRY(scan_shard(scan, uris[i]));
        shard->identity = scan->window.object.identity;
    }
    return HR_OK;
}

enum hr_err hr__tar_index_open(const char *const *uris, size_t count,
                               struct hr_tar_index **ret_index, struct hr_error *reterr)
{
    struct hr_tar_index *index = hr__calloc(1, sizeof *index);
    struct scan *scan = hr__calloc(1, sizeof *scan);
    struct hr_hasher *hasher = hr__hasher_create();
    enum hr_err code = HR_ERR_MEMORY;

    if (index != NULL && count > 0)
        index->shards = hr__calloc(count, sizeof *index->shards);
    if (index != NULL && scan != NULL && hasher != NULL &&
        (index->shards != NULL || count == 0)) {
        scan->index = index;
        scan->hasher = hasher;
        scan->error = reterr;
        code = scan_all(scan, uris, count);
        index->identity = hr__hasher_value(hasher);
        hr__window_finish(&scan->window);
    } else {
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    hr__hasher_destroy(hasher);
    hr__free(scan);
    if (code != HR_OK) {
        hr__tar_index_close(index);
        return code;
    }
    *ret_index = index;
    return HR_OK;
}

void hr__tar_index_close(struct hr_tar_index *index)
{
    if (index == NULL)
        return;
    for (size_t i = 0; i < index->shard_count; i++)
        hr__free(index->shards[i].uri);
    hr__free(index->shards);
    hr__free(index->records);
    hr__free(index);
}

uint64_t hr__tar_index_count(const struct hr_tar_index *index)
{
    return index->count;
}

struct hr_hash128 hr__tar_index_identity(const struct hr_tar_index *index)
{
    return index->identity;
}

/* The last shard whose first record is at most `at`. */
static const struct shard *shard_of(const struct hr_tar_index *index, uint64_t at)
{
    size_t low = 0, high = index->shard_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (index->shards[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return &index->shards[low];
}

void hr__tar_index_record(const struct hr_tar_index *index, uint64_t at,
                          const char **ret_uri, struct hr_hash128 *ret_identity,
                          uint64_t *ret_offset, uint64_t *ret_bytes)
{
    const struct shard *shard;

    assert(at < index->count);
    shard = shard_of(index, at);
    *ret_uri = shard->uri;
    *ret_identity = shard->identity;
    *ret_offset = index->records[at].at;
    *ret_bytes = index->records[at].bytes;
}
