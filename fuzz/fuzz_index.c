/*
 * fuzz/fuzz_index.c - any bytes as a saved index.
 *
 * They are read first as they are, then with repaired checksums, so that the checks after
 * them are reached. All names of an accepted index are read.
 */
#include "fuzz/repair.h"
#include "store/index_internal.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t read_names(const struct hr_index_saved *saved)
{
    char name[HR_INDEX_PATH_MAX];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < saved->record_count; i++) {
        struct hr_index_folder folder = {.ino = 1};
        size_t bytes;
        const char *own = hr__index_saved_folder_name(saved, i, &bytes);

        sum += hr__index_saved_find_child(saved, i, own, bytes);
        sum += bytes > 0 ? (unsigned char)own[bytes - 1] : 0;
        hr__index_saved_names(saved, i, &folder);
        sum += hr__index_saved_same(saved, i, &folder);
        for (uint32_t at = 0; at < folder.names.count; at++) {
            bytes = hr__index_name(&folder.names, at, name);
            sum += hr__hash64(name, bytes, sum);
        }
        if (saved->first_child[i] > saved->first_child[i + 1] ||
            saved->first_child[i + 1] > saved->record_count)
            __builtin_trap();
    }
    return sum;
}

static void parse(const void *data, size_t bytes)
{
    struct hr_index_saved saved = {0};

    if (hr__index_saved_parse(data, bytes, &saved, NULL) != HR_OK)
        return;
    (void)read_names(&saved);
    hr__index_saved_close(&saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    parse_both_ways(data, bytes, parse, NULL);
    return 0;
}
