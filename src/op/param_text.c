/*
 * op/param_text.c - parameters as text: types, ranges, values, for messages and help.
 */
#include "op/param.h"

#include <stdio.h>
#include <string.h>

const char *hr__param_type_name(enum hr_param_type type)
{
    static const char *const names[] = {
        [HR_PARAM_INT] = "int",
        [HR_PARAM_FLOAT] = "float",
        [HR_PARAM_BOOL] = "bool",
        [HR_PARAM_STRING] = "string",
        [HR_PARAM_PATH] = "path",
        [HR_PARAM_ENUM] = "enum",
        [HR_PARAM_DTYPE] = "dtype",
        [HR_PARAM_BYTES] = "bytes",
        [HR_PARAM_FIELD] = "field",
        [HR_PARAM_INTS] = "list of ints",
        [HR_PARAM_FLOATS] = "list of floats",
        [HR_PARAM_FIELDS] = "list of fields",
        [HR_PARAM_STRINGS] = "list of strings",
        [HR_PARAM_TEXTS] = "list of strings",
        [HR_PARAM_MAP] = "map",
    };

    return names[type];
}

static void add_bounds(const struct hr_param *param, struct hr_str *out)
{
    bool low = param->has_min, high = param->has_max;

    if (low && high && !param->min_open && !param->max_open) {
        hr__str_add_double(out, param->min);
        hr__str_add(out, " to ");
        hr__str_add_double(out, param->max);
        return;
    }
    if (low) {
        hr__str_add(out, param->min_open ? "more than " : "at least ");
        hr__str_add_double(out, param->min);
    }
    if (low && high)
        hr__str_add(out, " and ");
    if (high) {
        hr__str_add(out, param->max_open ? "less than " : "at most ");
        hr__str_add_double(out, param->max);
    }
}

static void add_items(const struct hr_param *param, struct hr_str *out)
{
    int low = param->items_min, high = param->items_max;

    if (high == 0)
        return;
    if (low == high)
        hr__str_addf(out, "%d item%s", low, low == 1 ? "" : "s");
    else
        hr__str_addf(out, "%d to %d items", low, high);
    if (param->has_min || param->has_max)
        hr__str_add(out, ", each ");
}

static void add_words(const struct hr_param *param, struct hr_str *out)
{
    hr__str_add(out, "one of ");
    for (size_t i = 0; param->names[i] != NULL; i++)
        hr__str_addf(out, "%s%s", i > 0 ? ", " : "", param->names[i]);
}

void hr__param_range_text(const struct hr_param *param, struct hr_str *out)
{
    switch (param->type) {
    case HR_PARAM_ENUM:
        add_words(param, out);
        break;
    case HR_PARAM_INTS:
    case HR_PARAM_FLOATS:
    case HR_PARAM_FIELDS:
    case HR_PARAM_STRINGS:
    case HR_PARAM_TEXTS:
        add_items(param, out);
        add_bounds(param, out);
        break;
    default:
        add_bounds(param, out);
    }
}

/* Where to cut `text` so that at most `most` bytes remain and no UTF-8 character is
 * split. */
static int cut(const char *text, size_t most)
{
    size_t length = strnlen(text, most + 1);

    if (length <= most)
        return (int)length;
    length = most;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return (int)length;
}

const char *hr__param_value_text(const struct hr_doc *value, char *text, size_t room)
{
    struct hr_str number;

    switch (value->kind) {
    case HR_DOC_STRING: {
        const char *string = value->as.string.text;
        int length = cut(string, 40);

        snprintf(text, room, "the string \"%.*s%s\"", length, string,
                 string[length] != '\0' ? "..." : "");
        break;
    }
    case HR_DOC_INT:
        snprintf(text, room, "the int %lld", (long long)value->as.integer);
        break;
    case HR_DOC_DOUBLE:
        hr__str_init(&number);
        hr__str_add_double(&number, value->as.number);
        snprintf(text, room, "the float %s", hr__str_text(&number));
        hr__str_finish(&number);
        break;
    case HR_DOC_BOOL:
        snprintf(text, room, "the bool %s", value->as.boolean ? "true" : "false");
        break;
    case HR_DOC_LIST:
        snprintf(text, room, "a list");
        break;
    case HR_DOC_MAP:
        snprintf(text, room, "a map");
        break;
    default:
        snprintf(text, room, "null");
    }
    return text;
}
