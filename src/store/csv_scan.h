/*
 * store/csv_scan.h - where the records of CSV files lie.
 *
 * A record ends at a line end that is not inside quotes. Only a quote at the beginning of
 * a cell opens; one that is never closed, or is closed inside a cell, costs its line: the
 * next record begins on the next one.
 */
#ifndef HR_STORE_CSV_SCAN_H
#define HR_STORE_CSV_SCAN_H

#include "store/csv.h"
#include "store/shard_index.h"

enum hr_csv_header { HR_CSV_AUTO, HR_CSV_YES, HR_CSV_NO };

/* The user of hr__csv_scan. The caller sets the first part, zeroes the rest, and ends
 * with hr__csv_scan_finish. */
struct hr_csv_scan {
    char delimiter;            /* 0: a comma */
    enum hr_csv_header header; /* AUTO: as the first file's first record looks */
    const char *const *known;  /* names that make a record a header */
    size_t known_count;
    uint64_t bytes_max; /* a quote that stays open for longer costs its line only */
    /* what was found: of the first file, which the others must equal */
    bool begun, has_header;
    char **names; /* of the columns; NULL without a header */
    size_t columns;
};

/* Finds the records of a file, for hr__shard_index_open(); the header is none. Hashes the
 * contents. HR_ERR_FORMAT with file and line for a header that is malformed or differs
 * from the first file's. */
HR_CHECK enum hr_err hr__csv_scan(struct hr_shard_scan *scan);
void hr__csv_scan_finish(struct hr_csv_scan *scan);

/* hr_shard_saving.look and format of it: reads no more than the header. */
HR_CHECK enum hr_err hr__csv_look(struct hr_shard_scan *scan);
#define HR_CSV_FORMAT_BYTES 96
void hr__csv_format(const struct hr_csv_scan *scan, char ret_text[HR_CSV_FORMAT_BYTES]);

/* The length of the record that `text` begins with; 0: more text is needed, unless it is
 * all (`last`). *ret_lines is how many line ends it has. */
size_t hr__csv_record(const char *text, size_t bytes, bool last, char delimiter,
                      size_t *ret_lines);

#endif
