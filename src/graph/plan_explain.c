/*
 * graph/plan_explain.c - a plan for people: what runs together, and why.
 */
#include "graph/plan.h"

#include <assert.h>
#include <string.h>

#include "core/str.h"

static int name_width(const struct hr_plan *plan)
{
    size_t width = 0;

    for (size_t i = 0; i < plan->graph->count; i++) {
        size_t length = strlen(plan->graph->nodes[i].name);

        width = length > width ? length : width;
    }
    return (int)(width < 40 ? width : 40);
}

static void print_line(const struct hr_plan *plan, uint32_t node, const char *mark,
                       const char *reason, struct hr_str *out)
{
    const struct hr_graph_node *n = &plan->graph->nodes[node];

    hr__str_addf(out, "  %s %-*s  %s", mark, name_width(plan), n->name, reason);
    hr__str_add(out, "\n");
}

/* What the node's state has to say of itself. */
static void tell(const struct hr_graph_node *n, struct hr_str *out)
{
    if (n->op->learner.tell != NULL && n->state != NULL)
        n->op->learner.tell(n->state, out);
}

static void print_state(const struct hr_plan *plan, uint32_t node, const char *mark,
                        struct hr_str *out)
{
    struct hr_str text;

    hr__str_init(&text);
    tell(&plan->graph->nodes[node], &text);
    if (hr__str_text(&text)[0] != '\0')
        hr__str_addf(out, "  %s %-*s  %s\n", mark, name_width(plan), "",
                     hr__str_text(&text));
    hr__str_finish(&text);
}

/* ORDER nodes that are functions of the position are no steps; they are shown before
 * those of stage 1. */
static void
print_orders(const struct hr_plan *plan, uint32_t node, bool *seen, struct hr_str *out)
{
    const struct hr_graph_node *n = &plan->graph->nodes[node];

    if (seen[node])
        return;
    seen[node] = true;
    for (size_t i = 0; i < n->input_count; i++)
        print_orders(plan, n->inputs[i], seen, out);
    if (n->op->kind != HR_OP_ORDER)
        return;
    print_line(plan, node, " ", "a function of the record's number: no queue, no buffer",
               out);
    print_state(plan, node, " ", out);
}

static bool group_continues(const struct hr_plan_stage *stage, size_t at)
{
    for (size_t i = at + 1; i < stage->step_count; i++)
        if (stage->steps[i].group == stage->steps[at].group)
            return true;
    return false;
}

static void print_steps(const struct hr_plan *plan, const struct hr_plan_stage *stage,
                        struct hr_str *out)
{
    for (size_t i = 0; i < stage->step_count; i++) {
        const struct hr_plan_step *step = &stage->steps[i];
        bool head = step->group == step->node;
        bool more = group_continues(stage, i);
        const char *mark = head ? (more ? "┌" : " ") : (more ? "│" : "└");

        print_line(plan, step->node, mark, step->reason, out);
        print_state(plan, step->node, more ? "│" : " ", out);
    }
}

static void print_end(const struct hr_plan *plan, const struct hr_plan_stage *stage,
                      struct hr_str *out)
{
    if (stage->expand != HR_NO_NODE)
        print_line(plan, stage->expand, " ", "ends the stage: one record becomes many",
                   out);
    for (size_t k = 0; k < stage->sequence_count; k++)
        print_line(plan, stage->sequence[k], " ",
                   stage->direct && k == 0 ? "threads write straight into its memory"
                   : plan->graph->nodes[stage->sequence[k]].op->sequence.runs != NULL
                       ? "gathers records in order"
                       : "sees records one after the other, in order",
                   out);
}

static void print_sizes(const struct hr_plan *plan, const struct hr_plan_stage *stage,
                        struct hr_str *out)
{
    const struct hr_plan_stage_memory *m = &stage->memory;
    char bytes[32];

    hr__str_addf(out, "  %-*s    blocks of %u record%s, %u at once", name_width(plan), "",
                 m->block_records, m->block_records == 1 ? "" : "s", m->block_count);
    if (m->queue_records > 0)
        hr__str_addf(out, "; a queue of %u before it", m->queue_records);
    hr__str_addf(out, "; %s in all\n",
                 hr__bytes_text(bytes, sizeof bytes,
                                m->block_bytes + m->queue_bytes + m->held_bytes));
    if (stage->request_ns > 0)
        hr__str_addf(
            out,
            "  %-*s    up to %d worker process%s for each run of steps there: one "
            "per thread that works\n",
            name_width(plan), "", plan->threads > 1 ? plan->threads : 1,
            plan->threads > 1 ? "es" : "");
}

void hr__plan_explain(const struct hr_plan *plan, struct hr_str *out)
{
    bool seen[HR_GRAPH_NODES_MAX] = {false};

    assert(plan->stage_count > 0);
    hr__str_addf(out, "%zu stage%s, ", plan->stage_count,
                 plan->stage_count == 1 ? "" : "s");
    if (plan->threads > 0)
        hr__str_addf(out, "%d thread%s (%s)", plan->threads,
                     plan->threads == 1 ? "" : "s", plan->threads_reason);
    else
        hr__str_add(out, plan->threads_reason);
    hr__str_addf(out, ", batches %s\n", plan->ordered ? "in order" : "as they complete");
    hr__str_addf(out, "memory: %s\n", plan->memory.reason);
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage *stage = &plan->stages[i];

        hr__str_addf(out, "\nstage %zu: %s\n", i + 1, stage->reason);
        if (i == 0)
            print_orders(plan, plan->root, seen, out);
        print_steps(plan, stage, out);
        print_end(plan, stage, out);
        print_sizes(plan, stage, out);
    }
}
