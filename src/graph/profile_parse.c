/*
 * graph/profile_parse.c - reads a profile from JSON or YAML. Nothing in it is believed:
 * every key must be there, of its type and in its range.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"
#include "graph/profile_items.h"
#include "op/param.h"

struct parse {
    const char *name;
    struct hr_profile *profile;
    struct hr_error *error;
};

#define FAIL(parse, code, at, ...)                                                       \
    hr__fail_in((parse)->error, code, (parse)->name, (at)->line, (at)->column,           \
                __VA_ARGS__)

static enum hr_err wrong_type(const struct parse *p, const struct hr_doc *at,
                              const char *key, const char *wants)
{
    char text[128];

    return FAIL(p, HR_ERR_TYPE, at, "\"%s\" must be %s, not %s", key, wants,
                hr__param_value_text(at, text, sizeof text));
}

/* The value under a key that must be there; `wants` names its kind. */
static enum hr_err
need(const struct parse *p, const struct hr_doc *map, const char *key,
     enum hr_doc_kind kind, const char *wants, const struct hr_doc **ret_value)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    if (value == NULL)
        return FAIL(p, HR_ERR_FORMAT, map, "the key \"%s\" is missing", key);
    if (value->kind != kind)
        return wrong_type(p, value, key, wants);
    *ret_value = value;
    return HR_OK;
}

static enum hr_err need_text(const struct parse *p, const struct hr_doc *map,
                             const char *key, const char **ret_text)
{
    const struct hr_doc *value = NULL;

    HR_TRY(need(p, map, key, HR_DOC_STRING, "a string", &value));
    if (strlen(value->as.string.text) != value->as.string.length)
        return FAIL(p, HR_ERR_FORMAT, value, "\"%s\" contains a NUL", key);
    *ret_text = value->as.string.text;
    return HR_OK;
}

/* A map has no keys but those of the table and of `more`, a list that ends with NULL. */
static enum hr_err
check_keys(const struct parse *p, const struct hr_doc *map,
           const struct hr_profile_table *table, const char *const *more)
{
    const char *names[32];
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++)
        names[count++] = table->items[i].key;
    for (; *more != NULL; more++)
        names[count++] = *more;
    assert(count <= sizeof names / sizeof names[0]);
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];
        const char *near;
        size_t k = 0;

        while (k < count && strcmp(names[k], pair->key) != 0)
            k++;
        if (k < count)
            continue;
        near = hr__nearest(pair->key, names, count);
        return FAIL(p, HR_ERR_FORMAT, pair, "key \"%.63s\" is not known%s%s%s", pair->key,
                    near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?" : "");
    }
    return HR_OK;
}

/* ---- members ---- */

static enum hr_err read_text(const struct parse *p, const struct hr_profile_item *item,
                             const struct hr_doc *map, char *at)
{
    const char *text = NULL;

    HR_TRY(need_text(p, map, item->key, &text));
    if (strlen(text) >= (size_t)item->max)
        return FAIL(p, HR_ERR_RANGE, hr__doc_get(map, item->key),
                    "\"%s\" must be shorter than %d bytes", item->key, (int)item->max);
    memcpy(at, text, strlen(text) + 1);
    return HR_OK;
}

static enum hr_err read_hash(const struct parse *p, const struct hr_profile_item *item,
                             const struct hr_doc *map, char *at)
{
    struct hr_hash128 hash;
    const char *text = NULL;

    HR_TRY(need_text(p, map, item->key, &text));
    if (!hr__hash_parse(text, &hash))
        return FAIL(p, HR_ERR_RANGE, hr__doc_get(map, item->key),
                    "\"%s\" must be 32 hex digits, not \"%.40s\"", item->key, text);
    memcpy(at, &hash, sizeof hash);
    return HR_OK;
}

static enum hr_err read_variant(const struct parse *p, const struct hr_profile_item *item,
                                const struct hr_doc *map, char *at)
{
    const char *text = NULL;

    HR_TRY(need_text(p, map, item->key, &text));
    for (uint32_t i = 0; i < HR_PLAN_VARIANTS; i++)
        if (strcmp(hr__plan_variants[i], text) == 0) {
            memcpy(at, &i, sizeof i);
            return HR_OK;
        }
    return FAIL(p, HR_ERR_RANGE, hr__doc_get(map, item->key),
                "\"%s\" must be threads, inline, processes or remote, not \"%.40s\"",
                item->key, text);
}

static enum hr_err read_bool(const struct parse *p, const struct hr_profile_item *item,
                             const struct hr_doc *map, char *at)
{
    const struct hr_doc *value = NULL;

    HR_TRY(need(p, map, item->key, HR_DOC_BOOL, "true or false", &value));
    memcpy(at, &value->as.boolean, sizeof value->as.boolean);
    return HR_OK;
}

static enum hr_err read_int(const struct parse *p, const struct hr_profile_item *item,
                            const struct hr_doc *map, char *at)
{
    const struct hr_doc *value = NULL;
    uint32_t narrow;

    HR_TRY(need(p, map, item->key, HR_DOC_INT, "a whole number", &value));
    if (value->as.integer < 0 || value->as.integer > (int64_t)item->max)
        return FAIL(p, HR_ERR_RANGE, value, "\"%s\" must be 0 to %lld, not %lld",
                    item->key, (long long)item->max, (long long)value->as.integer);
    narrow = (uint32_t)value->as.integer;
    if (item->type == HR_PROFILE_U64)
        memcpy(at, &value->as.integer, sizeof value->as.integer);
    else
        memcpy(at, &narrow, sizeof narrow);
    return HR_OK;
}

static enum hr_err read_double(const struct parse *p, const struct hr_profile_item *item,
                               const struct hr_doc *map, char *at)
{
    const struct hr_doc *value = hr__doc_get(map, item->key);
    double number = HR_PROFILE_UNKNOWN;

    if (value == NULL)
        return FAIL(p, HR_ERR_FORMAT, map, "the key \"%s\" is missing", item->key);
    if (value->kind == HR_DOC_INT || value->kind == HR_DOC_DOUBLE) {
        number = value->kind == HR_DOC_INT ? (double)value->as.integer : value->as.number;
        if (!(number >= 0 && number <= item->max))
            return FAIL(p, HR_ERR_RANGE, value, "\"%s\" must be 0 to %g, not %g",
                        item->key, item->max, number);
    } else if (value->kind != HR_DOC_NULL || item->type != HR_PROFILE_PERHAPS)
        return wrong_type(p, value, item->key,
                          item->type == HR_PROFILE_PERHAPS ? "a number or null"
                                                           : "a number");
    memcpy(at, &number, sizeof number);
    return HR_OK;
}

static enum hr_err read_items(const struct parse *p, const struct hr_profile_table *table,
                              const struct hr_doc *map, void *object)
{
    typedef enum hr_err read_fn(const struct parse *, const struct hr_profile_item *,
                                const struct hr_doc *, char *);
    static read_fn *const readers[] = {
        [HR_PROFILE_U32] = read_int,       [HR_PROFILE_U64] = read_int,
        [HR_PROFILE_BOOL] = read_bool,     [HR_PROFILE_VARIANT] = read_variant,
        [HR_PROFILE_DOUBLE] = read_double, [HR_PROFILE_PERHAPS] = read_double,
        [HR_PROFILE_TEXT] = read_text,     [HR_PROFILE_HASH] = read_hash,
    };

    for (size_t i = 0; i < table->count; i++) {
        const struct hr_profile_item *item = &table->items[i];

        HR_TRY(readers[item->type](p, item, map, (char *)object + item->offset));
    }
    return HR_OK;
}

/* ---- the whole ---- */

static enum hr_err read_node(const struct parse *p, const struct hr_doc *map)
{
    static const char *const more[] = {"node", "op", NULL};
    const char *name = NULL, *op = NULL;
    struct hr_profile_node *node;

    if (map->kind != HR_DOC_MAP)
        return wrong_type(p, map, "nodes", "a list of maps");
    HR_TRY(check_keys(p, map, &hr__profile_node, more));
    HR_TRY(need_text(p, map, "node", &name));
    HR_TRY(need_text(p, map, "op", &op));
    node = hr__profile_add(p->profile, name, op);
    if (node == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    return read_items(p, &hr__profile_node, map, node);
}

static enum hr_err read_nodes(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *list = NULL;

    HR_TRY(need(p, root, "nodes", HR_DOC_LIST, "a list", &list));
    if (list->as.list.count == 0)
        return FAIL(p, HR_ERR_RANGE, list, "\"nodes\" is empty");
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(read_node(p, list->as.list.items[i]));
    return HR_OK;
}

static enum hr_err check_version(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *version;

    if (root->kind != HR_DOC_MAP ||
        (version = hr__doc_get(root, "headrace_profile")) == NULL)
        return hr__fail_in(p->error, HR_ERR_FORMAT, p->name, 1, 1,
                           "this is no profile: the key \"headrace_profile: %d\" is "
                           "missing",
                           HR_PROFILE_VERSION);
    if (version->kind != HR_DOC_INT)
        return wrong_type(p, version, "headrace_profile", "the version of the format");
    if (version->as.integer != HR_PROFILE_VERSION)
        return FAIL(p, HR_ERR_UNSUPPORTED, version,
                    "the profile has format version %lld; this library reads %d",
                    (long long)version->as.integer, HR_PROFILE_VERSION);
    return HR_OK;
}

static enum hr_err read_profile(const struct parse *p, const struct hr_doc *root)
{
    static const char *const more[] = {"headrace_profile", "machine", "nodes", NULL};
    static const char *const none[] = {NULL};
    const struct hr_doc *machine = NULL;

    HR_TRY(check_version(p, root));
    HR_TRY(check_keys(p, root, &hr__profile_top, more));
    HR_TRY(read_items(p, &hr__profile_top, root, p->profile));
    HR_TRY(need(p, root, "machine", HR_DOC_MAP, "a map", &machine));
    HR_TRY(check_keys(p, machine, &hr__profile_where, none));
    HR_TRY(read_items(p, &hr__profile_where, machine, &p->profile->machine));
    return read_nodes(p, root);
}

enum hr_err hr__profile_parse(const char *text, size_t bytes, const char *name,
                              struct hr_profile *ret_profile, struct hr_error *reterr)
{
    struct hr_profile profile = {.node_count = 0};
    struct parse parse = {name, &profile, reterr};
    struct hr_doc *root;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, name, &root, reterr));
    code = read_profile(&parse, root);
    hr__doc_destroy(root);
    if (code != HR_OK) {
        hr__profile_finish(&profile);
        return code;
    }
    *ret_profile = profile;
    return HR_OK;
}
