/*
 * store/shard_saved.c - the section of a saved index that says where the records of
 * shards lie.
 *
 * Only the head and the entries are checked when it is opened; the run of a shard, when
 * the shard is used. Checksums show that the bytes are those that were written, not that
 * they are true: every count is compared with its run, every record with its object. A
 * run that fails is not used, and its shard is scanned.
 */
#include "store/shard_internal.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

_Static_assert(sizeof(struct hr_shard_entry) == 80 && sizeof(struct hr_shard_head) == 32,
               "the layout of the file");

#define PIECES 4 /* of a run: words, extents, lines, how the object is unpacked */

uint64_t hr__shard_line_count(uint64_t records)
{
    return (records + HR_SHARD_LINES_EVERY - 1) / HR_SHARD_LINES_EVERY;
}

static int compare(struct hr_hash128 a, struct hr_hash128 b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return a.low < b.low ? -1 : a.low > b.low;
}

/* Covers the entry, so that runs cannot be exchanged. */
static uint64_t run_checksum(const struct hr_shard_entry *entry,
                             const struct hr_index_piece pieces[PIECES])
{
    const uint64_t counts[3] = {entry->object_bytes, entry->records, entry->large};
    uint64_t sum = hr__hash64(counts, sizeof counts, entry->key.low ^ entry->key.high);

    sum = hr__hash64(&entry->contents, sizeof entry->contents, sum);
    for (int i = 0; i < PIECES; i++)
        if (i < 3 || pieces[i].bytes > 0)
            sum = hr__hash64(pieces[i].data, pieces[i].bytes, sum);
    return sum;
}

/* ---- reading ---- */

/* Where the run's parts are, if its counts are those of its bytes. */
static bool split(const struct hr_shard_section *section,
                  const struct hr_shard_entry *entry, struct hr_index_piece ret[PIECES])
{
    uint64_t left = entry->bytes, lines = hr__shard_line_count(entry->records);
    const char *at = section->base + entry->at;

    if (entry->records > left / 8)
        return false;
    left -= entry->records * 8;
    if (entry->large > left / sizeof(struct hr_shard_extent))
        return false;
    left -= entry->large * sizeof(struct hr_shard_extent);
    if (left / 8 < lines)
        return false;
    ret[0] = (struct hr_index_piece){at, entry->records * 8};
    at += ret[0].bytes;
    ret[1] = (struct hr_index_piece){at, entry->large * sizeof(struct hr_shard_extent)};
    at += ret[1].bytes;
    ret[2] = (struct hr_index_piece){at, lines * 8};
    ret[3] = (struct hr_index_piece){at + ret[2].bytes, left - lines * 8};
    return true;
}

/* Entries are in the order of their keys, and their runs follow each other. */
static bool read_section(struct hr_shard_section *section, struct hr_hash128 format)
{
    const struct hr_shard_head *head = (const void *)section->base;
    uint64_t at;

    if (section->bytes < sizeof *head)
        return false;
    if (!hr__hash_equal(head->format, format)) {
        *section = (struct hr_shard_section){0};
        return true;
    }
    if (head->shards > (section->bytes - sizeof *head) / sizeof *section->entries)
        return false;
    section->count = head->shards;
    section->entries = (const void *)(head + 1);
    at = sizeof *head + section->count * sizeof *section->entries;
    for (uint64_t i = 0; i < section->count; i++) {
        const struct hr_shard_entry *entry = &section->entries[i];

        if ((i > 0 && compare(entry[-1].key, entry->key) >= 0) || entry->at != at ||
            entry->bytes > section->bytes - at || entry->bytes % 8 != 0)
            return false;
        at += entry->bytes;
    }
    return true;
}

static bool checksum_is_right(const struct hr_index_section *section, const void *data)
{
    const struct hr_shard_head *head = data;
    size_t bytes = sizeof *head;

    if (section->bytes < bytes ||
        head->shards > (section->bytes - bytes) / sizeof(struct hr_shard_entry))
        return false;
    bytes += head->shards * sizeof(struct hr_shard_entry);
    return section->checksum ==
           hr__index_part_checksum(HR_INDEX_KIND_SHARDS, data, bytes);
}

enum hr_err
hr__shard_section_parse(const void *data, size_t bytes, struct hr_hash128 format,
                        struct hr_shard_section *ret_section)
{
    const struct hr_index_section *sections;
    struct hr_shard_section section = {0};
    uint32_t count, i = 0;

    HR_TRY(hr__index_parts_check(data, bytes, &sections, &count, NULL));
    while (i < count && sections[i].kind != HR_INDEX_KIND_SHARDS)
        i++;
    if (i < count) {
        section.base = (const char *)data + sections[i].at;
        section.bytes = sections[i].bytes;
        if (!checksum_is_right(&sections[i], section.base) ||
            !read_section(&section, format))
            return HR_ERR_FORMAT;
    }
    *ret_section = section;
    return HR_OK;
}

void hr__shard_section_open(const char *path, struct hr_hash128 format,
                            struct hr_shard_section *ret_section)
{
    struct hr_shard_section section = {0};
    struct hr_index_map map = {0};

    *ret_section = section;
    if (hr__index_map(path, &map, NULL) != HR_OK)
        return;
    if (hr__shard_section_parse(map.data, map.bytes, format, &section) != HR_OK ||
        section.base == NULL) {
        hr__index_unmap(&map);
        return;
    }
    *ret_section = section;
    ret_section->map = map;
}

void hr__shard_section_close(struct hr_shard_section *section)
{
    hr__index_unmap(&section->map);
    *section = (struct hr_shard_section){0};
}

bool hr__shard_run_checksum(const struct hr_shard_section *section,
                            const struct hr_shard_entry *entry, uint64_t *ret_checksum)
{
    struct hr_index_piece pieces[PIECES];

    if (!split(section, entry, pieces))
        return false;
    *ret_checksum = run_checksum(entry, pieces);
    return true;
}

static int compare_key(const void *key, const void *entry)
{
    return compare(*(const struct hr_hash128 *)key,
                   ((const struct hr_shard_entry *)entry)->key);
}

const struct hr_shard_entry *
hr__shard_section_find(const struct hr_shard_section *section, struct hr_hash128 key)
{
    if (section->count == 0)
        return NULL;
    return bsearch(&key, section->entries, section->count, sizeof *section->entries,
                   compare_key);
}

/* Every record lies inside the object. */
static bool
records_are_inside(const struct hr_shard_entry *entry, const uint64_t *records,
                   const struct hr_shard_extent *large)
{
    for (uint64_t i = 0; i < entry->records; i++) {
        uint64_t at = records[i] >> HR_SHARD_LENGTH_BITS;
        uint64_t bytes = records[i] & HR_SHARD_IS_LARGE;

        if (bytes == HR_SHARD_IS_LARGE) {
            if (at >= entry->large)
                return false;
            bytes = large[at].bytes;
            at = large[at].at;
        }
        if (bytes == 0 || at > entry->object_bytes || bytes > entry->object_bytes - at)
            return false;
    }
    return true;
}

/* Appends a piece to an array of the index. */
static bool append(void *array, size_t *count, size_t *room, size_t item,
                   const struct hr_index_piece *piece)
{
    size_t more = piece->bytes / item;
    char *to;

    if (!hr__array_room(array, *count, room, more, item))
        return false;
    memcpy(&to, array, sizeof to);
    if (more > 0)
        memcpy(to + *count * item, piece->data, piece->bytes);
    *count += more;
    return true;
}

bool hr__shard_section_unpacking(const struct hr_shard_section *section,
                                 const struct hr_shard_entry *entry,
                                 struct hr_index_piece *ret_piece)
{
    struct hr_index_piece pieces[PIECES];

    if (!split(section, entry, pieces) || run_checksum(entry, pieces) != entry->checksum)
        return false;
    *ret_piece = pieces[3];
    return true;
}

enum hr_err hr__shard_section_take(const struct hr_shard_section *section,
                                   const struct hr_shard_entry *entry, uint64_t bytes,
                                   struct hr_shard_index *index)
{
    struct hr_index_piece pieces[PIECES];
    size_t count = index->count, large = index->large_count;
    uint64_t checksum;

    if (entry->object_bytes != bytes || !split(section, entry, pieces) ||
        !hr__shard_run_checksum(section, entry, &checksum) ||
        entry->checksum != checksum ||
        !records_are_inside(entry, pieces[0].data, pieces[1].data))
        return HR_ERR_FORMAT;
    if (append(&index->records, &index->count, &index->room, 8, &pieces[0]) &&
        append(&index->large, &index->large_count, &index->large_room,
               sizeof *index->large, &pieces[1]) &&
        append(&index->lines, &index->line_count, &index->line_room, 8, &pieces[2]))
        return HR_OK;
    index->count = count;
    index->large_count = large;
    return HR_ERR_MEMORY;
}

/* ---- writing ---- */

struct writing {
    const struct hr_shard_index *index;
    const struct hr_shard **shards; /* in the order of their keys */
    size_t count;
    struct hr_shard_head *head; /* the entries follow it */
    struct hr_index_piece *pieces;
};

static int compare_shards(const void *a, const void *b)
{
    const struct hr_shard *const *first = a, *const *second = b;

    return compare((*first)->key, (*second)->key);
}

/* A shard that comes twice is written once. */
static void choose_shards(struct writing *writing)
{
    const struct hr_shard_index *index = writing->index;
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < index->shard_count; i++)
        if (index->shards[i].lasting)
            writing->shards[count++] = &index->shards[i];
    if (count > 0)
        qsort(writing->shards, count, sizeof(struct hr_shard *), compare_shards);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 ||
            compare(writing->shards[kept - 1]->key, writing->shards[i]->key) != 0)
            writing->shards[kept++] = writing->shards[i];
    writing->count = kept;
}

/* What the index has of a shard; false: out of memory. */
static bool
list_pieces(const struct hr_shard_index *index, const struct hr_shard *shard,
            struct hr_shard_entry *entry, struct hr_index_piece pieces[PIECES])
{
    bool last = shard == &index->shards[index->shard_count - 1];
    uint64_t end = last ? index->count : shard[1].first;
    size_t large = last ? index->large_count : shard[1].first_large;

    entry->key = shard->key;
    entry->contents = shard->contents;
    entry->object_bytes = shard->bytes;
    entry->records = end - shard->first;
    entry->large = large - shard->first_large;
    pieces[0].bytes = entry->records * sizeof *index->records;
    pieces[1].bytes = entry->large * sizeof *index->large;
    pieces[2].bytes = hr__shard_line_count(entry->records) * sizeof *index->lines;
    if (entry->records > 0) { /* else the arrays may not be there */
        pieces[0].data = index->records + shard->first;
        pieces[2].data = index->lines + shard->first_line;
    }
    if (entry->large > 0)
        pieces[1].data = index->large + shard->first_large;
    if (shard->packed != NULL) {
        pieces[3].data = hr__packed_save(shard->packed, &pieces[3].bytes);
        if (pieces[3].data == NULL)
            return false;
    }
    for (int i = 0; i < PIECES; i++)
        entry->bytes += pieces[i].bytes;
    entry->checksum = run_checksum(entry, pieces);
    return true;
}

static enum hr_err
write_shards(struct writing *writing, const char *path, struct hr_error *reterr)
{
    struct hr_shard_entry *entries = (void *)(writing->head + 1);
    uint64_t at = sizeof *writing->head + writing->count * sizeof *entries;
    struct hr_index_part part = {HR_INDEX_KIND_SHARDS, writing->pieces,
                                 1 + PIECES * writing->count};

    writing->head->shards = writing->count;
    writing->pieces[0] = (struct hr_index_piece){writing->head, at};
    for (size_t i = 0; i < writing->count; i++) {
        if (!list_pieces(writing->index, writing->shards[i], &entries[i],
                         &writing->pieces[1 + PIECES * i]))
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        entries[i].at = at;
        at += entries[i].bytes;
    }
    return hr__index_parts_write(path, &part, 1, reterr);
}

enum hr_err
hr__shard_section_write(const char *path, struct hr_hash128 format,
                        const struct hr_shard_index *index, struct hr_error *reterr)
{
    struct writing writing = {.index = index};
    size_t most = index->shard_count;
    enum hr_err code;

    writing.shards = hr__calloc(most + 1, sizeof(struct hr_shard *));
    writing.head =
        hr__calloc(1, sizeof *writing.head + most * sizeof(struct hr_shard_entry));
    writing.pieces = hr__calloc(1 + PIECES * most, sizeof *writing.pieces);
    if (writing.shards != NULL && writing.head != NULL && writing.pieces != NULL) {
        writing.head->format = format;
        choose_shards(&writing);
        code = write_shards(&writing, path, reterr);
    } else {
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    for (size_t i = 0; writing.pieces != NULL && i < writing.count; i++)
        hr__free((void *)(uintptr_t)writing.pieces[PIECES * (i + 1)].data);
    hr__free(writing.shards);
    hr__free(writing.head);
    hr__free(writing.pieces);
    return code;
}
