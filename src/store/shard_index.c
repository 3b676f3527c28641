/*
 * store/shard_index.c - where the records of shards lie.
 */
#include "store/shard_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "core/cache_folder.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "store/shards.h"

static bool add_large(struct hr_shard_index *index, struct hr_shard_extent extent)
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
    const struct hr_shard *shard = &index->shards[index->shard_count - 1];
    uint64_t bytes = end - at, place = at;

    assert(at < end && end <= scan->window.object->bytes);
    if (bytes >= HR_SHARD_IS_LARGE || at >> (64 - HR_SHARD_LENGTH_BITS) != 0) {
        place = index->large_count - shard->first_large;
        if (!add_large(index, (struct hr_shard_extent){.at = at, .bytes = bytes}))
            goto no_memory;
        bytes = HR_SHARD_IS_LARGE;
    }
    if (index->count == index->room &&
        !hr__array_room(&index->records, index->count, &index->room, 1,
                        sizeof *index->records))
        goto no_memory;
    if ((index->count - shard->first) % HR_SHARD_LINES_EVERY == 0 &&
        !add_line(index, scan->line))
        goto no_memory;
    index->records[index->count++] = place << HR_SHARD_LENGTH_BITS | bytes;
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

static enum hr_err keep_open(struct hr_shard *shard, struct hr_error *reterr)
{
    HR_TRY(hr__store_open(shard->uri, &shard->object, reterr));
    shard->open = true;
    if (shard->packed != NULL)
        hr__packed_watch(shard->packed, &shard->object);
    if (hr__hash_equal(shard->object.identity, shard->identity))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_STATE, "%s changed while it was opened", shard->uri);
}

static enum hr_err
need_cache(struct hr_shard_scan *scan, const struct hr_packed_limits *limits)
{
    if (scan->index->cache != NULL)
        return HR_OK;
    HR_TRY(hr__packed_cache_create(limits, &scan->index->cache, scan->error));
    hr__packed_cache_limit(scan->index->cache, 0); /* a scan goes forward */
    return HR_OK;
}

/* From now on the shard is what it unpacks to. */
static void use_packed(struct hr_shard_scan *scan, struct hr_shard *shard)
{
    scan->packed = shard->packed;
    shard->bytes = hr__packed_object(shard->packed)->bytes;
    hr__window_use(&scan->window, hr__packed_scanned(shard->packed));
}

/* Turns the scan's window to what the open shard unpacks to, if it is compressed. */
static enum hr_err unpack_shard(struct hr_shard_scan *scan, struct hr_shard *shard,
                                const struct hr_packed_limits *limits)
{
    static const struct hr_packed_limits none = {0};
    enum hr_packing packing;
    const void *data;
    size_t bytes;

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
    HR_TRY(need_cache(scan, limits));
    HR_TRY(hr__packed_open(scan->index->cache, shard->uri, packing, &shard->packed,
                           scan->error));
    use_packed(scan, shard);
    /* damage is found, and reported, by decoding */
    shard->lasting = shard->lasting && !hr__packed_is_damaged(shard->packed);
    return HR_OK;
}

/* ---- building ---- */

struct build {
    struct hr_shard_scan scan;
    struct hr_shard_index *index;
    struct hr_hasher *hasher; /* of what makes the index's identity */
    hr_shard_scan_fn *one;
    const struct hr_packed_limits *limits;
    const struct hr_shard_saving *saving; /* or NULL */
    struct hr_str path;                   /* of the saved index; empty: none is used */
    struct hr_hash128 format;
    struct hr_shard_section section;
    uint64_t new_bytes; /* of shards that were scanned and can be saved */
    bool remote;        /* some of them are */
    bool used;          /* the saved index */
};

/* What the part of a shard depends on. */
static struct hr_hash128 key_of(const struct build *build, const struct hr_shard *shard)
{
    struct hr_hash128 words[3] = {shard->identity,
                                  hr__hash128(shard->uri, strlen(shard->uri))};

    if (build->saving != NULL && build->saving->look != NULL &&
        shard != build->index->shards)
        words[2] = shard[-1].key;
    return hr__hash128(words, sizeof words);
}

static enum hr_err open_shard(struct build *build, struct hr_shard *shard)
{
    struct hr_shard_scan *scan = &build->scan;

    scan->packed = NULL;
    HR_TRY(hr__window_open(&scan->window, shard->uri, scan->error));
    shard->identity = scan->window.object->identity;
    shard->lasting = scan->window.object->lasting;
    shard->bytes = scan->window.object->bytes;
    shard->key = key_of(build, shard);
    return HR_OK;
}

/* Opens a compressed shard as the saved index knows it. HR_ERR_FORMAT, and whatever else
 * is to be found, and reported, by opening it again: it is not open. */
static enum hr_err
restore(struct build *build, struct hr_shard *shard, const struct hr_shard_entry *entry)
{
    struct hr_index_piece piece;

    if (!hr__shard_section_unpacking(&build->section, entry, &piece))
        return HR_ERR_FORMAT;
    if (piece.bytes == 0)
        return HR_OK;
    if (build->limits == NULL)
        return HR_ERR_FORMAT;
    HR_TRY(need_cache(&build->scan, build->limits));
    HR_TRY(hr__packed_restore(build->index->cache, shard->uri, build->scan.window.object,
                              piece.data, piece.bytes, &shard->packed));
    use_packed(&build->scan, shard);
    return HR_OK;
}

/* The shard as it was before restore(). */
static enum hr_err undo_restore(struct build *build, struct hr_shard *shard)
{
    if (shard->packed == NULL)
        return HR_OK;
    hr__packed_close(shard->packed);
    shard->packed = NULL;
    return open_shard(build, shard);
}

/* *ret_used: the shard's records come from the saved index. */
static enum hr_err use_saved(struct build *build, struct hr_shard *shard, bool *ret_used)
{
    const struct hr_shard_entry *entry =
        hr__shard_section_find(&build->section, shard->key);
    enum hr_err code = HR_ERR_FORMAT;

    if (entry != NULL)
        code = restore(build, shard, entry);
    if (code == HR_OK)
        code = hr__shard_section_take(&build->section, entry, shard->bytes, build->index);
    if (code == HR_ERR_MEMORY)
        return hr__fail(build->scan.error, code, "out of memory for the index of %s",
                        shard->uri);
    *ret_used = code == HR_OK;
    if (code != HR_OK)
        return undo_restore(build, shard);
    shard->contents = entry->contents;
    shard->saved = build->used = true;
    return build->saving->look != NULL ? build->saving->look(&build->scan) : HR_OK;
}

static enum hr_err scan_shard(struct build *build, struct hr_shard *shard)
{
    struct hr_shard_scan *scan = &build->scan;
    enum hr_err code;

    HR_TRY(unpack_shard(scan, shard, build->limits));
    scan->hasher = build->hasher;
    if (build->saving == NULL)
        return build->one(scan);
    scan->hasher = hr__hasher_create();
    if (scan->hasher == NULL)
        return hr__fail(scan->error, HR_ERR_MEMORY, "out of memory");
    code = build->one(scan);
    shard->contents = hr__hasher_value(scan->hasher);
    hr__hasher_destroy(scan->hasher);
    return code;
}

/* Counts what the saved index does not have. */
static void note_new(struct build *build, const struct hr_shard *shard)
{
    const char *path;

    if (!shard->lasting || shard->saved)
        return;
    build->new_bytes += shard->bytes;
    build->remote = build->remote || hr__store_is_remote(shard->uri, &path);
}

static enum hr_err add_shard(struct build *build, struct hr_shard *shard)
{
    struct hr_shard_index *index = build->index;
    bool used = false;

    shard->first = index->count;
    shard->first_large = index->large_count;
    shard->first_line = index->line_count;
    build->scan.line = 0;
    HR_TRY(open_shard(build, shard));
    HR_TRY(use_saved(build, shard, &used));
    if (!used)
        HR_TRY(scan_shard(build, shard));
    note_new(build, shard);
    if (build->saving != NULL)
        hr__hasher_add(build->hasher, &shard->contents, sizeof shard->contents);
    return HR_OK;
}

static enum hr_err add_all(struct build *build, struct hr_shards *shards)
{
    struct hr_shard_index *index = build->index;
    enum hr_err code = HR_OK;

    build->hasher = hr__hasher_create();
    if (build->hasher == NULL)
        return hr__fail(build->scan.error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; code == HR_OK && i < shards->count; i++) {
        struct hr_shard *shard = &index->shards[index->shard_count++];

        shard->uri = shards->uris[i];
        shards->uris[i] = NULL;
        code = add_shard(build, shard);
        if (code == HR_OK && shards->count <= HR_SHARDS_OPEN)
            code = keep_open(shard, build->scan.error);
    }
    index->identity = hr__hasher_value(build->hasher);
    hr__hasher_destroy(build->hasher);
    return code;
}

/* ---- the saved index ---- */

/* A data set has one file in the cache folder for each way to read it. */
static bool add_cache_path(struct build *build, const char *pattern)
{
    char folder[HR_URI_MAX] = "", name[HR_HASH_TEXT_BYTES], *cache;
    struct hr_str text;

    if (hr__cache_is_off() || hr__cache_folder(&cache, NULL) != HR_OK)
        return false;
    if (getcwd(folder, sizeof folder) == NULL)
        folder[0] = '\0';
    hr__str_init(&text);
    hr__str_addf(&text, "%s\n%s\n%s", build->saving->format, folder, pattern);
    hr__hash_text(hr__hash128(hr__str_text(&text), text.length), name);
    hr__str_addf(&build->path, "%s/indexes/%s.index", cache, name);
    hr__free(cache);
    name[0] = hr__str_ok(&text) && hr__str_ok(&build->path);
    hr__str_finish(&text);
    return name[0] != 0;
}

/* Finds the saved index; without one, or without memory, shards are scanned. */
static void open_saved(struct build *build, const char *pattern)
{
    const struct hr_shard_saving *saving = build->saving;

    if (saving == NULL)
        return;
    if (saving->path != NULL)
        hr__str_add(&build->path, saving->path);
    if (saving->path != NULL ? !hr__str_ok(&build->path)
                             : !add_cache_path(build, pattern)) {
        hr__str_finish(&build->path);
        hr__str_init(&build->path);
        return;
    }
    build->format = hr__hash128(saving->format, strlen(saving->format));
    hr__shard_section_open(hr__str_text(&build->path), build->format, &build->section);
}

static bool write_saved(const struct build *build)
{
    return hr__shard_section_write(hr__str_text(&build->path), build->format,
                                   build->index, NULL) == HR_OK;
}

/* Where the saved index is one of several in the cache folder. */
static void save_in_cache(const struct build *build)
{
    char *path = hr__strdup(hr__str_text(&build->path));
    char *slash = path != NULL ? strrchr(path, '/') : NULL;

    if (slash != NULL) {
        *slash = '\0';
        if (hr__file_make_folder(path, 0700, NULL) == HR_OK && write_saved(build))
            hr__evict_files(path, HR_SHARDS_FILES_MAX, HR_SHARDS_BYTES_MAX);
    }
    hr__free(path);
}

/* Writes what is new. A failure costs the next opening a scan. */
static void save(const struct build *build)
{
    bool cached = build->saving != NULL && build->saving->path == NULL;

    if (build->saving == NULL || build->path.length == 0)
        return;
    if (cached && build->used) /* the one that was used last goes last */
        (void)utimensat(AT_FDCWD, hr__str_text(&build->path), NULL, 0);
    if (cached && (build->remote || build->new_bytes >= HR_SHARDS_SAVED_FROM))
        save_in_cache(build);
    else if (!cached && build->new_bytes > 0)
        (void)!write_saved(build);
}

enum hr_err
hr__shard_index_open(const char *pattern, const char *ending, hr_shard_scan_fn *scan,
                     void *user, const struct hr_packed_limits *packed,
                     const struct hr_shard_saving *saving,
                     struct hr_shard_index **ret_index, struct hr_error *reterr)
{
    struct hr_shard_index *index = hr__calloc(1, sizeof *index);
    struct build *build = hr__calloc(1, sizeof *build);
    struct hr_shards shards = {0};
    enum hr_err code = HR_ERR_MEMORY;

    if (index != NULL && build != NULL)
        code = hr__shards_find(pattern, ending, packed != NULL, &shards, reterr);
    else
        hr__fail(reterr, code, "out of memory");
    if (code == HR_OK) {
        index->shards = hr__calloc(shards.count + 1, sizeof *index->shards);
        *build = (struct build){
            .index = index,
            .one = scan,
            .limits = packed,
            .saving = saving,
            .scan = {.index = index, .error = reterr, .user = user}
        };
        hr__str_init(&build->path);
        open_saved(build, pattern);
        code = index->shards != NULL ? add_all(build, &shards)
                                     : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        if (code == HR_OK)
            save(build);
        hr__shard_section_close(&build->section);
        hr__str_finish(&build->path);
        hr__window_finish(&build->scan.window);
    }
    hr__shards_finish(&shards);
    hr__free(build);
    if (code == HR_OK)
        *ret_index = index;
    else
        hr__shard_index_close(index);
    return code;
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

void hr__shard_index_memory(const struct hr_shard_index *index,
                            struct hr_shard_memory *ret_memory)
{
    bool packed = false;

    for (size_t i = 0; i < index->shard_count && !packed; i++)
        packed = index->shards[i].packed != NULL;
    *ret_memory = (struct hr_shard_memory){
        .fixed = index->shard_count * sizeof *index->shards +
                 index->room * sizeof *index->records +
                 index->large_room * sizeof *index->large +
                 index->line_room * sizeof *index->lines,
    };
    if (!packed)
        return;
    ret_memory->fixed += HR_PACKED_DECODERS;
    ret_memory->least = HR_PACKED_LEAST;
    ret_memory->thread = HR_PACKED_THREAD;
}

void hr__shard_index_limit(struct hr_shard_index *index, uint64_t cache_bytes)
{
    if (index->cache != NULL)
        hr__packed_cache_limit(index->cache, cache_bytes);
}

uint64_t hr__shard_index_count(const struct hr_shard_index *index)
{
    return index->count;
}

const char *hr__shard_index_first(const struct hr_shard_index *index)
{
    return index->shard_count > 0 ? index->shards[0].uri : NULL;
}

uint64_t hr__shard_index_kept(const struct hr_shard_index *index)
{
    uint64_t kept = 0;

    for (size_t i = 0; i < index->shard_count; i++)
        kept += index->shards[i].saved;
    return kept;
}

struct hr_hash128 hr__shard_index_identity(const struct hr_shard_index *index)
{
    return index->identity;
}

/* The last shard whose first record is at most `at`. */
static struct hr_shard *shard_of(const struct hr_shard_index *index, uint64_t at)
{
    return &index->shards[HR_BISECT(index->shards, index->shard_count, first, at)];
}

static struct hr_shard_extent
extent_of(const struct hr_shard_index *index, const struct hr_shard *shard, uint64_t at)
{
    uint64_t word = index->records[at];
    uint64_t place = word >> HR_SHARD_LENGTH_BITS, bytes = word & HR_SHARD_IS_LARGE;

    if (bytes == HR_SHARD_IS_LARGE)
        return index->large[shard->first_large + place];
    return (struct hr_shard_extent){place, bytes};
}

void hr__shard_index_place(const struct hr_shard_index *index, uint64_t at,
                           struct hr_shard_place *ret_place)
{
    struct hr_shard_extent extent;
    struct hr_shard *shard;

    assert(at < index->count);
    shard = shard_of(index, at);
    extent = extent_of(index, shard, at);
    ret_place->uri = shard->uri;
    ret_place->identity = shard->identity;
    ret_place->packed = shard->packed != NULL;
    ret_place->object = shard->packed != NULL ? hr__packed_object(shard->packed)
                        : shard->open         ? &shard->object
                                              : NULL;
    ret_place->offset = extent.at;
    ret_place->bytes = extent.bytes;
}

void hr__shard_index_line(const struct hr_shard_index *index, uint64_t at,
                          uint64_t *ret_offset, uint64_t *ret_line)
{
    const struct hr_shard *shard;
    uint64_t mark;

    assert(at < index->count);
    shard = shard_of(index, at);
    mark = (at - shard->first) / HR_SHARD_LINES_EVERY;
    *ret_offset = extent_of(index, shard, shard->first + mark * HR_SHARD_LINES_EVERY).at;
    *ret_line = index->lines[shard->first_line + mark];
}
