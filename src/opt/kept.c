/*
 * opt/kept.c - what the nodes of a plan keep between records, as far as its budget counts
 * it: see hr_op_memory.
 */
#include "opt/memory.h"

#include <assert.h>

/* Smaller states are part of the program. */
#define STATE_MIN ((uint64_t)256 << 10)

struct hr_op_kept hr__plan_kept(const struct hr_plan *plan, uint32_t node)
{
    const struct hr_graph_node *n = &plan->graph->nodes[node];
    struct hr_op_kept kept = {0};

    assert(node < plan->graph->count);
    if (plan->memory.budget > 0 && n->op->memory.kept != NULL)
        n->op->memory.kept(n->params, n->state, plan->memory.budget, &kept);
    if (plan->memory.budget > 0 && kept.fixed < n->state_bytes &&
        n->state_bytes >= STATE_MIN)
        kept.fixed = n->state_bytes;
    if (kept.most < kept.least)
        kept.most = kept.least;
    return kept;
}

struct hr_op_kept hr__plan_kept_all(const struct hr_plan *plan)
{
    struct hr_op_kept all = {0};

    for (uint32_t i = 0; i < plan->graph->count; i++) {
        struct hr_op_kept one = hr__plan_kept(plan, i);

        all.fixed = hr__bytes_plus(all.fixed, one.fixed);
        all.least = hr__bytes_plus(all.least, one.least);
        all.most = hr__bytes_plus(all.most, one.most);
        all.thread = hr__bytes_plus(all.thread, one.thread);
    }
    return all;
}

uint64_t hr__plan_kept_least(const struct hr_plan *plan)
{
    struct hr_op_kept all = hr__plan_kept_all(plan);

    return hr__bytes_plus(all.fixed, hr__bytes_plus(all.least, all.thread));
}

uint64_t hr__plan_cache_bytes(const struct hr_plan *plan, uint32_t node)
{
    struct hr_op_kept all = hr__plan_kept_all(plan), one = hr__plan_kept(plan, node);
    uint64_t all_least = hr__bytes_plus(all.fixed, all.least);
    uint64_t spare = plan->memory.kept > all_least ? plan->memory.kept - all_least : 0;
    double part = all.most > all.least
                      ? (double)(one.most - one.least) / (double)(all.most - all.least)
                      : 0;

    if (plan->memory.budget == 0)
        return UINT64_MAX;
    return hr__bytes_plus(one.least, (uint64_t)(part * (double)spare));
}
