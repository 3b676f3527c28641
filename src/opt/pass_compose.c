/*
 * opt/pass_compose.c - composition in the plan. The graph decides the groups
 * (graph/graph_compose.c); without fusion the plan runs the steps of a group one by one
 * where the graph allows it.
 */
#include "opt/opt.h"

#include <stdio.h>

/* The reason of a step that shares no work with others. */
static const char *place_of(const struct hr_graph_node *n)
{
    const struct hr_code_use *use = hr__node_code(n);

    if (use == NULL)
        return "runs in the same thread on the same record";
    switch (use->variant) {
    case HR_CODE_PROCESSES:
        return "your code, in worker processes: many records in one request";
    case HR_CODE_INLINE:
        return "your code, in the engine's threads, one at a time: entered once for many "
               "records";
    default:
        return "your code, in the engine's threads: entered once for many records";
    }
}

static void obey(const struct hr_graph_node *n, struct hr_plan_step *step)
{
    step->group = n->group;
    step->force_after = n->made_after;
    snprintf(step->reason, sizeof step->reason, "%s",
             n->reason[0] != '\0' ? n->reason : place_of(n));
}

/* Splits a group into single steps, unless that would change pixels. */
static void split(const struct hr_graph *graph, const struct hr_graph_node *n,
                  struct hr_plan_step *step)
{
    if (!n->describes || n->made_after)
        return;
    if (hr__graph_may_split(graph, step->node)) {
        step->force_after = true;
        step->group = step->node;
        snprintf(step->reason, sizeof step->reason, "runs alone, as asked");
    } else if (step->group != step->node) {
        snprintf(step->reason, sizeof step->reason,
                 "stays with '%.64s': alone they would give other pixels (mode: exact "
                 "would not)",
                 graph->nodes[step->group].name);
    }
}

void hr__pass_compose(struct hr_plan *plan, bool fuse)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        for (size_t k = 0; k < plan->stages[i].step_count; k++) {
            struct hr_plan_step *step = &plan->stages[i].steps[k];

            obey(&plan->graph->nodes[step->node], step);
            if (!fuse)
                split(plan->graph, &plan->graph->nodes[step->node], step);
        }
    }
}
