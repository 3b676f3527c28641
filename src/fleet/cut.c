/*
 * fleet/cut.c - see cut.h.
 */
#include "fleet/cut.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"

/* A node and what is before it. */
struct part {
    const struct hr_graph *graph;
    uint32_t node;
    size_t count;
    bool before[HR_GRAPH_NODES_MAX];
};

static void look(struct part *p, const struct hr_graph *graph, uint32_t node)
{
    p->graph = graph;
    p->node = node;
    p->count = 0;
    hr__graph_before(graph, node, p->before);
    for (uint32_t i = 0; i < graph->count; i++)
        p->count += p->before[i];
}

/* ---- whether the graph can be cut there ---- */

/* Whether all that the node reads of the first part is its last node. */
static bool is_fed_by(const struct part *p, const struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != p->node && p->before[n->inputs[i]])
            return false;
    return n->input_count > 0;
}

/* Why a node of the first part cannot be there, or NULL. */
static const char *wrong_before(const struct hr_graph_node *n)
{
    if (n->op->code != NULL)
        return "its code is only in this process";
    if (n->op->cache.begin != NULL)
        return "a cache must be whole on one side";
    return NULL;
}

static const char in_one_piece[] =
    "its work is done in one piece with that of a node before the cut";

/* The same for a node after the cut. */
static const char *wrong_after(const struct part *p, const struct hr_graph_node *n)
{
    if (!is_fed_by(p, n))
        return "it reads what is made before the cut, or is a source";
    if (n->op->kind == HR_OP_ORDER && n->by_number)
        return "it orders records by number";
    if (n->op->cache.begin != NULL)
        return "it is a cache";
    if (p->before[n->group])
        return in_one_piece;
    return NULL;
}

/* Why the graph cannot be cut there, and the node that is in the way; or NULL. */
static const char *why_not(const struct part *p, uint32_t *ret_node)
{
    const struct hr_graph_node *last = &p->graph->nodes[p->node];

    *ret_node = p->node;
    if (!last->by_number || hr__node_drops(last) || last->schema.records < 0)
        return "how many records it gives depends on the data";
    for (uint32_t i = 0; i < p->graph->count; i++) {
        const struct hr_graph_node *n = &p->graph->nodes[i];
        const char *why = p->before[i] ? wrong_before(n) : wrong_after(p, n);

        *ret_node = i;
        if (why != NULL)
            return why;
    }
    return NULL;
}

/* ---- the first part as a graph ---- */

static bool is_same_node(const struct hr_graph_node *a, const struct hr_graph_node *b,
                         const uint32_t *places)
{
    bool same = hr__hash_equal(a->fingerprint, b->fingerprint) &&
                a->draw_id == b->draw_id && a->draws_for == b->draws_for &&
                a->schema.count == b->schema.count && a->field_count == b->field_count &&
                places[a->group] == b->group && a->made_after == b->made_after;

    for (size_t f = 0; same && f < a->schema.count; f++)
        same = strcmp(a->schema.fields[f].name, b->schema.fields[f].name) == 0;
    for (size_t i = 0; same && i < a->field_count; i++)
        same = a->made[i].before == b->made[i].before;
    return same;
}

/* Whether what was decided when the graph was frozen is decided in the part, too. */
static bool
is_same(const struct part *p, const struct hr_graph *prefix, const uint32_t *places)
{
    for (uint32_t i = 0; i < p->graph->count; i++)
        if (p->before[i] &&
            !is_same_node(&p->graph->nodes[i], &prefix->nodes[places[i]], places))
            return false;
    return true;
}

/* HR_ERR_UNSUPPORTED if its records would have other bytes. */
static enum hr_err
make_prefix(const struct part *p, struct hr_graph **ret_prefix, struct hr_error *reterr)
{
    uint32_t places[HR_GRAPH_NODES_MAX];
    struct hr_graph *prefix = NULL;
    enum hr_err code;

    HR_TRY(hr__graph_prefix(p->graph, p->node, places, &prefix, reterr));
    code = hr_graph_freeze(prefix, reterr);
    if (code == HR_OK && !is_same(p, prefix, places)) {
        code = hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service cannot be cut after it: what follows decides how its "
                        "records are made");
        hr__graph_blame(p->graph, p->node, reterr);
    }
    if (code == HR_OK)
        *ret_prefix = prefix;
    else
        hr__graph_unref(prefix);
    return code;
}

/* ---- choosing ---- */

static enum hr_err choose(const struct hr_graph *graph, struct part *p,
                          struct hr_cut *ret_cut, struct hr_error *reterr)
{
    bool tried[HR_GRAPH_NODES_MAX] = {false};
    struct hr_error error = {0};

    for (;;) {
        uint32_t best = (uint32_t)graph->count, unused;
        size_t most = 0;
        enum hr_err code;

        for (uint32_t i = 0; i < graph->count; i++) {
            look(p, graph, i);
            if (!tried[i] && why_not(p, &unused) == NULL && p->count > most) {
                best = i;
                most = p->count;
            }
        }
        if (best == graph->count)
            break;
        tried[best] = true;
        look(p, graph, best);
        ret_cut->node = best;
        code = make_prefix(p, &ret_cut->prefix, &error);
        if (code == HR_OK)
            return HR_OK;
        if (code != HR_ERR_UNSUPPORTED) {
            if (reterr != NULL)
                *reterr = error;
            return code;
        }
    }
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "no part of the graph can be made by a service: its first nodes must "
                    "give numbered records, without user code and caches; run the graph "
                    "without the service");
}

static enum hr_err find(const struct hr_graph *graph, const char *after,
                        uint32_t *ret_node, struct hr_error *reterr)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (strcmp(graph->nodes[i].name, after) == 0) {
            *ret_node = i;
            return HR_OK;
        }
    return hr__fail(reterr, HR_ERR_NOT_FOUND,
                    "the workers of a service are to run up to node '%s', which the "
                    "graph does not have",
                    after);
}

enum hr_err hr__cut_asked(const struct hr_graph *graph, const char *after,
                          uint32_t *ret_node, struct hr_error *reterr)
{
    uint32_t node = HR_CUT_FREE;

    if (after != NULL)
        return find(graph, after, ret_node, reterr);
    for (uint32_t i = 0; i < graph->count; i++) {
        if (!graph->nodes[i].distribute)
            continue;
        if (node != HR_CUT_FREE) {
            hr__fail(reterr, HR_ERR_GRAPH,
                     "two nodes have distribute: true, this one and '%s': a graph is cut "
                     "once",
                     graph->nodes[node].name);
            hr__graph_blame(graph, i, reterr);
            return HR_ERR_GRAPH;
        }
        node = i;
    }
    *ret_node = node;
    return HR_OK;
}

static enum hr_err
refuse(const struct part *p, const char *why, uint32_t node, struct hr_error *reterr)
{
    hr__fail(reterr, HR_ERR_UNSUPPORTED,
             "the workers of a service cannot run up to '%s': %s; choose another node, "
             "or none",
             p->graph->nodes[p->node].name, why);
    hr__graph_blame(p->graph, node, reterr);
    return HR_ERR_UNSUPPORTED;
}

enum hr_err hr__cut_find(const struct hr_graph *graph, uint32_t after,
                         struct hr_cut *ret_cut, struct hr_error *reterr)
{
    struct hr_cut cut = {.node = after};
    struct part p;
    const char *why;
    uint32_t wrong;

    if (after == HR_CUT_FREE) {
        HR_TRY(choose(graph, &p, &cut, reterr));
        *ret_cut = cut;
        return HR_OK;
    }
    look(&p, graph, after);
    why = why_not(&p, &wrong);
    if (why != NULL)
        return refuse(&p, why, wrong, reterr);
    HR_TRY(make_prefix(&p, &cut.prefix, reterr));
    *ret_cut = cut;
    return HR_OK;
}

/* A node that reads the records of `node`; the graph's last node has none. */
static uint32_t next_of(const struct hr_graph *graph, uint32_t node)
{
    for (uint32_t i = 0; i < graph->count; i++)
        for (size_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] == node)
                return i;
    return HR_CUT_FREE;
}

void hr__cut_explain(const struct hr_graph *graph, uint32_t node, bool asked, char *text,
                     size_t room)
{
    const char *name = graph->nodes[node].name, *why = NULL;
    uint32_t next = next_of(graph, node), at = next, wrong;
    struct part p;

    if (asked || next == HR_CUT_FREE) {
        snprintf(text, room, "the workers run up to '%s'%s", name,
                 asked ? ", as asked" : "");
        return;
    }
    for (;; at = next_of(graph, at)) {
        look(&p, graph, at);
        why = why_not(&p, &wrong);
        if (why != in_one_piece || next_of(graph, at) == HR_CUT_FREE)
            break;
    }
    if (why == NULL) { /* make_prefix() refused it */
        why = "what follows decides how its records are made";
        wrong = at;
    }
    snprintf(text, room, "the workers run up to '%s', not '%s'%s%s%s: %s%s%s%s", name,
             graph->nodes[next].name, at != next ? ", which would need '" : "",
             at != next ? graph->nodes[at].name : "", at != next ? "' there, too" : "",
             wrong != at ? "'" : "", wrong != at ? graph->nodes[wrong].name : "",
             wrong != at ? "': " : "", why);
}
