/*
 * fuzz/fuzz_csv.c - any bytes as a CSV file. Records must not overlap, and the parser
 * must take each as one record or refuse it. The first byte chooses the delimiter.
 */
#include "store/csv_scan.h"
#include "store/store_memory.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_record(const char *text, size_t bytes, char delimiter)
{
    struct hr_csv csv = {
        .path = "x", .delimiter = delimiter, .at = text, .end = text + bytes};

    if (hr__csv_next(&csv) == HR_OK && csv.count == 0)
        abort(); /* blank lines are no records */
    hr__csv_finish(&csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.csv";
    struct hr_csv_scan scan = {.bytes_max = 1000};
    struct hr_shard_index *index;
    uint64_t end = 0;

    if (bytes == 0)
        return 0;
    scan.delimiter = ",;\t|"[*data % 4];
    scan.header = (enum hr_csv_header)(*data / 4 % 3);
    data++;
    bytes--;
    if (hr__memory_put(uri, data, bytes, NULL) != HR_OK)
        return 0;
    if (hr__shard_index_open(uri, ".csv", hr__csv_scan, &scan, NULL, NULL, &index,
                             NULL) == HR_OK) {
        for (uint64_t i = 0; i < hr__shard_index_count(index); i++) {
            struct hr_shard_place place;

            hr__shard_index_place(index, i, &place);
            if (place.offset < end || place.bytes > bytes - place.offset)
                abort();
            check_record((const char *)data + place.offset, place.bytes, scan.delimiter);
            end = place.offset + place.bytes;
        }
        hr__shard_index_close(index);
    }
    hr__csv_scan_finish(&scan);
    return 0;
}
