/*
 * graph/profile_print.c - a profile as JSON.
 */
#include "core/str.h"
#include "graph/profile_items.h"

/* Makers return NULL, and set/append an error, only when out of memory. */
static bool set(struct hr_doc *map, const char *key, struct hr_doc *value)
{
    return value != NULL && hr__doc_set(map, key, value) == HR_OK;
}

static struct hr_doc *hash_doc(const void *at)
{
    const struct hr_hash128 *hash = at;
    char text[HR_HASH_TEXT_BYTES];

    hr__hash_text(*hash, text);
    return hr__doc_string(text);
}

static struct hr_doc *double_doc(const struct hr_profile_item *item, const void *object)
{
    double value = hr__profile_item_double(item, object);

    return item->type == HR_PROFILE_PERHAPS && value < 0 ? hr__doc_new(HR_DOC_NULL)
                                                         : hr__doc_double(value);
}

static struct hr_doc *item_doc(const struct hr_profile_item *item, const void *object)
{
    const char *at = (const char *)object + item->offset;

    switch (item->type) {
    case HR_PROFILE_TEXT:
        return hr__doc_string(at);
    case HR_PROFILE_HASH:
        return hash_doc(at);
    case HR_PROFILE_BOOL:
        return hr__doc_bool(hr__profile_item_int(item, object) != 0);
    case HR_PROFILE_VARIANT:
        return hr__doc_string(hr__plan_variants[hr__profile_item_int(item, object)]);
    case HR_PROFILE_DOUBLE:
    case HR_PROFILE_PERHAPS:
        return double_doc(item, object);
    default:
        return hr__doc_int(hr__profile_item_int(item, object));
    }
}

static bool
set_items(struct hr_doc *map, const struct hr_profile_table *table, const void *object)
{
    bool ok = map != NULL;

    for (size_t i = 0; ok && i < table->count; i++)
        ok = set(map, table->items[i].key, item_doc(&table->items[i], object));
    return ok;
}

/* Appends to `list`, which is in the document; false if out of memory. */
static bool add_node(struct hr_doc *list, const struct hr_profile_node *node)
{
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);

    return map != NULL && hr__doc_append(list, map) == HR_OK &&
           set(map, "node", hr__doc_string(node->name)) &&
           set(map, "op", hr__doc_string(node->op)) &&
           set_items(map, &hr__profile_node, node);
}

static bool fill(struct hr_doc *map, const struct hr_profile *profile)
{
    struct hr_doc *machine = hr__doc_new(HR_DOC_MAP), *nodes = hr__doc_new(HR_DOC_LIST);
    bool ok;

    ok = set(map, "headrace_profile", hr__doc_int(HR_PROFILE_VERSION)) &&
         set_items(map, &hr__profile_top, profile);
    if (!ok) {
        hr__doc_destroy(machine);
        hr__doc_destroy(nodes);
        return false;
    }
    ok = set(map, "machine", machine);
    ok = set(map, "nodes", nodes) && ok;
    ok = ok && set_items(machine, &hr__profile_where, &profile->machine);
    for (size_t i = 0; ok && i < profile->node_count; i++)
        ok = add_node(nodes, &profile->nodes[i]);
    return ok;
}

void hr__profile_print(const struct hr_profile *profile, struct hr_str *out)
{
    struct hr_doc *doc = hr__doc_new(HR_DOC_MAP);

    if (doc == NULL || !fill(doc, profile))
        out->failed = true;
    else
        hr__doc_print_json(doc, true, out);
    hr__doc_destroy(doc);
}
