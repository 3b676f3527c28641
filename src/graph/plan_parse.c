/*
 * graph/plan_parse.c - reads a plan: its keys, types, ranges and the names of nodes.
 */
#include "graph/plan_items.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "graph/form.h"
#include "graph/graph_private.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct parse {
    struct hr_form form;
    const struct hr_graph *graph;
    struct hr_plan *plan;
};

static void add_keys(struct hr_form_keys *keys, const struct hr_plan_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        hr__form_add_key(keys, table->items[i].key);
}

/* ---- plain members ---- */

static enum hr_err read_reason(const struct parse *p, const struct hr_plan_item *item,
                               const struct hr_doc *value, void *object)
{
    if (value == NULL)
        return HR_OK;
    if (value->kind != HR_DOC_STRING)
        return hr__form_wrong_type(&p->form, value, item->key, "a string");
    if (value->as.string.length >= HR_PLAN_REASON_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                            "\"%s\" must be shorter than %d bytes", item->key,
                            HR_PLAN_REASON_MAX);
    snprintf(hr__plan_item_text(item, object), HR_PLAN_REASON_MAX, "%s",
             value->as.string.text);
    return HR_OK;
}

static enum hr_err read_word(const struct parse *p, const struct hr_plan_item *item,
                             const struct hr_doc *value, int64_t *ret_value)
{
    struct hr_str words;
    enum hr_err code;

    for (int64_t i = 0; value->kind == HR_DOC_STRING && i <= item->max; i++)
        if (strcmp(value->as.string.text, item->words[i]) == 0) {
            *ret_value = i;
            return HR_OK;
        }
    hr__str_init(&words);
    hr__str_add(&words, "one of");
    for (int64_t i = 0; i <= item->max; i++)
        hr__str_addf(&words, "%s %s", i > 0 ? "," : "", item->words[i]);
    code = hr__form_wrong_type(&p->form, value, item->key, hr__str_text(&words));
    hr__str_finish(&words);
    return code;
}

static enum hr_err read_number(const struct parse *p, const struct hr_plan_item *item,
                               const struct hr_doc *value, int64_t *ret_value)
{
    if (value->kind != HR_DOC_INT)
        return hr__form_wrong_type(&p->form, value, item->key, "a whole number");
    if (value->as.integer < item->min || value->as.integer > item->max)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                            "\"%s\" must be %lld to %lld, not %lld", item->key,
                            (long long)item->min, (long long)item->max,
                            (long long)value->as.integer);
    *ret_value = value->as.integer;
    return HR_OK;
}

static enum hr_err read_items(const struct parse *p, const struct hr_plan_table *table,
                              const struct hr_doc *map, void *object)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct hr_plan_item *item = &table->items[i];
        const struct hr_doc *value = hr__doc_get(map, item->key);
        int64_t number = 0;

        if (item->type == HR_PLAN_REASON) {
            HR_TRY(read_reason(p, item, value, object));
            continue;
        }
        if (value == NULL)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, map, "the key \"%s\" is missing",
                                item->key);
        if (item->type == HR_PLAN_WORD)
            HR_TRY(read_word(p, item, value, &number));
        else if (item->type == HR_PLAN_BOOL && value->kind != HR_DOC_BOOL)
            return hr__form_wrong_type(&p->form, value, item->key, "true or false");
        else if (item->type == HR_PLAN_BOOL)
            number = value->as.boolean;
        else
            HR_TRY(read_number(p, item, value, &number));
        hr__plan_item_set(item, object, number);
    }
    return HR_OK;
}

static enum hr_err read_memory(const struct parse *p, const struct hr_plan_table *table,
                               const struct hr_doc *owner, void *object)
{
    const struct hr_doc *map = NULL;
    struct hr_form_keys keys = {.count = 0};

    add_keys(&keys, table);
    HR_TRY(hr__form_need(&p->form, owner, "memory", HR_DOC_MAP, "a map", &map));
    HR_TRY(hr__form_check_keys(&p->form, map, &keys));
    return read_items(p, table, map, object);
}

/* ---- nodes ---- */

static enum hr_err read_node(const struct parse *p, const struct hr_doc *value,
                             const char *key, uint32_t *ret_node)
{
    struct hr_error error = {0};

    if (value->kind != HR_DOC_STRING)
        return hr__form_wrong_type(&p->form, value, key, "the name of a node");
    if (hr__graph_find(p->graph, value->as.string.text, ret_node, &error) != HR_OK)
        return HR_FORM_FAIL(&p->form, error.code, value, "%s", error.message);
    return HR_OK;
}

static enum hr_err read_node_or_null(const struct parse *p, const struct hr_doc *map,
                                     const char *key, uint32_t *ret_node)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    *ret_node = HR_NO_NODE;
    if (value == NULL)
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, map, "the key \"%s\" is missing",
                            key);
    return value->kind == HR_DOC_NULL ? HR_OK : read_node(p, value, key, ret_node);
}

static enum hr_err
read_step(const struct parse *p, const struct hr_doc *map, struct hr_plan_step *step)
{
    struct hr_form_keys keys = {
        {"node", "group"},
        2
    };
    const struct hr_doc *value = NULL;

    if (map->kind != HR_DOC_MAP)
        return hr__form_wrong_type(&p->form, map, "steps", "a list of maps");
    add_keys(&keys, &hr__plan_step);
    HR_TRY(hr__form_check_keys(&p->form, map, &keys));
    step->line = map->line;
    step->column = map->column;
    HR_TRY(hr__form_need(&p->form, map, "node", HR_DOC_STRING, "the name of a node",
                         &value));
    HR_TRY(read_node(p, value, "node", &step->node));
    HR_TRY(hr__form_need(&p->form, map, "group", HR_DOC_STRING, "the name of a node",
                         &value));
    HR_TRY(read_node(p, value, "group", &step->group));
    return read_items(p, &hr__plan_step, map, step);
}

static enum hr_err
read_steps(const struct parse *p, const struct hr_doc *map, struct hr_plan_stage *stage)
{
    const struct hr_doc *list = NULL;

    HR_TRY(hr__form_need(&p->form, map, "steps", HR_DOC_LIST, "a list", &list));
    stage->steps = hr__calloc(list->as.list.count + 1, sizeof *stage->steps);
    if (stage->steps == NULL)
        return hr__fail(p->form.error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(read_step(p, list->as.list.items[i], &stage->steps[stage->step_count++]));
    return HR_OK;
}

static enum hr_err read_sequence(const struct parse *p, const struct hr_doc *map,
                                 struct hr_plan_stage *stage)
{
    const struct hr_doc *list = NULL;

    HR_TRY(hr__form_need(&p->form, map, "sequence", HR_DOC_LIST, "a list", &list));
    if (list->as.list.count > COUNT(stage->sequence))
        return HR_FORM_FAIL(&p->form, HR_ERR_LIMIT, list,
                            "the sequence of a stage has at most %zu nodes",
                            COUNT(stage->sequence));
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(read_node(p, list->as.list.items[i], "sequence",
                         &stage->sequence[stage->sequence_count++]));
    return HR_OK;
}

static enum hr_err
read_stage(const struct parse *p, const struct hr_doc *map, struct hr_plan_stage *stage)
{
    struct hr_form_keys keys = {
        {"memory", "steps", "expand", "sequence"},
        4
    };

    if (map->kind != HR_DOC_MAP)
        return hr__form_wrong_type(&p->form, map, "stages", "a list of maps");
    add_keys(&keys, &hr__plan_stage);
    add_keys(&keys, &hr__plan_expand);
    HR_TRY(hr__form_check_keys(&p->form, map, &keys));
    stage->line = map->line;
    stage->column = map->column;
    stage->feed = stage->last = HR_NO_NODE;
    HR_TRY(read_items(p, &hr__plan_stage, map, stage));
    HR_TRY(read_memory(p, &hr__plan_stage_memory, map, &stage->memory));
    HR_TRY(read_steps(p, map, stage));
    HR_TRY(read_node_or_null(p, map, "expand", &stage->expand));
    if (stage->expand != HR_NO_NODE)
        HR_TRY(read_items(p, &hr__plan_expand, map, stage));
    return read_sequence(p, map, stage);
}

/* ---- the whole ---- */

static enum hr_err check_graph(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *value = NULL;
    char fingerprint[HR_FINGERPRINT_BYTES];

    HR_TRY(hr__form_need(&p->form, root, "graph", HR_DOC_STRING,
                         "the fingerprint of a graph", &value));
    HR_TRY(hr_graph_fingerprint(p->graph, fingerprint));
    if (strcmp(value->as.string.text, fingerprint) != 0)
        return HR_FORM_FAIL(
            &p->form, HR_ERR_STATE, value,
            "the plan is for another graph: its fingerprint is %.40s, this "
            "graph's is %s; make a plan of this one (headrace plan)",
            value->as.string.text, fingerprint);
    return HR_OK;
}

static enum hr_err read_stages(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *list = NULL;

    HR_TRY(hr__form_need(&p->form, root, "stages", HR_DOC_LIST, "a list", &list));
    if (list->as.list.count == 0 || list->as.list.count > HR_PLAN_STAGES_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, list,
                            "a plan has 1 to %d stages, not %zu", HR_PLAN_STAGES_MAX,
                            list->as.list.count);
    for (size_t i = 0; i < list->as.list.count; i++)
        HR_TRY(read_stage(p, list->as.list.items[i],
                          &p->plan->stages[p->plan->stage_count++]));
    return HR_OK;
}

static enum hr_err read_plan(const struct parse *p, const struct hr_doc *root)
{
    struct hr_form_keys keys = {
        {"headrace_plan", "graph", "memory", "caches", "stages"},
        5
    };
    const struct hr_doc *caches = NULL;

    add_keys(&keys, &hr__plan_top);
    HR_TRY(hr__form_check_version(&p->form, root, "plan", HR_PLAN_VERSION));
    HR_TRY(hr__form_check_keys(&p->form, root, &keys));
    HR_TRY(check_graph(p, root));
    HR_TRY(read_items(p, &hr__plan_top, root, p->plan));
    HR_TRY(read_memory(p, &hr__plan_memory, root, &p->plan->memory));
    HR_TRY(hr__form_need(&p->form, root, "caches", HR_DOC_LIST, "a list", &caches));
    if (caches->as.list.count > 0)
        return HR_FORM_FAIL(
            &p->form, HR_ERR_UNSUPPORTED, caches->as.list.items[0],
            "this library has no caches yet; \"caches\" must be an empty list");
    return read_stages(p, root);
}

enum hr_err hr__plan_fail_at(struct hr_error *error, enum hr_err code, const char *name,
                             int line, int column, const char *format, ...)
{
    char message[sizeof error->message];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (line == 0) /* made by a program */
        return hr__fail(error, code, "%s", message);
    return hr__fail_at(error, code, name, line, column, "%s:%d:%d: %s", name, line,
                       column, message);
}

enum hr_err
hr__plan_parse(const struct hr_graph *graph, const char *text, size_t bytes,
               const char *name, struct hr_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_plan plan = {.graph = graph, .root = HR_NO_NODE, .remote = HR_NO_NODE};
    struct parse parse = {
        {name, reterr},
        graph, &plan
    };
    struct hr_doc *root;
    enum hr_err code;

    assert(graph->frozen);
    HR_TRY(hr__doc_parse(text, bytes, name, &root, reterr));
    code = read_plan(&parse, root);
    hr__doc_destroy(root);
    if (code != HR_OK) {
        hr__plan_finish(&plan);
        return code;
    }
    *ret_plan = plan;
    return HR_OK;
}
