/*
 * graph/graph_cache.c - whether a cache can be where it is, and what its records are.
 *
 * A cache knows records by their identity, so what is before it must make a record from
 * its identity alone: nothing that joins records (batches, packers), and no zip of inputs
 * that are ordered separately, where one index does not tell the others. Random draws
 * before it would repeat those of the first epoch for ever. They are refused unless a
 * parameter of the cache says for how many epochs draws may repeat. Then the graph
 * freezes them: such a node draws as in the first of those epochs
 * (hr_graph_node.draws_for) whether its record is cached or made again, so a cache never
 * changes bytes.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

struct caches {
    struct hr_graph *graph;
    const uint32_t *order;
    struct hr_error *error;
    uint32_t cache; /* the current one */
    uint32_t draws_for;
    bool drawn;
    bool seen[HR_GRAPH_NODES_MAX];
};

static enum hr_err
    HR_PRINTF(3, 4) refuse(struct caches *c, uint32_t node, const char *format, ...)
{
    char message[sizeof c->error->message];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    hr__fail(c->error, HR_ERR_GRAPH, "%s", message);
    hr__graph_blame(c->graph, node, c->error);
    return HR_ERR_GRAPH;
}

static const char *name_of(const struct caches *c, uint32_t node)
{
    return c->graph->nodes[node].name;
}

/* ---- who reads a node ---- */

/* What is known of nodes: nothing, or one of these. */
enum { FEEDS_ONLY = 1, FEEDS_OTHERS };

static bool
feeds_only(const struct hr_graph *graph, uint32_t node, uint32_t reader, uint8_t *known)
{
    bool any = false, only = node != graph->output;

    if (known[node] != 0)
        return known[node] == FEEDS_ONLY;
    for (uint32_t i = 0; only && i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];

        for (size_t k = 0; only && k < n->input_count; k++) {
            if (n->inputs[k] != node)
                continue;
            any = true;
            only = i == reader || feeds_only(graph, i, reader, known);
        }
    }
    known[node] = only && any ? FEEDS_ONLY : FEEDS_OTHERS;
    return only && any;
}

bool hr__graph_feeds_only(const struct hr_graph *graph, uint32_t node, uint32_t reader)
{
    uint8_t known[HR_GRAPH_NODES_MAX] = {0};

    assert(node < graph->count && reader < graph->count);
    return feeds_only(graph, node, reader, known);
}

/* ---- files ---- */

static size_t
mark_sources(const struct hr_graph *graph, uint32_t node, bool *seen, bool *sources)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    size_t count = 0;

    if (seen[node])
        return 0;
    seen[node] = true;
    if (n->op->source.locate != NULL) {
        sources[node] = true;
        count++;
    }
    for (size_t i = 0; i < n->input_count; i++)
        count += mark_sources(graph, n->inputs[i], seen, sources);
    return count;
}

size_t hr__graph_stamped(const struct hr_graph *graph, uint32_t node, bool *ret_sources)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    bool seen[HR_GRAPH_NODES_MAX] = {false};

    assert(node < graph->count);
    memset(ret_sources, 0, graph->count * sizeof *ret_sources);
    if (n->op->cache.stamps == NULL || !n->op->cache.stamps(n->params))
        return 0;
    return mark_sources(graph, node, seen, ret_sources);
}

/* ---- what is before a cache ---- */

/* An ORDER or MERGE node before this one, or NODE_NONE. */
#define NODE_NONE UINT32_MAX
static uint32_t find_order(const struct hr_graph *graph, uint32_t node, bool *seen)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    for (size_t i = 0; i < n->input_count; i++) {
        uint32_t input = n->inputs[i], found = input;
        enum hr_op_kind kind = graph->nodes[input].op->kind;

        if (seen[input])
            continue;
        seen[input] = true;
        if (graph->nodes[input].op->zip.by != NULL)
            continue; /* its records have numbers of their own */
        if (kind != HR_OP_ORDER && kind != HR_OP_MERGE)
            found = find_order(graph, input, seen);
        if (found != NODE_NONE)
            return found;
    }
    return NODE_NONE;
}

static enum hr_err check_identity(struct caches *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    const char *cache = name_of(c, c->cache);
    bool seen[HR_GRAPH_NODES_MAX] = {false};
    uint32_t order;

    if (n->op->kind == HR_OP_SEQUENCE)
        return refuse(c, c->cache,
                      "it remembers single records, and '%s' joins several: put '%s' "
                      "before '%s'",
                      n->name, cache, n->name);
    if (n->op->kind == HR_OP_SOURCE && n->op->source.open_ended != NULL &&
        n->op->source.open_ended(n->params))
        return refuse(c, c->cache,
                      "'%s' is read one record after the other, so none can be left out: "
                      "give the source a length, or keep its records with "
                      "`headrace pack`",
                      n->name);
    if (n->op->kind != HR_OP_ZIP || n->op->zip.by != NULL)
        return HR_OK;
    order = find_order(c->graph, node, seen);
    if (order == NODE_NONE)
        return HR_OK;
    return refuse(
        c, c->cache,
        "'%s' joins inputs that '%s' orders before it, so a record is not known "
        "by its number in one of them: put '%s' after '%s', or a cache into each "
        "input",
        n->name, name_of(c, order), name_of(c, order), n->name);
}

static enum hr_err check_draws(struct caches *c, uint32_t node)
{
    struct hr_graph_node *n = &c->graph->nodes[node];
    const char *cache = name_of(c, c->cache);

    if (n->draws_for == HR_DRAWS_ONCE) { /* another cache is between them */
        c->drawn = true;
        return HR_OK;
    }
    if (n->draws_for > 0)
        return refuse(
            c, c->cache,
            "another cache before it refreshes the draws of '%s' every %u epochs: "
            "remove one of the two caches",
            n->name, n->draws_for);
    if (c->draws_for == 0 && n->op->code != NULL)
        return refuse(c, c->cache,
                      "'%s' (%s) is before it and is your code, which may draw random "
                      "numbers: say `random: freeze` if it draws none, or if every epoch "
                      "may repeat what it drew, or `refresh: 5` to call it again every 5 "
                      "epochs",
                      n->name, n->op->name);
    if (c->draws_for == 0)
        return refuse(c, c->cache,
                      "'%s' (%s) is before it and draws random numbers, so every epoch "
                      "would repeat the first: put '%s' before '%s', or say `random: "
                      "freeze` to have that, or `refresh: 5` for other draws every 5 "
                      "epochs",
                      n->name, n->op->name, cache, n->name);
    if (!hr__graph_feeds_only(c->graph, node, c->cache))
        return refuse(c, c->cache,
                      "'%s' draws random numbers for it and for another branch: name the "
                      "op once in each branch",
                      n->name);
    c->drawn = true;
    n->draws_for = c->draws_for;
    return HR_OK;
}

static enum hr_err check_before(struct caches *c, uint32_t node)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];

    if (c->seen[node])
        return HR_OK;
    c->seen[node] = true;
    HR_TRY(check_identity(c, node));
    if (hr__node_draws_values(n))
        HR_TRY(check_draws(c, node));
    for (size_t i = 0; i < n->input_count; i++)
        HR_TRY(check_before(c, n->inputs[i]));
    return HR_OK;
}

static enum hr_err check_cache(struct caches *c, uint32_t node)
{
    struct hr_graph_node *n = &c->graph->nodes[node];
    struct hr_cache_of of = {0};

    assert(n->input_count == 1 && n->state != NULL);
    memset(c->seen, 0, sizeof c->seen);
    c->cache = node;
    c->drawn = false;
    c->draws_for = n->op->cache.draws_for(n->params);
    HR_TRY(check_before(c, n->inputs[0]));
    if (c->drawn) /* it knows records by the same draws */
        n->draws_for = c->draws_for > 0 ? c->draws_for : HR_DRAWS_ONCE;
    of.drawn = c->drawn;
    of.stamped = hr__graph_stamped(c->graph, node, c->seen) > 0;
    if (hr__graph_content(c->graph, c->order, node, &of.fingerprint) != HR_OK)
        return hr__fail(c->error, HR_ERR_MEMORY, "out of memory");
    n->op->cache.begin(n->state, &of);
    return HR_OK;
}

enum hr_err hr__graph_check_caches(struct hr_graph *graph, const uint32_t *order,
                                   struct hr_error *error)
{
    struct caches *c = NULL;
    enum hr_err code = HR_OK;

    for (size_t i = 0; code == HR_OK && i < graph->count; i++) {
        if (graph->nodes[order[i]].op->cache.begin == NULL)
            continue;
        if (c == NULL)
            c = hr__calloc(1, sizeof *c);
        if (c == NULL)
            return hr__fail(error, HR_ERR_MEMORY, "out of memory");
        c->graph = graph;
        c->order = order;
        c->error = error;
        code = check_cache(c, order[i]);
    }
    hr__free(c);
    return code;
}
