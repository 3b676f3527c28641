/*
 * graph/graph_keys.c - what the records that an order op reads are known by before they
 * are read.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static uint32_t source_of(const struct hr_graph *graph, uint32_t node)
{
    while (graph->nodes[node].input_count > 0)
        node = graph->nodes[node].inputs[0];
    return node;
}

/* The index that the source reads for position `at` of the node's output. */
static uint64_t source_index(const struct hr_graph *graph, uint32_t node, uint64_t at)
{
    struct hr_record_id id = {0};

    while (graph->nodes[node].input_count > 0) {
        const struct hr_graph_node *n = &graph->nodes[node];

        node = n->inputs[0];
        if (n->op->kind == HR_OP_ORDER)
            at = n->op->order.map(n->params, n->state,
                                  (uint64_t)graph->nodes[node].positions, at, &id,
                                  n->draw_id);
    }
    return at;
}

static enum hr_err get_key(const struct hr_keys *base, uint64_t at, struct hr_str *key,
                           struct hr_error *error)
{
    const struct hr_graph_keys *keys = (const struct hr_graph_keys *)base;
    const struct hr_graph_node *source = &keys->graph->nodes[keys->source];
    uint64_t index = source_index(keys->graph, keys->node, at);

    assert(at < base->count);
    hr__str_clear(key);
    if (keys->key == HR_KEY_INDEX)
        hr__str_addf(key, "%llu", (unsigned long long)index);
    else
        HR_TRY(source->op->source.key(source->params, source->state, keys->key, index,
                                      key, error));
    return hr__str_ok(key) ? HR_OK : hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* The name of the source's i-th key; "index" is the last one. */
static const char *key_name(const struct hr_graph_node *source, size_t i)
{
    const struct hr_op_source *op = &source->op->source;

    if (op->key_name == NULL)
        return NULL;
    return op->key_name(source->params, source->state, i);
}

static enum hr_err
refuse(const struct hr_graph_node *source, const char *by, struct hr_error *error)
{
    const char *names[HR_SCHEMA_FIELDS_MAX + 2], *near;
    struct hr_str tail;
    size_t count = 0;

    while (count <= HR_SCHEMA_FIELDS_MAX && key_name(source, count) != NULL) {
        names[count] = key_name(source, count);
        count++;
    }
    names[count++] = "index";
    near = hr__nearest(by, names, count);
    hr__str_init(&tail);
    if (near != NULL)
        hr__str_addf(&tail, "; did you mean \"%s\"?", near);
    hr__str_add(&tail, near != NULL ? " Known are: " : "; known are: ");
    for (size_t i = 0; i < count; i++)
        hr__str_addf(&tail, "%s%s", i > 0 ? ", " : "", names[i]);
    snprintf(error->param, sizeof error->param, "by");
    hr__fail(error, HR_ERR_ARGUMENT,
             "before a record of '%s' is read, its \"%s\" is not known%s (its number, "
             "which changes when others are added before it)%s",
             source->name, by, hr__str_text(&tail),
             source->op->source.key_name == NULL && source->op->source.locate != NULL
                 ? ". Of records that 'headrace pack' has written all integers and texts "
                   "are known"
                 : "");
    hr__str_finish(&tail);
    return HR_ERR_ARGUMENT;
}

enum hr_err hr__graph_keys(const struct hr_graph *graph, uint32_t node, const char *by,
                           struct hr_graph_keys *ret_keys, struct hr_error *error)
{
    uint32_t input = graph->nodes[node].inputs[0], at = source_of(graph, input);
    const struct hr_graph_node *source = &graph->nodes[at];
    size_t key = 0;

    assert(graph->nodes[input].positions >= 0);
    *ret_keys = (struct hr_graph_keys){
        .base = {.count = (uint64_t)graph->nodes[input].positions, .get = get_key},
        .graph = graph,
        .node = input,
        .source = at,
    };
    while (key_name(source, key) != NULL && strcmp(key_name(source, key), by) != 0)
        key++;
    if (key_name(source, key) == NULL && strcmp(by, "index") != 0)
        return refuse(source, by, error);
    ret_keys->key = key_name(source, key) != NULL ? key : HR_KEY_INDEX;
    return HR_OK;
}
