/*
 * store/shard_index.c - where the records of shards lie.
 */
#include "store/shard_index.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "core/error.h"
#include "store/shards.h"

struct shard {
    char *uri;
    struct hr_hash128 identity;
    struct hr_object object; /* if `open` */
    bool open;
    struct hr_packed *packed; /* or NULL */
    uint64_t first;           /* number of its first record */
};

struct extent {
    uint64_t at, bytes;
};

/* A record takes 8 bytes: 40 bits of where it begins and 24 of its length. One that does
 * not fit has a place in `large`, and its length here is IS_LARGE. */
#define LENGTH_BITS 24
#define IS_LARGE (((uint64_t)1 << LENGTH_BITS) - 1)

#define LINES_EVERY 1024

struct hr_shard_index {
    struct shard *shards;
    size_t shard_count;
    uint64_t *records;
    struct extent *large;
    uint64_t *lines; /* of every LINES_EVERY-th record */
    size_t count, room, large_count, large_room, line_count, line_room;
    struct hr_hash128 identity;
    struct hr_packed_cache *cache; /* of packed shards; NULL: they are refused */
};

static bool add_large(struct hr_shard_index *index, struct extent extent)
{
    if (!hr__array_room(&index->large, index->large_count, &index->large_room, 1,
                        sizeof *index->large))
        return false;
    index->large[index->large_count++] = extent;
    return true;
}

static bool add_line(struct hr_shard_index *index, uint64_t line)
{
    if (!hr__array_room(&index->lines, index->line_count, &index->line_room, 1,
                        sizeof *index->lines))
        return false;
    index->lines[index->line_count++] = line;
    return true;
}

enum hr_err hr__shard_add(struct hr_shard_scan *scan, uint64_t at, uint64_t end)
{
    struct hr_shard_index *index = scan->index;
    uint64_t bytes = end - at, place = at;

    assert(at < end && end <= scan->window.object->bytes);
    if (bytes >= IS_LARGE || at >> (64 - LENGTH_BITS) != 0) {
        place = index->large_count;
        if (!add_large(index, (struct extent){.at = at, .bytes = bytes}))
            goto no_memory;
        bytes = IS_LARGE;
    }
    if (index->count == index->room &&
        !hr__array_room(&index->records, index->count, &index->room, 1,
                        sizeof *index->records))
        goto no_memory;
    if (index->count % LINES_EVERY == 0 && !add_line(index, scan->line))
        goto no_memory;
    index->records[index->count++] = place << LENGTH_BITS | bytes;
    return HR_OK;
no_memory:
    return hr__fail(scan->error, HR_ERR_MEMORY, "out of memory for the index of %s",
                    scan->window.object->uri);
}

enum hr_err hr__shard_check(struct hr_shard_scan *scan, uint64_t at, size_t bytes)
{
    return scan->packed != NULL ? hr__packed_check(scan->packed, at, bytes, scan->error)
                                : HR_OK;
}

enum hr_err hr__shard_fail(struct hr_shard_scan *scan, const char *what, const char *why)
{
    if (scan->packed != NULL && hr__packed_check(scan->packed, 0, 1, NULL) != HR_OK)
        return HR_OK;
    return hr__fail(scan->error, HR_ERR_FORMAT, "%s: no %s: byte 0: %s",
                    scan->window.object->uri, what, why);
}

static enum hr_err keep_open(struct shard *shard, struct hr_error *reterr)
{
    HR_TRY(hr__store_open(shard->uri, &shard->object, reterr));
    shard->open = true;
    if (shard->packed != NULL)
        hr__packed_watch(shard->packed, &shard->object);
    if (hr__hash_equal(shard->object.identity, shard->identity))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_STATE, "%s changed while it was opened", shard->uri);
}

/* Opens the shard in the scan's window: what it unpacks to, if it is compressed. */
static enum hr_err open_shard(struct hr_shard_scan *scan, struct shard *shard,
                              const struct hr_packed_limits *limits)
{
    static const struct hr_packed_limits none = {0};
    enum hr_packing packing;
    const void *data;
    size_t bytes;

    scan->packed = NULL;
    HR_TRY(hr__window_open(&scan->window, shard->uri, scan->error));
    shard->identity = scan->window.object->identity;
    bytes = scan->window.object->bytes < HR_PACKED_LOOK
                ? (size_t)scan->window.object->bytes
                : HR_PACKED_LOOK;
    HR_TRY(hr__window_get(&scan->window, 0, bytes, &data, scan->error));
    HR_TRY(hr__packed_look(limits != NULL ? limits : &none, shard->uri, data, bytes,
                           &packing, scan->error));
    if (packing == HR_PACKING_NONE)
        return HR_OK;
    if (limits == NULL)
        return hr__fail(scan->error, HR_ERR_UNSUPPORTED,
                        "%s is compressed (%s), and such files are read as they are: "
                        "unpack it",
                        shard->uri, hr__packing_name(packing));
    if (scan->index->cache == NULL)
        HR_TRY(hr__packed_cache_create(limits, &scan->index->cache, scan->error));
    HR_TRY(hr__packed_open(scan->index->cache, shard->uri, packing, &shard->packed,
                           scan->error));
    scan->packed = shard->packed;
    hr__window_use(&scan->window, hr__packed_scanned(shard->packed));
    return HR_OK;
}

static enum hr_err scan_all(struct hr_shard_scan *scan, struct hr_shards *shards,
                            hr_shard_scan_fn *one, const struct hr_packed_limits *limits)
{
    struct hr_shard_index *index = scan->index;

    for (size_t i = 0; i < shards->count; i++) {
        struct shard *shard = &index->shards[index->shard_count++];

        shard->uri = shards->uris[i];
        shards->uris[i] = NULL;
        shard->first = index->count;
        scan->line = 0;
        HR_TRY(open_shard(scan, shard, limits));
        HR_TRY(one(scan));
        if (shards->count <= HR_SHARDS_OPEN)
            HR_TRY(keep_open(shard, scan->error));
    }
    index->identity = hr__hasher_value(scan->hasher);
    return HR_OK;
}

static enum hr_err build(struct hr_shards *shards, hr_shard_scan_fn *one, void *user,
                         const struct hr_packed_limits *limits,
                         struct hr_shard_index *index, struct hr_error *reterr)
{
    struct hr_shard_scan *scan = hr__calloc(1, sizeof *scan);
    struct hr_hasher *hasher = hr__hasher_create();
    enum hr_err code = HR_ERR_MEMORY;

    index->shards = hr__calloc(shards->count + 1, sizeof *index->shards);
    if (scan != NULL && hasher != NULL && index->shards != NULL) {
        scan->index = index;
        scan->hasher = hasher;
        scan->error = reterr;
        scan->user = user;
        code = scan_all(scan, shards, one, limits);
        hr__window_finish(&scan->window);
    } else {
        hr__fail(reterr, code, "out of memory");
    }
    hr__hasher_destroy(hasher);
    hr__free(scan);
    return code;
}

enum hr_err
hr__shard_index_open(const char *pattern, const char *ending, hr_shard_scan_fn *scan,
                     void *user, const struct hr_packed_limits *packed,
                     struct hr_shard_index **ret_index, struct hr_error *reterr)
{
    struct hr_shard_index *index = hr__calloc(1, sizeof *index);
    struct hr_shards shards = {0};
    enum hr_err code;

    if (index == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__shards_find(pattern, ending, packed != NULL, &shards, reterr);
    if (code == HR_OK)
        code = build(&shards, scan, user, packed, index, reterr);
    hr__shards_finish(&shards);
    if (code != HR_OK) {
        hr__shard_index_close(index);
        return code;
    }
    *ret_index = index;
    return HR_OK;
}

void hr__shard_index_close(struct hr_shard_index *index)
{
    if (index == NULL)
        return;
    for (size_t i = 0; i < index->shard_count; i++) {
        if (index->shards[i].open)
            hr__store_close(&index->shards[i].object);
        hr__packed_close(index->shards[i].packed);
        hr__free(index->shards[i].uri);
    }
    hr__packed_cache_destroy(index->cache);
    hr__free(index->shards);
    hr__free(index->records);
    hr__free(index->large);
    hr__free(index->lines);
    hr__free(index);
}

uint64_t hr__shard_index_count(const struct hr_shard_index *index)
{
    return index->count;
}

struct hr_hash128 hr__shard_index_identity(const struct hr_shard_index *index)
{
    return index->identity;
}

/* The last shard whose first record is at most `at`. */
static struct shard *shard_of(const struct hr_shard_index *index, uint64_t at)
{
    return &index->shards[HR_BISECT(index->shards, index->shard_count, first, at)];
}

void hr__shard_index_place(const struct hr_shard_index *index, uint64_t at,
                           struct hr_shard_place *ret_place)
{
    struct shard *shard;
    uint64_t packed;

    assert(at < index->count);
    packed = index->records[at];
    shard = shard_of(index, at);
    ret_place->uri = shard->uri;
    ret_place->identity = shard->identity;
    ret_place->packed = shard->packed != NULL;
    ret_place->object = shard->packed != NULL ? hr__packed_object(shard->packed)
                        : shard->open         ? &shard->object
                                              : NULL;
    ret_place->offset = packed >> LENGTH_BITS;
    ret_place->bytes = packed & IS_LARGE;
    if (ret_place->bytes == IS_LARGE) {
        ret_place->bytes = index->large[ret_place->offset].bytes;
        ret_place->offset = index->large[ret_place->offset].at;
    }
}

void hr__shard_index_line(const struct hr_shard_index *index, uint64_t at,
                          uint64_t *ret_offset, uint64_t *ret_line)
{
    uint64_t mark = at - at % LINES_EVERY;
    struct hr_shard_place place;

    assert(at < index->count);
    *ret_offset = 0;
    *ret_line = 1;
    if (mark < shard_of(index, at)->first)
        return;
    hr__shard_index_place(index, mark, &place);
    *ret_offset = place.offset;
    *ret_line = index->lines[mark / LINES_EVERY];
}
