/*
 * op/param_canon.c - from a value as written to the value as it counts, with all checks.
 *
 * One function per type: an int for an INT, a list for a list even when one scalar was
 * written, the word for an ENUM. The fingerprint hashes what comes out.
 */
#include "op/param_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* The value's own place in the file, or that of the list that contains it. */
void hr__param_place(struct hr_param_parse *p, const char *param, int line, int column)
{
    if (p->error == NULL)
        return;
    snprintf(p->error->param, sizeof p->error->param, "%s", param);
    if (line > 0) {
        p->error->line = line;
        p->error->column = column;
    }
}

static enum hr_err wrong_type(struct hr_param_parse *p, const struct hr_doc *value)
{
    const char *type = p->param->type == HR_PARAM_BYTES
                           ? "count of bytes"
                           : hr__param_type_name(p->param->type);
    const char *words[16], *near = NULL;
    size_t count = 0;
    char text[128];

    for (;
         p->param->aliases != NULL && p->param->aliases[count].word != NULL && count < 16;
         count++)
        words[count] = p->param->aliases[count].word;
    if (value->kind == HR_DOC_STRING && count > 0)
        near = hr__nearest(value->as.string.text, words, count);
    hr__param_place(p, p->param->name, p->at->line, p->at->column);
    return hr__fail(
        p->error, HR_ERR_TYPE, "parameter \"%s\" wants %s %s, not %s%s%s%s%s",
        p->param->name, strchr("aeiou", type[0]) != NULL ? "an" : "a", type,
        hr__param_value_text(value, text, sizeof text),
        near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
        near != NULL ? "\"?" : "",
        value->kind <= HR_DOC_DOUBLE && value->kind != HR_DOC_NULL &&
                (p->param->type == HR_PARAM_STRING || p->param->type == HR_PARAM_PATH ||
                 p->param->type == HR_PARAM_FIELD || p->param->type == HR_PARAM_FIELDS)
            ? "; put it in quotes"
            : "");
}

static enum hr_err wrong_range(struct hr_param_parse *p, const struct hr_doc *value)
{
    struct hr_str range, number;

    hr__str_init(&range);
    hr__str_init(&number);
    hr__param_range_text(p->param, &range);
    if (value->kind == HR_DOC_INT)
        hr__str_addf(&number, "%lld", (long long)value->as.integer);
    else
        hr__str_add_double(&number, value->as.number);
    hr__param_place(p, p->param->name, p->at->line, p->at->column);
    hr__fail(p->error, HR_ERR_RANGE, "parameter \"%s\" must be %s, not %s",
             p->param->name, hr__str_text(&range), hr__str_text(&number));
    hr__str_finish(&range);
    hr__str_finish(&number);
    return HR_ERR_RANGE;
}

static bool in_range(const struct hr_param *param, double value)
{
    if (isnan(value))
        return false;
    if (param->has_min && (param->min_open ? value <= param->min : value < param->min))
        return false;
    return !(param->has_max &&
             (param->max_open ? value >= param->max : value > param->max));
}

/* The largest double below 2^63; whole doubles up to it fit an int64. */
#define INT_LIMIT 9223372036854774784.0

static enum hr_err
canon_int(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    int64_t number;

    if (value->kind == HR_DOC_INT)
        number = value->as.integer;
    else if (value->kind == HR_DOC_DOUBLE && fabs(value->as.number) <= INT_LIMIT &&
             value->as.number == floor(value->as.number))
        number = (int64_t)value->as.number;
    else
        return wrong_type(p, value);
    if (!in_range(p->param, (double)number))
        return wrong_range(p, value);
    *ret = hr__doc_int(number);
    return HR_OK;
}

static enum hr_err
canon_float(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    const struct hr_param *param = p->param;
    double number;

    if (value->kind == HR_DOC_INT)
        number = (double)value->as.integer;
    else if (value->kind == HR_DOC_DOUBLE)
        number = value->as.number;
    else
        return wrong_type(p, value);
    if (isnan(number) ||
        (isinf(number) && !(number > 0 ? param->has_max && isinf(param->max)
                                       : param->has_min && isinf(param->min)))) {
        hr__param_place(p, param->name, p->at->line, p->at->column);
        return hr__fail(p->error, HR_ERR_RANGE, "parameter \"%s\" must be finite, not %s",
                        param->name, isnan(number) ? "nan" : "infinite");
    }
    if (!in_range(param, number))
        return wrong_range(p, value);
    *ret = hr__doc_double(number == 0 ? 0.0 : number); /* -0 and 0 are one */
    return HR_OK;
}

static enum hr_err
canon_bytes(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    uint64_t bytes;

    if (value->kind != HR_DOC_STRING)
        return canon_int(p, value, ret);
    if (!hr__bytes_parse(value->as.string.text, &bytes) || bytes > INT64_MAX)
        return wrong_type(p, value);
    if (!in_range(p->param, (double)bytes))
        return wrong_range(
            p, &(struct hr_doc){.kind = HR_DOC_INT, .as.integer = (int64_t)bytes});
    *ret = hr__doc_int((int64_t)bytes);
    return HR_OK;
}

/* One of a list of words: those of an ENUM, the names of dtypes. */
static enum hr_err canon_word(struct hr_param_parse *p, const struct hr_doc *value,
                              const char *const *words, struct hr_doc **ret)
{
    const char *text = NULL, *near;
    char number[32];
    struct hr_str all;
    size_t count = 0;

    if (value->kind == HR_DOC_STRING)
        text = value->as.string.text;
    else if (value->kind == HR_DOC_BOOL)
        text = value->as.boolean ? "true" : "false";
    else if (value->kind == HR_DOC_INT)
        text = number;
    else
        return wrong_type(p, value);
    if (value->kind == HR_DOC_INT)
        snprintf(number, sizeof number, "%lld", (long long)value->as.integer);
    for (; words[count] != NULL; count++) {
        if (strcmp(words[count], text) == 0) {
            *ret = hr__doc_string(words[count]);
            return HR_OK;
        }
    }
    hr__str_init(&all);
    for (size_t i = 0; i < count; i++)
        hr__str_addf(&all, "%s%s", i > 0 ? ", " : "", words[i]);
    near = hr__nearest(text, words, count);
    hr__param_place(p, p->param->name, p->at->line, p->at->column);
    hr__fail(p->error, HR_ERR_RANGE,
             "parameter \"%s\" must be one of %s, not \"%.40s\"%s%s%s", p->param->name,
             hr__str_text(&all), text, near != NULL ? "; did you mean \"" : "",
             near != NULL ? near : "", near != NULL ? "\"?" : "");
    hr__str_finish(&all);
    return HR_ERR_RANGE;
}

static enum hr_err
canon_dtype(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    static const enum hr_dtype all[] = {HR_U8,   HR_I8,  HR_U16,  HR_I16, HR_I32, HR_I64,
                                        HR_BOOL, HR_F16, HR_BF16, HR_F32, HR_F64};
    const char *names[sizeof all / sizeof all[0] + 1] = {NULL};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        names[i] = hr_dtype_name(all[i]);
    return canon_word(p, value, names, ret);
}

static enum hr_err
canon_text(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    if (value->kind != HR_DOC_STRING)
        return wrong_type(p, value);
    if (strlen(value->as.string.text) != value->as.string.length) {
        hr__param_place(p, p->param->name, p->at->line, p->at->column);
        return hr__fail(p->error, HR_ERR_RANGE,
                        "parameter \"%s\" must not hold a NUL byte", p->param->name);
    }
    *ret = hr__doc_string_n(value->as.string.text, value->as.string.length);
    return HR_OK;
}

#define FIELD_NAME_MAX 63 /* HR_FIELD_NAME_MAX of op/schema.h */

static enum hr_err
canon_field(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    if (value->kind == HR_DOC_STRING &&
        (value->as.string.length == 0 || value->as.string.length > FIELD_NAME_MAX)) {
        hr__param_place(p, p->param->name, p->at->line, p->at->column);
        return hr__fail(p->error, HR_ERR_RANGE,
                        "parameter \"%s\" must be a field name of 1 to %d bytes, not %zu",
                        p->param->name, FIELD_NAME_MAX, value->as.string.length);
    }
    return canon_text(p, value, ret);
}

static enum hr_err
canon_item(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    switch (p->param->type) {
    case HR_PARAM_INTS:
        return canon_int(p, value, ret);
    case HR_PARAM_FLOATS:
        return canon_float(p, value, ret);
    case HR_PARAM_STRINGS:
    case HR_PARAM_TEXTS:
        return canon_text(p, value, ret);
    default:
        return canon_field(p, value, ret);
    }
}

static enum hr_err
check_count(struct hr_param_parse *p, const struct hr_doc *value, size_t count)
{
    size_t low = 1, high = HR_LIST_MAX;
    struct hr_str range;

    if (p->param->items_max > 0) {
        low = (size_t)p->param->items_min;
        high = (size_t)p->param->items_max;
    }
    if (count >= low && count <= high)
        return HR_OK;
    hr__str_init(&range);
    if (low == high)
        hr__str_addf(&range, "%zu item%s", low, low == 1 ? "" : "s");
    else
        hr__str_addf(&range, "%zu to %zu items", low, high);
    hr__param_place(p, p->param->name, value->line, value->column);
    hr__fail(p->error, HR_ERR_RANGE, "parameter \"%s\" must have %s, not %zu",
             p->param->name, hr__str_text(&range), count);
    hr__str_finish(&range);
    return HR_ERR_RANGE;
}

static enum hr_err
canon_list(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    struct hr_doc *const *items =
        value->kind == HR_DOC_LIST ? value->as.list.items : NULL;
    size_t count = items != NULL || value->kind == HR_DOC_LIST ? value->as.list.count : 1;
    struct hr_doc *list;
    enum hr_err code;

    if (value->kind == HR_DOC_MAP)
        return wrong_type(p, value);
    HR_TRY(check_count(p, value, count));
    if (p->param->one_is_item && count == 1) {
        p->at = items != NULL && items[0]->line > 0 ? items[0] : p->at;
        return canon_item(p, items != NULL ? items[0] : value, ret);
    }
    list = hr__doc_new(HR_DOC_LIST);
    if (list == NULL)
        return HR_OK;
    for (size_t i = 0; i < count; i++) {
        const struct hr_doc *given = items != NULL ? items[i] : value;
        struct hr_doc *item = NULL;

        if (given->line > 0)
            p->at = given;
        code = canon_item(p, given, &item);
        if (code == HR_OK)
            code = item != NULL ? hr__doc_append(list, item) : no_memory(p->error);
        if (code != HR_OK) {
            hr__doc_destroy(list);
            return code;
        }
    }
    *ret = list;
    return HR_OK;
}

static enum hr_err refuse_value(struct hr_param_parse *p, const struct hr_doc_pair *pair)
{
    char got[80];

    hr__param_place(p, p->param->name, p->at->line, p->at->column);
    return hr__fail(p->error, HR_ERR_TYPE,
                    "parameter \"%s\" wants a %s for \"%.63s\", not %s", p->param->name,
                    p->param->values ? "number, a bool or a text" : "text", pair->key,
                    hr__param_value_text(pair->value, got, sizeof got));
}

/* Of a MAP: a text; with `values` any scalar, as a text. */
static enum hr_err
canon_value(struct hr_param_parse *p, const struct hr_doc_pair *pair, struct hr_doc **ret)
{
    const struct hr_doc *value = pair->value;
    struct hr_str text;

    if (value->kind == HR_DOC_STRING)
        return p->param->values || p->param->texts ? canon_text(p, value, ret)
                                                   : canon_field(p, value, ret);
    if (!p->param->values || (value->kind != HR_DOC_INT && value->kind != HR_DOC_DOUBLE &&
                              value->kind != HR_DOC_BOOL))
        return refuse_value(p, pair);
    hr__str_init(&text);
    hr__doc_print_canonical(value, &text);
    *ret = hr__str_ok(&text) ? hr__doc_string(hr__str_text(&text)) : NULL;
    hr__str_finish(&text);
    return HR_OK;
}

static enum hr_err
canon_map(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    struct hr_doc *map;

    if (value->kind != HR_DOC_MAP)
        return wrong_type(p, value);
    HR_TRY(check_count(p, value, value->as.map.count));
    map = hr__doc_new(HR_DOC_MAP);
    if (map == NULL)
        return HR_OK;
    for (size_t i = 0; i < value->as.map.count; i++) {
        const struct hr_doc_pair *pair = &value->as.map.pairs[i];
        struct hr_doc *item = NULL;
        enum hr_err code;

        if (pair->value->line > 0)
            p->at = pair->value;
        code = canon_value(p, pair, &item);
        if (code == HR_OK)
            code = item != NULL ? hr__doc_set(map, pair->key, item) : no_memory(p->error);
        if (code != HR_OK) {
            hr__doc_destroy(map);
            return code;
        }
    }
    *ret = map;
    return HR_OK;
}

enum hr_err
hr__param_canon(struct hr_param_parse *p, const struct hr_doc *value, struct hr_doc **ret)
{
    assert(p->param != NULL && value != NULL);
    switch (p->param->type) {
    case HR_PARAM_INT:
        return canon_int(p, value, ret);
    case HR_PARAM_FLOAT:
        return canon_float(p, value, ret);
    case HR_PARAM_BOOL:
        if (value->kind != HR_DOC_BOOL)
            return wrong_type(p, value);
        *ret = hr__doc_bool(value->as.boolean);
        return HR_OK;
    case HR_PARAM_STRING:
    case HR_PARAM_PATH:
        return canon_text(p, value, ret);
    case HR_PARAM_ENUM:
        return canon_word(p, value, p->param->names, ret);
    case HR_PARAM_DTYPE:
        return canon_dtype(p, value, ret);
    case HR_PARAM_BYTES:
        return canon_bytes(p, value, ret);
    case HR_PARAM_FIELD:
        return canon_field(p, value, ret);
    case HR_PARAM_MAP:
        return canon_map(p, value, ret);
    default:
        return canon_list(p, value, ret);
    }
}
