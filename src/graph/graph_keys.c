/*
 * graph/graph_keys.c - what the records that an order op reads are known by before they
 * are read.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *key_name(const struct hr_graph_node *source, size_t i);

/* The number of key `by` of the source; HR_KEY_INDEX if it has none. */
static size_t find_key(const struct hr_graph_node *source, const char *by)
{
    size_t key = 0;

    while (key_name(source, key) != NULL && strcmp(key_name(source, key), by) != 0)
        key++;
    return key_name(source, key) != NULL ? key : HR_KEY_INDEX;
}

/* The source that is read for position *at of the node's output; *at becomes the index
 * there, and *base the records of the inputs of merges before it. */
static uint32_t
find_source(const struct hr_graph *graph, uint32_t node, uint64_t *at, uint64_t *base)
{
    struct hr_record_id id = {0};

    *base = 0;
    while (graph->nodes[node].input_count > 0) {
        const struct hr_graph_node *n = &graph->nodes[node];
        size_t input = 0;

        if (n->op->kind == HR_OP_ORDER) {
            *at = n->op->order.map(n->params, n->state,
                                   (uint64_t)graph->nodes[n->inputs[0]].positions, *at,
                                   &id, n->draw_id);
        } else if (n->op->kind == HR_OP_MERGE) {
            uint64_t counts[HR_NODE_INPUTS_MAX];
            struct hr_merge_inputs inputs = {counts, n->input_count};

            for (size_t i = 0; i < n->input_count; i++)
                counts[i] = (uint64_t)graph->nodes[n->inputs[i]].schema.records;
            input = n->op->merge.map(n->params, &inputs, (uint64_t)n->schema.records, 1,
                                     *at, &id, n->draw_id, at);
            for (size_t i = 0; i < input; i++)
                *base += counts[i];
        }
        node = n->inputs[input];
    }
    return node;
}

static enum hr_err get_key(const struct hr_keys *base, uint64_t at, struct hr_str *key,
                           struct hr_error *error)
{
    const struct hr_graph_keys *keys = (const struct hr_graph_keys *)base;
    const struct hr_graph_node *source;
    uint64_t before;

    assert(at < base->count);
    source = &keys->graph->nodes[find_source(keys->graph, keys->node, &at, &before)];
    hr__str_clear(key);
    if (keys->by_index)
        hr__str_addf(key, "%llu", (unsigned long long)(before + at));
    else
        HR_TRY(source->op->source.key(source->params, source->state,
                                      find_key(source, keys->by), at, key, error));
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

/* Checks that the sources of all records know the key. */
static enum hr_err check_sources(const struct hr_graph *graph, uint32_t node,
                                 const char *by, bool *ret_index, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (n->input_count == 0) {
        *ret_index = find_key(n, by) == HR_KEY_INDEX;
        return *ret_index && strcmp(by, "index") != 0 ? refuse(n, by, error) : HR_OK;
    }
    for (size_t i = 0; i < (n->op->kind == HR_OP_MERGE ? n->input_count : 1); i++)
        HR_TRY(check_sources(graph, n->inputs[i], by, ret_index, error));
    return HR_OK;
}

enum hr_err hr__graph_keys(const struct hr_graph *graph, uint32_t node, const char *by,
                           struct hr_graph_keys *ret_keys, struct hr_error *error)
{
    uint32_t input = graph->nodes[node].inputs[0];

    assert(graph->nodes[input].positions >= 0);
    *ret_keys = (struct hr_graph_keys){
        .base = {.count = (uint64_t)graph->nodes[input].positions, .get = get_key},
        .graph = graph,
        .node = input,
        .by = by,
    };
    return check_sources(graph, input, by, &ret_keys->by_index, error);
}
