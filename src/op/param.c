/*
 * op/param.c - from a map of a graph file to an operator's struct.
 *
 * Each value passes two steps: it is brought into canonical form (op/param_canon.c),
 * which does all the checking; then the struct is filled from that form, which cannot
 * fail. Defaults and aliases take the same way, so a table with a wrong default fails its
 * first test.
 */
#include "op/param_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

#define TABLE_MAX 64

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* Positions in a text that is not part of the file would mislead. */
static void forget_place(struct hr_doc *doc)
{
    doc->line = doc->column = 0;
    for (size_t i = 0; doc->kind == HR_DOC_LIST && i < doc->as.list.count; i++)
        forget_place(doc->as.list.items[i]);
    for (size_t i = 0; doc->kind == HR_DOC_MAP && i < doc->as.map.count; i++) {
        doc->as.map.pairs[i].line = doc->as.map.pairs[i].column = 0;
        forget_place(doc->as.map.pairs[i].value);
    }
}

static void
not_a_value(const char *text, const struct hr_error *why, struct hr_error *reterr)
{
    const char *words = strstr(why->message, ": "); /* after "value:1:4" */

    if (why->code == HR_ERR_MEMORY)
        no_memory(reterr);
    else
        hr__fail(reterr, HR_ERR_FORMAT, "\"%.80s\" is no value%s", text,
                 words != NULL ? words : "");
}

struct hr_doc *hr__param_flow(const char *text, struct hr_error *reterr)
{
    struct hr_doc *whole = NULL, *value = NULL;
    struct hr_error why = {0};
    struct hr_str line;

    hr__str_init(&line);
    hr__str_addf(&line, "v: %s", text); /* a text that begins with '{' would be JSON */
    if (!hr__str_ok(&line)) {
        no_memory(reterr);
        goto out;
    }
    if (hr__doc_parse(hr__str_text(&line), line.length, "value", &whole, &why) != HR_OK) {
        not_a_value(text, &why, reterr);
        goto out;
    }
    if (whole->kind != HR_DOC_MAP || whole->as.map.count != 1) {
        hr__fail(reterr, HR_ERR_FORMAT, "\"%.80s\" is not one value", text);
        goto out;
    }
    value = hr__doc_copy(whole->as.map.pairs[0].value);
    if (value == NULL)
        no_memory(reterr);
    else
        forget_place(value);
out:
    hr__doc_destroy(whole);
    hr__str_finish(&line);
    return value;
}

/* A text of the table as a value; plain words need no parsing. */
static struct hr_doc *table_value(struct hr_param_parse *p, const char *text)
{
    struct hr_doc *value;

    switch (p->param->type) {
    case HR_PARAM_STRING:
    case HR_PARAM_PATH:
    case HR_PARAM_ENUM:
    case HR_PARAM_DTYPE:
    case HR_PARAM_FIELD:
        value = hr__doc_string(text);
        break;
    default:
        if (text[0] == '[' || text[0] == '{')
            return hr__param_flow(text, p->error);
        value = hr__doc_scalar(text, strlen(text));
    }
    if (value == NULL)
        no_memory(p->error);
    return value;
}

static const char *alias_text(const struct hr_param *param, const struct hr_doc *value)
{
    if (param->aliases == NULL || value->kind != HR_DOC_STRING)
        return NULL;
    for (const struct hr_param_alias *a = param->aliases; a->word != NULL; a++) {
        if (strcmp(a->word, value->as.string.text) == 0)
            return a->text;
    }
    return NULL;
}

/* What a parameter without default counts as when it is absent. Not range-checked: zero
 * means "not given" to ops that say so. */
static struct hr_doc *nothing(const struct hr_param *param)
{
    switch (param->type) {
    case HR_PARAM_INT:
    case HR_PARAM_BYTES:
        return hr__doc_int(0);
    case HR_PARAM_FLOAT:
        return hr__doc_double(0);
    case HR_PARAM_BOOL:
        return hr__doc_bool(false);
    case HR_PARAM_ENUM:
        return hr__doc_string(param->names[0]);
    default:
        return hr__doc_new(HR_DOC_NULL);
    }
}

/* The canonical value of a parameter that was given as `given` (NULL: absent). */
static enum hr_err resolve(struct hr_param_parse *p, const struct hr_doc *map,
                           const struct hr_doc *given, struct hr_doc **ret)
{
    const char *text = NULL;
    struct hr_doc *made = NULL;
    enum hr_err code;

    if (given != NULL && given->kind == HR_DOC_NULL)
        given = NULL;
    if (given == NULL && p->param->required) {
        hr__param_place(p, p->param->name, map != NULL ? map->line : 0,
                        map != NULL ? map->column : 0);
        return hr__fail(p->error, HR_ERR_ARGUMENT, "parameter \"%s\" is required (%s)",
                        p->param->name, p->param->help != NULL ? p->param->help : "");
    }
    if (given == NULL && p->param->fallback == NULL) {
        *ret = nothing(p->param);
        return *ret != NULL ? HR_OK : no_memory(p->error);
    }
    text = given != NULL ? alias_text(p->param, given) : p->param->fallback;
    if (given == NULL) {
        static const struct hr_doc nowhere;
        const struct hr_doc word = {.kind = HR_DOC_STRING,
                                    .as.string.text = (char *)(uintptr_t)text};
        const char *meant = alias_text(p->param, &word);

        text = meant != NULL ? meant : text;
        p->at = &nowhere;
    } else {
        p->at = given;
    }
    if (text != NULL) {
        made = table_value(p, text);
        if (made == NULL)
            return p->error != NULL ? p->error->code : HR_ERR_MEMORY;
        given = made;
    }
    *ret = NULL;
    code = hr__param_canon(p, given, ret);
    hr__doc_destroy(made);
    return code == HR_OK && *ret == NULL ? no_memory(p->error) : code;
}

static int word_index(const char *const *names, const char *text)
{
    int at = 0;

    while (strcmp(names[at], text) != 0) {
        at++;
        assert(names[at] != NULL); /* the canonical form has only known words */
    }
    return at;
}

static void fill_list(const struct hr_param *param, const struct hr_doc *list, void *to)
{
    bool one = list->kind != HR_DOC_LIST;
    size_t count = one ? 1 : list->as.list.count;

    assert(count <= HR_LIST_MAX && (!one || param->one_is_item));
    for (size_t i = 0; i < count; i++) {
        const struct hr_doc *item = one ? list : list->as.list.items[i];

        if (param->type == HR_PARAM_INTS)
            ((struct hr_ints *)to)->values[i] = item->as.integer;
        else if (param->type == HR_PARAM_FLOATS)
            ((struct hr_floats *)to)->values[i] = item->as.number;
        else
            ((struct hr_names *)to)->values[i] = item->as.string.text;
    }
    *(int *)to = (int)count; /* `count` is the first member of all three */
}

static void fill_map(const struct hr_doc *map, struct hr_pairs *to)
{
    assert(map->kind == HR_DOC_MAP && map->as.map.count <= HR_LIST_MAX);
    to->count = (int)map->as.map.count;
    for (size_t i = 0; i < map->as.map.count; i++) {
        to->keys[i] = map->as.map.pairs[i].key;
        to->values[i] = map->as.map.pairs[i].value->as.string.text;
    }
}

/* Put a canonical value into the struct. */
static void fill(const struct hr_param *param, const struct hr_doc *value, void *params)
{
    void *to = (char *)params + param->offset;

    if (value->kind == HR_DOC_NULL)
        return;
    switch (param->type) {
    case HR_PARAM_INT:
    case HR_PARAM_BYTES:
        *(int64_t *)to = value->as.integer;
        break;
    case HR_PARAM_FLOAT:
        *(double *)to = value->as.number;
        break;
    case HR_PARAM_BOOL:
        *(bool *)to = value->as.boolean;
        break;
    case HR_PARAM_ENUM:
        *(int *)to = word_index(param->names, value->as.string.text);
        break;
    case HR_PARAM_DTYPE:
        *(int *)to = (int)hr_dtype_from_name(value->as.string.text);
        break;
    case HR_PARAM_MAP:
        fill_map(value, to);
        break;
    case HR_PARAM_INTS:
    case HR_PARAM_FLOATS:
    case HR_PARAM_FIELDS:
    case HR_PARAM_STRINGS:
        fill_list(param, value, to);
        break;
    case HR_PARAM_TEXTS:
        *(const struct hr_doc **)to = value;
        break;
    default:
        *(const char **)to = value->as.string.text;
    }
}

static enum hr_err check_names(struct hr_param_parse *p, const struct hr_doc *map)
{
    const char *names[TABLE_MAX + 2];
    struct hr_str all;

    for (size_t k = 0; k < p->count; k++)
        names[k] = p->table[k].name;
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];
        const char *near;
        size_t k = 0;

        while (k < p->count && strcmp(names[k], pair->key) != 0)
            k++;
        if (k < p->count)
            continue;
        hr__str_init(&all);
        for (k = 0; k < p->count; k++)
            hr__str_addf(&all, "%s%s", k > 0 ? ", " : "", names[k]);
        near = hr__nearest(pair->key, names, p->count);
        hr__param_place(p, pair->key, pair->line, pair->column);
        hr__fail(p->error, HR_ERR_ARGUMENT, "parameter \"%.63s\" is not known; %s%s%s %s",
                 pair->key, near != NULL ? "did you mean \"" : "it takes",
                 near != NULL ? near : "", near != NULL ? "\"? It takes" : "",
                 p->count == 0 ? "no parameters" : hr__str_text(&all));
        hr__str_finish(&all);
        return HR_ERR_ARGUMENT;
    }
    return HR_OK;
}

/* Positions of the table's rows in order of name. */
static void sort_rows(const struct hr_param *table, size_t count, size_t *order)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = i;

        for (; k > 0 && strcmp(table[order[k - 1]].name, table[i].name) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static bool holds_text(const struct hr_param *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum hr_param_type type = table[i].type;

        if (type == HR_PARAM_STRING || type == HR_PARAM_PATH || type == HR_PARAM_FIELD ||
            type == HR_PARAM_FIELDS || type == HR_PARAM_MAP || type == HR_PARAM_STRINGS ||
            type == HR_PARAM_TEXTS)
            return true;
    }
    return false;
}

enum hr_err hr__params_parse(const struct hr_param *table, size_t count,
                             const struct hr_doc *map, void *params, size_t params_size,
                             struct hr_doc **ret_canonical, struct hr_error *reterr)
{
    struct hr_param_parse p = {.table = table, .count = count, .error = reterr};
    size_t order[TABLE_MAX];
    struct hr_doc *canonical;
    enum hr_err code = HR_OK;

    if (count > TABLE_MAX || (ret_canonical == NULL && holds_text(table, count)))
        return hr__fail(reterr, HR_ERR_ARGUMENT, "wrong use of a parameter table");
    if (map != NULL && map->kind == HR_DOC_NULL)
        map = NULL;
    if (map != NULL && map->kind != HR_DOC_MAP) {
        hr__param_place(&p, "", map->line, map->column);
        return hr__fail(reterr, HR_ERR_TYPE,
                        "parameters must be a map {name: value}, not %s",
                        hr__param_value_text(map, (char[128]){0}, 128));
    }
    HR_TRY(check_names(&p, map));
    canonical = hr__doc_new(HR_DOC_MAP);
    if (canonical == NULL)
        return no_memory(reterr);
    sort_rows(table, count, order);
    for (size_t i = 0; i < count && code == HR_OK; i++) {
        struct hr_doc *value = NULL;

        p.param = &table[order[i]];
        code = resolve(&p, map, hr__doc_get(map, p.param->name), &value);
        if (code == HR_OK)
            code = hr__doc_set(canonical, p.param->name, value);
        if (code == HR_ERR_MEMORY)
            no_memory(reterr);
    }
    if (code != HR_OK) {
        hr__doc_destroy(canonical);
        return code;
    }
    if (params_size > 0)
        memset(params, 0, params_size);
    for (size_t i = 0; i < count; i++)
        fill(&table[i], hr__doc_get(canonical, table[i].name), params);
    if (ret_canonical != NULL)
        *ret_canonical = canonical;
    else
        hr__doc_destroy(canonical);
    return HR_OK;
}

size_t hr__params_bindings(const struct hr_param *table, size_t count, const void *params,
                           const char **names, enum hr_param_access *access, size_t room)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)params + table[i].offset;
        const struct hr_names *list = (const struct hr_names *)(const void *)at;
        const char *const *values = (const char *const *)(const void *)at;
        int more = 1;

        if (table[i].access == HR_ACCESS_NONE)
            continue;
        if (table[i].type == HR_PARAM_FIELDS) {
            values = list->values;
            more = list->count;
        }
        for (int k = 0; k < more; k++) {
            if (values[k] == NULL)
                continue;
            if (found < room) {
                names[found] = values[k];
                access[found] = table[i].access;
            }
            found++;
        }
    }
    return found;
}
