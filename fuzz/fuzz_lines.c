/*
 * fuzz/fuzz_lines.c - any bytes as a text file. The lines must cover it without gaps, and
 * no line has an ending inside.
 */
#include "store/lines.h"
#include "store/store_memory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_lines(const char *data, size_t bytes, bool skip_empty)
{
    static const char uri[] = "mem://fuzz.txt";
    struct hr_lines_scan scan = {skip_empty ? HR_LINES_SKIP_EMPTY : HR_LINES_SKIP_NONE};
    struct hr_shard_index *index;
    uint64_t end = hr__bom_bytes(data, bytes);

    if (hr__memory_put(uri, data, bytes, NULL) != HR_OK ||
        hr__shard_index_open(uri, ".txt", hr__lines_scan, &scan, NULL, NULL, &index,
                             NULL) != HR_OK)
        return;
    for (uint64_t i = 0; i < hr__shard_index_count(index); i++) {
        struct hr_shard_place place;
        size_t length;

        hr__shard_index_place(index, i, &place);
        if (place.offset < end || place.bytes > bytes - place.offset ||
            (place.offset > end && !skip_empty))
            abort();
        length = hr__line_length(data + place.offset, place.bytes);
        if (memchr(data + place.offset, '\n', length) != NULL ||
            (length == 0 && skip_empty))
            abort();
        end = place.offset + place.bytes;
    }
    if (end != bytes && !skip_empty)
        abort();
    hr__shard_index_close(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    check_lines((const char *)data, bytes, false);
    check_lines((const char *)data, bytes, true);
    return 0;
}
