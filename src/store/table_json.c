/*
 * store/table_json.c - JSON lines as a table: an object a line, its keys are columns.
 *
 * A flat object is parsed here (0.1 us a member), any other by core/doc, which also
 * reports what is wrong with a line.
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
    int line;
    int next;   /* the column that the next member probably has */
    bool begun; /* its row */
};

static enum hr_err no_memory(const struct json_line *l)
{
    return hr__fail(l->error, HR_ERR_MEMORY, "out of memory while reading %s",
                    l->table->path);
}

static bool is_named(const struct hr_table_column *column, const struct hr_json_member *m)
{
    return strlen(column->name) == m->key_bytes &&
           memcmp(column->name, m->key, m->key_bytes) == 0;
}

/* The column of the member, made if it is new; -1 when out of memory. */
static int column_of(struct json_line *l, const struct hr_json_member *m)
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

/* hr_json_member_fn */
static enum hr_err put(void *user, const struct hr_json_member *m)
{
    struct json_line *l = user;
    int column;

    if (!l->begun && !hr__table_add_row(l->table, l->line))
        return no_memory(l);
    l->begun = true;
    column = column_of(l, m);
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

/* Parses a string without control bytes at `at`; NULL if it is none. *ret_escaped: there
 * are escapes in it. */
static const char *quick_string(const char *at, const char *end, const char **ret_text,
                                size_t *ret_bytes, bool *ret_escaped)
{
    const char *from = at + 1;

    *ret_escaped = false;
    if (at == end || *at != '"')
        return NULL;
    for (at = from; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < 32)
            return NULL;
        if (*at != '\\')
            continue;
        *ret_escaped = true;
        if (++at == end)
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

static const char *plain_word(const char *at, const char *end, struct hr_json_member *m)
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
        if (m->seen == 0 || !is_json_number(from, m->bytes))
            return NULL;
    }
    return at;
}

#define QUICK_MEMBERS 64

/* Finds the members of a flat object; 0 for all that needs the other parser, errors
 * included. */
static size_t quick_members(const char *begin, const char *end,
                            struct hr_json_member *members, bool *escaped)
{
    const char *at = skip_blanks(begin, end);
    size_t count = 0;

    if (at == end || *at != '{')
        return 0;
    do {
        struct hr_json_member *m = &members[count];

        if (count++ == QUICK_MEMBERS)
            return 0;
        at = skip_blanks(at + 1, end);
        m->column = (int)(at - begin) + 1;
        at = quick_string(at, end, &m->key, &m->key_bytes, &escaped[count - 1]);
        if (at == NULL || escaped[count - 1] || (at = skip_blanks(at, end)) == end ||
            *at != ':')
            return 0;
        for (size_t i = 0; i + 1 < count; i++) {
            if (members[i].key_bytes == m->key_bytes &&
                memcmp(members[i].key, m->key, m->key_bytes) == 0)
                return 0;
        }
        at = skip_blanks(at + 1, end);
        m->seen = HR_SEEN_TEXT;
        at = at < end && *at == '"'
                 ? quick_string(at, end, &m->text, &m->bytes, &escaped[count - 1])
                 : plain_word(at, end, m);
        if (at == NULL)
            return 0;
        at = skip_blanks(at, end);
    } while (at < end && *at == ',');
    return at < end && *at == '}' && skip_blanks(at + 1, end) == end ? count : 0;
}

/* ---- the other one ---- */

static enum hr_err no_memory_for_line(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* The parser's columns count characters, these bytes. */
static int byte_column(const char *line, size_t bytes, int column)
{
    size_t at = 0;

    while (at < bytes && column > 1) {
        at++;
        column -= at == bytes || ((unsigned char)line[at] & 0xC0) != 0x80;
    }
    return (int)at + 1;
}

static enum hr_err not_an_object(const struct hr_error *why, struct hr_error *error)
{
    const char *words = why != NULL ? strstr(why->message, ": ") : NULL;

    if (error != NULL)
        error->column = why != NULL ? why->column : 0;
    return hr__fail(error, HR_ERR_FORMAT, "no JSON object%s", words != NULL ? words : "");
}

/* Whether a number that the parser made a double is written as a whole one: it does not
 * fit an int64, and stays as it is written, so that no digit is lost. */
static bool is_large_int(const char *text, size_t bytes, struct hr_json_member *m)
{
    size_t length = bytes > 0 && text[0] == '-';

    while (length < bytes && text[length] >= '0' && text[length] <= '9')
        length++;
    if (length < bytes && strchr(".eE", text[length]) != NULL)
        return false;
    m->seen = HR_SEEN_INT;
    m->text = text;
    m->bytes = length;
    return true;
}

/* What is not a string becomes text: as it was written, or as compact JSON. */
static void
print_value(const struct hr_doc *value, struct hr_json_member *m, struct hr_str *out)
{
    switch (value->kind) {
    case HR_DOC_INT:
        m->seen = HR_SEEN_INT;
        hr__str_addf(out, "%" PRId64, value->as.integer);
        break;
    case HR_DOC_DOUBLE:
        m->seen = HR_SEEN_FLOAT;
        if (isinf(value->as.number)) /* as written: too large for a double */
            hr__str_add(out, value->as.number > 0 ? "1e999" : "-1e999");
        else
            hr__str_add_double(out, value->as.number);
        break;
    case HR_DOC_BOOL:
        m->seen = HR_SEEN_BOOL;
        hr__str_add(out, value->as.boolean ? "true" : "false");
        break;
    case HR_DOC_NULL:
        m->seen = HR_SEEN_MISSING;
        break;
    default:
        m->seen = HR_SEEN_NESTED;
        hr__doc_print_json(value, false, out);
    }
    m->text = hr__str_text(out);
    m->bytes = out->length;
}

static enum hr_err
give_value(const struct hr_doc_pair *pair, const char *line, size_t bytes,
           hr_json_member_fn *each, void *user, struct hr_error *error)
{
    const struct hr_doc *value = pair->value;
    size_t at = (size_t)byte_column(line, bytes, value->column) - 1;
    int column = byte_column(line, bytes, pair->column);
    struct hr_json_member m = {
        .key = pair->key, .key_bytes = strlen(pair->key), .column = column};
    struct hr_str text;
    enum hr_err err;

    hr__str_init(&text);
    if (value->kind == HR_DOC_STRING) {
        m.text = value->as.string.text;
        m.bytes = value->as.string.length;
        m.seen = memchr(m.text, '\0', m.bytes) != NULL ? HR_SEEN_OTHER : HR_SEEN_TEXT;
    } else if (value->kind != HR_DOC_DOUBLE || !is_large_int(line + at, bytes - at, &m)) {
        print_value(value, &m, &text);
    }
    err = hr__str_ok(&text) ? each(user, &m) : no_memory_for_line(error);
    hr__str_finish(&text);
    return err;
}

static enum hr_err read_slowly(const char *line, size_t bytes, hr_json_member_fn *each,
                               void *user, struct hr_error *error)
{
    struct hr_error why = {0};
    struct hr_doc *doc = NULL;
    enum hr_err err = hr__doc_parse(line, bytes, "line.json", &doc, &why);

    if (err == HR_ERR_MEMORY)
        return no_memory_for_line(error);
    if (err != HR_OK) {
        why.column = byte_column(line, bytes, why.column);
        return not_an_object(&why, error);
    }
    if (doc->kind != HR_DOC_MAP)
        err = not_an_object(NULL, error);
    for (size_t i = 0; err == HR_OK && i < doc->as.map.count; i++)
        err = give_value(&doc->as.map.pairs[i], line, bytes, each, user, error);
    hr__doc_destroy(doc);
    return err;
}

/* Replaces texts with escapes by what they mean, which is in *out. False: something is
 * wrong with one. */
static bool unescape(struct hr_json_member *members, const bool *escaped, size_t count,
                     struct hr_str *out)
{
    const char *from;

    for (size_t i = 0; i < count; i++) {
        size_t before = out->length;

        if (!escaped[i])
            continue;
        if (!hr__doc_unescape(members[i].text, members[i].bytes, out))
            return false;
        members[i].bytes = out->length - before;
    }
    from = hr__str_text(out);
    for (size_t i = 0; i < count; i++) {
        if (!escaped[i])
            continue;
        members[i].text = from;
        from += members[i].bytes;
        if (memchr(members[i].text, '\0', members[i].bytes) != NULL)
            members[i].seen = HR_SEEN_OTHER;
    }
    return true;
}

enum hr_err hr__json_members(const char *line, size_t bytes, hr_json_member_fn *each,
                             void *user, struct hr_error *reterr)
{
    struct hr_json_member members[QUICK_MEMBERS];
    bool escaped[QUICK_MEMBERS];
    size_t count = quick_members(line, line + bytes, members, escaped);
    enum hr_err err = HR_OK;
    struct hr_str texts;

    hr__str_init(&texts);
    if (count == 0 || !unescape(members, escaped, count, &texts))
        err = read_slowly(line, bytes, each, user, reterr);
    else
        for (size_t i = 0; err == HR_OK && i < count; i++)
            err = each(user, &members[i]);
    hr__str_finish(&texts);
    return err;
}

/* ---- tables ---- */

enum hr_err hr__table_add_json(struct hr_table *table, int line, const char *text,
                               size_t bytes, struct hr_error *reterr)
{
    struct json_line l = {.table = table, .error = reterr, .line = line};

    HR_TRY(hr__json_members(text, bytes, put, &l, reterr));
    if ((!l.begun && !hr__table_add_row(table, line)) || !hr__table_end_row(table))
        return no_memory(&l);
    return HR_OK;
}

static enum hr_err read_line(struct hr_table *table, int line, const char *text,
                             size_t bytes, struct hr_error *error)
{
    struct hr_error why = {0};
    enum hr_err err = hr__table_add_json(table, line, text, bytes, &why);

    if (err == HR_ERR_FORMAT)
        return hr__fail_in(error, err, table->path, line, why.column, "%s", why.message);
    return err == HR_OK ? HR_OK : hr__fail(error, err, "%s", why.message);
}

enum hr_err hr__table_read_json(struct hr_table *table, const char *text, size_t bytes,
                                struct hr_error *error)
{
    const char *end = text + bytes;

    table->header = true;
    for (int line = 1; text < end; line++) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        const char *stop = feed != NULL ? feed : end;

        if (skip_blanks(text, stop) < stop)
            HR_TRY(read_line(table, line, text, (size_t)(stop - text), error));
        text = feed != NULL ? feed + 1 : end;
    }
    return HR_OK;
}
