/*
 * core/doc_reader.c - shared by the JSON and YAML readers: limits, error positions,
 * scalars of the YAML 1.2 core schema, duplicate keys.
 */
#include "core/alloc.h"
#include "core/doc_internal.h"
#include "core/error.h"
#include "core/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum hr_err hr__doc_fail(struct hr_doc_reader *reader, enum hr_err code,
                         struct hr_doc_mark mark, const char *format, ...)
{
    struct hr_error *error = reader->error;
    char text[512];
    va_list args;

    if (error == NULL)
        return code;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error->line = mark.line;
    error->column = mark.column;
    snprintf(error->file, sizeof error->file, "%s", reader->name);
    return hr__fail(error, code, "%.200s:%d:%d: %s", reader->name, mark.line, mark.column,
                    text);
}

enum hr_err hr__doc_node(struct hr_doc_reader *reader, enum hr_doc_kind kind,
                         struct hr_doc_mark mark, struct hr_doc **ret_doc)
{
    struct hr_doc *doc;

    if (reader->nodes >= HR_DOC_NODES_MAX)
        return hr__doc_fail(reader, HR_ERR_LIMIT, mark, "more than %d values",
                            HR_DOC_NODES_MAX);
    doc = hr__doc_new(kind);
    if (doc == NULL)
        return hr__doc_fail(reader, HR_ERR_MEMORY, mark, "out of memory");
    doc->line = mark.line;
    doc->column = mark.column;
    reader->nodes++;
    *ret_doc = doc;
    return HR_OK;
}

enum hr_err hr__doc_enter(struct hr_doc_reader *reader, struct hr_doc_mark mark)
{
    if (reader->depth >= HR_DOC_DEPTH_MAX)
        return hr__doc_fail(reader, HR_ERR_LIMIT, mark, "nested deeper than %d levels",
                            HR_DOC_DEPTH_MAX);
    reader->depth++;
    return HR_OK;
}

static int compare_pairs(const void *a, const void *b)
{
    const struct hr_doc_pair *x = *(const struct hr_doc_pair *const *)a;
    const struct hr_doc_pair *y = *(const struct hr_doc_pair *const *)b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (x > y) - (x < y);
}

const struct hr_doc_pair **hr__doc_sorted(const struct hr_doc *map)
{
    size_t count = map->as.map.count;
    const struct hr_doc_pair **sorted;

    if (count == 0)
        return NULL;
    sorted = hr__malloc(count * sizeof *sorted);
    if (sorted == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &map->as.map.pairs[i];
    qsort(sorted, count, sizeof *sorted, compare_pairs);
    return sorted;
}

enum hr_err hr__doc_check_keys(struct hr_doc_reader *reader, const struct hr_doc *map)
{
    const struct hr_doc_pair **sorted;
    enum hr_err err = HR_OK;

    if (map->as.map.count < 2)
        return HR_OK;
    sorted = hr__doc_sorted(map);
    if (sorted == NULL)
        return hr__doc_fail(reader, HR_ERR_MEMORY,
                            (struct hr_doc_mark){map->line, map->column},
                            "out of memory");
    for (size_t i = 1; i < map->as.map.count && err == HR_OK; i++) {
        struct hr_doc_mark mark = {sorted[i]->line, sorted[i]->column};

        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            err = hr__doc_fail(reader, HR_ERR_FORMAT, mark,
                               "duplicate key \"%.100s\" (first at line %d)",
                               sorted[i]->key, sorted[i - 1]->line);
    }
    hr__free(sorted);
    return err;
}

enum hr_err hr__doc_set_string(struct hr_doc *doc, const char *text, size_t length)
{
    char *copy = hr__malloc(length + 1);

    if (copy == NULL)
        return HR_ERR_MEMORY;
    memcpy(copy, text, length);
    copy[length] = '\0';
    doc->kind = HR_DOC_STRING;
    doc->as.string.text = copy;
    doc->as.string.length = length;
    return HR_OK;
}

static bool is_word(const char *text, size_t length, const char *const words[3])
{
    for (int i = 0; i < 3; i++) {
        if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
            return true;
    }
    return false;
}

static bool read_word(struct hr_doc *doc, const char *text, size_t length)
{
    static const char *const nulls[3] = {"null", "Null", "NULL"};
    static const char *const trues[3] = {"true", "True", "TRUE"};
    static const char *const falses[3] = {"false", "False", "FALSE"};
    bool is_true = is_word(text, length, trues);

    if (length == 0 || (length == 1 && text[0] == '~') || is_word(text, length, nulls)) {
        doc->kind = HR_DOC_NULL;
        return true;
    }
    if (!is_true && !is_word(text, length, falses))
        return false;
    doc->kind = HR_DOC_BOOL;
    doc->as.boolean = is_true;
    return true;
}

/* Reads 0x1F and 0o17, unsigned; false if malformed or too large for int64. */
static bool read_based(struct hr_doc *doc, const char *text, size_t length)
{
    int64_t value = 0;
    int base;

    if (length < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'o'))
        return false;
    base = text[1] == 'x' ? 16 : 8;
    for (size_t i = 2; i < length; i++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *at = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
        int digit = at == NULL ? 99 : (int)(at - digits);

        digit = digit >= 16 && digit < 22 ? digit - 6 : digit;
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    doc->kind = HR_DOC_INT;
    doc->as.integer = value;
    return true;
}

/* Decimal integers; what is too large for int64 is read as a double later. */
static bool read_integer(struct hr_doc *doc, const char *text, size_t length)
{
    size_t start = length > 0 && (text[0] == '-' || text[0] == '+');
    int64_t value = 0;

    if (start == length)
        return false;
    for (size_t i = start; i < length; i++) {
        int digit = text[i] - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    /* Accumulated negative, so that INT64_MIN fits. */
    if (text[0] != '-' && __builtin_sub_overflow(0, value, &value))
        return false;
    doc->kind = HR_DOC_INT;
    doc->as.integer = value;
    return true;
}

static size_t skip_digits(const char *text, size_t at, size_t length)
{
    while (at < length && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_decimal(const char *text, size_t length)
{
    size_t at = length > 0 && (text[0] == '-' || text[0] == '+');
    size_t whole = skip_digits(text, at, length), after = whole;

    if (whole < length && text[whole] == '.')
        after = skip_digits(text, whole + 1, length);
    if (whole == at && after < whole + 2)
        return false;
    if (after == length)
        return true;
    if (text[after] != 'e' && text[after] != 'E')
        return false;
    at = after + 1;
    at += at < length && (text[at] == '-' || text[at] == '+');
    return at < length && skip_digits(text, at, length) == length;
}

static bool read_double(struct hr_doc *doc, const char *text, size_t length)
{
    static const char *const infinities[3] = {".inf", ".Inf", ".INF"};
    static const char *const nans[3] = {".nan", ".NaN", ".NAN"};
    size_t sign = length > 0 && (text[0] == '-' || text[0] == '+');
    double value;

    if (is_word(text + sign, length - sign, infinities))
        value = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (is_word(text, length, nans))
        value = (double)NAN;
    else if (!is_decimal(text, length) || !hr__double_parse(text, length, &value))
        return false;
    doc->kind = HR_DOC_DOUBLE;
    doc->as.number = value;
    return true;
}

/* Returns false if the text is a string; otherwise sets kind and value of `doc`. */
static bool read_other(struct hr_doc *doc, const char *text, size_t length)
{
    return read_word(doc, text, length) || read_based(doc, text, length) ||
           read_integer(doc, text, length) || read_double(doc, text, length);
}

bool hr__doc_is_string(const char *text, size_t length)
{
    struct hr_doc other;

    return !read_other(&other, text, length);
}

enum hr_err hr__doc_set_scalar(struct hr_doc *doc, const char *text, size_t length)
{
    return read_other(doc, text, length) ? HR_OK : hr__doc_set_string(doc, text, length);
}
