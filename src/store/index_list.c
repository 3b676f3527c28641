/*
 * Lists of files and labels: CSV (RFC 4180) and JSON lines.
 *
 * A list is read in one pass into the paths' bytes and one label each. Labels that are
 * all whole numbers stay what they are; otherwise they are class names, and a label is
 * the rank of its name. Class names are found by a hash table that lives while reading.
 * JSON lines without escapes are read directly, others by core/doc.
 */
#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"
#include "core/file.h"
#include "store/index_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_BYTES_MAX ((size_t)16 << 30)
#define COLUMNS_MAX 64

struct span {
    const char *text;
    size_t bytes;
};

struct class_name {
    size_t at, bytes; /* in class_text */
    uint32_t rank;
};

struct reading {
    const char *path; /* for messages */
    int line;         /* where the record began */
    struct hr_error *error;
    const char *at, *end;
    /* what was read */
    struct hr_index_bytes pool;
    uint64_t *offset;
    size_t count, offset_room;
    int64_t *labels; /* number, or class while names are collected */
    size_t label_room;
    bool labelled, texts, numbers;
    struct hr_index_bytes class_text;
    struct class_name *classes;
    size_t class_count, class_room;
    uint32_t *table; /* class + 1 by hash; power of two */
    size_t table_size;
    struct hr_index_bytes field; /* of the record being read, unquoted */
};

static enum hr_err wrong(struct reading *r, const char *what)
{
    if (r->error != NULL) {
        r->error->line = r->line;
        r->error->column = 0;
        strncpy(r->error->file, r->path, sizeof r->error->file - 1);
        r->error->file[sizeof r->error->file - 1] = '\0';
    }
    return hr__fail(r->error, HR_ERR_FORMAT, "%s:%d: %s", r->path, r->line, what);
}

static enum hr_err no_memory(struct reading *r)
{
    return hr__fail(r->error, HR_ERR_MEMORY, "out of memory while reading %s", r->path);
}

static bool add_bytes(struct hr_index_bytes *to, const void *bytes, size_t count)
{
    if (!hr__index_room(&to->data, to->bytes, &to->room, count, 1))
        return false;
    if (count > 0)
        memcpy(to->data + to->bytes, bytes, count);
    to->bytes += count;
    return true;
}

static bool as_number(struct span text, int64_t *ret_number)
{
    size_t i = text.bytes > 0 && text.text[0] == '-';
    uint64_t value = 0;
    bool negative = i == 1;

    if (i == text.bytes || text.bytes - i > 19)
        return false;
    for (; i < text.bytes; i++) {
        if (text.text[i] < '0' || text.text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text.text[i] - '0');
    }
    if (value > INT64_MAX)
        return false;
    *ret_number = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool grow_table(struct reading *r)
{
    size_t size = r->table_size == 0 ? 1024 : r->table_size * 2;
    uint32_t *table = hr__calloc(size, sizeof *table);

    if (table == NULL)
        return false;
    for (size_t i = 0; i < r->class_count; i++) {
        const struct class_name *name = &r->classes[i];
        uint64_t slot = hr__hash64(r->class_text.data + name->at, name->bytes, 0);

        while (table[slot & (size - 1)] != 0)
            slot++;
        table[slot & (size - 1)] = (uint32_t)i + 1;
    }
    hr__free(r->table);
    r->table = table;
    r->table_size = size;
    return true;
}

/* The number of class `text`, made if not yet known; -1 when out of memory. */
static int64_t class_of(struct reading *r, struct span text)
{
    uint64_t slot = hr__hash64(text.text, text.bytes, 0);

    if (r->class_count * 2 >= r->table_size && !grow_table(r))
        return -1;
    for (;; slot++) {
        uint32_t *entry = &r->table[slot & (r->table_size - 1)];

        if (*entry != 0) {
            const struct class_name *name = &r->classes[*entry - 1];

            if (name->bytes == text.bytes &&
                memcmp(r->class_text.data + name->at, text.text, text.bytes) == 0)
                return *entry - 1;
            continue;
        }
        if (r->class_count >= INT32_MAX ||
            !hr__index_room(&r->classes, r->class_count, &r->class_room, 1,
                            sizeof *r->classes) ||
            !add_bytes(&r->class_text, text.text, text.bytes))
            return -1;
        r->classes[r->class_count] =
            (struct class_name){r->class_text.bytes - text.bytes, text.bytes, 0};
        *entry = (uint32_t)++r->class_count;
        return (int64_t)r->class_count - 1;
    }
}

static enum hr_err add_label(struct reading *r, int64_t label)
{
    if (!hr__index_room(&r->labels, r->count, &r->label_room, 1, sizeof *r->labels))
        return no_memory(r);
    r->labels[r->count] = label;
    return HR_OK;
}

static enum hr_err add_path(struct reading *r, struct span path)
{
    if (path.bytes == 0)
        return wrong(r, "the path is empty");
    if (path.bytes >= HR_INDEX_PATH_MAX)
        return wrong(r, "the path is too long");
    if (memchr(path.text, '\0', path.bytes) != NULL)
        return wrong(r, "the path holds a zero byte");
    if (!hr__index_room(&r->offset, r->count, &r->offset_room, 2, sizeof *r->offset) ||
        !add_bytes(&r->pool, path.text, path.bytes))
        return no_memory(r);
    r->offset[r->count++] = r->pool.bytes - path.bytes;
    r->offset[r->count] = r->pool.bytes;
    return HR_OK;
}

/* A record's path and label. Whether labels are numbers is known only at the end of a
 * CSV file, so each text becomes a class until then. */
static enum hr_err
add_record(struct reading *r, struct span path, struct span label, bool has_label)
{
    int64_t class;

    if (r->count > 0 && has_label != r->labelled)
        return wrong(r, has_label ? "has a label, the records before have none"
                                  : "has no label, the records before have one");
    if (has_label && label.bytes == 0)
        return wrong(r, "the label is empty");
    if (has_label && memchr(label.text, '\0', label.bytes) != NULL)
        return wrong(r, "the label holds a zero byte");
    r->labelled = has_label;
    if (has_label) {
        class = class_of(r, label);
        if (class < 0)
            return no_memory(r);
        HR_TRY(add_label(r, class));
    }
    return add_path(r, path);
}

/* ---- CSV ---- */

struct row {
    struct {
        size_t at, bytes;
    } fields[COLUMNS_MAX];
    int count;
};

static enum hr_err quoted_field(struct reading *r, int *line)
{
    r->at++;
    for (;;) {
        const char *quote = memchr(r->at, '"', (size_t)(r->end - r->at));

        if (quote == NULL)
            return wrong(r, "a quote is not closed");
        for (const char *c = r->at; c < quote; c++)
            *line += *c == '\n';
        if (!add_bytes(&r->field, r->at, (size_t)(quote - r->at)))
            return no_memory(r);
        r->at = quote + 1;
        if (r->at == r->end || *r->at != '"')
            return HR_OK;
        if (!add_bytes(&r->field, "\"", 1))
            return no_memory(r);
        r->at++;
    }
}

static bool at_line_end(const struct reading *r)
{
    return r->at == r->end || *r->at == '\n' ||
           (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'));
}

/* One record; its fields lie in r->field. */
static enum hr_err read_row(struct reading *r, struct row *row, int *line)
{
    row->count = 0;
    r->field.bytes = 0;
    for (;;) {
        size_t from = r->field.bytes;
        const char *begin = r->at;

        if (row->count == COLUMNS_MAX)
            return wrong(r, "has too many columns");
        if (r->at < r->end && *r->at == '"') {
            HR_TRY(quoted_field(r, line));
            if (!at_line_end(r) && *r->at != ',')
                return wrong(r, "something follows a closing quote");
        } else {
            while (!at_line_end(r) && *r->at != ',')
                r->at++;
            if (memchr(begin, '"', (size_t)(r->at - begin)) != NULL)
                return wrong(r, "a quote stands inside a field without quotes");
            if (!add_bytes(&r->field, begin, (size_t)(r->at - begin)))
                return no_memory(r);
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

static struct span field_of(const struct reading *r, const struct row *row, int column)
{
    if (row->fields[column].bytes == 0)
        return (struct span){"", 0};
    return (struct span){r->field.data + row->fields[column].at,
                         row->fields[column].bytes};
}

static int column_of(const struct reading *r, const struct row *row, const char *name)
{
    for (int i = 0; i < row->count; i++) {
        struct span field = field_of(r, row, i);

        if (field.bytes == strlen(name) &&
            strncasecmp(field.text, name, field.bytes) == 0)
            return i;
    }
    return -1;
}

static enum hr_err read_csv(struct reading *r)
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
                return wrong(r, "more than path,label, and no header to tell which");
            label_column = columns - 1 > 0 ? 1 : -1;
        }
        if (row.count != columns)
            return wrong(r, "another number of columns than before");
        HR_TRY(add_record(r, field_of(r, &row, path_column),
                          label_column < 0 ? (struct span){NULL, 0}
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
    struct span path, label;
    bool has_path, has_label, label_is_text;
};

/* A string without escapes and control bytes, at `at` ('"'); NULL when it is none. */
static const char *plain_string(const char *at, const char *end, struct span *ret_text)
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
    *ret_text = (struct span){from, (size_t)(at - from)};
    return at + 1;
}

static const char *plain_integer(const char *at, const char *end, struct span *ret_text)
{
    const char *from = at, *digits;
    int64_t number;

    at += at < end && *at == '-';
    digits = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    *ret_text = (struct span){from, (size_t)(at - from)};
    if (!as_number(*ret_text, &number) || (*digits == '0' && at - digits > 1))
        return NULL;
    return at;
}

/* {"path": "...", "label": ...} in either order and nothing else; false for anything
 * that needs the real parser, also for what is wrong. */
static bool quick_record(const char *at, const char *end, struct json_record *record)
{
    struct span key, value;

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

static enum hr_err add_json(struct reading *r, const struct json_record *record)
{
    if (!record->has_path)
        return wrong(r, "has no \"path\" that is a string");
    if (record->has_label) {
        if (record->label_is_text ? r->numbers : r->texts)
            return wrong(r, record->label_is_text
                                ? "the label is a text, the ones before are numbers"
                                : "the label is a number, the ones before are texts");
        r->texts |= record->label_is_text;
        r->numbers |= !record->label_is_text;
    }
    return add_record(r, record->path, record->label, record->has_label);
}

static enum hr_err slow_record(struct reading *r, const char *at, const char *end)
{
    struct json_record record = {.has_path = false};
    const struct hr_doc *path, *label;
    struct hr_error error = {0};
    struct hr_doc *doc = NULL;
    char number[24], what[sizeof error.message + 16];
    enum hr_err err;

    err = hr__doc_parse(at, (size_t)(end - at), "line.json", &doc, &error);
    if (err == HR_ERR_MEMORY)
        return no_memory(r);
    if (err != HR_OK || doc->kind != HR_DOC_MAP) {
        snprintf(what, sizeof what, "no JSON object%s%s", err != HR_OK ? ": " : "",
                 err != HR_OK ? error.message : "");
        hr__doc_destroy(err == HR_OK ? doc : NULL);
        return wrong(r, what);
    }
    path = hr__doc_get(doc, "path");
    label = hr__doc_get(doc, "label");
    if (path != NULL && path->kind == HR_DOC_STRING) {
        record.path = (struct span){path->as.string.text, path->as.string.length};
        record.has_path = true;
    }
    if (label != NULL && label->kind == HR_DOC_STRING) {
        record.label = (struct span){label->as.string.text, label->as.string.length};
        record.has_label = record.label_is_text = true;
    } else if (label != NULL && label->kind == HR_DOC_INT) {
        snprintf(number, sizeof number, "%" PRId64, label->as.integer);
        record.label = (struct span){number, strlen(number)};
        record.has_label = true;
    }
    if (label != NULL && !record.has_label)
        err = wrong(r, "the label is neither text nor whole number");
    else
        err = add_json(r, &record);
    hr__doc_destroy(doc);
    return err;
}

static enum hr_err read_jsonl(struct reading *r)
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

/* ---- labels, once all are known ---- */

static bool all_are_numbers(const struct reading *r)
{
    int64_t number;

    for (size_t i = 0; i < r->class_count; i++) {
        if (!as_number(
                (struct span){r->class_text.data + r->classes[i].at, r->classes[i].bytes},
                &number))
            return false;
    }
    return true;
}

static enum hr_err numbers_from_names(struct reading *r)
{
    int64_t *numbers = hr__malloc(r->class_count * sizeof *numbers);

    if (numbers == NULL)
        return no_memory(r);
    for (size_t i = 0; i < r->class_count; i++)
        (void)as_number(
            (struct span){r->class_text.data + r->classes[i].at, r->classes[i].bytes},
            &numbers[i]);
    for (size_t i = 0; i < r->count; i++)
        r->labels[i] = numbers[r->labels[i]];
    hr__free(numbers);
    return HR_OK;
}

struct ranked {
    char *text;
    uint32_t class;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return strcmp(x->text, y->text);
}

/* Class names in order, in one block behind their pointers; labels become ranks. */
static enum hr_err rank_names(struct reading *r, struct hr_index_list *list)
{
    size_t count = r->class_count;
    size_t bytes = count * sizeof *list->classes + r->class_text.bytes + count;
    struct ranked *ranked = hr__malloc(count * sizeof *ranked);
    char **classes = hr__malloc(bytes);
    char *text;

    if (ranked == NULL || classes == NULL) {
        hr__free(ranked);
        hr__free(classes);
        return no_memory(r);
    }
    text = (char *)(classes + count);
    for (size_t i = 0; i < count; i++) {
        memcpy(text, r->class_text.data + r->classes[i].at, r->classes[i].bytes);
        text[r->classes[i].bytes] = '\0';
        ranked[i] = (struct ranked){text, (uint32_t)i};
        text += r->classes[i].bytes + 1;
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < count; i++) {
        classes[i] = ranked[i].text;
        r->classes[ranked[i].class].rank = (uint32_t)i;
    }
    for (size_t i = 0; i < r->count; i++)
        r->labels[i] = r->classes[r->labels[i]].rank;
    hr__free(ranked);
    list->classes = classes;
    list->class_count = count;
    list->class_bytes = bytes;
    return HR_OK;
}

static bool is_jsonl(const char *path, const char *text, size_t bytes)
{
    size_t length = strlen(path);

    return (length > 6 && strcasecmp(path + length - 6, ".jsonl") == 0) ||
           (bytes > 0 && text[0] == '{');
}

static void shrink(void *array, size_t bytes)
{
    void *old, *small;

    memcpy(&old, array, sizeof old);
    small = hr__realloc(old, bytes);
    if (small != NULL)
        memcpy(array, &small, sizeof small);
}

static enum hr_err hand_over(struct reading *r, struct hr_index_list *list)
{
    if (r->labelled && r->count > 0) {
        if (!r->texts && all_are_numbers(r))
            HR_TRY(numbers_from_names(r));
        else
            HR_TRY(rank_names(r, list));
        shrink(&r->labels, r->count * sizeof *r->labels);
        list->labels = r->labels;
        r->labels = NULL;
    }
    if (r->count > 0) {
        shrink(&r->pool.data, r->pool.bytes);
        shrink(&r->offset, (r->count + 1) * sizeof *r->offset);
    }
    list->pool = r->pool.data;
    list->offset = r->offset;
    list->count = r->count;
    r->pool.data = NULL;
    r->offset = NULL;
    return HR_OK;
}

enum hr_err hr__index_list_parse(const char *text, size_t bytes, const char *path,
                                 struct hr_index_list *ret_list, struct hr_error *reterr)
{
    struct hr_index_list list = {0};
    struct reading r = {.path = path, .error = reterr, .end = text + bytes};
    enum hr_err err;

    r.at = text + (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    err = is_jsonl(path, r.at, (size_t)(r.end - r.at)) ? read_jsonl(&r) : read_csv(&r);
    if (err == HR_OK)
        err = hand_over(&r, &list);
    if (err == HR_OK)
        *ret_list = list;
    hr__free(r.pool.data);
    hr__free(r.offset);
    hr__free(r.labels);
    hr__free(r.class_text.data);
    hr__free(r.classes);
    hr__free(r.table);
    hr__free(r.field.data);
    return err;
}

enum hr_err hr__index_list_read(const char *path, struct hr_index_list *ret_list,
                                struct hr_error *reterr)
{
    size_t bytes;
    char *text;
    enum hr_err err;

    HR_TRY(hr__file_read(path, FILE_BYTES_MAX, &text, &bytes, reterr));
    err = hr__index_list_parse(text, bytes, path, ret_list, reterr);
    hr__free(text);
    return err;
}

void hr__index_list_finish(struct hr_index_list *list)
{
    hr__free(list->offset);
    hr__free(list->pool);
    hr__free(list->labels);
    hr__free(list->classes);
    memset(list, 0, sizeof *list);
}
