/*
 * fuzz/fuzz_seek.c - any bytes as the seek section of a saved index: as they are, then
 * with repaired checksums. All entries are read, given to the codec, and some are
 * merged with fresh ones and written to a file, which must be read back whole.
 */
#include "codec/jpeg_index.h"
#include "core/alloc.h"
#include "fuzz/repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void read_entries(const struct hr_seek_section *section)
{
    struct hr_jpeg_index index;
    struct hr_arena arena;
    uint64_t total = 0;

    hr__arena_init(&arena);
    for (uint64_t i = 0; i < section->count; i++) {
        const struct hr_seek_record *record = &section->records[i];
        const void *entry = hr__seek_section_data(section, record);

        if (hr__seek_section_find(section, record->key) != record)
            abort();
        if (entry == NULL)
            continue;
        total += record->bytes;
        if (hr__jpeg_index_unpack(&arena, entry, record->bytes, &index) != HR_OK)
            index.rows = 0; /* refused: any bytes may be an entry */
        hr__arena_reset(&arena);
    }
    if (total > section->bytes)
        abort();
    hr__arena_finish(&arena);
}

/* A fresh entry supersedes or joins those of the section. */
static void merge(const struct hr_seek_section *section)
{
    static const char text[] = "entry";
    struct hr_hash128 key =
        section->count > 0 ? section->records[0].key : (struct hr_hash128){.low = 1};
    struct hr_seek_item item = {
        {key, 0, hr__seek_checksum(key, text, sizeof text), sizeof text, 7},
        text
    };
    struct hr_seek_use use = {0};
    struct hr_seek_section back;
    bool damaged;
    char path[64];

    snprintf(path, sizeof path, "/dev/shm/fuzz-seek-%d", (int)getpid());
    if (hr__seek_section_write(path, &item, 1, &use, section) != HR_OK)
        return;
    hr__seek_section_open(path, &back, &damaged);
    if (damaged || hr__seek_section_find(&back, key) == NULL)
        abort();
    for (uint64_t i = 0; i < back.count; i++)
        if (hr__seek_section_data(&back, &back.records[i]) == NULL)
            abort();
    hr__seek_section_close(&back);
    unlink(path);
}

static void parse(const void *data, size_t bytes)
{
    struct hr_seek_section section;

    if (hr__seek_section_parse(data, bytes, &section) != HR_OK)
        return;
    read_entries(&section);
    if (bytes % 32 == 0)
        merge(&section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    parse_both_ways(data, bytes, parse, NULL);
    return 0;
}
