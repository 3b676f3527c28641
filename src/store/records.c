/*
 * store/records.c - reading files of records.
 *
 * An index is believed only as far as its checksum and its entries go: entries must lie
 * inside the file, one after another. What they lead to is checked when it is read.
 */
#include "store/records.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");
_Static_assert(sizeof(struct hr_records_head) == 64, "the format has no padding");
_Static_assert(sizeof(struct hr_records_entry) == 16, "the format has no padding");

#define HEAD sizeof(struct hr_records_head)

/* What the contents of an index begin with; entries and schema follow. */
struct index_head {
    uint64_t entries, schema_bytes;
};

/* ---- one frame ---- */

enum hr_err hr__records_head_get(const void *data, struct hr_records_head *ret_head,
                                 struct hr_error *reterr)
{
    struct hr_records_head head;

    memcpy(&head, data, sizeof head);
    if (memcmp(head.magic, HR_RECORDS_MAGIC, sizeof head.magic) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "a frame does not begin with HRFRAME");
    if (head.head_checksum !=
        hr__hash64(&head, offsetof(struct hr_records_head, head_checksum), 0))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the head of a frame is damaged: its checksum is wrong");
    if (head.version != HR_RECORDS_VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "it is of version %u; this library reads version %u",
                        head.version, HR_RECORDS_VERSION);
    if (head.kind < HR_RECORDS_SCHEMA || head.kind > HR_RECORDS_END ||
        head.bytes % HR_RECORDS_ALIGN != 0 || head.bytes > UINT64_MAX / 2 ||
        (head.compression == HR_COMPRESSION_NONE && head.raw_bytes > head.bytes) ||
        (head.compression != HR_COMPRESSION_NONE && head.kind != HR_RECORDS_RECORD))
        return hr__fail(reterr, HR_ERR_FORMAT, "the head of a frame is malformed");
    *ret_head = head;
    return HR_OK;
}

/* The contents of a frame whose head is whole. */
static enum hr_err check_contents(const struct hr_records_head *head, const void *data,
                                  struct hr_error *reterr)
{
    if (head->checksum != hr__hash64(data, (size_t)head->bytes, 0))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the contents of a frame are damaged: their checksum is wrong");
    if (head->compression > HR_COMPRESSION_LZ4)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a frame is compressed in way %d, which this library does not "
                        "read",
                        head->compression);
    return HR_OK;
}

static enum hr_err
set_contents(const struct hr_records_head *head, const char *data,
             struct hr_records_contents *ret_contents, struct hr_error *reterr)
{
    struct hr_records_contents contents = {
        .data = data, .bytes = (size_t)head->raw_bytes, .compression = head->compression};
    uint64_t length;

    if (contents.compression == HR_COMPRESSION_ZSTD)
        contents.packed_bytes = (size_t)head->bytes;
    if (contents.compression == HR_COMPRESSION_LZ4) {
        length = 0;
        if (head->bytes >= sizeof length)
            memcpy(&length, data, sizeof length);
        if (length == 0 || length > head->bytes - sizeof length)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "a block of LZ4 is longer than its frame, or empty");
        contents.data = data + sizeof length;
        contents.packed_bytes = (size_t)length;
    }
    *ret_contents = contents;
    return HR_OK;
}

enum hr_err
hr__records_check(const void *frame, uint64_t bytes,
                  struct hr_records_contents *ret_contents, struct hr_error *reterr)
{
    const char *data = (const char *)frame + HEAD;
    struct hr_records_head head;

    if (bytes < HEAD)
        return hr__fail(reterr, HR_ERR_FORMAT, "the file ends in the head of a frame");
    HR_TRY(hr__records_head_get(frame, &head, reterr));
    if (head.kind == HR_RECORDS_SCHEMA)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the file has no end: it was cut, or its writer was "
                        "interrupted; the records before that are whole");
    if (head.bytes > bytes - HEAD)
        return hr__fail(reterr, HR_ERR_FORMAT, "the file ends in a frame");
    if (head.kind != HR_RECORDS_RECORD)
        return hr__fail(reterr, HR_ERR_FORMAT, "a frame is no record");
    if (head.bytes != bytes - HEAD)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "a record has another size than its index "
                        "says");
    HR_TRY(check_contents(&head, data, reterr));
    if (head.raw_bytes > SIZE_MAX / 2)
        return hr__fail(reterr, HR_ERR_FORMAT, "the head of a frame is malformed");
    return set_contents(&head, data, ret_contents, reterr);
}

enum hr_err
hr__records_unpack(struct hr_unpack *unpack, const struct hr_records_contents *contents,
                   void *to, struct hr_error *reterr)
{
    struct hr_unpack_io io = {(const unsigned char *)contents->data,
                              contents->packed_bytes, to, contents->bytes};
    enum hr_unpack_event event = HR_UNPACK_MORE;
    size_t left;

    HR_TRY(hr__unpack_begin(unpack, reterr));
    do {
        left = io.in_bytes + io.out_bytes;
        HR_TRY(hr__unpack_run(unpack, false, &io, &event, reterr));
    } while (event != HR_UNPACK_END && io.in_bytes + io.out_bytes < left);
    if (event != HR_UNPACK_END || io.out_bytes > 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "a record does not unpack to the %zu bytes that its head says",
                        contents->bytes);
    return HR_OK;
}

/* ---- frames of a file ---- */

/* The head of the frame at `at`, all of which is inside the file. */
static enum hr_err head_at(struct hr_window *window, uint64_t at,
                           struct hr_records_head *ret_head, struct hr_error *reterr)
{
    uint64_t end = window->object->bytes;
    const void *data;

    if (at % HR_RECORDS_ALIGN != 0 || at > end || end - at < HEAD)
        return hr__fail(reterr, HR_ERR_FORMAT, "there is no frame");
    HR_TRY(hr__window_get(window, at, HEAD, &data, reterr));
    HR_TRY(hr__records_head_get(data, ret_head, reterr));
    if (ret_head->bytes > end - at - HEAD)
        return hr__fail(reterr, HR_ERR_FORMAT, "the file ends in a frame");
    return HR_OK;
}

/* The contents of the frame at `at`, of this kind; valid as hr__window_get's. */
static enum hr_err
contents_at(struct hr_window *window, uint64_t at, enum hr_records_kind kind,
            struct hr_records_head *ret_head, const char **ret_data,
            struct hr_error *reterr)
{
    const void *data = NULL;

    HR_TRY(head_at(window, at, ret_head, reterr));
    if (ret_head->kind != kind)
        return hr__fail(reterr, HR_ERR_FORMAT, "a frame is of another kind");
    HR_TRY(hr__window_get(window, at + HEAD, (size_t)ret_head->bytes, &data, reterr));
    *ret_data = data;
    return check_contents(ret_head, data, reterr);
}

/* Damage, as opposed to a failure of the store or of memory. */
static bool is_damage(enum hr_err code)
{
    return code == HR_ERR_FORMAT || code == HR_ERR_UNSUPPORTED || code == HR_ERR_RANGE;
}

/* Where the last index is; 0 if the file has no end. */
static enum hr_err
last_index(struct hr_window *window, struct hr_records_head *ret_end, uint64_t *ret_at)
{
    uint64_t bytes = window->object->bytes;
    const char *data;
    enum hr_err code = HR_ERR_FORMAT;

    *ret_at = 0;
    if (bytes >= HEAD && bytes % HR_RECORDS_ALIGN == 0)
        code = contents_at(window, bytes - HEAD, HR_RECORDS_END, ret_end, &data, NULL);
    if (code == HR_OK)
        *ret_at = ret_end->link;
    return is_damage(code) ? HR_OK : code;
}

/* The parts of an index's contents. HR_ERR_FORMAT. */
static enum hr_err index_parts(const struct hr_records_head *head, const char *data,
                               struct index_head *ret_parts)
{
    uint64_t left = head->raw_bytes;

    if (left < sizeof *ret_parts)
        return HR_ERR_FORMAT;
    memcpy(ret_parts, data, sizeof *ret_parts);
    left -= sizeof *ret_parts;
    if (ret_parts->entries > left / sizeof(struct hr_records_entry))
        return HR_ERR_FORMAT;
    left -= ret_parts->entries * sizeof(struct hr_records_entry);
    return ret_parts->schema_bytes == left ? HR_OK : HR_ERR_FORMAT;
}

static enum hr_err take_schema(const char *data, uint64_t bytes, struct hr_str *schema,
                               struct hr_error *reterr)
{
    if (bytes > HR_RECORDS_SCHEMA_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a schema of %llu bytes",
                        (unsigned long long)bytes);
    hr__str_clear(schema);
    hr__str_add_bytes(schema, data, (size_t)bytes);
    return hr__str_ok(schema) ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__records_schema(struct hr_window *window, struct hr_str *schema,
                               bool *ret_damaged, struct hr_error *reterr)
{
    struct hr_records_head head;
    struct hr_error why = {0};
    struct index_head parts;
    const char *data;
    uint64_t at;
    enum hr_err code = contents_at(window, 0, HR_RECORDS_SCHEMA, &head, &data, &why);

    *ret_damaged = code != HR_OK;
    if (code == HR_OK)
        return take_schema(data, head.raw_bytes, schema, reterr);
    if (!is_damage(code))
        return hr__fail(reterr, code, "%s", why.message);
    HR_TRY(last_index(window, &head, &at));
    if (at != 0 &&
        contents_at(window, at, HR_RECORDS_INDEX, &head, &data, NULL) == HR_OK &&
        index_parts(&head, data, &parts) == HR_OK)
        return take_schema(data + sizeof parts +
                               parts.entries * sizeof(struct hr_records_entry),
                           parts.schema_bytes, schema, reterr);
    return hr__fail(reterr, code, "%s: byte 0: no file of records: %s", window->uri,
                    why.message);
}

/* ---- by the indexes ---- */

struct listing {
    struct hr_shard_scan *scan;
    uint64_t *indexes; /* where they are, the last one first */
    size_t count, room;
    uint64_t records, end; /* so far */
};

/* Follows the links from the last index to the first. */
static enum hr_err find_indexes(struct listing *listing, uint64_t at)
{
    struct hr_records_head head;

    while (at != 0) {
        HR_TRY(head_at(&listing->scan->window, at, &head, NULL));
        if (head.kind != HR_RECORDS_INDEX || head.link >= at)
            return HR_ERR_FORMAT;
        if (!hr__array_room(&listing->indexes, listing->count, &listing->room, 1,
                            sizeof *listing->indexes))
            return hr__fail(listing->scan->error, HR_ERR_MEMORY, "out of memory");
        listing->indexes[listing->count++] = at;
        at = head.link;
    }
    return HR_OK;
}

/* Checks the entries of an index, and adds them if `add`. */
static enum hr_err take_entries(struct listing *listing, const char *data, uint64_t count,
                                uint64_t limit, bool add)
{
    struct hr_records_entry entry;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t bytes;

        memcpy(&entry, data + i * sizeof entry, sizeof entry);
        bytes = entry.blocks * (uint64_t)HR_RECORDS_ALIGN;
        if (entry.at % HR_RECORDS_ALIGN != 0 || entry.at < listing->end ||
            entry.at > limit || bytes > limit - entry.at || bytes < HEAD)
            return HR_ERR_FORMAT;
        listing->end = entry.at + bytes;
        if (!add)
            continue;
        hr__hasher_add(listing->scan->hasher, &entry.blocks,
                       sizeof entry - offsetof(struct hr_records_entry, blocks));
        HR_TRY(hr__shard_add(listing->scan, entry.at, listing->end));
    }
    return HR_OK;
}

/* Goes through all indexes in order. */
static enum hr_err take_indexes(struct listing *listing, bool add)
{
    listing->records = listing->end = 0;
    for (size_t i = listing->count; i-- > 0;) {
        struct hr_records_head head;
        struct index_head parts;
        const char *data = NULL;

        HR_TRY(contents_at(&listing->scan->window, listing->indexes[i], HR_RECORDS_INDEX,
                           &head, &data, add ? listing->scan->error : NULL));
        HR_TRY(index_parts(&head, data, &parts));
        if (head.number != listing->records)
            return HR_ERR_FORMAT;
        HR_TRY(take_entries(listing, data + sizeof parts, parts.entries,
                            listing->indexes[i], add));
        listing->records += parts.entries;
    }
    return HR_OK;
}

/* *ret_used: the indexes are whole, and all records were added. */
static enum hr_err scan_indexes(struct hr_shard_scan *scan, bool *ret_used)
{
    struct listing listing = {.scan = scan};
    struct hr_records_head end;
    enum hr_err code;
    uint64_t at;

    *ret_used = false;
    HR_TRY(last_index(&scan->window, &end, &at));
    if (at == 0)
        return HR_OK;
    code = find_indexes(&listing, at);
    if (code == HR_OK)
        code = take_indexes(&listing, false);
    if (code == HR_OK && listing.records != end.number)
        code = HR_ERR_FORMAT;
    if (code == HR_OK) {
        code = take_indexes(&listing, true);
        *ret_used = code == HR_OK;
    } else if (is_damage(code)) {
        code = HR_OK;
    }
    hr__free(listing.indexes);
    return code;
}

/* ---- by the frames ---- */

struct walk {
    struct hr_shard_scan *scan;
    struct hr_records_head head; /* of the frame at `at`, if whole */
    uint64_t at, records;
    bool whole, ended; /* the last frame was an end */
};

/* Looks at the frame at `at`. After damage its number tells it from one that lies inside
 * a record. */
static enum hr_err look(struct walk *walk)
{
    enum hr_err code = head_at(&walk->scan->window, walk->at, &walk->head, NULL);

    walk->whole =
        code == HR_OK && walk->head.kind != HR_RECORDS_SCHEMA &&
        (walk->head.kind == HR_RECORDS_INDEX || walk->head.number >= walk->records);
    if (walk->at == 0 && code == HR_OK)
        walk->whole = walk->head.kind == HR_RECORDS_SCHEMA;
    return is_damage(code) ? HR_OK : code;
}

static enum hr_err take_frame(struct walk *walk)
{
    uint64_t end = walk->at + HEAD + walk->head.bytes;
    uint32_t check[2] = {(uint32_t)((HEAD + walk->head.bytes) / HR_RECORDS_ALIGN),
                         (uint32_t)walk->head.checksum};

    walk->ended = walk->head.kind == HR_RECORDS_END;
    if (walk->head.kind == HR_RECORDS_RECORD) {
        hr__hasher_add(walk->scan->hasher, check, sizeof check);
        HR_TRY(hr__shard_add(walk->scan, walk->at, end));
        walk->records = walk->head.number + 1;
    }
    walk->at = end;
    return HR_OK;
}

/* From a damaged head to the next that is whole. What lies between is a record. */
static enum hr_err skip_damage(struct walk *walk)
{
    uint64_t from = walk->at, bytes = walk->scan->window.object->bytes;

    walk->ended = false;
    do {
        walk->at = bytes - walk->at > HEAD ? walk->at + HEAD : bytes;
        HR_TRY(look(walk));
    } while (!walk->whole && walk->at < bytes);
    hr__hasher_add(walk->scan->hasher, &from, sizeof from);
    return hr__shard_add(walk->scan, from, walk->at);
}

static enum hr_err scan_frames(struct hr_shard_scan *scan)
{
    struct walk walk = {.scan = scan};
    uint64_t bytes = scan->window.object->bytes;
    bool cut = false;

    while (walk.at < bytes) {
        HR_TRY(look(&walk));
        if (walk.whole) {
            HR_TRY(take_frame(&walk));
            continue;
        }
        HR_TRY(skip_damage(&walk));
        cut = walk.at == bytes;
    }
    if (walk.ended || cut)
        return HR_OK;
    hr__hasher_add(scan->hasher, &bytes, sizeof bytes);
    return hr__shard_add(scan, 0, HEAD); /* says that there is no end */
}

enum hr_err hr__records_scan(struct hr_shard_scan *scan)
{
    struct hr_records_scan *own = scan->user;
    bool used = false, damaged = false;
    struct hr_str schema;
    enum hr_err code;

    hr__str_init(&schema);
    code = hr__records_schema(&scan->window, &schema, &damaged, scan->error);
    if (code == HR_OK &&
        (schema.length != own->schema->length ||
         memcmp(hr__str_text(&schema), hr__str_text(own->schema), schema.length) != 0))
        code = hr__fail(scan->error, HR_ERR_TYPE,
                        "%s: its records have other fields, or other names of classes, "
                        "than those of the first file",
                        scan->window.object->uri);
    hr__str_finish(&schema);
    if (code == HR_OK)
        code = scan_indexes(scan, &used);
    if (code == HR_OK && !used)
        code = scan_frames(scan);
    own->damaged += damaged || !used;
    return code;
}

/* ---- all of a file ---- */

/* Takes a frame into account that follows *whole. */
static enum hr_err
verify_frame(struct hr_window *window, const struct hr_str *schema,
             struct hr_records_whole *whole, bool *ret_ended, struct hr_error *why)
{
    struct hr_records_head head;
    const char *data;

    HR_TRY(head_at(window, whole->bytes, &head, why));
    HR_TRY(contents_at(window, whole->bytes, (enum hr_records_kind)head.kind, &head,
                       &data, why));
    *ret_ended = head.kind == HR_RECORDS_END;
    if ((head.kind == HR_RECORDS_SCHEMA) != (whole->bytes == 0) ||
        (head.kind == HR_RECORDS_RECORD && head.number != whole->records) ||
        (*ret_ended && (head.number != whole->records || head.link != whole->index)))
        return hr__fail(why, HR_ERR_FORMAT, "a frame is out of order");
    if (head.kind == HR_RECORDS_SCHEMA &&
        (head.raw_bytes != schema->length ||
         memcmp(data, hr__str_text(schema), schema->length) != 0))
        return hr__fail(why, HR_ERR_TYPE,
                        "its records have other fields, or other names of classes");
    if (head.kind == HR_RECORDS_INDEX)
        whole->index = whole->bytes;
    whole->records += head.kind == HR_RECORDS_RECORD;
    whole->bytes += HEAD + head.bytes;
    return HR_OK;
}

enum hr_err
hr__records_verify(struct hr_window *window, const struct hr_str *schema, uint64_t bytes,
                   struct hr_records_whole *ret_whole, struct hr_error *reterr)
{
    struct hr_records_whole whole = {0};
    struct hr_error why = {0};
    bool ended = false;
    enum hr_err code = HR_OK;

    if (bytes == 0)
        bytes = window->object->bytes;
    while (code == HR_OK && (whole.bytes < bytes || whole.bytes == 0))
        code = verify_frame(window, schema, &whole, &ended, &why);
    if (code == HR_OK && (!ended || whole.bytes != bytes))
        code = hr__fail(&why, HR_ERR_FORMAT,
                        "there is no end: the file was cut, or its writer was "
                        "interrupted");
    if (code != HR_OK)
        return hr__fail(reterr, code, "%s: byte %llu: %s", window->object->uri,
                        (unsigned long long)whole.bytes, why.message);
    *ret_whole = whole;
    return HR_OK;
}
