/*
 * core/doc.c - building, querying and comparing the tree. The readers are doc_json.c and
 * doc_yaml.c, the printers doc_print.c.
 *
 * Arrays of items and pairs grow in powers of two, so the capacity follows from the count
 * and needs no field in the struct.
 */
#include "core/doc.h"
#include "core/alloc.h"
#include "core/doc_internal.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hr_doc *hr__doc_new(enum hr_doc_kind kind)
{
    struct hr_doc *doc = hr__calloc(1, sizeof *doc);

    if (doc == NULL)
        return NULL;
    doc->kind = kind;
    if (kind == HR_DOC_STRING && hr__doc_set_string(doc, "", 0) != HR_OK) {
        hr__free(doc);
        return NULL;
    }
    return doc;
}

struct hr_doc *hr__doc_int(int64_t value)
{
    struct hr_doc *doc = hr__doc_new(HR_DOC_INT);

    if (doc != NULL)
        doc->as.integer = value;
    return doc;
}

struct hr_doc *hr__doc_double(double value)
{
    struct hr_doc *doc = hr__doc_new(HR_DOC_DOUBLE);

    if (doc != NULL)
        doc->as.number = value;
    return doc;
}

struct hr_doc *hr__doc_bool(bool value)
{
    struct hr_doc *doc = hr__doc_new(HR_DOC_BOOL);

    if (doc != NULL)
        doc->as.boolean = value;
    return doc;
}

struct hr_doc *hr__doc_string(const char *text)
{
    return hr__doc_string_n(text, strlen(text));
}

struct hr_doc *hr__doc_string_n(const char *text, size_t length)
{
    struct hr_doc *doc = hr__doc_new(HR_DOC_NULL);

    if (doc == NULL)
        return NULL;
    if (hr__doc_set_string(doc, text, length) != HR_OK) {
        hr__free(doc);
        return NULL;
    }
    return doc;
}

struct hr_doc *hr__doc_scalar(const char *text, size_t length)
{
    struct hr_doc *doc = hr__doc_new(HR_DOC_NULL);

    if (doc == NULL)
        return NULL;
    if (hr__doc_set_scalar(doc, text, length) != HR_OK) {
        hr__free(doc);
        return NULL;
    }
    return doc;
}

void hr__doc_destroy(struct hr_doc *doc)
{
    if (doc == NULL)
        return;
    if (doc->kind == HR_DOC_STRING)
        hr__free(doc->as.string.text);
    if (doc->kind == HR_DOC_LIST) {
        for (size_t i = 0; i < doc->as.list.count; i++)
            hr__doc_destroy(doc->as.list.items[i]);
        hr__free(doc->as.list.items);
    }
    if (doc->kind == HR_DOC_MAP) {
        for (size_t i = 0; i < doc->as.map.count; i++) {
            hr__free(doc->as.map.pairs[i].key);
            hr__doc_destroy(doc->as.map.pairs[i].value);
        }
        hr__free(doc->as.map.pairs);
    }
    hr__free(doc);
}

/* Reserves one more element in an array of `count`. */
static bool grow(void **array, size_t count, size_t element_bytes)
{
    size_t room = count == 0 ? 4 : 2 * count;
    void *grown;

    if (count != 0 && (count < 4 || (count & (count - 1)) != 0))
        return true;
    grown = hr__realloc(*array, room * element_bytes);
    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

enum hr_err hr__doc_append(struct hr_doc *list, struct hr_doc *value)
{
    void *items = list->as.list.items;

    if (value == NULL || !grow(&items, list->as.list.count, sizeof value)) {
        hr__doc_destroy(value);
        return HR_ERR_MEMORY;
    }
    list->as.list.items = items;
    list->as.list.items[list->as.list.count++] = value;
    return HR_OK;
}

enum hr_err hr__doc_push_pair(struct hr_doc *map, char *key, struct hr_doc *value,
                              struct hr_doc_mark mark)
{
    void *pairs = map->as.map.pairs;

    if (key == NULL || value == NULL ||
        !grow(&pairs, map->as.map.count, sizeof(struct hr_doc_pair))) {
        hr__free(key);
        hr__doc_destroy(value);
        return HR_ERR_MEMORY;
    }
    map->as.map.pairs = pairs;
    map->as.map.pairs[map->as.map.count++] =
        (struct hr_doc_pair){key, mark.line, mark.column, value};
    return HR_OK;
}

static struct hr_doc_pair *find(const struct hr_doc *map, const char *key)
{
    if (map == NULL || map->kind != HR_DOC_MAP)
        return NULL;
    for (size_t i = 0; i < map->as.map.count; i++) {
        if (strcmp(map->as.map.pairs[i].key, key) == 0)
            return &map->as.map.pairs[i];
    }
    return NULL;
}

enum hr_err hr__doc_set(struct hr_doc *map, const char *key, struct hr_doc *value)
{
    struct hr_doc_pair *pair = find(map, key);

    if (pair == NULL || value == NULL)
        return hr__doc_push_pair(map, value != NULL ? hr__strdup(key) : NULL, value,
                                 (struct hr_doc_mark){0, 0});
    hr__doc_destroy(pair->value);
    pair->value = value;
    return HR_OK;
}

struct hr_doc *hr__doc_get(const struct hr_doc *map, const char *key)
{
    struct hr_doc_pair *pair = find(map, key);

    return pair != NULL ? pair->value : NULL;
}

const char *hr__doc_get_string(const struct hr_doc *map, const char *key)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    return value != NULL && value->kind == HR_DOC_STRING ? value->as.string.text : NULL;
}

const char *hr__doc_kind_name(enum hr_doc_kind kind)
{
    static const char *const names[] = {
        [HR_DOC_NULL] = "null",     [HR_DOC_BOOL] = "boolean",  [HR_DOC_INT] = "integer",
        [HR_DOC_DOUBLE] = "number", [HR_DOC_STRING] = "string", [HR_DOC_LIST] = "list",
        [HR_DOC_MAP] = "map",
    };

    return (unsigned)kind <= HR_DOC_MAP ? names[kind] : "unknown";
}

static bool copy_inside(struct hr_doc *to, const struct hr_doc *from)
{
    if (from->kind == HR_DOC_STRING)
        return hr__doc_set_string(to, from->as.string.text, from->as.string.length) ==
               HR_OK;
    to->kind = from->kind;
    if (from->kind == HR_DOC_LIST) {
        for (size_t i = 0; i < from->as.list.count; i++) {
            if (hr__doc_append(to, hr__doc_copy(from->as.list.items[i])) != HR_OK)
                return false;
        }
    } else if (from->kind == HR_DOC_MAP) {
        for (size_t i = 0; i < from->as.map.count; i++) {
            const struct hr_doc_pair *pair = &from->as.map.pairs[i];
            struct hr_doc_mark mark = {pair->line, pair->column};

            if (hr__doc_push_pair(to, hr__strdup(pair->key), hr__doc_copy(pair->value),
                                  mark) != HR_OK)
                return false;
        }
    } else {
        to->as = from->as;
    }
    return true;
}

struct hr_doc *hr__doc_copy(const struct hr_doc *doc)
{
    struct hr_doc *copy = hr__doc_new(HR_DOC_NULL);

    if (copy == NULL)
        return NULL;
    copy->line = doc->line;
    copy->column = doc->column;
    copy->quoted = doc->quoted;
    if (!copy_inside(copy, doc)) {
        hr__doc_destroy(copy);
        return NULL;
    }
    return copy;
}

static bool int_equals_double(int64_t integer, double number)
{
    return number >= -0x1p63 && number < 0x1p63 && (double)(int64_t)number == number &&
           (int64_t)number == integer;
}

static bool map_equal(const struct hr_doc *a, const struct hr_doc *b)
{
    const struct hr_doc_pair **x = hr__doc_sorted(a), **y = hr__doc_sorted(b);
    bool equal = a->as.map.count == 0 || (x != NULL && y != NULL);

    for (size_t i = 0; equal && i < a->as.map.count; i++)
        equal =
            strcmp(x[i]->key, y[i]->key) == 0 && hr__doc_equal(x[i]->value, y[i]->value);
    hr__free(x);
    hr__free(y);
    return equal;
}

bool hr__doc_equal(const struct hr_doc *a, const struct hr_doc *b)
{
    if (a->kind == HR_DOC_INT && b->kind == HR_DOC_DOUBLE)
        return int_equals_double(a->as.integer, b->as.number);
    if (a->kind == HR_DOC_DOUBLE && b->kind == HR_DOC_INT)
        return int_equals_double(b->as.integer, a->as.number);
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case HR_DOC_NULL:
        return true;
    case HR_DOC_BOOL:
        return a->as.boolean == b->as.boolean;
    case HR_DOC_INT:
        return a->as.integer == b->as.integer;
    case HR_DOC_DOUBLE:
        return a->as.number == b->as.number ||
               (isnan(a->as.number) && isnan(b->as.number));
    case HR_DOC_STRING:
        return a->as.string.length == b->as.string.length &&
               memcmp(a->as.string.text, b->as.string.text, a->as.string.length) == 0;
    case HR_DOC_LIST:
        if (a->as.list.count != b->as.list.count)
            return false;
        for (size_t i = 0; i < a->as.list.count; i++) {
            if (!hr__doc_equal(a->as.list.items[i], b->as.list.items[i]))
                return false;
        }
        return true;
    case HR_DOC_MAP:
        return a->as.map.count == b->as.map.count && map_equal(a, b);
    }
    return false;
}

static bool ends_in(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

enum hr_err hr__doc_parse(const char *text, size_t bytes, const char *name,
                          struct hr_doc **ret_doc, struct hr_error *reterr)
{
    struct hr_doc_reader reader = {.name = name != NULL ? name : "text", .error = reterr};

    if (bytes > HR_DOC_BYTES_MAX)
        return hr__doc_fail(&reader, HR_ERR_LIMIT, (struct hr_doc_mark){1, 1},
                            "the text is longer than %zu bytes", HR_DOC_BYTES_MAX);
    if (ends_in(reader.name, ".json") || (bytes > 0 && text[0] == '{'))
        return hr__doc_read_json(&reader, text, bytes, ret_doc);
    return hr__doc_read_yaml(&reader, text, bytes, ret_doc);
}

enum hr_err
hr__doc_parse_file(const char *path, struct hr_doc **ret_doc, struct hr_error *reterr)
{
    enum hr_err err;
    size_t bytes;
    char *text;

    HR_TRY(hr__file_read(path, HR_DOC_BYTES_MAX, &text, &bytes, reterr));
    err = hr__doc_parse(text, bytes, path, ret_doc, reterr);
    hr__free(text);
    return err;
}
