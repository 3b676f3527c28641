/*
 * fuzz/fuzz_packed.c - any bytes as a compressed file, by gzip, zlib or zstd. It opens or
 * is refused by a limit; every range is read as the scan sees it, or refused as damaged.
 */
#include "store/packed.h"
#include "store/store_memory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define PART 5000

static void read_all(struct hr_packed *packed)
{
    struct hr_object *strict = hr__packed_object(packed);
    static char one[PART], other[PART];
    bool waited;

    for (uint64_t end = strict->bytes, at; end > 0; end = at) { /* backwards */
        size_t part = end < PART ? (size_t)end : PART;
        struct hr_error error = {0};

        at = end - part;
        if (hr__store_read(hr__packed_scanned(packed), at, one, part, NULL, &waited,
                           &error) != HR_OK)
            abort();
        switch (hr__store_read(strict, at, other, part, NULL, &waited, &error)) {
        case HR_OK:
            if (memcmp(one, other, part) != 0)
                abort();
            break;
        case HR_ERR_FORMAT:
            if (strstr(error.message, "of the file: ") == NULL)
                abort();
            break;
        default:
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.packed";
    struct hr_packed_limits limits = {.bytes_max = 4 << 20, .ratio_max = 1000};
    struct hr_packed_cache *cache;
    struct hr_packed *packed;
    struct hr_error error;

    if (bytes < 1 || hr__memory_put(uri, data + 1, bytes - 1, NULL) != HR_OK)
        return 0;
    limits.checked = (data[0] & 4) != 0;
    if (hr__packed_cache_create(&limits, &cache, NULL) != HR_OK)
        return 0;
    error = (struct hr_error){0};
    switch (hr__packed_open(cache, uri, (enum hr_packing)(1 + data[0] % 3), &packed,
                            &error)) {
    case HR_OK:
        read_all(packed);
        hr__packed_close(packed);
        break;
    case HR_ERR_LIMIT:
    case HR_ERR_UNSUPPORTED:
    case HR_ERR_MEMORY:
        break;
    default:
        abort();
    }
    hr__packed_cache_destroy(cache);
    return 0;
}
