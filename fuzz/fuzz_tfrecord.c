/*
 * fuzz/fuzz_tfrecord.c - any bytes as a TFRecord file. What the index finds must cover
 * the file without gaps.
 */
#include "store/store_memory.h"
#include "store/tfrecord.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.tfrecord";
    struct hr_shard_index *index;
    const char *found;
    uint64_t end = 0;
    size_t length;

    if (hr__memory_put(uri, data, bytes, NULL) != HR_OK ||
        hr__shard_index_open(uri, ".tfrecord", hr__tfrecord_scan, NULL, NULL, NULL,
                             &index, NULL) != HR_OK)
        return 0;
    for (uint64_t i = 0; i < hr__shard_index_count(index); i++) {
        struct hr_shard_place place;

        hr__shard_index_place(index, i, &place);
        if (place.offset != end || place.bytes > bytes - place.offset)
            abort();
        end += place.bytes;
        if (hr__tfrecord_check(data + place.offset, place.bytes, &found, &length) ==
                NULL &&
            length != place.bytes - HR_TFRECORD_HEAD - HR_TFRECORD_TAIL)
            abort();
    }
    if (end != bytes)
        abort();
    hr__shard_index_close(index);
    return 0;
}
