/*
 * store/index_list_text.c - lists of files and labels: the syntax of records, CSV (RFC
 * 4180) and JSON lines.
 *
 * JSON lines without escapes are parsed here (0.1 us each), others by core/doc.
 */
#include "core/doc.h"
#include "core/error.h"
#include "store/index_list.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COLUMNS_MAX 64

/* ---- CSV ---- */

struct row {
    struct {
        size_t at, bytes;
    } fields[COLUMNS_MAX];
    int count;
};

static enum hr_err quoted_field(struct hr_list_reading *r, int *line)
{
    r->at++;
    for (;;) {
        const char *quote = memchr(r->at, '"', (size_t)(r->end - r->at));

        if (quote == NULL)
            return hr__list_wrong(r, "a quote is not closed");
        for (const char *c = r->at; c < quote; c++)
            *line += *c == '\n';
        if (!hr__list_add_bytes(&r->field, r->at, (size_t)(quote - r->at)))
            return hr__list_no_memory(r);
        r->at = quote + 1;
        if (r->at == r->end || *r->at != '"')
            return HR_OK;
        if (!hr__list_add_bytes(&r->field, "\"", 1))
            return hr__list_no_memory(r);
        r->at++;
    }
}

static bool at_line_end(const struct hr_list_reading *r)
{
    return r->at == r->end || *r->at == '\n' ||
           (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'));
}

/* Reads one record; its fields are in r->field. */
static enum hr_err read_row(struct hr_list_reading *r, struct row *row, int *line)
{
    row->count = 0;
    r->field.bytes = 0;
    for (;;) {
        size_t from = r->field.bytes;
        const char *begin = r->at;

        if (row->count == COLUMNS_MAX)
            return hr__list_wrong(r, "has too many columns");
        if (r->at < r->end && *r->at == '"') {
            HR_TRY(quoted_field(r, line));
            if (!at_line_end(r) && *r->at != ',')
                return hr__list_wrong(r, "something follows a closing quote");
        } else {
            while (!at_line_end(r) && *r->at != ',')
                r->at++;
            if (memchr(begin, '"', (size_t)(r->at - begin)) != NULL)
                return hr__list_wrong(r, "a quote stands inside a field without quotes");
            if (!hr__list_add_bytes(&r->field, begin, (size_t)(r->at - begin)))
                return hr__list_no_memory(r);
        }
        row->fields[row->count].at = from;
        row->fields[row->count++].bytes = r->field.bytes - from;
        if (at_line_end(r))
            break;
        r->at++;
    }
    r->at += r->at < r->end && *r->at == '\r';
    r->at += r->at < r->end && *r->at == '\n';
    ++*line;
    return HR_OK;
}

static struct hr_span
field_of(const struct hr_list_reading *r, const struct row *row, int column)
{
    if (row->fields[column].bytes == 0)
        return (struct hr_span){"", 0};
    return (struct hr_span){r->field.data + row->fields[column].at,
                            row->fields[column].bytes};
}

static int
column_of(const struct hr_list_reading *r, const struct row *row, const char *name)
{
    for (int i = 0; i < row->count; i++) {
        struct hr_span field = field_of(r, row, i);

        if (field.bytes == strlen(name) &&
            strncasecmp(field.text, name, field.bytes) == 0)
            return i;
    }
    return -1;
}

enum hr_err hr__list_read_csv(struct hr_list_reading *r)
{
    int path_column = 0, label_column = -1, columns = 0, line = 1;
    struct row row;

    while (r->at < r->end) {
        r->line = line;
        HR_TRY(read_row(r, &row, &line));
        if (row.count == 1 && row.fields[0].bytes == 0)
            continue;
        if (columns == 0) {
            columns = row.count;
            if (column_of(r, &row, "path") >= 0) { /* a header */
                path_column = column_of(r, &row, "path");
                label_column = column_of(r, &row, "label");
                continue;
            }
            if (columns > 2)
                return hr__list_wrong(r, "has more columns than path and label, and "
                                         "there is no header that names them");
            label_column = columns - 1 > 0 ? 1 : -1;
        }
        if (row.count != columns)
            return hr__list_wrong(
                r, "has another number of columns than the records before it");
        HR_TRY(hr__list_add_record(r, field_of(r, &row, path_column),
                                   label_column < 0 ? (struct hr_span){NULL, 0}
                                                    : field_of(r, &row, label_column),
                                   label_column >= 0));
    }
    return HR_OK;
}

/* ---- JSON lines ---- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

struct json_record {
    struct hr_span path, label;
    bool has_path, has_label, label_is_text;
};

/* Parses a string without escapes and control bytes at `at`; NULL if it is none. */
static const char *plain_string(const char *at, const char *end, struct hr_span *ret_text)
{
    const char *from = at + 1;

    if (at == end || *at != '"')
        return NULL;
    for (at = from; at < end && *at != '"'; at++) {
        if (*at == '\\' || (unsigned char)*at < 32)
            return NULL;
    }
    if (at == end)
        return NULL;
    *ret_text = (struct hr_span){from, (size_t)(at - from)};
    return at + 1;
}

static const char *
plain_integer(const char *at, const char *end, struct hr_span *ret_text)
{
    const char *from = at, *digits;
    int64_t number;

    at += at < end && *at == '-';
    digits = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    *ret_text = (struct hr_span){from, (size_t)(at - from)};
    if (!hr__list_number(*ret_text, &number) || (*digits == '0' && at - digits > 1))
        return NULL;
    return at;
}

/* Parses {"path": "...", "label": ...} in either order and nothing else; false for all
 * that needs the real parser, errors included. */
static bool quick_record(const char *at, const char *end, struct json_record *record)
{
    struct hr_span key, value;

    if (*at != '{')
        return false;
    do {
        at = plain_string(skip_blanks(at + 1, end), end, &key);
        if (at == NULL || (at = skip_blanks(at, end)) == end || *at != ':')
            return false;
        at = skip_blanks(at + 1, end);
        if (key.bytes == 4 && memcmp(key.text, "path", 4) == 0 && !record->has_path) {
            at = plain_string(at, end, &record->path);
            record->has_path = true;
        } else if (key.bytes == 5 && memcmp(key.text, "label", 5) == 0 &&
                   !record->has_label) {
            record->label_is_text = at < end && *at == '"';
            at = record->label_is_text ? plain_string(at, end, &value)
                                       : plain_integer(at, end, &value);
            record->label = value;
            record->has_label = true;
        } else {
            return false;
        }
        if (at == NULL)
            return false;
        at = skip_blanks(at, end);
    } while (at < end && *at == ',');
    return at < end && *at == '}' && skip_blanks(at + 1, end) == end;
}

static enum hr_err add_json(struct hr_list_reading *r, const struct json_record *record)
{
    if (!record->has_path)
        return hr__list_wrong(r, "has no \"path\" that is a string");
    if (record->has_label) {
        if (record->label_is_text ? r->numbers : r->texts)
            return hr__list_wrong(
                r, record->label_is_text
                       ? "the label is a text, the ones before are numbers"
                       : "the label is a number, the ones before are texts");
        r->texts |= record->label_is_text;
        r->numbers |= !record->label_is_text;
    }
    return hr__list_add_record(r, record->path, record->label, record->has_label);
}

static enum hr_err slow_record(struct hr_list_reading *r, const char *at, const char *end)
{
    struct json_record record = {.has_path = false};
    const struct hr_doc *path, *label;
    struct hr_error error = {0};
    struct hr_doc *doc = NULL;
    char number[24], what[sizeof error.message + 24];
    enum hr_err err;

    err = hr__doc_parse(at, (size_t)(end - at), "line.json", &doc, &error);
    if (err == HR_ERR_MEMORY)
        return hr__list_no_memory(r);
    if (err != HR_OK || doc->kind != HR_DOC_MAP) {
        snprintf(what, sizeof what, "no JSON object%s%s", err != HR_OK ? ": " : "",
                 err != HR_OK ? error.message : "");
        hr__doc_destroy(err == HR_OK ? doc : NULL);
        return hr__list_wrong(r, what);
    }
    path = hr__doc_get(doc, "path");
    label = hr__doc_get(doc, "label");
    if (path != NULL && path->kind == HR_DOC_STRING) {
        record.path = (struct hr_span){path->as.string.text, path->as.string.length};
        record.has_path = true;
    }
    if (label != NULL && label->kind == HR_DOC_STRING) {
        record.label = (struct hr_span){label->as.string.text, label->as.string.length};
        record.has_label = record.label_is_text = true;
    } else if (label != NULL && label->kind == HR_DOC_INT) {
        snprintf(number, sizeof number, "%" PRId64, label->as.integer);
        record.label = (struct hr_span){number, strlen(number)};
        record.has_label = true;
    }
    if (label != NULL && !record.has_label)
        err = hr__list_wrong(r, "the label is neither text nor an integer");
    else
        err = add_json(r, &record);
    hr__doc_destroy(doc);
    return err;
}

enum hr_err hr__list_read_jsonl(struct hr_list_reading *r)
{
    for (r->line = 1; r->at < r->end; r->line++) {
        const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *from = r->at;
        struct json_record record = {.has_path = false};

        if (end == NULL)
            end = r->end;
        r->at = end == r->end ? end : end + 1;
        from = skip_blanks(from, end);
        if (from == end)
            continue;
        if (quick_record(from, end, &record))
            HR_TRY(add_json(r, &record));
        else
            HR_TRY(slow_record(r, from, end));
    }
    return HR_OK;
}
