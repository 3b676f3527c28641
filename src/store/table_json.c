/*
 * store/table_json.c - JSON lines as a table: an object a line, its keys are columns.
 *
 * A flat object whose texts have no escapes is parsed here (0.1 us a member), any other
 * by core/doc, which also reports what is wrong with a line.
 */
#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"
#include "core/str.h"
#include "store/table.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct json_line {
    struct hr_table *table;
    struct hr_error *error;
    const char *begin, *end;
    int line;
    int next; /* the column that the next member probably has */
};

struct member {
    const char *key, *text;
    size_t key_bytes, bytes;
    unsigned seen;
    int column; /* of the line's bytes */
};

static enum hr_err no_memory(const struct json_line *l)
{
    return hr__fail(l->error, HR_ERR_MEMORY, "out of memory while reading %s",
                    l->table->path);
}

static bool is_named(const struct hr_table_column *column, const struct member *m)
{
    return strlen(column->name) == m->key_bytes &&
           memcmp(column->name, m->key, m->key_bytes) == 0;
}

/* The column of the member, made if it is new; -1 when out of memory. */
static int column_of(struct json_line *l, const struct member *m)
{
    struct hr_table *table = l->table;

    if ((size_t)l->next < table->column_count && is_named(&table->columns[l->next], m))
        return l->next++;
    for (size_t i = 0; i < table->column_count; i++) {
        if (is_named(&table->columns[i], m)) {
            l->next = (int)i + 1;
            return (int)i;
        }
    }
    l->next = (int)table->column_count + 1;
    return hr__table_add_column(table, m->key, m->key_bytes,
                                (struct hr_table_place){l->line, m->column});
}

static enum hr_err put(struct json_line *l, const struct member *m)
{
    int column = column_of(l, m);

    if (column < 0 || !hr__table_put(l->table, column, m->text, m->bytes, m->seen,
                                     (struct hr_table_place){l->line, m->column}))
        return no_memory(l);
    return HR_OK;
}

/* ---- the quick parser ---- */

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* Parses a string without escapes and control bytes at `at`; NULL if it is none. */
static const char *
plain_string(const char *at, const char *end, const char **ret_text, size_t *ret_bytes)
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
    *ret_text = from;
    *ret_bytes = (size_t)(at - from);
    return at + 1;
}

/* A number as JSON writes it: no plus sign, no leading zeros, digits around a point. */
static bool is_json_number(const char *text, size_t bytes)
{
    const char *point = memchr(text, '.', bytes);
    size_t sign = bytes > 0 && text[0] == '-';

    if (sign == bytes || text[sign] < '0' || text[sign] > '9' ||
        (text[sign] == '0' && bytes > sign + 1 && text[sign + 1] >= '0' &&
         text[sign + 1] <= '9'))
        return false;
    return point == NULL ||
           (point + 1 < text + bytes && point[1] >= '0' && point[1] <= '9');
}

static const char *plain_word(const char *at, const char *end, struct member *m)
{
    const char *from = at;

    while (at < end && *at != ',' && *at != '}' && *at != ' ' && *at != '\t')
        at++;
    m->text = from;
    m->bytes = (size_t)(at - from);
    if (m->bytes == 4 && memcmp(from, "true", 4) == 0) {
        m->seen = HR_SEEN_BOOL;
    } else if (m->bytes == 5 && memcmp(from, "false", 5) == 0) {
        m->seen = HR_SEEN_BOOL;
    } else if (m->bytes == 4 && memcmp(from, "null", 4) == 0) {
        m->seen = HR_SEEN_MISSING;
        m->bytes = 0;
    } else {
        m->seen = hr__number_kind(from, m->bytes);
        /* 18 digits fit an int64 */
        if (m->seen == 0 || !is_json_number(from, m->bytes) ||
            (m->seen == HR_SEEN_INT && m->bytes > 18))
            return NULL;
    }
    return at;
}

#define QUICK_MEMBERS 64

/* Finds the members of a flat object; 0 for all that needs the other parser, errors
 * included. */
static size_t quick_members(const struct json_line *l, struct member *members)
{
    const char *at = skip_blanks(l->begin, l->end), *end = l->end;
    size_t count = 0;

    if (*at != '{')
        return 0;
    do {
        struct member *m = &members[count];

        if (count++ == QUICK_MEMBERS)
            return 0;
        at = skip_blanks(at + 1, end);
        m->column = (int)(at - l->begin) + 1;
        at = plain_string(at, end, &m->key, &m->key_bytes);
        if (at == NULL || (at = skip_blanks(at, end)) == end || *at != ':')
            return 0;
        for (size_t i = 0; i + 1 < count; i++) {
            if (members[i].key_bytes == m->key_bytes &&
                memcmp(members[i].key, m->key, m->key_bytes) == 0)
                return 0;
        }
        at = skip_blanks(at + 1, end);
        m->seen = HR_SEEN_TEXT;
        at = at < end && *at == '"' ? plain_string(at, end, &m->text, &m->bytes)
                                    : plain_word(at, end, m);
        if (at == NULL)
            return 0;
        at = skip_blanks(at, end);
    } while (at < end && *at == ',');
    return at < end && *at == '}' && skip_blanks(at + 1, end) == end ? count : 0;
}

/* ---- the other one ---- */

static enum hr_err not_an_object(const struct json_line *l, const struct hr_error *why)
{
    const char *words = why != NULL ? strstr(why->message, ": ") : NULL;

    return hr__fail_in(l->error, HR_ERR_FORMAT, l->table->path, l->line,
                       why != NULL ? why->column : 0, "no JSON object%s",
                       words != NULL ? words : "");
}

static enum hr_err put_value(struct json_line *l, const struct hr_doc_pair *pair)
{
    const struct hr_doc *value = pair->value;
    struct member m = {
        .key = pair->key, .key_bytes = strlen(pair->key), .column = pair->column};
    struct hr_str number;
    enum hr_err err;

    hr__str_init(&number);
    switch (value->kind) {
    case HR_DOC_STRING:
        m.seen = memchr(value->as.string.text, '\0', value->as.string.length) != NULL
                     ? HR_SEEN_OTHER
                     : HR_SEEN_TEXT;
        m.text = value->as.string.text;
        m.bytes = value->as.string.length;
        break;
    case HR_DOC_INT:
        m.seen = HR_SEEN_INT;
        hr__str_addf(&number, "%" PRId64, value->as.integer);
        break;
    case HR_DOC_DOUBLE:
        m.seen = HR_SEEN_FLOAT;
        if (isinf(value->as.number)) /* as written: too large for a double */
            hr__str_add(&number, value->as.number > 0 ? "1e999" : "-1e999");
        else
            hr__str_add_double(&number, value->as.number);
        break;
    case HR_DOC_BOOL:
        m.seen = HR_SEEN_BOOL;
        hr__str_add(&number, value->as.boolean ? "true" : "false");
        break;
    case HR_DOC_NULL:
        m.seen = HR_SEEN_MISSING;
        break;
    default:
        m.seen = HR_SEEN_OTHER;
    }
    if (m.text == NULL) {
        m.text = hr__str_text(&number);
        m.bytes = number.length;
    }
    err = hr__str_ok(&number) ? put(l, &m) : no_memory(l);
    hr__str_finish(&number);
    return err;
}

static enum hr_err read_slowly(struct json_line *l)
{
    struct hr_error error = {0};
    struct hr_doc *doc = NULL;
    enum hr_err err =
        hr__doc_parse(l->begin, (size_t)(l->end - l->begin), "line.json", &doc, &error);

    if (err == HR_ERR_MEMORY)
        return no_memory(l);
    if (err != HR_OK)
        return not_an_object(l, &error);
    if (doc->kind != HR_DOC_MAP)
        err = not_an_object(l, NULL);
    for (size_t i = 0; err == HR_OK && i < doc->as.map.count; i++)
        err = put_value(l, &doc->as.map.pairs[i]);
    hr__doc_destroy(doc);
    return err;
}

static enum hr_err read_line(struct json_line *l, struct member *members)
{
    size_t count = quick_members(l, members);
    enum hr_err err = HR_OK;

    if (!hr__table_add_row(l->table, l->line))
        return no_memory(l);
    l->next = 0;
    if (count == 0)
        err = read_slowly(l);
    for (size_t i = 0; err == HR_OK && i < count; i++)
        err = put(l, &members[i]);
    if (err == HR_OK && !hr__table_end_row(l->table))
        err = no_memory(l);
    return err;
}

enum hr_err hr__table_read_json(struct hr_table *table, const char *text, size_t bytes,
                                struct hr_error *error)
{
    struct json_line l = {.table = table, .error = error};
    struct member members[QUICK_MEMBERS];
    const char *end = text + bytes;

    table->header = true;
    for (l.line = 1; text < end; l.line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));

        l.begin = text;
        l.end = stop != NULL ? stop : end;
        text = stop != NULL ? stop + 1 : end;
        if (skip_blanks(l.begin, l.end) < l.end)
            HR_TRY(read_line(&l, members));
    }
    return HR_OK;
}
