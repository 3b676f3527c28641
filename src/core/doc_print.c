/*
 * core/doc_print.c - prints the tree as JSON, as block YAML, and in canonical form.
 *
 * Output reads back equal, kinds included: a whole double gets ".0", except in canonical
 * form, where 1 and 1.0 must look alike. JSON has neither infinity nor NaN: infinity is
 * written as 1e999, which JSON readers turn into it, and NaN as null.
 */
#include "core/alloc.h"
#include "core/doc.h"
#include "core/doc_internal.h"
#include "core/str.h"

#include <math.h>
#include <string.h>

enum form { FORM_COMPACT, FORM_PRETTY, FORM_CANONICAL };

static void
print_json(const struct hr_doc *doc, enum form form, int depth, struct hr_str *out);

static void print_double(double number, struct hr_str *out)
{
    size_t start = out->length;

    hr__str_add_double(out, number);
    if (hr__str_ok(out) && strpbrk(hr__str_text(out) + start, ".e") == NULL)
        hr__str_add(out, ".0");
}

static void print_json_double(double number, enum form form, struct hr_str *out)
{
    if (isnan(number))
        hr__str_add(out, "null");
    else if (isinf(number))
        hr__str_add(out, number > 0 ? "1e999" : "-1e999");
    else if (form != FORM_CANONICAL)
        print_double(number, out);
    else if (number >= -0x1p63 && number < 0x1p63 && number == floor(number))
        hr__str_addf(out, "%lld", (long long)number);
    else
        hr__str_add_double(out, number);
}

static void break_line(enum form form, int depth, struct hr_str *out)
{
    if (form == FORM_PRETTY)
        hr__str_addf(out, "\n%*s", 2 * depth, "");
}

static void
print_json_list(const struct hr_doc *list, enum form form, int depth, struct hr_str *out)
{
    hr__str_add(out, "[");
    for (size_t i = 0; i < list->as.list.count; i++) {
        hr__str_add(out, i > 0 ? "," : "");
        break_line(form, depth + 1, out);
        print_json(list->as.list.items[i], form, depth + 1, out);
    }
    if (list->as.list.count > 0)
        break_line(form, depth, out);
    hr__str_add(out, "]");
}

static void
print_json_map(const struct hr_doc *map, enum form form, int depth, struct hr_str *out)
{
    const struct hr_doc_pair **sorted =
        form == FORM_CANONICAL ? hr__doc_sorted(map) : NULL;

    if (form == FORM_CANONICAL && sorted == NULL && map->as.map.count > 0) {
        out->failed = true;
        return;
    }
    hr__str_add(out, "{");
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair =
            sorted != NULL ? sorted[i] : &map->as.map.pairs[i];

        hr__str_add(out, i > 0 ? "," : "");
        break_line(form, depth + 1, out);
        hr__str_add_json(out, pair->key, strlen(pair->key));
        hr__str_add(out, form == FORM_PRETTY ? ": " : ":");
        print_json(pair->value, form, depth + 1, out);
    }
    if (map->as.map.count > 0)
        break_line(form, depth, out);
    hr__str_add(out, "}");
    hr__free(sorted);
}

static void
print_json(const struct hr_doc *doc, enum form form, int depth, struct hr_str *out)
{
    switch (doc->kind) {
    case HR_DOC_NULL:
        hr__str_add(out, "null");
        break;
    case HR_DOC_BOOL:
        hr__str_add(out, doc->as.boolean ? "true" : "false");
        break;
    case HR_DOC_INT:
        hr__str_addf(out, "%lld", (long long)doc->as.integer);
        break;
    case HR_DOC_DOUBLE:
        print_json_double(doc->as.number, form, out);
        break;
    case HR_DOC_STRING:
        hr__str_add_json(out, doc->as.string.text, doc->as.string.length);
        break;
    case HR_DOC_LIST:
        print_json_list(doc, form, depth, out);
        break;
    case HR_DOC_MAP:
        print_json_map(doc, form, depth, out);
        break;
    }
}

void hr__doc_print_json(const struct hr_doc *doc, bool pretty, struct hr_str *out)
{
    print_json(doc, pretty ? FORM_PRETTY : FORM_COMPACT, 0, out);
}

void hr__doc_print_canonical(const struct hr_doc *doc, struct hr_str *out)
{
    print_json(doc, FORM_CANONICAL, 0, out);
}

/* True if the text reads back as itself without quotes. Quotes when in doubt: "${data}",
 * "a/b.jpg" and "1x2" stay bare; texts with spaces or colons do not. */
static bool is_bare(const char *text, size_t length)
{
    static const char inside[] = "_./$+-@%=(){}*^~";

    if (length == 0 || length > 200 || strspn(text, ".-~+*%@=(){}^") > 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9') && (c == '\0' || strchr(inside, c) == NULL))
            return false;
    }
    return hr__doc_is_string(text, length);
}

static void print_yaml_text(const char *text, size_t length, struct hr_str *out)
{
    if (is_bare(text, length))
        hr__str_add_bytes(out, text, length);
    else
        hr__str_add_json(out, text, length);
}

static void print_yaml_double(double number, struct hr_str *out)
{
    if (isnan(number))
        hr__str_add(out, ".nan");
    else if (isinf(number))
        hr__str_add(out, number > 0 ? ".inf" : "-.inf");
    else
        print_double(number, out);
}

static bool is_block(const struct hr_doc *doc)
{
    return (doc->kind == HR_DOC_LIST && doc->as.list.count > 0) ||
           (doc->kind == HR_DOC_MAP && doc->as.map.count > 0);
}

static void print_yaml_leaf(const struct hr_doc *doc, struct hr_str *out)
{
    if (doc->kind == HR_DOC_STRING)
        print_yaml_text(doc->as.string.text, doc->as.string.length, out);
    else if (doc->kind == HR_DOC_DOUBLE)
        print_yaml_double(doc->as.number, out);
    else
        print_json(doc, FORM_COMPACT, 0, out);
    hr__str_add(out, "\n");
}

/* A key longer than YAML allows for a simple key (1024 characters) is written after "?
 * ". */
static void print_yaml_key(const char *key, int indent, struct hr_str *out)
{
    size_t length = strlen(key);

    if (length <= 200) {
        print_yaml_text(key, length, out);
    } else {
        hr__str_add(out, "? ");
        hr__str_add_json(out, key, length);
        hr__str_addf(out, "\n%*s", indent, "");
    }
    hr__str_add(out, ":");
}

/* The output is already at column `indent`; further lines are indented to it. */
static void print_yaml_block(const struct hr_doc *doc, int indent, struct hr_str *out)
{
    bool is_list = doc->kind == HR_DOC_LIST;
    size_t count = is_list ? doc->as.list.count : doc->as.map.count;

    for (size_t i = 0; i < count; i++) {
        const struct hr_doc *value =
            is_list ? doc->as.list.items[i] : doc->as.map.pairs[i].value;

        if (i > 0)
            hr__str_addf(out, "%*s", indent, "");
        if (is_list)
            hr__str_add(out, "-");
        else
            print_yaml_key(doc->as.map.pairs[i].key, indent, out);
        if (is_block(value) && !is_list)
            hr__str_addf(out, "\n%*s", indent + 2, "");
        else
            hr__str_add(out, " ");
        if (is_block(value))
            print_yaml_block(value, indent + 2, out);
        else
            print_yaml_leaf(value, out);
    }
}

void hr__doc_print_yaml(const struct hr_doc *doc, struct hr_str *out)
{
    if (is_block(doc))
        print_yaml_block(doc, 0, out);
    else
        print_yaml_leaf(doc, out);
}
