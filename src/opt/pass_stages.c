/*
 * opt/pass_stages.c - cutting a graph into stages.
 *
 * The graph's tail is a spine: from the output back along single inputs. Behind the first
 * node that drops, makes or joins records the graph must be that spine; ahead of it,
 * where everything is one to one, it may be any DAG, because each branch is a function of
 * the record's number.
 */
#include "opt/opt.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

struct cut {
    struct hr_plan *plan;
    const struct hr_graph *graph;
    uint32_t spine[HR_GRAPH_NODES_MAX]; /* from the root's successor to the output */
    size_t spine_count;
    bool seen[HR_GRAPH_NODES_MAX];
    uint32_t at; /* the node that was placed last */
};

static enum hr_err find_spine(struct cut *cut, struct hr_error *reterr)
{
    uint32_t at = cut->graph->output;
    uint32_t back[HR_GRAPH_NODES_MAX];
    size_t count = 0;

    while (!cut->graph->nodes[at].by_number) {
        const struct hr_graph_node *n = &cut->graph->nodes[at];

        if (n->input_count != 1) {
            enum hr_err code = hr__fail(
                reterr, HR_ERR_GRAPH,
                "its inputs do not keep their number of records, so they cannot be "
                "joined record by record; put filters, expansions and batches behind it");

            hr__graph_blame(cut->graph, at, reterr);
            return code;
        }
        back[count++] = at;
        at = n->inputs[0];
    }
    cut->plan->root = at;
    cut->spine_count = count;
    for (size_t i = 0; i < count; i++)
        cut->spine[i] = back[count - 1 - i];
    return HR_OK;
}

static enum hr_err add_step(struct hr_plan_stage *stage, uint32_t node)
{
    struct hr_plan_step *grown =
        hr__realloc(stage->steps, (stage->step_count + 1) * sizeof *grown);

    if (grown == NULL)
        return HR_ERR_MEMORY;
    stage->steps = grown;
    memset(&grown[stage->step_count], 0, sizeof *grown);
    grown[stage->step_count].node = node;
    grown[stage->step_count].group = node;
    stage->step_count++;
    return HR_OK;
}

/* Steps of the one-to-one part, inputs first; ORDER nodes become functions of the
 * position and are no steps. */
static enum hr_err add_root_steps(struct cut *cut, uint32_t node)
{
    const struct hr_graph_node *n = &cut->graph->nodes[node];

    if (cut->seen[node])
        return HR_OK;
    cut->seen[node] = true;
    for (size_t i = 0; i < n->input_count; i++)
        HR_TRY(add_root_steps(cut, n->inputs[i]));
    if (n->op->kind == HR_OP_ORDER)
        return HR_OK;
    return add_step(&cut->plan->stages[0], node);
}

static struct hr_plan_stage *
begin_stage(struct hr_plan *plan, uint32_t feed, uint32_t last)
{
    struct hr_plan_stage *stage;

    if (plan->stage_count == HR_PLAN_STAGES_MAX)
        return NULL;
    stage = &plan->stages[plan->stage_count++];
    stage->feed = feed;
    stage->last = last;
    stage->expand = HR_NO_NODE;
    stage->batch = HR_NO_NODE;
    return stage;
}

static bool has_window(const struct hr_graph_node *node)
{
    return node->op->stream_block != NULL && node->op->stream_block(node->params) > 0;
}

/* A sequencer holds one window. */
static bool
stream_fits(const struct hr_plan *plan, const struct hr_plan_stage *stage, uint32_t node)
{
    if (stage->stream_count == HR_NODE_INPUTS_MAX)
        return false;
    for (size_t i = 0; i < stage->stream_count; i++)
        if (has_window(&plan->graph->nodes[stage->streams[i]]) &&
            has_window(&plan->graph->nodes[node]))
            return false;
    return true;
}

/* True when the node can still join the stage, given what its end already holds. */
static bool
fits(const struct hr_plan *plan, const struct hr_plan_stage *stage, uint32_t node)
{
    if (stage->batch != HR_NO_NODE)
        return false;
    switch (plan->graph->nodes[node].op->kind) {
    case HR_OP_BATCH:
        return true;
    case HR_OP_ORDER:
        return stream_fits(plan, stage, node);
    default:
        return stage->stream_count == 0 && stage->expand == HR_NO_NODE;
    }
}

static enum hr_err add_spine_node(struct cut *cut, uint32_t node)
{
    struct hr_plan *plan = cut->plan;
    const struct hr_op *op = plan->graph->nodes[node].op;
    struct hr_plan_stage *stage = &plan->stages[plan->stage_count - 1];

    if (!fits(plan, stage, node))
        stage = begin_stage(plan, cut->at, cut->at);
    if (stage == NULL)
        return HR_ERR_LIMIT;
    cut->at = node;
    switch (op->kind) {
    case HR_OP_EXPAND:
        stage->expand = node;
        return HR_OK;
    case HR_OP_ORDER:
        stage->streams[stage->stream_count++] = node;
        return HR_OK;
    case HR_OP_BATCH:
        stage->batch = node;
        return HR_OK;
    default:
        stage->filters = stage->filters || op->kind == HR_OP_FILTER;
        stage->last = node;
        return add_step(stage, node);
    }
}

static void describe(struct hr_plan *plan)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        struct hr_plan_stage *stage = &plan->stages[i];

        stage->direct = plan->stage_count == 1 && stage->batch != HR_NO_NODE &&
                        !stage->filters && stage->expand == HR_NO_NODE &&
                        stage->stream_count == 0;
        snprintf(
            stage->reason, sizeof stage->reason, "%s",
            stage->direct
                ? "every record's place is known beforehand: threads write straight into "
                  "the batch"
            : stage->filters || stage->expand != HR_NO_NODE
                ? "the number of records is known only when they are made: they are put "
                  "in order behind the steps"
                : "records are put in order behind the steps");
    }
}

enum hr_err hr__pass_stages(struct hr_plan *plan, struct hr_error *reterr)
{
    struct cut *cut = hr__calloc(1, sizeof *cut);
    enum hr_err code = HR_ERR_MEMORY;

    if (cut == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    cut->plan = plan;
    cut->graph = plan->graph;
    code = find_spine(cut, reterr);
    if (code != HR_OK)
        goto out;
    begin_stage(plan, HR_NO_NODE, plan->root);
    cut->at = plan->root;
    code = add_root_steps(cut, plan->root);
    for (size_t i = 0; code == HR_OK && i < cut->spine_count; i++)
        code = add_spine_node(cut, cut->spine[i]);
    if (code == HR_ERR_LIMIT)
        hr__fail(reterr, code, "the graph needs more than %d stages", HR_PLAN_STAGES_MAX);
    else if (code != HR_OK)
        hr__fail(reterr, code, "out of memory");
    describe(plan);
out:
    hr__free(cut);
    return code;
}
