/*
 * fuzz/repair.h - repairs the checksums of a mutated saved index, so that the checks
 * after them are reached: a checksum shows that bytes are as written, not that they are
 * true.
 */
#ifndef HR_FUZZ_REPAIR_H
#define HR_FUZZ_REPAIR_H

#include "store/seek_internal.h"
#include "store/shard_internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/hash.h"

#define REPAIR_SECTIONS_MAX 12

/* Those of the seek section at `data`, and of all its entries inside it. */
static inline void repair_seek(char *data, size_t bytes)
{
    struct hr_seek_head *head = (void *)data;
    struct hr_seek_record *records = (void *)(head + 1);
    size_t room;

    if (bytes < sizeof *head)
        return;
    room = (bytes - sizeof *head) / sizeof *records;
    if (head->count > room) /* most often it is the count that was mutated */
        head->count %= room + 1;
    for (uint64_t i = 0; i < head->count; i++)
        if (records[i].at <= bytes && records[i].bytes <= bytes - records[i].at)
            records[i].checksum =
                hr__seek_checksum(records[i].key, data + records[i].at, records[i].bytes);
    head->checksum = hr__index_part_checksum(
        HR_INDEX_KIND_SEEK, &head->use, sizeof head->use + head->count * sizeof *records);
}

/* How many bytes of a section its checksum covers. */
static inline size_t repair_bytes(const struct hr_index_section *section, const void *at)
{
    size_t bytes = section->bytes, first = sizeof(struct hr_shard_head);
    struct hr_shard_head head;

    if (section->kind != HR_INDEX_KIND_SHARDS || bytes < first)
        return bytes;
    memcpy(&head, at, sizeof head);
    if (head.shards > (bytes - first) / sizeof(struct hr_shard_entry))
        return bytes;
    return first + head.shards * sizeof(struct hr_shard_entry);
}

/* Magic, version, size and all checksums of a saved index of at least 64 bytes; the rest
 * stays as it is. */
static inline void repair_index(char *data, size_t bytes)
{
    struct hr_index_section *sections = (void *)(data + 64);
    uint32_t version = 1, count;
    uint64_t size = bytes, checksum;

    memcpy(data, "HRINDEX", 8);
    memcpy(data + 8, &version, 4);
    memcpy(&count, data + 12, 4);
    count %= REPAIR_SECTIONS_MAX;
    memcpy(data + 12, &count, 4);
    memcpy(data + 16, &size, 8);
    if (64 + count * sizeof *sections > bytes)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct hr_index_section section = sections[i];

        if (section.at > bytes || section.bytes > bytes - section.at)
            continue;
        if (section.kind == HR_INDEX_KIND_SEEK && section.at % 64 == 0 &&
            section.at >= 64 + count * sizeof section)
            repair_seek(data + section.at, section.bytes);
        sections[i].checksum = hr__index_part_checksum(
            section.kind, data + section.at, repair_bytes(&section, data + section.at));
    }
    checksum = hr__hash64(data, 24, version);
    checksum = hr__hash64(sections, count * sizeof *sections, checksum);
    memcpy(data + 24, &checksum, 8);
}

/* Gives `parse` a copy of the bytes that is aligned as a mapped file is: first as they
 * are, then repaired. `more` repairs what a target knows of; or NULL. */
static inline void parse_both_ways(const uint8_t *data, size_t bytes,
                                   void (*parse)(const void *data, size_t bytes),
                                   void (*more)(char *data, size_t bytes))
{
    char *copy = hr__aligned_alloc(64, (bytes + 64) / 64 * 64);

    if (copy == NULL)
        return;
    if (bytes > 0)
        memcpy(copy, data, bytes);
    parse(copy, bytes);
    if (bytes >= 64) {
        repair_index(copy, bytes);
        if (more != NULL) {
            more(copy, bytes);
            repair_index(copy, bytes);
        }
        parse(copy, bytes);
    }
    hr__free(copy);
}

#endif
