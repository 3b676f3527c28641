/*
 * opt/cedar_graph.c - see cedar_graph.h.
 */
#include "opt/cedar_graph.h"

#include <string.h>

#include "opt/swap.h"

struct list {
    int64_t ids[HR_CEDAR_ENTRIES_MAX];
    size_t count;
};

static void add(const struct hr_cedar_section *section, int64_t id, struct list *list)
{
    const struct hr_cedar_entry *entry = hr__cedar_entry(section, id);

    if (!hr__cedar_is_inserted(entry->name))
        list->ids[list->count++] = id;
    for (size_t i = 0; i < entry->fused_count; i++)
        list->ids[list->count++] = entry->fused[i];
}

/* The pipes as they run. */
static void planned(const struct hr_cedar_plan *plan, struct list *list)
{
    const struct hr_cedar_section *section =
        plan->physical.chain_count > 0 ? &plan->physical : &plan->logical;

    for (size_t i = 0; i < section->chain_count; i++)
        add(section, section->chain[i], list);
}

/* As the user wrote them: the logical plan, or the numbers from the highest down. */
static void written(const struct hr_cedar_plan *plan, const struct list *as_planned,
                    struct list *list)
{
    if (plan->physical.chain_count > 0 && plan->logical.chain_count > 0) {
        for (size_t i = 0; i < plan->logical.chain_count; i++)
            add(&plan->logical, plan->logical.chain[i], list);
        return;
    }
    list->count = as_planned->count;
    for (size_t i = 0; i < as_planned->count; i++) {
        size_t above = 0;

        for (size_t k = 0; k < as_planned->count; k++)
            above += as_planned->ids[k] > as_planned->ids[i];
        list->ids[above] = as_planned->ids[i];
    }
}

struct sort {
    const struct hr_graph *graph;
    const struct hr_cedar_match *matches;
    size_t match_count;
    struct list planned, written;
};

static int64_t find(const struct list *list, int64_t id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->ids[i] == id)
            return (int64_t)i;
    return -1;
}

/* The node of a pipe, or -1. */
static int64_t node_of(const struct sort *s, int64_t id)
{
    if (s->match_count == 0)
        return find(&s->written, id);
    for (size_t i = 0; i < s->match_count; i++)
        for (size_t k = 0; s->matches[i].id == id && k < s->graph->count; k++)
            if (strcmp(s->graph->nodes[k].name, s->matches[i].node) == 0)
                return (int64_t)k;
    return -1;
}

/* Both sections have the same pipes, or there is only one. */
static enum hr_err
check_sections(const struct sort *s, const char *name, struct hr_error *reterr)
{
    if (s->planned.count == 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: the plan has no \"graph\"", name);
    for (size_t i = 0; i < s->planned.count; i++)
        if (s->written.count != s->planned.count ||
            find(&s->written, s->planned.ids[i]) < 0)
            return hr__fail(
                reterr, HR_ERR_FORMAT,
                "%s: the logical plan does not have the pipes of the physical "
                "one, such as %lld",
                name, (long long)s->planned.ids[i]);
    return HR_OK;
}

static enum hr_err check(const struct sort *s, const char *name, struct hr_error *reterr)
{
    HR_TRY(check_sections(s, name, reterr));
    for (size_t i = 1; i < s->graph->count; i++)
        if (s->graph->nodes[i].input_count != 1 || s->graph->nodes[i].inputs[0] != i - 1)
            return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                            "node '%s' does not read the one before it alone: the order "
                            "of a plan fits chains only",
                            s->graph->nodes[i].name);
    if (s->match_count == 0 && s->planned.count != s->graph->count)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "%s has %zu pipes and the graph %zu nodes: say which node does "
                        "the work of which pipe",
                        name, s->planned.count, s->graph->count);
    for (size_t i = 0; i < s->match_count; i++)
        if (find(&s->planned, s->matches[i].id) < 0 || node_of(s, s->matches[i].id) < 0)
            return hr__fail(reterr, HR_ERR_ARGUMENT, "%lld=%s: there is no such %s",
                            (long long)s->matches[i].id, s->matches[i].node,
                            find(&s->planned, s->matches[i].id) < 0 ? "pipe" : "node");
    for (size_t i = 0; i < s->match_count; i++)
        for (size_t k = 0; k < i; k++)
            if (s->matches[k].id == s->matches[i].id)
                return hr__fail(reterr, HR_ERR_ARGUMENT, "pipe %lld has several nodes",
                                (long long)s->matches[i].id);
    return HR_OK;
}

/* Nodes of pipes take the places of such nodes in the order of the plan; a node of
 * several pipes stands where the first of them does. Others stay. */
static void permute(const struct sort *s, uint32_t *nodes)
{
    bool moves[HR_GRAPH_NODES_MAX] = {false};
    size_t place = 0;

    for (size_t i = 0; i < s->planned.count; i++)
        if (node_of(s, s->planned.ids[i]) >= 0)
            moves[node_of(s, s->planned.ids[i])] = true;
    for (size_t i = 0; i < s->graph->count; i++)
        nodes[i] = (uint32_t)i;
    for (size_t i = 0; i < s->planned.count; i++) {
        int64_t node = node_of(s, s->planned.ids[i]);
        bool first = node >= 0;

        for (size_t k = 0; first && k < i; k++)
            first = node_of(s, s->planned.ids[k]) != node;
        if (!first)
            continue;
        while (!moves[place])
            place++;
        nodes[place++] = (uint32_t)node;
    }
}

static bool is_link(const struct hr_graph_node *n)
{
    return n->input_count == 1 &&
           (n->op->kind == HR_OP_MAP || n->op->kind == HR_OP_FILTER);
}

static enum hr_err check_swaps(const struct hr_graph *graph, const uint32_t *nodes,
                               enum hr_strictness strictness, struct hr_error *reterr)
{
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = i + 1; k < graph->count; k++) {
            struct hr_swap swap = {.reason = "only maps and filters move"};

            if (nodes[i] < nodes[k])
                continue;
            if (is_link(&graph->nodes[nodes[i]]) && is_link(&graph->nodes[nodes[k]]))
                hr__swap(graph, nodes[k], nodes[i], &swap);
            if (!swap.allowed)
                return hr__fail(reterr, HR_ERR_STATE,
                                "the plan puts '%s' before '%s', which is not legal "
                                "here: %s",
                                graph->nodes[nodes[i]].name, graph->nodes[nodes[k]].name,
                                swap.reason);
            if (swap.needs > strictness)
                return hr__fail(reterr, HR_ERR_STATE,
                                "the plan puts '%s' before '%s', which is legal only "
                                "with strictness %s",
                                graph->nodes[nodes[i]].name, graph->nodes[nodes[k]].name,
                                hr__strictness_name(swap.needs));
        }
    return HR_OK;
}

enum hr_err
hr__cedar_graph_order(const struct hr_cedar_plan *plan, const char *name,
                      const struct hr_graph *graph, const struct hr_cedar_match *matches,
                      size_t match_count, enum hr_strictness strictness,
                      uint32_t *ret_nodes, struct hr_error *reterr)
{
    struct sort s = {.graph = graph, .matches = matches, .match_count = match_count};

    planned(plan, &s.planned);
    written(plan, &s.planned, &s.written);
    HR_TRY(check(&s, name, reterr));
    permute(&s, ret_nodes);
    return check_swaps(graph, ret_nodes, strictness, reterr);
}
