/*
 * fuzz/fuzz_lmdb.c - any bytes as an LMDB file: refused with a message, or its entries
 * lie within them.
 */
#include <stdlib.h>
#include <string.h>

#include "store/lmdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const uint8_t *data, size_t bytes, const char *part, size_t part_bytes)
{
    const char *begin = (const char *)data;

    if (part < begin || part > begin + bytes ||
        part_bytes > (size_t)(begin + bytes - part))
        abort();
}

static void read_all(const uint8_t *data, size_t bytes, const char *database)
{
    struct hr_error error = {0};
    struct hr_lmdb *lmdb;

    if (hr__lmdb_open(data, bytes, database, &lmdb, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return;
    }
    for (uint64_t i = 0; i < hr__lmdb_count(lmdb); i++) {
        struct hr_lmdb_entry entry;

        if (hr__lmdb_entry(lmdb, i, &entry, &error) != HR_OK)
            continue;
        check(data, bytes, entry.key, entry.key_bytes);
        check(data, bytes, entry.value, entry.value_bytes);
    }
    hr__lmdb_close(lmdb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_all(data, bytes, "");
    read_all(data, bytes, "a");
    return 0;
}
