/*
 * store/csv_scan.c - where the records of CSV files lie.
 */
#include "store/csv_scan.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/lines.h"
#include "store/table.h"

#define BLOCK HR_WINDOW_MAX

static bool is_blank(char c, char delimiter)
{
    return (c == ' ' || c == '\t') && c != delimiter;
}

/* ---- one record ---- */

enum cell { CELL_NEXT, CELL_LAST, CELL_WRONG, CELL_CUT };

/* Steps over what follows a cell. */
static enum cell after_cell(const char **at, const char *end, bool last, char delimiter)
{
    const char *from = *at;

    if (from == end)
        return last ? CELL_LAST : CELL_CUT;
    if (*from == delimiter) {
        *at = from + 1;
        return CELL_NEXT;
    }
    if (*from == '\r' && from + 1 == end)
        return last ? CELL_WRONG : CELL_CUT;
    from += *from == '\r';
    if (*from != '\n')
        return CELL_WRONG;
    *at = from + 1;
    return CELL_LAST;
}

/* Steps over a cell that begins with a quote. */
static enum cell quoted_cell(const char **at, const char *end, bool last, char delimiter)
{
    const char *from = *at + 1;

    for (;;) {
        from = memchr(from, '"', (size_t)(end - from));
        if (from == NULL)
            return last ? CELL_WRONG : CELL_CUT;
        if (++from == end && !last)
            return CELL_CUT;
        if (from == end || *from != '"')
            break;
        from++;
    }
    while (from < end && is_blank(*from, delimiter))
        from++;
    *at = from;
    return after_cell(at, end, last, delimiter);
}

static enum cell plain_cell(const char **at, const char *end, bool last, char delimiter)
{
    const char *from = *at;

    while (from < end && *from != delimiter && *from != '\n')
        from++;
    *at = from;
    return after_cell(at, end, last, delimiter);
}

static size_t count_lines(const char *from, const char *end)
{
    size_t lines = 0;

    while ((from = memchr(from, '\n', (size_t)(end - from))) != NULL) {
        lines++;
        from++;
    }
    return lines;
}

size_t hr__csv_record(const char *text, size_t bytes, bool last, char delimiter,
                      size_t *ret_lines)
{
    const char *end = text + bytes, *at = text;
    const char *feed = memchr(text, '\n', bytes);
    size_t line = feed != NULL ? (size_t)(feed + 1 - text) : last ? bytes : 0;
    enum cell cell;

    *ret_lines = feed != NULL;
    if (memchr(text, '"', line > 0 ? line : bytes) == NULL)
        return line;
    do {
        while (at < end && is_blank(*at, delimiter))
            at++;
        cell = at < end && *at == '"' ? quoted_cell(&at, end, last, delimiter)
                                      : plain_cell(&at, end, last, delimiter);
    } while (cell == CELL_NEXT);
    if (cell == CELL_WRONG)
        return line;
    if (cell == CELL_CUT)
        return 0;
    *ret_lines = count_lines(text, at);
    return (size_t)(at - text);
}

/* ---- headers ---- */

static enum hr_err no_memory(const struct hr_shard_scan *shard)
{
    return hr__fail(shard->error, HR_ERR_MEMORY, "out of memory while reading %s",
                    shard->window.object->uri);
}

static enum hr_err keep_names(struct hr_shard_scan *shard, const struct hr_csv *csv)
{
    struct hr_csv_scan *scan = shard->user;

    scan->names = hr__calloc(csv->count + 1, sizeof *scan->names);
    if (scan->names == NULL)
        return no_memory(shard);
    for (size_t i = 0; i < csv->count; i++) {
        const struct hr_csv_cell *cell = &csv->cells[i];

        scan->names[i] = hr__strndup(cell->text, cell->bytes);
        if (scan->names[i] == NULL)
            return no_memory(shard);
        for (size_t k = 0; cell->bytes > 0 && k < i; k++)
            if (strcmp(scan->names[k], scan->names[i]) == 0)
                return hr__fail_in(shard->error, HR_ERR_FORMAT, shard->window.object->uri,
                                   cell->line, cell->column,
                                   "two columns are called \"%s\"", scan->names[i]);
    }
    return HR_OK;
}

static bool same_names(const struct hr_csv_scan *scan, const struct hr_csv *csv)
{
    bool same = scan->columns == csv->count;

    for (size_t i = 0; same && i < csv->count; i++)
        same = strlen(scan->names[i]) == csv->cells[i].bytes &&
               memcmp(scan->names[i], csv->cells[i].text, csv->cells[i].bytes) == 0;
    return same;
}

static enum hr_err
look_at_first(struct hr_shard_scan *shard, const struct hr_csv *csv, bool *ret_header)
{
    struct hr_csv_scan *scan = shard->user;

    if (!scan->begun) {
        scan->begun = true;
        scan->has_header = scan->header == HR_CSV_YES ||
                           (scan->header == HR_CSV_AUTO &&
                            hr__csv_is_header(csv, scan->known, scan->known_count));
        scan->columns = csv->count;
        if (scan->has_header)
            HR_TRY(keep_names(shard, csv));
    } else if (scan->has_header && !same_names(scan, csv)) {
        return hr__fail_in(shard->error, HR_ERR_FORMAT, shard->window.object->uri,
                           csv->cells[0].line, 0,
                           "the header differs from that of the first file: files that "
                           "are read together have the same columns in the same order");
    }
    *ret_header = scan->has_header;
    return HR_OK;
}

/* Whether the first record of a file is its header. */
static enum hr_err read_first(struct hr_shard_scan *shard, uint64_t at, const char *text,
                              size_t bytes, bool *ret_header)
{
    const struct hr_csv_scan *scan = shard->user;
    struct hr_csv csv = {.path = shard->window.object->uri,
                         .error = shard->error,
                         .delimiter = scan->delimiter,
                         .at = text,
                         .end = text + bytes,
                         .line = (int)shard->line};
    enum hr_err code;

    if (scan->begun && !scan->has_header) {
        *ret_header = false;
        return HR_OK;
    }
    code = hr__shard_check(shard, at, bytes);
    if (code == HR_ERR_FORMAT && scan->begun) { /* the record is bad */
        *ret_header = false;
        return HR_OK;
    }
    HR_TRY(code);
    code = hr__csv_next(&csv);
    if (code == HR_OK)
        code = look_at_first(shard, &csv, ret_header);
    else if (code == HR_ERR_FORMAT && scan->header == HR_CSV_NO)
        code = HR_OK; /* the next one tells how many columns there are */
    hr__csv_finish(&csv);
    return code;
}

/* ---- files ---- */

struct file {
    struct hr_shard_scan *shard;
    uint64_t at, hashed;
    bool first; /* record */
    bool look;  /* at the header only */
};

static bool is_empty(const char *text, size_t bytes, char delimiter)
{
    bytes = hr__line_length(text, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (!is_blank(text[i], delimiter))
            return false;
    return true;
}

static enum hr_err
add_record(struct file *file, const char *text, size_t bytes, size_t lines)
{
    struct hr_shard_scan *shard = file->shard;
    const struct hr_csv_scan *scan = shard->user;
    uint64_t at = file->at, before = shard->line;
    bool header = false;

    file->at += bytes;
    if (!is_empty(text, bytes, scan->delimiter)) {
        if (file->first)
            HR_TRY(read_first(shard, at, text, bytes, &header));
        file->first = !scan->begun;
        shard->line = before + 1;
        if (!header && !file->look)
            HR_TRY(hr__shard_add(shard, at, file->at));
    }
    shard->line = before + lines;
    return HR_OK;
}

/* Adds the records that are whole; false if there is none. */
static enum hr_err
add_records(struct file *file, const char *text, size_t bytes, bool last, bool *ret_any)
{
    char delimiter = ((const struct hr_csv_scan *)file->shard->user)->delimiter;
    size_t used = 0, record, lines;

    delimiter = delimiter != '\0' ? delimiter : ',';
    while (used < bytes && (file->first || !file->look)) {
        record = hr__csv_record(text + used, bytes - used, last, delimiter, &lines);
        if (record == 0)
            break;
        HR_TRY(add_record(file, text + used, record, lines));
        used += record;
    }
    *ret_any = used > 0;
    return HR_OK;
}

static void hash_new(struct file *file, const char *text, size_t bytes)
{
    uint64_t end = file->at + bytes;

    if (end <= file->hashed || file->look)
        return;
    hr__hasher_add(file->shard->hasher, text + (file->hashed - file->at),
                   (size_t)(end - file->hashed));
    file->hashed = end;
}

/* Adds what lies before the next line end, or the end: a line without a quote that ends
 * is longer than the limit. */
static enum hr_err add_long_line(struct file *file, uint64_t end)
{
    struct hr_shard_scan *shard = file->shard;
    uint64_t from = file->at, at = from;
    const void *block;
    const char *feed = NULL;

    while (feed == NULL && at < end) {
        size_t bytes = end - at < BLOCK ? (size_t)(end - at) : BLOCK;

        HR_TRY(hr__window_get(&shard->window, at, bytes, &block, shard->error));
        file->at = at;
        hash_new(file, block, bytes);
        feed = memchr(block, '\n', bytes);
        at += feed != NULL ? (size_t)(feed + 1 - (const char *)block) : bytes;
    }
    file->at = at;
    file->first = false;
    shard->line++;
    return file->look ? HR_OK : hr__shard_add(shard, from, at);
}

/* The line alone, where a quote is not closed within the limit. */
static enum hr_err
add_line(struct file *file, const char *text, size_t bytes, uint64_t end)
{
    const char *feed = memchr(text, '\n', bytes);

    if (feed == NULL)
        return add_long_line(file, end);
    return add_record(file, text, (size_t)(feed + 1 - text), 1);
}

static enum hr_err scan_file(struct hr_shard_scan *shard, bool look)
{
    const struct hr_csv_scan *scan = shard->user;
    struct file file = {.shard = shard, .first = true, .look = look};
    uint64_t end = shard->window.object->bytes, left;
    size_t size = BLOCK, bytes;
    const void *text;
    bool any;

    while (file.at < end && (file.first || !look)) {
        left = end - file.at;
        bytes = left < size ? (size_t)left : size;
        HR_TRY(hr__window_get(&shard->window, file.at, bytes, &text, shard->error));
        hash_new(&file, text, bytes);
        if (file.at == 0 && hr__bom_bytes(text, bytes) > 0) {
            file.at = hr__bom_bytes(text, bytes);
            continue;
        }
        HR_TRY(add_records(&file, text, bytes, bytes == left, &any));
        if (!any && bytes > scan->bytes_max) {
            HR_TRY(add_line(&file, text, bytes, end));
            any = true;
        }
        size = any ? BLOCK : 2 * size;
    }
    if (!look)
        hr__hasher_add(shard->hasher, &end, sizeof end);
    return HR_OK;
}

enum hr_err hr__csv_scan(struct hr_shard_scan *shard)
{
    return scan_file(shard, false);
}

enum hr_err hr__csv_look(struct hr_shard_scan *shard)
{
    const struct hr_csv_scan *scan = shard->user;

    return scan->begun && !scan->has_header ? HR_OK : scan_file(shard, true);
}

void hr__csv_format(const struct hr_csv_scan *scan, char ret_text[HR_CSV_FORMAT_BYTES])
{
    struct hr_hash128 known = {0, 0};

    for (size_t i = 0; i < scan->known_count; i++) {
        const struct hr_hash128 both[2] = {
            known, hr__hash128(scan->known[i], strlen(scan->known[i]))};

        known = hr__hash128(both, sizeof both);
    }
    snprintf(ret_text, HR_CSV_FORMAT_BYTES, "csv 1 %d %d %llu %016llx%016llx",
             scan->delimiter, scan->header, (unsigned long long)scan->bytes_max,
             (unsigned long long)known.high, (unsigned long long)known.low);
}

void hr__csv_scan_finish(struct hr_csv_scan *scan)
{
    for (size_t i = 0; scan->names != NULL && i < scan->columns; i++)
        hr__free(scan->names[i]);
    hr__free(scan->names);
    scan->names = NULL;
}
