/*
 * graph/graph_permute.c - copies of a graph: its nodes in other places, with a node more,
 * and up to a node.
 *
 * A place is a position in the list of nodes with the inputs that are written there. The
 * nodes that stand in the places change; names go with the nodes, and with them their
 * random draws.
 */
#include "graph/graph_private.h"

#include <assert.h>

#include "core/alloc.h"

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* Places read from places. */
static enum hr_err append(const struct hr_graph *graph, struct hr_graph *copy,
                          uint32_t place, uint32_t node, struct hr_error *reterr)
{
    const struct hr_graph_node *n = &graph->nodes[node], *p = &graph->nodes[place];
    struct hr_doc *given = NULL;

    if (n->given != NULL) {
        given = hr__doc_copy(n->given);
        if (given == NULL)
            return no_memory(reterr);
    }
    return hr__graph_append(copy, n->op->name, n->name, p->inputs, p->input_count, given,
                            n->line, n->column, reterr);
}

static enum hr_err
share_about(const struct hr_graph *graph, struct hr_graph *copy, struct hr_error *reterr)
{
    static const char *const keys[] = {"title", "description"};
    const struct hr_graph_private *from = graph->private;
    const struct hr_doc *root = from->written != NULL ? from->written : from->about;

    for (size_t i = 0; root != NULL && i < sizeof keys / sizeof keys[0]; i++) {
        const struct hr_doc *text = hr__doc_get(root, keys[i]);
        struct hr_doc **about = &copy->private->about, *value;

        if (text == NULL)
            continue;
        if (*about == NULL)
            *about = hr__doc_new(HR_DOC_MAP);
        value = hr__doc_copy(text);
        if (*about == NULL || value == NULL) {
            hr__doc_destroy(value);
            return no_memory(reterr);
        }
        if (hr__doc_set(*about, keys[i], value) != HR_OK)
            return no_memory(reterr);
    }
    return HR_OK;
}

/* What belongs to no node. */
static enum hr_err
share(const struct hr_graph *graph, struct hr_graph *copy, struct hr_error *reterr)
{
    hr__code_table_unref(copy->codes);
    copy->codes = hr__code_table_ref(graph->codes);
    if (graph->file != NULL) {
        copy->file = hr__strdup(graph->file);
        if (copy->file == NULL)
            return no_memory(reterr);
    }
    return share_about(graph, copy, reterr);
}

static enum hr_err fill(const struct hr_graph *graph, const uint32_t *nodes,
                        struct hr_graph *copy, struct hr_error *reterr)
{
    HR_TRY(share(graph, copy, reterr));
    for (uint32_t i = 0; i < graph->count; i++)
        HR_TRY(append(graph, copy, i, nodes[i], reterr));
    for (size_t r = 0; r < graph->rewrite_count; r++)
        for (uint32_t i = 0; i < graph->count; i++)
            if (nodes[i] == graph->rewrites[r].node &&
                hr__graph_make_after(copy, i) != HR_OK)
                return no_memory(reterr);
    return HR_OK;
}

#ifndef NDEBUG
static bool is_permutation(const uint32_t *nodes, size_t count)
{
    bool seen[HR_GRAPH_NODES_MAX] = {false};

    for (size_t i = 0; i < count; i++) {
        if (nodes[i] >= count || seen[nodes[i]])
            return false;
        seen[nodes[i]] = true;
    }
    return true;
}
#endif

enum hr_err hr__graph_permute(const struct hr_graph *graph, const uint32_t *nodes,
                              struct hr_graph **ret_graph, struct hr_error *reterr)
{
    struct hr_graph *copy = hr__graph_create();
    enum hr_err code;

    assert(is_permutation(nodes, graph->count));
    if (copy == NULL)
        return no_memory(reterr);
    code = fill(graph, nodes, copy, reterr);
    if (code != HR_OK) {
        hr__graph_unref(copy);
        return code;
    }
    *ret_graph = copy;
    return HR_OK;
}

/* ---- a node more ---- */

/* Node `node` of the graph with other inputs. */
static enum hr_err
append_with(const struct hr_graph *graph, struct hr_graph *copy, uint32_t node,
            const uint32_t *inputs, struct hr_error *reterr)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    struct hr_doc *given = n->given != NULL ? hr__doc_copy(n->given) : NULL;

    if (n->given != NULL && given == NULL)
        return no_memory(reterr);
    return hr__graph_append(copy, n->op->name, n->name, inputs, n->input_count, given,
                            n->line, n->column, reterr);
}

/* Node `node` of the graph, whose inputs from `after` on have moved one place. */
static enum hr_err append_shifted(const struct hr_graph *graph, struct hr_graph *copy,
                                  uint32_t node, uint32_t after, struct hr_error *reterr)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    uint32_t inputs[HR_NODE_INPUTS_MAX];

    for (size_t i = 0; i < n->input_count; i++)
        inputs[i] = n->inputs[i] + (n->inputs[i] >= after);
    return append_with(graph, copy, node, inputs, reterr);
}

/* A name that no node of the graph has; takes over `given`. */
static enum hr_err
append_new(const struct hr_graph *graph, struct hr_graph *copy, uint32_t after,
           const char *op, struct hr_doc *given, struct hr_error *reterr)
{
    char *name = hr__graph_auto_name(graph, graph->count, op);
    enum hr_err code;

    if (name == NULL) {
        hr__doc_destroy(given);
        return no_memory(reterr);
    }
    code = hr__graph_append(copy, op, name, &after, 1, given, 0, 0, reterr);
    hr__free(name);
    return code;
}

static enum hr_err
fill_inserted(const struct hr_graph *graph, uint32_t after, const char *op,
              struct hr_doc *given, struct hr_graph *copy, struct hr_error *reterr)
{
    enum hr_err code = share(graph, copy, reterr);

    for (uint32_t i = 0; code == HR_OK && i <= after; i++)
        code = append_shifted(graph, copy, i, after, reterr);
    if (code != HR_OK) {
        hr__doc_destroy(given);
        return code;
    }
    HR_TRY(append_new(graph, copy, after, op, given, reterr));
    for (uint32_t i = after + 1; i < graph->count; i++)
        HR_TRY(append_shifted(graph, copy, i, after, reterr));
    for (size_t r = 0; r < graph->rewrite_count; r++) {
        uint32_t node = graph->rewrites[r].node;

        if (hr__graph_make_after(copy, node + (node > after)) != HR_OK)
            return no_memory(reterr);
    }
    return HR_OK;
}

enum hr_err hr__graph_insert(const struct hr_graph *graph, uint32_t after, const char *op,
                             struct hr_doc *given, struct hr_graph **ret_graph,
                             struct hr_error *reterr)
{
    struct hr_graph *copy = hr__graph_create();
    enum hr_err code;

    assert(after < graph->count);
    if (copy == NULL) {
        hr__doc_destroy(given);
        return no_memory(reterr);
    }
    code = fill_inserted(graph, after, op, given, copy, reterr);
    if (code != HR_OK) {
        hr__graph_unref(copy);
        return code;
    }
    *ret_graph = copy;
    return HR_OK;
}

/* ---- up to a node ---- */

void hr__graph_before(const struct hr_graph *graph, uint32_t node, bool *ret_before)
{
    bool changed = true;

    for (uint32_t i = 0; i < graph->count; i++)
        ret_before[i] = i == node;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < graph->count; i++)
            for (size_t k = 0; ret_before[i] && k < graph->nodes[i].input_count; k++) {
                bool *input = &ret_before[graph->nodes[i].inputs[k]];

                changed = changed || !*input;
                *input = true;
            }
    }
}

static enum hr_err
fill_prefix(const struct hr_graph *graph, uint32_t node, struct hr_graph *copy,
            uint32_t *places, struct hr_error *reterr)
{
    bool before[HR_GRAPH_NODES_MAX];
    uint32_t count = 0;

    HR_TRY(share(graph, copy, reterr));
    hr__graph_before(graph, node, before);
    for (uint32_t i = 0; i < graph->count; i++)
        places[i] = before[i] ? count++ : (uint32_t)graph->count;
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];
        uint32_t inputs[HR_NODE_INPUTS_MAX];

        for (size_t k = 0; k < n->input_count; k++)
            inputs[k] = places[n->inputs[k]];
        if (before[i])
            HR_TRY(append_with(graph, copy, i, inputs, reterr));
    }
    for (size_t r = 0; r < graph->rewrite_count; r++) {
        uint32_t at = graph->rewrites[r].node;

        if (before[at] && hr__graph_make_after(copy, places[at]) != HR_OK)
            return no_memory(reterr);
    }
    return HR_OK;
}

enum hr_err
hr__graph_prefix(const struct hr_graph *graph, uint32_t node, uint32_t *ret_places,
                 struct hr_graph **ret_graph, struct hr_error *reterr)
{
    struct hr_graph *copy = hr__graph_create();
    enum hr_err code;

    assert(node < graph->count && graph->count <= HR_GRAPH_NODES_MAX);
    if (copy == NULL)
        return no_memory(reterr);
    code = fill_prefix(graph, node, copy, ret_places, reterr);
    if (code != HR_OK) {
        hr__graph_unref(copy);
        return code;
    }
    *ret_graph = copy;
    return HR_OK;
}
