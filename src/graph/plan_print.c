/*
 * graph/plan_print.c - a plan as YAML or JSON, in the order in which people read it.
 */
#include "graph/plan_items.h"

#include <assert.h>

#include "core/alloc.h"
#include "core/str.h"

/* Makers return NULL, and set/append an error, only when out of memory. */
static bool set(struct hr_doc *map, const char *key, struct hr_doc *value)
{
    return value != NULL && hr__doc_set(map, key, value) == HR_OK;
}

static bool append(struct hr_doc *list, struct hr_doc *value)
{
    return value != NULL && hr__doc_append(list, value) == HR_OK;
}

static struct hr_doc *item_doc(const struct hr_plan_item *item, const void *object)
{
    int64_t value;

    if (item->type == HR_PLAN_REASON)
        return hr__doc_string(hr__plan_item_text(item, object));
    value = hr__plan_item_get(item, object);
    if (item->type == HR_PLAN_BOOL)
        return hr__doc_bool(value != 0);
    if (item->type == HR_PLAN_WORD)
        return hr__doc_string(item->words[value]);
    return hr__doc_int(value);
}

static bool
set_items(struct hr_doc *map, const struct hr_plan_table *table, const void *object)
{
    bool ok = map != NULL;

    for (size_t i = 0; ok && i < table->count; i++)
        ok = set(map, table->items[i].key, item_doc(&table->items[i], object));
    return ok;
}

/* The map when `ok`; else it is destroyed. */
static struct hr_doc *finished(struct hr_doc *doc, bool ok)
{
    if (ok)
        return doc;
    hr__doc_destroy(doc);
    return NULL;
}

static struct hr_doc *table_doc(const struct hr_plan_table *table, const void *object)
{
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);

    return finished(map, set_items(map, table, object));
}

static struct hr_doc *name_doc(const struct hr_plan *plan, uint32_t node)
{
    assert(node == HR_NO_NODE || node < plan->graph->count);
    return node == HR_NO_NODE ? hr__doc_new(HR_DOC_NULL)
                              : hr__doc_string(plan->graph->nodes[node].name);
}

static struct hr_doc *
step_doc(const struct hr_plan *plan, const struct hr_plan_step *step)
{
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);
    bool ok = map != NULL && set(map, "node", name_doc(plan, step->node)) &&
              set(map, "group", name_doc(plan, step->group)) &&
              set_items(map, &hr__plan_step, step);

    return finished(map, ok);
}

static struct hr_doc *
steps_doc(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    struct hr_doc *list = hr__doc_new(HR_DOC_LIST);
    bool ok = list != NULL;

    for (size_t i = 0; ok && i < stage->step_count; i++)
        ok = append(list, step_doc(plan, &stage->steps[i]));
    return finished(list, ok);
}

static struct hr_doc *
sequence_doc(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    struct hr_doc *list = hr__doc_new(HR_DOC_LIST);
    bool ok = list != NULL;

    for (size_t i = 0; ok && i < stage->sequence_count; i++)
        ok = append(list, name_doc(plan, stage->sequence[i]));
    return finished(list, ok);
}

static struct hr_doc *
stage_doc(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    struct hr_doc *map = table_doc(&hr__plan_stage, stage);
    bool ok = map != NULL &&
              set(map, "memory", table_doc(&hr__plan_stage_memory, &stage->memory)) &&
              set(map, "steps", steps_doc(plan, stage)) &&
              set(map, "expand", name_doc(plan, stage->expand));

    if (ok && stage->expand != HR_NO_NODE)
        ok = set_items(map, &hr__plan_expand, stage);
    ok = ok && set(map, "sequence", sequence_doc(plan, stage));
    return finished(map, ok);
}

static struct hr_doc *stages_doc(const struct hr_plan *plan)
{
    struct hr_doc *list = hr__doc_new(HR_DOC_LIST);
    bool ok = list != NULL;

    for (size_t i = 0; ok && i < plan->stage_count; i++)
        ok = append(list, stage_doc(plan, &plan->stages[i]));
    return finished(list, ok);
}

static struct hr_doc *plan_doc(const struct hr_plan *plan)
{
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP);
    char fingerprint[HR_FINGERPRINT_BYTES];
    bool ok = map != NULL;

    if (hr_graph_fingerprint(plan->graph, fingerprint) != HR_OK)
        ok = false;
    ok = ok && set(map, "headrace_plan", hr__doc_int(HR_PLAN_VERSION)) &&
         set(map, "graph", hr__doc_string(fingerprint)) &&
         set_items(map, &hr__plan_top, plan) &&
         set(map, "memory", table_doc(&hr__plan_memory, &plan->memory)) &&
         set(map, "caches", hr__doc_new(HR_DOC_LIST)) &&
         set(map, "stages", stages_doc(plan));
    return finished(map, ok);
}

void hr__plan_print(const struct hr_plan *plan, enum hr_graph_format format,
                    struct hr_str *out)
{
    struct hr_doc *doc = plan_doc(plan);

    if (doc == NULL)
        out->failed = true;
    else if (format == HR_GRAPH_JSON)
        hr__doc_print_json(doc, false, out);
    else
        hr__doc_print_yaml(doc, out);
    hr__doc_destroy(doc);
}
