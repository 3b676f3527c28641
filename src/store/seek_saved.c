/*
 * store/seek_saved.c - the section of a saved index that holds entries by content.
 *
 * Only the head and the records are checked when it is opened; the entries, a hundred
 * times as many bytes, are checked one by one when they are used, so opening costs
 * nothing for photos that are not read. Checksums show that the bytes are those that were
 * written, not that they are true: every offset and count is compared with its section
 * before it is followed. A record that points outside is ignored.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "store/seek_internal.h"

#include <stdlib.h>
#include <string.h>

/* A section of this size takes over no more old entries, so that entries of photos that
 * are gone are dropped some day. */
#define SECTION_BYTES_MAX ((uint64_t)16 << 30)

_Static_assert(sizeof(struct hr_seek_record) == 40 && sizeof(struct hr_seek_head) == 40,
               "the layout of the file");

uint64_t hr__seek_checksum(struct hr_hash128 key, const void *data, size_t bytes)
{
    return hr__hash64(data, bytes, key.low ^ key.high);
}

int hr__seek_compare(struct hr_hash128 a, struct hr_hash128 b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return a.low < b.low ? -1 : a.low > b.low;
}

/* Of a head and the records after it. */
static uint64_t head_checksum(const struct hr_seek_head *head, uint64_t count)
{
    return hr__index_part_checksum(HR_INDEX_KIND_SEEK, &head->use,
                                   sizeof head->use +
                                       count * sizeof(struct hr_seek_record));
}

/* ---- reading ---- */

/* Bytes of the section before its first entry. */
static size_t entries_at(uint64_t count)
{
    return sizeof(struct hr_seek_head) + (size_t)count * sizeof(struct hr_seek_record);
}

/* Does the entry lie after the records and before the section's end? */
static bool
is_inside(const struct hr_seek_section *section, const struct hr_seek_record *record)
{
    return record->at >= entries_at(section->count) && record->at <= section->bytes &&
           record->bytes <= section->bytes - record->at && record->done <= HR_SEEK_WHOLE;
}

/* Sums that no run could have counted are dropped. */
static struct hr_seek_use checked_use(struct hr_seek_use use)
{
    if (use.count > UINT64_MAX / 2 / HR_SEEK_WHOLE ||
        use.went > use.count * HR_SEEK_WHOLE || use.would > use.count * HR_SEEK_WHOLE)
        return (struct hr_seek_use){0};
    return use;
}

/* Entries may not share bytes: a small file could then claim gigabytes, which the next
 * save would write out. */
static bool add_up(struct hr_seek_section *section)
{
    size_t room = section->bytes - entries_at(section->count);

    for (uint64_t i = 0; i < section->count; i++) {
        const struct hr_seek_record *record = &section->records[i];

        if (i > 0 && hr__seek_compare(record[-1].key, record->key) >= 0)
            return false;
        if (!is_inside(section, record))
            continue;
        if (record->bytes > room - section->entry_bytes)
            return false;
        section->entry_bytes += record->bytes;
        section->done += record->done;
    }
    return true;
}

static bool read_section(struct hr_seek_section *section)
{
    const struct hr_seek_head *head = (const void *)section->base;
    size_t room;

    if (section->bytes < sizeof *head)
        return false;
    room = (section->bytes - sizeof *head) / sizeof *section->records;
    section->records = (const void *)(head + 1);
    if (head->count > room || head->checksum != head_checksum(head, head->count))
        return false;
    section->count = head->count;
    section->use = checked_use(head->use);
    return add_up(section);
}

enum hr_err hr__seek_section_parse(const void *data, size_t bytes,
                                   struct hr_seek_section *ret_section)
{
    const struct hr_index_section *sections;
    struct hr_seek_section section = {0};
    uint32_t count, i = 0;

    HR_TRY(hr__index_parts_check(data, bytes, &sections, &count, NULL));
    while (i < count && sections[i].kind != HR_INDEX_KIND_SEEK)
        i++;
    if (i < count) {
        section.base = (const char *)data + sections[i].at;
        section.bytes = sections[i].bytes;
        if (!read_section(&section))
            return HR_ERR_FORMAT;
    }
    *ret_section = section;
    return HR_OK;
}

void hr__seek_section_open(const char *path, struct hr_seek_section *ret_section,
                           bool *ret_damaged)
{
    struct hr_seek_section section = {0};
    struct hr_index_map map;
    enum hr_err err = hr__index_map(path, &map, NULL);

    *ret_section = section;
    *ret_damaged = err != HR_OK && err != HR_ERR_NOT_FOUND;
    if (err != HR_OK)
        return;
    err = hr__seek_section_parse(map.data, map.bytes, &section);
    *ret_damaged = err != HR_OK;
    if (err != HR_OK || section.base == NULL) {
        hr__index_unmap(&map);
        return;
    }
    *ret_section = section;
    ret_section->map = map;
}

void hr__seek_section_close(struct hr_seek_section *section)
{
    hr__index_unmap(&section->map);
    *section = (struct hr_seek_section){0};
}

const struct hr_seek_record *
hr__seek_section_find(const struct hr_seek_section *section, struct hr_hash128 key)
{
    uint64_t low = 0, high = section->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = hr__seek_compare(key, section->records[middle].key);

        if (order == 0)
            return &section->records[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const void *hr__seek_section_data(const struct hr_seek_section *section,
                                  const struct hr_seek_record *record)
{
    const char *data;

    if (!is_inside(section, record))
        return NULL;
    data = section->base + record->at;
    if (hr__seek_checksum(record->key, data, record->bytes) != record->checksum)
        return NULL;
    return data;
}

/* ---- writing ---- */

static int compare_items(const void *a, const void *b)
{
    const struct hr_seek_item *first = a, *second = b;

    return hr__seek_compare(first->record.key, second->record.key);
}

struct merge {
    struct hr_seek_item *all;
    size_t count;
    uint64_t bytes;
};

static void take(struct merge *merge, const struct hr_seek_item *item)
{
    merge->all[merge->count++] = *item;
    merge->bytes += item->record.bytes;
}

static void take_old(struct merge *merge, const struct hr_seek_section *old, uint64_t at)
{
    struct hr_seek_item item = {.record = old->records[at]};

    if (merge->bytes + item.record.bytes > SECTION_BYTES_MAX)
        return;
    item.data = hr__seek_section_data(old, &old->records[at]);
    if (item.data != NULL)
        take(merge, &item);
}

/* Both are sorted. Of two entries with one key the one that covers more is kept. */
static void merge_with(struct merge *merge, const struct hr_seek_item *items,
                       size_t count, const struct hr_seek_section *old)
{
    uint64_t k = 0;

    for (size_t i = 0; i < count; i++) {
        const struct hr_seek_item *item = &items[i];
        int order = 1;

        for (; k < old->count; k++) {
            order = hr__seek_compare(old->records[k].key, item->record.key);
            if (order >= 0)
                break;
            take_old(merge, old, k);
        }
        if (k < old->count && order == 0) {
            size_t before = merge->count;

            if (old->records[k].done > item->record.done)
                take_old(merge, old, k);
            k++;
            if (merge->count > before)
                continue;
        }
        take(merge, item);
    }
    for (; k < old->count; k++)
        take_old(merge, old, k);
}

static enum hr_err
write_merged(const char *path, const struct merge *merge, const struct hr_seek_use *use)
{
    size_t count = merge->count, first = sizeof(struct hr_seek_head);
    struct hr_index_piece *pieces = hr__calloc(count + 1, sizeof *pieces);
    struct hr_seek_head *head;
    struct hr_seek_record *records;
    struct hr_index_part part = {HR_INDEX_KIND_SEEK, pieces, count + 1};
    uint64_t at;
    enum hr_err err = HR_ERR_MEMORY;

    first += count * sizeof *records;
    head = hr__calloc(1, first);
    if (pieces != NULL && head != NULL) {
        records = (void *)(head + 1);
        pieces[0] = (struct hr_index_piece){head, first};
        at = first;
        for (size_t i = 0; i < count; i++) {
            records[i] = merge->all[i].record;
            records[i].at = at;
            pieces[i + 1] = (struct hr_index_piece){merge->all[i].data, records[i].bytes};
            at += records[i].bytes;
        }
        head->count = count;
        head->use = *use;
        head->checksum = head_checksum(head, count);
        err = hr__index_parts_write(path, &part, 1, NULL);
    }
    hr__free(head);
    hr__free(pieces);
    return err;
}

enum hr_err
hr__seek_section_write(const char *path, struct hr_seek_item *items, size_t count,
                       const struct hr_seek_use *use, const struct hr_seek_section *old)
{
    const struct hr_seek_use sums = {old->use.count + use->count,
                                     old->use.went + use->went,
                                     old->use.would + use->would};
    struct merge merge = {0};
    enum hr_err err = HR_ERR_MEMORY;

    merge.all = hr__calloc(count + old->count + 1, sizeof *merge.all);
    if (merge.all != NULL) {
        qsort(items, count, sizeof *items, compare_items);
        merge_with(&merge, items, count, old);
        err = write_merged(path, &merge, &sums);
    }
    hr__free(merge.all);
    return err;
}
