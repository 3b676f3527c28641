/*
 * codec/arrow.c - types, and the cells of a row.
 */
#include "codec/arrow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"

/* ---- types ---- */

struct number {
    char format[4];
    enum hr_dtype dtype;
    uint8_t width;
    bool widened;
    const char *unit;
};

static const struct number numbers[] = {
    {"b",   HR_BOOL, 1, false, NULL                     },
    {"c",   HR_I8,   1, false, NULL                     },
    {"C",   HR_U8,   1, false, NULL                     },
    {"s",   HR_I16,  2, false, NULL                     },
    {"S",   HR_U16,  2, false, NULL                     },
    {"i",   HR_I32,  4, false, NULL                     },
    {"I",   HR_I64,  4, true,  NULL                     },
    {"l",   HR_I64,  8, false, NULL                     },
    {"L",   HR_I64,  8, true,  NULL                     },
    {"e",   HR_F16,  2, false, NULL                     },
    {"f",   HR_F32,  4, false, NULL                     },
    {"g",   HR_F64,  8, false, NULL                     },
    {"tdD", HR_I32,  4, false, "days since 1970"        },
    {"tdm", HR_I64,  8, false, "milliseconds since 1970"},
    {"tts", HR_I32,  4, false, "seconds of the day"     },
    {"ttm", HR_I32,  4, false, "milliseconds of the day"},
    {"ttu", HR_I64,  8, false, "microseconds of the day"},
    {"ttn", HR_I64,  8, false, "nanoseconds of the day" },
    {"tss", HR_I64,  8, false, "seconds since 1970"     },
    {"tsm", HR_I64,  8, false, "milliseconds since 1970"},
    {"tsu", HR_I64,  8, false, "microseconds since 1970"},
    {"tsn", HR_I64,  8, false, "nanoseconds since 1970" },
    {"tDs", HR_I64,  8, false, "seconds"                },
    {"tDm", HR_I64,  8, false, "milliseconds"           },
    {"tDu", HR_I64,  8, false, "microseconds"           },
    {"tDn", HR_I64,  8, false, "nanoseconds"            },
};

static bool read_number(const char *format, struct hr_arrow_column *column)
{
    size_t bytes = strncmp(format, "ts", 2) == 0 ? 3 : strlen(format); /* a time zone */

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct number *number = &numbers[i];

        if (strlen(number->format) != bytes || memcmp(number->format, format, bytes) != 0)
            continue;
        column->dtype = number->dtype;
        column->width = number->width;
        column->is_bits = number->dtype == HR_BOOL;
        column->is_widened = number->widened;
        column->unit = number->unit;
        return true;
    }
    return false;
}

static bool read_bytes(const char *format, struct hr_arrow_column *column)
{
    if (strlen(format) != 1 || strchr("zZuU", format[0]) == NULL)
        return false;
    column->kind = HR_ARROW_BYTES;
    column->is_text = format[0] == 'u' || format[0] == 'U';
    column->is_large = format[0] == 'Z' || format[0] == 'U';
    return true;
}

/* The number after a colon; -1. */
static int32_t read_size(const char *text)
{
    char *end;
    long size = strtol(text, &end, 10);

    return end == text || *end != '\0' || size < 0 || size > INT32_MAX ? -1
                                                                       : (int32_t)size;
}

static const char *name_of_type(const char *format)
{
    static const struct {
        const char *format, *name;
    } names[] = {
        {"n",  "of nulls only"                 },
        {"v",  "of views of strings"           },
        {"d:", "decimal"                       },
        {"ti", "an interval"                   },
        {"+s", "a nested struct"               },
        {"+m", "a map"                         },
        {"+u", "a union"                       },
        {"+r", "run-end encoded"               },
        {"+v", "of views of lists"             },
        {"+l", "a list of what is not a number"},
        {"+L", "a list of what is not a number"},
        {"+w", "a list of what is not a number"},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(format, names[i].format, strlen(names[i].format)) == 0)
            return names[i].name;
    return "of an unknown type";
}

static bool
read_dictionary(const char *format, const char *values, struct hr_arrow_column *column)
{
    struct hr_arrow_column index = {0};

    if (!read_number(format, &index) || index.unit != NULL || index.is_bits ||
        strchr("efg", format[0]) != NULL || !read_bytes(values, column))
        return false;
    column->has_dictionary = true;
    column->index_width = index.width;
    column->index_signed = strchr("csil", format[0]) != NULL;
    return true;
}

bool hr__arrow_column(const char *format, const char *child, const char *values,
                      struct hr_arrow_column *column, const char **ret_reason)
{
    bool known;

    column->kind = HR_ARROW_NUMBER;
    if (values != NULL) {
        *ret_reason = "a dictionary of what is neither text nor bytes";
        return read_dictionary(format, values, column);
    }
    *ret_reason = name_of_type(format);
    if (strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0) {
        column->kind = HR_ARROW_LIST;
        column->is_large = format[1] == 'L';
        known = child != NULL && read_number(child, column);
    } else if (strncmp(format, "+w:", 3) == 0) {
        column->kind = HR_ARROW_VECTOR;
        column->size = read_size(format + 3);
        known = column->size >= 0 && child != NULL && read_number(child, column);
    } else if (strncmp(format, "w:", 2) == 0) {
        column->kind = HR_ARROW_FIXED;
        column->size = read_size(format + 2);
        known = column->size >= 0;
    } else {
        known = read_number(format, column) || read_bytes(format, column);
    }
    return known;
}

void hr__arrow_leaf_name(struct hr_arrow_leaf *leaf, const void *part, size_t bytes)
{
    char *name = leaf->column.name;
    size_t used = strlen(name);

    if (used > 0 && used < HR_ARROW_NAME_MAX)
        name[used++] = '.';
    if (bytes == 0 || bytes > HR_ARROW_NAME_MAX - used)
        leaf->bad_name = true;
    if (bytes > HR_ARROW_NAME_MAX - used)
        bytes = HR_ARROW_NAME_MAX - used;
    if (bytes > 0)
        memcpy(name + used, part, bytes);
    name[used + bytes] = '\0';
    if (strlen(name) != used + bytes || !hr__utf8_is_valid(name, used + bytes))
        leaf->bad_name = true;
}

/* ---- cells ---- */

/* Rows that are looked through for a null at once. */
#define RUN_MAX 1024

static bool is_set(const uint8_t *bits, int64_t at)
{
    return bits == NULL || (bits[at / 8] >> at % 8 & 1) != 0;
}

static int64_t
offset_at(const struct hr_arrow_column *column, const void *offsets, int64_t at)
{
    int64_t large;
    int32_t small;

    if (column->is_large) {
        memcpy(&large, (const char *)offsets + 8 * at, sizeof large);
        return large;
    }
    memcpy(&small, (const char *)offsets + 4 * at, sizeof small);
    return small;
}

/* From and to which byte or element a cell reaches, of `limit`. */
static enum hr_err
read_offsets(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
             int64_t row, uint64_t limit, int64_t *ret_from, int64_t *ret_to,
             struct hr_error *reterr)
{
    int64_t from = offset_at(column, view->offsets, view->first + row);
    int64_t to = offset_at(column, view->offsets, view->first + row + 1);

    if (from < 0 || to < from || (uint64_t)to > limit)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "column \"%s\": row %lld of its batch is damaged: it reaches "
                        "from %lld to %lld, of %llu",
                        column->name, (long long)row, (long long)from, (long long)to,
                        (unsigned long long)limit);
    *ret_from = from;
    *ret_to = to;
    return HR_OK;
}

/* The row of the dictionary that a row stands for. */
static enum hr_err
look_up(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
        int64_t *row, struct hr_error *reterr)
{
    uint64_t number = 0;
    size_t width = column->index_width;

    memcpy(&number, view->data + (size_t)(view->first + *row) * width, width);
    if (view->dictionary == NULL || number >= (uint64_t)view->dictionary->rows)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "column \"%s\": row %lld of its batch is damaged: its "
                        "dictionary has no such entry",
                        column->name, (long long)*row);
    *row = (int64_t)number;
    return HR_OK;
}

static enum hr_err
set_elements(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
             int64_t from, int64_t count, struct hr_arrow_cell *cell,
             struct hr_error *reterr)
{
    from += view->child_first;
    for (int64_t i = from; view->child_validity != NULL && i < from + count; i++)
        if (!is_set(view->child_validity, i))
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "column \"%s\": a list with a null in it", column->name);
    cell->count = count;
    cell->bit = column->is_bits ? (uint64_t)from : 0;
    cell->data = view->data;
    if (!column->is_bits && count > 0)
        cell->data += (uint64_t)from * column->width;
    return HR_OK;
}

enum hr_err
hr__arrow_cell(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
               int64_t row, struct hr_arrow_cell *ret_cell, struct hr_error *reterr)
{
    int64_t from = 0, to = 0;

    *ret_cell = (struct hr_arrow_cell){0};
    ret_cell->is_null = !is_set(view->validity, view->first + row) ||
                        !is_set(view->struct_validity, view->struct_first + row);
    if (ret_cell->is_null)
        return HR_OK;
    if (column->has_dictionary) {
        HR_TRY(look_up(column, view, &row, reterr));
        view = view->dictionary;
        ret_cell->is_null = !is_set(view->validity, view->first + row);
        if (ret_cell->is_null)
            return HR_OK;
    }
    switch (column->kind) {
    case HR_ARROW_BYTES:
        HR_TRY(read_offsets(column, view, row, view->data_bytes, &from, &to, reterr));
        ret_cell->data = to > from ? view->data + from : NULL;
        ret_cell->bytes = (uint64_t)(to - from);
        return HR_OK;
    case HR_ARROW_FIXED:
        ret_cell->bytes = (uint64_t)column->size;
        ret_cell->data = column->size > 0 ? view->data + (uint64_t)(view->first + row) *
                                                             ret_cell->bytes
                                          : NULL;
        return HR_OK;
    case HR_ARROW_LIST:
        HR_TRY(read_offsets(column, view, row, (uint64_t)view->child_rows, &from, &to,
                            reterr));
        return set_elements(column, view, from, to - from, ret_cell, reterr);
    case HR_ARROW_VECTOR:
        return set_elements(column, view, (view->first + row) * column->size,
                            column->size, ret_cell, reterr);
    case HR_ARROW_NUMBER:
        break;
    }
    ret_cell->count = 1;
    ret_cell->data = view->data;
    if (column->is_bits)
        ret_cell->bit = (uint64_t)(view->first + row);
    else
        ret_cell->data += (uint64_t)(view->first + row) * column->width;
    return HR_OK;
}

enum hr_err
hr__arrow_elements(const struct hr_arrow_column *column, const struct hr_arrow_cell *cell,
                   void *to, struct hr_error *reterr)
{
    for (int64_t i = 0; column->is_bits && i < cell->count; i++)
        ((uint8_t *)to)[i] = is_set(cell->data, (int64_t)cell->bit + i);
    for (int64_t i = 0; column->is_widened && i < cell->count; i++) {
        uint64_t number = 0;

        memcpy(&number, cell->data + (size_t)i * column->width, column->width);
        if (number > INT64_MAX)
            return hr__fail(reterr, HR_ERR_RANGE,
                            "column \"%s\": a uint64 that is larger than an int64",
                            column->name);
        memcpy((char *)to + 8 * i, &number, 8);
    }
    if (hr__arrow_is_plain(column) && cell->count > 0)
        memcpy(to, cell->data, (size_t)cell->count * column->width);
    return HR_OK;
}

void hr__arrow_run(const struct hr_arrow_column *column, const struct hr_arrow_view *view,
                   int64_t row, struct hr_arrow_cell *ret_cell, uint64_t *ret_rows)
{
    int64_t most = view->rows - row, rows = 0, each, from;
    bool has_nulls = view->validity != NULL || view->struct_validity != NULL;

    assert(row >= 0 && row < view->rows);
    *ret_cell = (struct hr_arrow_cell){0};
    *ret_rows = 0;
    if (column->has_dictionary || view->child_validity != NULL)
        return;
    most = has_nulls && most > RUN_MAX ? RUN_MAX : most;
    rows = has_nulls ? 0 : most;
    while (rows < most && is_set(view->validity, view->first + row + rows) &&
           is_set(view->struct_validity, view->struct_first + row + rows))
        rows++;
    each = column->kind == HR_ARROW_VECTOR ? column->size : 1;
    from = (view->first + row) * each;
    if (column->kind == HR_ARROW_VECTOR)
        from += view->child_first;
    *ret_cell = (struct hr_arrow_cell){.data = view->data, .count = rows * each};
    if (column->is_bits)
        ret_cell->bit = (uint64_t)from;
    else if (ret_cell->count > 0)
        ret_cell->data += (uint64_t)from * column->width;
    *ret_rows = (uint64_t)rows;
}
