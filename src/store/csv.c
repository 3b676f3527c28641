/*
 * store/csv.c - see store/csv.h.
 *
 * A cell is shown where it lies in the text. Only those with doubled quotes are copied;
 * their text may move while the record is read, so they are offsets until its end.
 */
#include "store/csv.h"
#include "core/alloc.h"
#include "core/error.h"
#include <string.h>

static enum hr_err wrong(const struct hr_csv *csv, const char *at, const char *what)
{
    return hr__fail_in(csv->error, HR_ERR_FORMAT, csv->path, csv->line + 1,
                       (int)(at - csv->line_begin) + 1, "%s", what);
}

static enum hr_err no_memory(const struct hr_csv *csv)
{
    return hr__fail(csv->error, HR_ERR_MEMORY, "out of memory while reading %s",
                    csv->path);
}

static char delimiter_of(const struct hr_csv *csv)
{
    return csv->delimiter != '\0' ? csv->delimiter : ',';
}

static bool is_blank(const struct hr_csv *csv, char c)
{
    return (c == ' ' || c == '\t') && c != csv->delimiter;
}

static void skip_blanks(struct hr_csv *csv)
{
    while (csv->at < csv->end && is_blank(csv, *csv->at))
        csv->at++;
}

static bool at_line_end(const struct hr_csv *csv)
{
    return csv->at == csv->end || *csv->at == '\n' ||
           (*csv->at == '\r' && (csv->at + 1 == csv->end || csv->at[1] == '\n'));
}

static void next_line(struct hr_csv *csv)
{
    csv->at += csv->at < csv->end && *csv->at == '\r';
    csv->at += csv->at < csv->end && *csv->at == '\n';
    csv->line_begin = csv->at;
    csv->line++;
}

static bool copy(struct hr_csv *csv, const char *text, size_t bytes)
{
    if (!hr__array_room(&csv->text, csv->text_bytes, &csv->text_room, bytes, 1))
        return false;
    memcpy(csv->text + csv->text_bytes, text, bytes);
    csv->text_bytes += bytes;
    return true;
}

/* Counts the line ends inside quotes. */
static void count_lines(struct hr_csv *csv, const char *from, const char *to)
{
    while ((from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
        csv->line_begin = ++from;
        csv->line++;
    }
}

/* A cell without text so far that has doubled quotes has text NULL, and begins at
 * text_bytes - bytes. */
static enum hr_err quoted_cell(struct hr_csv *csv, struct hr_csv_cell *cell)
{
    const char *from = ++csv->at, *open = csv->at - 1;
    bool copied = false;

    cell->quoted = true;
    for (;;) {
        const char *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));

        if (quote == NULL)
            return wrong(csv, open, "the quote that begins here is not closed");
        csv->at = quote + 1;
        if (csv->at == csv->end || *csv->at != '"') {
            if (copied && !copy(csv, from, (size_t)(quote - from)))
                return no_memory(csv);
            cell->bytes += (size_t)(quote - from);
            cell->text = copied ? NULL : from;
            count_lines(csv, open, quote);
            return HR_OK;
        }
        if (!copy(csv, from, (size_t)(csv->at - from)))
            return no_memory(csv);
        copied = true;
        cell->bytes += (size_t)(csv->at - from);
        from = ++csv->at;
    }
}

static enum hr_err plain_cell(struct hr_csv *csv, struct hr_csv_cell *cell)
{
    const char *from = csv->at, *to, delimiter = delimiter_of(csv);

    for (; !at_line_end(csv) && *csv->at != delimiter; csv->at++) {
        if (*csv->at == '"')
            return wrong(csv, csv->at,
                         "a quote stands inside a cell without quotes: write the cell in "
                         "quotes, and the quote twice");
        if (*csv->at == '\r')
            return wrong(csv, csv->at,
                         "a carriage return without a line feed: lines end in LF or "
                         "CRLF");
    }
    to = csv->at;
    while (to > from && is_blank(csv, to[-1]))
        to--;
    cell->text = from;
    cell->bytes = (size_t)(to - from);
    return HR_OK;
}

static enum hr_err next_cell(struct hr_csv *csv)
{
    struct hr_csv_cell *cell;

    if (csv->count == HR_CSV_CELLS_MAX)
        return hr__fail(csv->error, HR_ERR_LIMIT, "%s:%d: more than %d columns",
                        csv->path, csv->line + 1, HR_CSV_CELLS_MAX);
    if (!hr__array_room(&csv->cells, csv->count, &csv->room, 1, sizeof *csv->cells))
        return no_memory(csv);
    skip_blanks(csv);
    cell = &csv->cells[csv->count++];
    *cell = (struct hr_csv_cell){.line = csv->line + 1,
                                 .column = (int)(csv->at - csv->line_begin) + 1};
    if (csv->at == csv->end || *csv->at != '"')
        return plain_cell(csv, cell);
    HR_TRY(quoted_cell(csv, cell));
    skip_blanks(csv);
    if (!at_line_end(csv) && *csv->at != delimiter_of(csv))
        return wrong(csv, csv->at, "something follows a closing quote");
    return HR_OK;
}

enum hr_err hr__csv_next(struct hr_csv *csv)
{
    size_t from = 0;

    if (csv->line_begin == NULL)
        csv->line_begin = csv->at;
    do {
        csv->count = 0;
        csv->text_bytes = 0;
        if (csv->at == csv->end)
            return HR_OK;
        HR_TRY(next_cell(csv));
        while (!at_line_end(csv)) {
            csv->at++; /* the delimiter */
            HR_TRY(next_cell(csv));
        }
        next_line(csv);
    } while (csv->count == 1 && csv->cells[0].bytes == 0 && !csv->cells[0].quoted);
    for (size_t i = 0; i < csv->count; i++) {
        if (csv->cells[i].text != NULL)
            continue;
        csv->cells[i].text = csv->text + from;
        from += csv->cells[i].bytes;
    }
    return HR_OK;
}

void hr__csv_finish(struct hr_csv *csv)
{
    hr__free(csv->cells);
    hr__free(csv->text);
}
