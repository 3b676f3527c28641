/*
 * opt/cost_facts.c - what the nodes of a graph cost, from a profile of it or of the same
 * nodes in another order.
 */
#include "opt/cost.h"

#include <assert.h>
#include <math.h>

#include "core/alloc.h"
#include "core/error.h"
#include "opt/reorder.h"

/* Costs that were measured while all cores were busy need no correction. */
static bool was_alone(const struct hr_profile *profile)
{
    return profile->variant == HR_PLAN_INLINE;
}

void hr__cost_machine(const struct hr_profile *profile,
                      struct hr_cost_machine *ret_machine)
{
    const struct hr_profile_machine *m = &profile->machine;

    *ret_machine = (struct hr_cost_machine){
        .cores = m->cores > 0 ? (double)m->cores : 1,
        .crowd = was_alone(profile) && m->crowd > 1 ? m->crowd : 1,
        .copy = m->transfer > 0 ? m->transfer
                : m->copy > 0   ? m->copy
                                : 0,
        .transfer_ns = m->transfer_ns > 0 ? m->transfer_ns : 0,
        .disk = m->disk > 0 ? m->disk : 0,
    };
}

/* Sets `records` of the node from its inputs, whose numbers are smaller. Sources have
 * theirs. */
static void flow(const struct hr_graph *graph, uint32_t node, struct hr_cost_fact *facts)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    size_t inputs = n->op->kind == HR_OP_MERGE ? n->input_count : 1;

    if (n->input_count == 0)
        return;
    facts[node].records = 0;
    for (size_t i = 0; i < inputs; i++) {
        const struct hr_cost_fact *input = &facts[n->inputs[i]];

        facts[node].records += input->records * input->kept;
    }
}

/* Inputs before the nodes that read them. */
static void flow_all(const struct hr_graph *graph, uint32_t node, bool *seen,
                     struct hr_cost_fact *facts)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (seen[node])
        return;
    seen[node] = true;
    for (size_t i = 0; i < n->input_count; i++)
        flow_all(graph, n->inputs[i], seen, facts);
    flow(graph, node, facts);
}

static uint64_t
most_records(const struct hr_graph *graph, const struct hr_profile_node *const *found)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].input_count == 0 && found[i]->records_in > most)
            most = found[i]->records_in;
    return most;
}

static void
take_facts(const struct hr_graph *graph, const struct hr_profile_node *const *found,
           bool alone, struct hr_cost_fact *facts)
{
    uint64_t most = most_records(graph, found);
    bool seen[HR_GRAPH_NODES_MAX] = {false};

    for (uint32_t i = 0; i < graph->count; i++) {
        const struct hr_profile_node *n = found[i];

        facts[i] = (struct hr_cost_fact){
            .records = most > 0 ? (double)n->records_in / (double)most : 1,
            .kept = hr__profile_kept(n),
            .cpu_ns = n->cpu_ns,
            .wait_ns = n->wait_ns,
            .width = n->width > 0 ? fmin(n->width, 1) : 0,
            .bytes_in = n->bytes_in,
            .bytes_out = n->bytes_out,
            .crowd = alone && n->crowd > 0 ? n->crowd : 0,
            .parallel = n->serial >= 0    ? 1 - n->serial
                        : n->ordered >= 0 ? 1 - n->ordered
                                          : 0,
            .process_ns = n->process_ns > 0 ? n->process_ns : 0,
            .variants = n->serial >= 0,
        };
    }
    flow_all(graph, graph->output, seen, facts);
}

enum hr_err hr__cost_facts(const struct hr_graph *graph, const struct hr_profile *profile,
                           struct hr_cost_fact *ret_facts, struct hr_error *reterr)
{
    const struct hr_profile_node **found = hr__calloc(graph->count, sizeof *found);
    enum hr_err code = HR_OK;

    assert(graph->frozen);
    if (found == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__profile_match(graph, profile, found);
    for (uint32_t i = 0; code == HR_OK && i < graph->count; i++)
        if (found[i] == NULL)
            code = hr__profile_lacks(profile, &graph->nodes[i], reterr);
    if (code == HR_OK)
        take_facts(graph, found, was_alone(profile), ret_facts);
    hr__free(found);
    return code;
}

void hr__cost_reorder(const struct hr_cost_fact *facts, const struct hr_reorder *order,
                      const struct hr_graph *to, struct hr_cost_fact *ret_facts)
{
    bool seen[HR_GRAPH_NODES_MAX] = {false};

    for (uint32_t i = 0; i < to->count; i++) {
        uint32_t was = order->nodes[i];

        ret_facts[i] = facts[was];
        if (order->node_ns[was] < 0)
            continue;
        if (ret_facts[i].process_ns > 0)
            ret_facts[i].process_ns +=
                fmax(order->node_ns[was] - ret_facts[i].cpu_ns, -ret_facts[i].process_ns);
        ret_facts[i].cpu_ns = order->node_ns[was];
    }
    flow_all(to, to->output, seen, ret_facts);
}
