/*
 * api/graph_api.c - headrace/graph.h: checks arguments, then calls the implementation.
 */
#include "core/alloc.h"
#include "graph/graph.h"

#include <string.h>

static enum hr_err wrong(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_ARGUMENT, "%s must not be NULL", what);
}

struct hr_graph *hr_graph_create(void)
{
    return hr__graph_create();
}

struct hr_graph *hr_graph_ref(struct hr_graph *graph)
{
    if (graph != NULL)
        hr__graph_ref(graph);
    return graph;
}

void hr_graph_unref(struct hr_graph *graph)
{
    hr__graph_unref(graph);
}

static enum hr_err
check_params(const struct hr_graph_param *params, size_t count, struct hr_error *reterr)
{
    if (count > 0 && params == NULL)
        return wrong(reterr, "params");
    for (size_t i = 0; i < count; i++) {
        if (params[i].name == NULL || params[i].value == NULL)
            return wrong(reterr, "name and value of a parameter");
    }
    return HR_OK;
}

enum hr_err
hr_graph_load(const char *path, const struct hr_graph_param *params, size_t param_count,
              struct hr_graph **ret_graph, struct hr_error *reterr)
{
    if (path == NULL || ret_graph == NULL)
        return wrong(reterr, path == NULL ? "path" : "ret_graph");
    HR_TRY(check_params(params, param_count, reterr));
    return hr__graph_load(path, params, param_count, ret_graph, reterr);
}

enum hr_err hr_graph_parse(const char *text, size_t bytes, const char *name,
                           const struct hr_graph_param *params, size_t param_count,
                           struct hr_graph **ret_graph, struct hr_error *reterr)
{
    if ((text == NULL && bytes > 0) || ret_graph == NULL)
        return wrong(reterr, ret_graph == NULL ? "ret_graph" : "text");
    HR_TRY(check_params(params, param_count, reterr));
    return hr__graph_parse(text != NULL ? text : "", bytes, name != NULL ? name : "graph",
                           params, param_count, ret_graph, reterr);
}

enum hr_err
hr_graph_add(struct hr_graph *graph, const char *op, const char *name,
             const struct hr_node *inputs, size_t input_count, const char *params,
             struct hr_node *ret_node, struct hr_error *reterr)
{
    if (graph == NULL || op == NULL)
        return wrong(reterr, graph == NULL ? "graph" : "op");
    if (input_count > 0 && inputs == NULL)
        return wrong(reterr, "inputs");
    return hr__graph_add(graph, op, name, inputs, input_count, params, ret_node, reterr);
}

enum hr_err hr_graph_freeze(struct hr_graph *graph, struct hr_error *reterr)
{
    if (graph == NULL)
        return wrong(reterr, "graph");
    return hr__graph_freeze(graph, reterr);
}

enum hr_err
hr_graph_fingerprint(const struct hr_graph *graph, char ret_text[HR_FINGERPRINT_BYTES])
{
    if (graph == NULL || ret_text == NULL)
        return HR_ERR_ARGUMENT;
    if (!graph->frozen)
        return HR_ERR_STATE;
    hr__hash_text(graph->nodes[graph->output].fingerprint, ret_text);
    return HR_OK;
}

enum hr_err hr_graph_print(const struct hr_graph *graph, enum hr_graph_format format,
                           char **ret_text, struct hr_error *reterr)
{
    if (graph == NULL || ret_text == NULL)
        return wrong(reterr, graph == NULL ? "graph" : "ret_text");
    if (format != HR_GRAPH_YAML && format != HR_GRAPH_JSON)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "there is no graph format %d",
                        (int)format);
    return hr__graph_print(graph, format, ret_text, reterr);
}

void hr_free(void *memory)
{
    hr__free(memory);
}

enum hr_err hr_graph_param_info(const struct hr_graph *graph, size_t at,
                                struct hr_graph_param_info *ret_info)
{
    if (graph == NULL || ret_info == NULL)
        return HR_ERR_ARGUMENT;
    return hr__graph_param_info(graph, at, ret_info);
}

size_t hr_graph_node_count(const struct hr_graph *graph)
{
    return graph != NULL ? graph->count : 0;
}

enum hr_err
hr_graph_node_info(const struct hr_graph *graph, size_t at, struct hr_node_info *ret_info)
{
    struct hr_node_info info = {0};
    const struct hr_graph_node *node;

    if (graph == NULL || ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= graph->count)
        return HR_ERR_RANGE;
    node = &graph->nodes[at];
    info.name = node->name;
    info.op = node->op->name;
    info.input_count = node->input_count;
    for (size_t i = 0; i < node->input_count; i++)
        info.inputs[i].id = node->inputs[i];
    if (graph->frozen && node->op->source.note != NULL)
        info.note = node->op->source.note(node->state);
    *ret_info = info;
    return HR_OK;
}

enum hr_err hr_graph_node_params(const struct hr_graph *graph, size_t at, char **ret_json,
                                 struct hr_error *reterr)
{
    if (graph == NULL || ret_json == NULL)
        return wrong(reterr, graph == NULL ? "graph" : "ret_json");
    if (at >= graph->count)
        return hr__fail(reterr, HR_ERR_RANGE, "there is no node %zu; the graph has %zu",
                        at, graph->count);
    return hr__graph_node_params(graph, at, ret_json, reterr);
}

size_t hr_graph_field_count(const struct hr_graph *graph, size_t node)
{
    if (graph == NULL || !graph->frozen || node >= graph->count)
        return 0;
    return graph->nodes[node].schema.count;
}

enum hr_err hr_graph_field_info(const struct hr_graph *graph, size_t node, size_t field,
                                struct hr_field_info *ret_info)
{
    if (graph == NULL || ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (!graph->frozen)
        return HR_ERR_STATE;
    if (node >= graph->count || field >= graph->nodes[node].schema.count)
        return HR_ERR_RANGE;
    hr__field_info(&graph->nodes[node].schema.fields[field], ret_info);
    return HR_OK;
}

int64_t hr_graph_record_count(const struct hr_graph *graph)
{
    if (graph == NULL || !graph->frozen)
        return -1;
    return graph->nodes[graph->output].schema.records;
}
