/*
 * store/lines.h - the lines of text files.
 *
 * A line ends in LF or CR LF; the last one needs no ending. A byte order mark (UTF-8) at
 * the beginning of a file belongs to no line. All other bytes are taken as they are.
 */
#ifndef HR_STORE_LINES_H
#define HR_STORE_LINES_H

#include "store/shard_index.h"

/* Which lines are no records: none; empty ones; those of nothing but blanks. */
enum hr_lines_skip { HR_LINES_SKIP_NONE, HR_LINES_SKIP_EMPTY, HR_LINES_SKIP_BLANK };

/* The user of hr__lines_scan. */
struct hr_lines_scan {
    enum hr_lines_skip skip;
};

/* Finds the lines of a file, for hr__shard_index_open(): each with its ending, so that no
 * record is empty. Hashes the contents. */
HR_CHECK enum hr_err hr__lines_scan(struct hr_shard_scan *scan);

/* hr_shard_saving.format of it. */
const char *hr__lines_format(enum hr_lines_skip skip);

/* The length of a line without its ending. */
size_t hr__line_length(const char *line, size_t bytes);

/* Bytes of the byte order mark that a text begins with: 0 or 3. */
size_t hr__bom_bytes(const char *text, size_t bytes);

#endif
