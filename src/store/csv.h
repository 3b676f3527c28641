/*
 * store/csv.h - comma-separated values (RFC 4180), a record at a time.
 *
 * Cells may be quoted, and then contain commas, quotes (doubled) and line ends. Lines end
 * in LF or CRLF. Beyond the RFC: blanks around a cell are not part of it unless they are
 * inside its quotes, and blank lines are skipped. A byte order mark is the caller's.
 */
#ifndef HR_STORE_CSV_H
#define HR_STORE_CSV_H

#include "headrace/base.h"

#define HR_CSV_CELLS_MAX 4096 /* in a record */

struct hr_csv_cell {
    const char *text; /* not terminated; valid until the next record is read */
    size_t bytes;
    int line, column; /* where it begins; columns count bytes from 1 */
    bool quoted;
};

/* Set path, error, at, end; zero the rest. */
struct hr_csv {
    const char *path;       /* for messages */
    struct hr_error *error; /* or NULL */
    char delimiter;         /* 0: a comma */
    const char *at, *end;
    /* the record that was read; count 0 at the end */
    struct hr_csv_cell *cells;
    size_t count;
    /* private */
    const char *line_begin;
    int line; /* of line_begin, minus 1 */
    size_t room, text_bytes, text_room;
    char *text; /* of cells with doubled quotes */
};

/* Reads the next record. HR_ERR_FORMAT with file, line and column; HR_ERR_LIMIT;
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__csv_next(struct hr_csv *csv);
void hr__csv_finish(struct hr_csv *csv);

#endif
