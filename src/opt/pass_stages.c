/*
 * opt/pass_stages.c - cutting a graph into stages: as few as possible, and a further cut
 * where it is asked for.
 */
#include "opt/opt.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "opt/shape.h"

struct cut {
    struct hr_plan *plan;
    const struct hr_graph *graph;
    struct hr_shape shape;
    bool seen[HR_GRAPH_NODES_MAX];
};

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

static struct hr_plan_stage *begin_stage(struct hr_plan *plan)
{
    struct hr_plan_stage *stage;

    if (plan->stage_count == HR_PLAN_STAGES_MAX)
        return NULL;
    stage = &plan->stages[plan->stage_count++];
    stage->expand = HR_NO_NODE;
    return stage;
}

static enum hr_err add_spine_node(struct cut *cut, uint32_t node)
{
    struct hr_plan *plan = cut->plan;
    struct hr_plan_stage *stage = &plan->stages[plan->stage_count - 1];

    if (!hr__stage_fits(cut->graph, stage, node))
        stage = begin_stage(plan);
    if (stage == NULL)
        return HR_ERR_LIMIT;
    switch (cut->graph->nodes[node].op->kind) {
    case HR_OP_EXPAND:
        stage->expand = node;
        return HR_OK;
    case HR_OP_ORDER:
    case HR_OP_SEQUENCE:
        stage->sequence[stage->sequence_count++] = node;
        return HR_OK;
    default:
        return add_step(stage, node);
    }
}

static void describe(struct hr_plan_stage *stage)
{
    snprintf(
        stage->reason, sizeof stage->reason, "%s",
        stage->direct
            ? "every record's place is known beforehand: threads write straight into "
              "the batch"
        : stage->filters || stage->expand != HR_NO_NODE
            ? "the number of records is known only when they are made: they are put "
              "in order after the steps"
            : "records are put in order after the steps");
}

static enum hr_err make_stages(struct cut *cut, struct hr_error *reterr)
{
    enum hr_err code;

    hr__shape_find(cut->graph, &cut->shape);
    begin_stage(cut->plan);
    code = add_root_steps(cut, cut->shape.root);
    for (size_t i = 0; code == HR_OK && i < cut->shape.spine_count; i++)
        code = add_spine_node(cut, cut->shape.spine[i]);
    if (code == HR_ERR_LIMIT)
        return hr__fail(reterr, code, "the graph needs more than %d stages",
                        HR_PLAN_STAGES_MAX);
    if (code != HR_OK)
        return hr__fail(reterr, code, "out of memory");
    cut->plan->root = cut->shape.root;
    hr__plan_settle(cut->plan);
    for (size_t i = 0; i < cut->plan->stage_count; i++)
        describe(&cut->plan->stages[i]);
    return HR_OK;
}

enum hr_err hr__pass_stages(struct hr_plan *plan, struct hr_error *reterr)
{
    struct cut *cut = hr__calloc(1, sizeof *cut);
    enum hr_err code;

    if (cut == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    cut->plan = plan;
    cut->graph = plan->graph;
    code = make_stages(cut, reterr);
    hr__free(cut);
    return code;
}

/* The stage and the number of the step of this node; false when no step has it. */
static bool
find_step(const struct hr_plan *plan, uint32_t node, size_t *ret_stage, size_t *ret_step)
{
    for (size_t i = 0; i < plan->stage_count; i++)
        for (size_t k = 0; k < plan->stages[i].step_count; k++)
            if (plan->stages[i].steps[k].node == node) {
                *ret_stage = i;
                *ret_step = k;
                return true;
            }
    return false;
}

/* Steps from `from` on and the end of the stage become those of `rest`. */
static bool
split(struct hr_plan_stage *stage, size_t from, struct hr_plan_stage *ret_rest)
{
    size_t count = stage->step_count - from;
    struct hr_plan_step *steps = hr__calloc(count + 1, sizeof *steps);

    if (steps == NULL)
        return false;
    *ret_rest = *stage;
    memcpy(steps, &stage->steps[from], count * sizeof *steps);
    ret_rest->steps = steps;
    ret_rest->step_count = count;
    stage->step_count = from;
    stage->expand = HR_NO_NODE;
    stage->sequence_count = 0;
    return true;
}

static bool ends_there(const struct hr_plan_stage *stage, size_t step)
{
    return step + 1 == stage->step_count && stage->expand == HR_NO_NODE &&
           stage->sequence_count == 0;
}

enum hr_err hr__pass_cut(struct hr_plan *plan, uint32_t after, struct hr_error *reterr)
{
    const char *name = plan->graph->nodes[after].name;
    struct hr_plan_stage rest, *stages = plan->stages;
    size_t at, step;

    if (!find_step(plan, after, &at, &step) || ends_there(&stages[at], step))
        return hr__fail(reterr, HR_ERR_ARGUMENT, "no stage can be cut after '%s'", name);
    if (plan->stage_count == HR_PLAN_STAGES_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a plan has at most %d stages",
                        HR_PLAN_STAGES_MAX);
    if (!split(&stages[at], step + 1, &rest))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    memmove(&stages[at + 2], &stages[at + 1],
            (plan->stage_count - at - 1) * sizeof stages[0]);
    stages[at + 1] = rest;
    plan->stage_count++;
    hr__plan_settle(plan);
    snprintf(stages[at].reason, sizeof stages[at].reason,
             stages[at].describes
                 ? "a cut inside a group: descriptions of values that are not made yet "
                   "wait in the queue of the next stage"
                 : "a cut: records wait in the queue of the next stage");
    describe(&stages[at + 1]);
    return HR_OK;
}
