/*
 * fuzz/fuzz_shards.c - any bytes as a saved index of shards.
 *
 * They are read first as they are, then with repaired checksums, so that the checks after
 * them are reached. Every entry is used for an object of the size that it names and of
 * another; all records must lie inside it.
 */
#include "core/alloc.h"
#include "fuzz/repair.h"
#include "store/shard_internal.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define FORMAT ((struct hr_hash128){1, 2})

static void take(const struct hr_shard_section *section,
                 const struct hr_shard_entry *entry, uint64_t bytes)
{
    struct hr_shard shard = {.bytes = bytes};
    struct hr_shard_index index = {.shards = &shard, .shard_count = 1};

    if (hr__shard_section_take(section, entry, bytes, &index) == HR_OK)
        for (uint64_t i = 0; i < index.count; i++) {
            struct hr_shard_place place;
            uint64_t at, line;

            hr__shard_index_place(&index, i, &place);
            hr__shard_index_line(&index, i, &at, &line);
            if (place.bytes == 0 || place.offset > bytes ||
                place.bytes > bytes - place.offset || at > bytes)
                __builtin_trap();
        }
    hr__free(index.records);
    hr__free(index.large);
    hr__free(index.lines);
}

/* Opens a compressed object as the entry says, and closes it. */
static void
restore(const struct hr_shard_section *section, const struct hr_shard_entry *entry)
{
    const struct hr_packed_limits limits = {.bytes_max = 1 << 30, .ratio_max = 1000};
    const struct hr_object file = {.bytes = 1 << 20};
    struct hr_packed_cache *cache;
    struct hr_index_piece piece;
    struct hr_packed *packed;

    if (!hr__shard_section_unpacking(section, entry, &piece) || piece.bytes == 0 ||
        hr__packed_cache_create(&limits, &cache, NULL) != HR_OK)
        return;
    if (hr__packed_restore(cache, "mem://fuzz", &file, piece.data, piece.bytes,
                           &packed) == HR_OK) {
        if (hr__packed_object(packed)->bytes > limits.bytes_max)
            __builtin_trap();
        hr__packed_close(packed);
    }
    hr__packed_cache_destroy(cache);
}

static void parse(const void *data, size_t bytes)
{
    struct hr_shard_section section = {0};

    if (hr__shard_section_parse(data, bytes, FORMAT, &section) != HR_OK)
        return;
    for (uint64_t i = 0; i < section.count; i++) {
        const struct hr_shard_entry *entry = &section.entries[i];

        if (hr__shard_section_find(&section, entry->key) != entry)
            __builtin_trap();
        take(&section, entry, entry->object_bytes);
        take(&section, entry, 1000);
        restore(&section, entry);
    }
}

static void sign(const struct hr_shard_section *section, struct hr_shard_entry *entry)
{
    if (entry->at <= section->bytes && entry->bytes <= section->bytes - entry->at)
        (void)hr__shard_run_checksum(section, entry, &entry->checksum);
}

/* The checksums of the runs that lie inside the section. */
static void repair_runs(char *data, size_t bytes)
{
    const struct hr_index_section *sections = (const void *)(data + 64);
    uint32_t count;

    memcpy(&count, data + 12, 4);
    for (uint32_t i = 0; i < count && 64 + (i + 1) * sizeof *sections <= bytes; i++) {
        struct hr_shard_section section = {.bytes = sections[i].bytes};
        struct hr_shard_head *head;

        if (sections[i].kind != HR_INDEX_KIND_SHARDS || sections[i].at % 64 != 0 ||
            sections[i].at < 64 + count * sizeof *sections || sections[i].at > bytes ||
            section.bytes > bytes - sections[i].at || section.bytes < sizeof *head)
            continue;
        section.base = data + sections[i].at;
        head = (void *)(data + sections[i].at);
        head->format = FORMAT;
        head->shards %= (section.bytes - sizeof *head) / sizeof *section.entries + 1;
        section.count = head->shards;
        section.entries = (const void *)(head + 1);
        for (uint64_t k = 0; k < section.count; k++)
            sign(&section, (struct hr_shard_entry *)(head + 1) + k);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    parse_both_ways(data, bytes, parse, repair_runs);
    return 0;
}
