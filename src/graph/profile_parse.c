/*
 * graph/profile_parse.c - reads a profile from JSON or YAML. Nothing in it is believed:
 * every key must be there, of its type and in its range.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "graph/form.h"
#include "graph/profile_items.h"

struct parse {
    struct hr_form form;
    struct hr_profile *profile;
    int version; /* of the file */
};

/* A map has no keys but those of the table and of `more`, a list that ends with NULL. */
static enum hr_err
check_keys(const struct parse *p, const struct hr_doc *map,
           const struct hr_profile_table *table, const char *const *more)
{
    struct hr_form_keys keys = {.count = 0};

    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].since <= p->version)
            hr__form_add_key(&keys, table->items[i].key);
    for (; *more != NULL; more++)
        hr__form_add_key(&keys, *more);
    return hr__form_check_keys(&p->form, map, &keys);
}

/* ---- members ---- */

static enum hr_err read_text(const struct parse *p, const struct hr_profile_item *item,
                             const struct hr_doc *map, char *at)
{
    const char *text = NULL;

    HR_TRY(hr__form_need_text(&p->form, map, item->key, &text));
    if (strlen(text) >= (size_t)item->max)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, hr__doc_get(map, item->key),
                            "\"%s\" must be shorter than %d bytes", item->key,
                            (int)item->max);
    memcpy(at, text, strlen(text) + 1);
    return HR_OK;
}

static enum hr_err read_hash(const struct parse *p, const struct hr_profile_item *item,
                             const struct hr_doc *map, char *at)
{
    struct hr_hash128 hash;
    const char *text = NULL;

    HR_TRY(hr__form_need_text(&p->form, map, item->key, &text));
    if (!hr__hash_parse(text, &hash))
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, hr__doc_get(map, item->key),
                            "\"%s\" must be 32 hex digits, not \"%.40s\"", item->key,
                            text);
    memcpy(at, &hash, sizeof hash);
    return HR_OK;
}

static enum hr_err read_variant(const struct parse *p, const struct hr_profile_item *item,
                                const struct hr_doc *map, char *at)
{
    const char *text = NULL;

    HR_TRY(hr__form_need_text(&p->form, map, item->key, &text));
    for (uint32_t i = 0; i < HR_PLAN_VARIANTS; i++)
        if (strcmp(hr__plan_variants[i], text) == 0) {
            memcpy(at, &i, sizeof i);
            return HR_OK;
        }
    return HR_FORM_FAIL(
        &p->form, HR_ERR_RANGE, hr__doc_get(map, item->key),
        "\"%s\" must be threads, inline, processes or remote, not \"%.40s\"", item->key,
        text);
}

static enum hr_err read_bool(const struct parse *p, const struct hr_profile_item *item,
                             const struct hr_doc *map, char *at)
{
    const struct hr_doc *value = NULL;

    HR_TRY(hr__form_need(&p->form, map, item->key, HR_DOC_BOOL, "true or false", &value));
    memcpy(at, &value->as.boolean, sizeof value->as.boolean);
    return HR_OK;
}

static enum hr_err read_int(const struct parse *p, const struct hr_profile_item *item,
                            const struct hr_doc *map, char *at)
{
    const struct hr_doc *value = NULL;
    uint32_t narrow;

    HR_TRY(hr__form_need(&p->form, map, item->key, HR_DOC_INT, "a whole number", &value));
    if (value->as.integer < 0 || value->as.integer > (int64_t)item->max)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                            "\"%s\" must be 0 to %lld, not %lld", item->key,
                            (long long)item->max, (long long)value->as.integer);
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
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, map, "the key \"%s\" is missing",
                            item->key);
    if (value->kind == HR_DOC_INT || value->kind == HR_DOC_DOUBLE) {
        number = value->kind == HR_DOC_INT ? (double)value->as.integer : value->as.number;
        if (!(number >= 0 && number <= item->max))
            return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                                "\"%s\" must be 0 to %g, not %g", item->key, item->max,
                                number);
    } else if (value->kind != HR_DOC_NULL || item->type != HR_PROFILE_PERHAPS)
        return hr__form_wrong_type(&p->form, value, item->key,
                                   item->type == HR_PROFILE_PERHAPS ? "a number or null"
                                                                    : "a number");
    memcpy(at, &number, sizeof number);
    return HR_OK;
}

/* A member that the file's version does not have. */
static void set_unknown(const struct hr_profile_item *item, void *object)
{
    const double unknown = HR_PROFILE_UNKNOWN;

    assert(item->type == HR_PROFILE_PERHAPS);
    memcpy((char *)object + item->offset, &unknown, sizeof unknown);
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

        if (item->since > p->version) {
            set_unknown(item, object);
            continue;
        }
        HR_TRY(readers[item->type](p, item, map, (char *)object + item->offset));
    }
    return HR_OK;
}

/* ---- the whole ---- */

static enum hr_err need_name(const struct parse *p, const struct hr_doc *map,
                             const char *key, const char **ret_name)
{
    HR_TRY(hr__form_need_text(&p->form, map, key, ret_name));
    return **ret_name != '\0'
               ? HR_OK
               : HR_FORM_FAIL(&p->form, HR_ERR_RANGE, hr__doc_get(map, key),
                              "\"%s\" is empty", key);
}

static enum hr_err read_node(const struct parse *p, const struct hr_doc *map)
{
    static const char *const more[] = {"node", "op", NULL};
    const char *name = NULL, *op = NULL;
    struct hr_profile_node *node;

    if (map->kind != HR_DOC_MAP)
        return hr__form_wrong_type(&p->form, map, "nodes", "a list of maps");
    HR_TRY(check_keys(p, map, &hr__profile_node, more));
    HR_TRY(need_name(p, map, "node", &name));
    HR_TRY(need_name(p, map, "op", &op));
    node = hr__profile_add(p->profile, name, op);
    if (node == NULL)
        return hr__fail(p->form.error, HR_ERR_MEMORY, "out of memory");
    return read_items(p, &hr__profile_node, map, node);
}

static enum hr_err read_nodes(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *list = NULL;

    HR_TRY(hr__form_need(&p->form, root, "nodes", HR_DOC_LIST, "a list", &list));
    if (list->as.list.count == 0)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, list, "\"nodes\" is empty");
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(read_node(p, list->as.list.items[i]));
    return HR_OK;
}

/* Files of earlier versions are read, too. */
static enum hr_err read_version(struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *found = NULL;

    p->version = HR_PROFILE_VERSION;
    if (root->kind == HR_DOC_MAP)
        found = hr__doc_get(root, "headrace_profile");
    if (found != NULL && found->kind == HR_DOC_INT && found->as.integer >= 1 &&
        found->as.integer < HR_PROFILE_VERSION)
        p->version = (int)found->as.integer;
    return hr__form_check_version(&p->form, root, "profile", p->version);
}

static enum hr_err read_profile(struct parse *p, const struct hr_doc *root)
{
    static const char *const more[] = {"headrace_profile", "machine", "nodes", NULL};
    static const char *const none[] = {NULL};
    const struct hr_doc *machine = NULL;

    HR_TRY(read_version(p, root));
    HR_TRY(check_keys(p, root, &hr__profile_top, more));
    HR_TRY(read_items(p, &hr__profile_top, root, p->profile));
    HR_TRY(hr__form_need(&p->form, root, "machine", HR_DOC_MAP, "a map", &machine));
    HR_TRY(check_keys(p, machine, &hr__profile_where, none));
    HR_TRY(read_items(p, &hr__profile_where, machine, &p->profile->machine));
    return read_nodes(p, root);
}

enum hr_err hr__profile_parse(const char *text, size_t bytes, const char *name,
                              struct hr_profile *ret_profile, struct hr_error *reterr)
{
    struct hr_profile profile = {.node_count = 0};
    struct parse parse = {
        .form = {name, reterr},
          .profile = &profile
    };
    struct hr_doc *root;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, name, &root, reterr));
    code = read_profile(&parse, root);
    hr__doc_destroy(root);
    if (code != HR_OK) {
        hr__profile_finish(&profile);
        return code;
    }
    snprintf(profile.file, sizeof profile.file, "%s", name);
    *ret_profile = profile;
    return HR_OK;
}
