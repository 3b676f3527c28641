/*
 * opt/shape.c - reads off a graph what its stages must respect.
 */
#include "opt/shape.h"

#include <assert.h>
#include <string.h>

void hr__shape_find(const struct hr_graph *graph, struct hr_shape *ret_shape)
{
    struct hr_shape *shape = ret_shape;
    uint32_t back[HR_GRAPH_NODES_MAX], at = graph->output;
    size_t count = 0;

    memset(shape, 0, sizeof *shape);
    for (; !graph->nodes[at].by_number; at = graph->nodes[at].inputs[0]) {
        assert(graph->nodes[at].input_count == 1); /* graph_check.c: no zip */
        back[count++] = at;
    }
    shape->root = at;
    shape->spine_count = count;
    for (size_t i = 0; i < count; i++)
        shape->spine[i] = back[count - 1 - i];
}

bool hr__node_is_index_order(const struct hr_graph *graph, uint32_t node)
{
    return graph->nodes[node].by_number && graph->nodes[node].op->kind == HR_OP_ORDER;
}

uint32_t hr__node_records(const struct hr_graph *graph, uint32_t node)
{
    assert(node < graph->count);
    while (hr__node_is_index_order(graph, node))
        node = graph->nodes[node].inputs[0];
    return node;
}

bool hr__stage_fits(const struct hr_graph *graph, const struct hr_plan_stage *stage,
                    uint32_t node)
{
    enum hr_op_kind kind = graph->nodes[node].op->kind;

    if (kind == HR_OP_SEQUENCE || kind == HR_OP_ORDER)
        return stage->sequence_count < HR_PLAN_SEQUENCE_MAX;
    return stage->sequence_count == 0 && stage->expand == HR_NO_NODE;
}

bool hr__stage_is_cut(const struct hr_plan *plan, size_t at)
{
    const struct hr_plan_stage *stage = &plan->stages[at];

    assert(at < plan->stage_count);
    return at + 1 < plan->stage_count && stage->expand == HR_NO_NODE &&
           stage->sequence_count == 0;
}

static bool in_stage(const struct hr_plan_stage *stage, uint32_t node)
{
    for (size_t i = 0; i < stage->step_count; i++)
        if (stage->steps[i].node == node)
            return true;
    return false;
}

/* The root may be an ORDER node; then the steps before it end with its records. */
static bool ends_with_root(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    return stage->step_count > 0 &&
           in_stage(stage, hr__node_records(plan->graph, plan->root)) &&
           plan->graph->nodes[stage->steps[stage->step_count - 1].node].by_number;
}

/* A step after the cut belongs to a group that began before it. */
static bool describes(const struct hr_plan *plan, size_t at)
{
    if (!hr__stage_is_cut(plan, at))
        return false;
    for (size_t later = at + 1; later < plan->stage_count; later++)
        for (size_t k = 0; k < plan->stages[later].step_count; k++) {
            uint32_t node = plan->stages[later].steps[k].node;

            for (size_t i = 0; i <= at; i++)
                if (in_stage(&plan->stages[i], plan->graph->nodes[node].group))
                    return true;
        }
    return false;
}

static bool joins_runs(const struct hr_plan *plan, uint32_t node)
{
    return plan->graph->nodes[node].op->sequence.runs != NULL;
}

void hr__plan_settle(struct hr_plan *plan)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        struct hr_plan_stage *stage = &plan->stages[i];

        stage->feed = i == 0 ? HR_NO_NODE : hr__plan_stage_end(&plan->stages[i - 1]);
        stage->last = stage->step_count > 0 ? stage->steps[stage->step_count - 1].node
                                            : stage->feed;
        if (ends_with_root(plan, stage))
            stage->last = plan->root;
        stage->filters = false;
        for (size_t k = 0; k < stage->step_count; k++) {
            const struct hr_graph_node *n = &plan->graph->nodes[stage->steps[k].node];

            stage->filters = stage->filters || hr__op_drops(n->op, n->params);
        }
        stage->describes = describes(plan, i);
        stage->direct = plan->stage_count == 1 && stage->sequence_count > 0 &&
                        joins_runs(plan, stage->sequence[0]) && !stage->filters &&
                        stage->expand == HR_NO_NODE;
    }
}
