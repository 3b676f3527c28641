/*
 * opt/plan_check.c - checks that the graph allows a plan and that the engine can run it.
 *
 * Nodes are visited in the order in which they run. The records that a node reads must
 * come from an earlier step of its stage, or be those that the previous stage hands over.
 * The first error is reported with its place in the file.
 */
#include <string.h>

#include "core/alloc.h"
#include "opt/memory.h"
#include "opt/opt.h"
#include "opt/shape.h"

struct check {
    struct hr_plan *plan;
    const struct hr_graph *graph;
    const char *name;
    struct hr_error *error;
    struct hr_shape shape;
    /* Per node: 1 + its stage, 0 before it was visited. */
    uint16_t stage_of[HR_GRAPH_NODES_MAX];
    size_t at;    /* the current stage */
    uint32_t end; /* the last node visited in it, or its feed */
};

static const char *node_name(const struct check *c, uint32_t node)
{
    return c->graph->nodes[node].name;
}

#define FAIL(c, code, where, ...)                                                        \
    hr__plan_fail_at((c)->error, code, (c)->name, (where)->line, (where)->column,        \
                     __VA_ARGS__)

static const struct hr_plan_stage *stage_at(const struct check *c)
{
    return &c->plan->stages[c->at];
}

/* ---- data flow ---- */

/* A place in the file, for messages. */
struct where {
    int line, column;
};

static struct where where_of(const struct check *c, const struct hr_plan_step *step)
{
    return step != NULL ? (struct where){step->line, step->column}
                        : (struct where){stage_at(c)->line, stage_at(c)->column};
}

static enum hr_err check_input(const struct check *c, uint32_t node, uint32_t input,
                               const struct where *where)
{
    size_t stage = c->stage_of[input];

    if (stage == 0)
        return FAIL(c, HR_ERR_GRAPH, where,
                    "'%s' reads the records of '%s', which has not run by then",
                    node_name(c, node), node_name(c, input));
    if (stage == c->at + 1 || input == stage_at(c)->feed)
        return HR_OK;
    return FAIL(c, HR_ERR_GRAPH, where,
                "'%s' reads the records of '%s', but stage %zu hands over those of '%s' "
                "only: a cut is legal where all later steps need one node's records",
                node_name(c, node), node_name(c, input), c->at,
                node_name(c, stage_at(c)->feed));
}

static enum hr_err place(struct check *c, uint32_t node, const struct where *where)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];

    if (c->stage_of[node] != 0)
        return FAIL(c, HR_ERR_GRAPH, where, "'%s' is in the plan twice",
                    node_name(c, node));
    if (n->op->kind == HR_OP_SOURCE && c->at > 0)
        return FAIL(c, HR_ERR_GRAPH, where, "'%s' is a source: it belongs in stage 1",
                    node_name(c, node));
    for (size_t i = 0; i < n->input_count; i++)
        HR_TRY(check_input(c, node, hr__node_records(c->graph, n->inputs[i]), where));
    c->stage_of[node] = (uint16_t)(c->at + 1);
    c->end = node;
    return HR_OK;
}

static const char *key_of(const struct check *c, uint32_t node)
{
    switch (c->graph->nodes[node].op->kind) {
    case HR_OP_ORDER:
        return hr__node_is_index_order(c->graph, node) ? NULL : "sequence";
    case HR_OP_EXPAND:
        return "expand";
    case HR_OP_SEQUENCE:
        return "sequence";
    default:
        return "steps";
    }
}

static enum hr_err check_key(const struct check *c, uint32_t node, const char *key,
                             const struct where *where)
{
    const char *wanted = key_of(c, node);

    if (wanted == NULL)
        return FAIL(c, HR_ERR_GRAPH, where,
                    "'%s' orders records by their number: it is part of no stage",
                    node_name(c, node));
    if (strcmp(wanted, key) != 0)
        return FAIL(c, HR_ERR_GRAPH, where, "'%s' belongs under \"%s\", not \"%s\"",
                    node_name(c, node), wanted, key);
    return HR_OK;
}

/* ---- variants ---- */

static enum hr_err check_variant(const struct check *c, uint32_t node,
                                 enum hr_plan_variant variant, const struct where *where)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    const struct hr_code_use *use = hr__node_code(n);

    if (variant == HR_PLAN_REMOTE)
        return FAIL(c, HR_ERR_UNSUPPORTED, where,
                    "'%s' cannot run remotely: this library has no remote workers yet",
                    node_name(c, node));
    if (variant == HR_PLAN_PROCESSES && use == NULL && !hr__op_is_portable(n->op))
        return FAIL(c, HR_ERR_UNSUPPORTED, where,
                    "'%s' cannot run in a worker process: its op (%s) needs what only "
                    "this process has",
                    node_name(c, node), n->op->name);
    if (variant == HR_PLAN_PROCESSES && use != NULL && use->code->stays != NULL)
        return FAIL(c, HR_ERR_UNSUPPORTED, where,
                    "'%s' cannot run in a worker process: %s", node_name(c, node),
                    use->code->stays);
    if (variant != HR_PLAN_INLINE && use != NULL && use->variant == HR_CODE_INLINE)
        return FAIL(
            c, HR_ERR_GRAPH, where,
            "'%s' must run inline: in the graph it has variant: inline, never two "
            "calls at once",
            node_name(c, node));
    return HR_OK;
}

static bool makes_requests(const struct hr_plan_stage *stage)
{
    bool requests =
        stage->expand != HR_NO_NODE && stage->expand_variant == HR_PLAN_PROCESSES;

    for (size_t i = 0; i < stage->step_count; i++)
        requests = requests || stage->steps[i].variant == HR_PLAN_PROCESSES;
    return requests;
}

/* ---- groups ---- */

/* Which steps share one piece of work is the graph's to say; one may run alone where that
 * gives the same bytes. */
static enum hr_err check_group(const struct check *c, const struct hr_plan_step *step)
{
    const struct hr_graph_node *n = &c->graph->nodes[step->node];
    bool may_split = hr__graph_may_split(c->graph, step->node);

    if (step->force_after != n->made_after && !(n->describes && may_split))
        return FAIL(
            c, HR_ERR_GRAPH, step,
            "\"made_after\" of '%s' must be %s, as in the graph: else its records "
            "would have other bytes",
            node_name(c, step->node), n->made_after ? "true" : "false");
    if (step->group != n->group && !(step->group == step->node && step->force_after))
        return FAIL(c, HR_ERR_GRAPH, step,
                    "the group of '%s' is '%s', not '%s': the graph decides which steps "
                    "share work (a step that runs alone has made_after: true)",
                    node_name(c, step->node), node_name(c, n->group),
                    node_name(c, step->group));
    return HR_OK;
}

/* ---- numbers ---- */

/* Records in the blocks of a stage, about each of which some hundred bytes are kept. */
#define BLOCKED_MAX ((uint64_t)1 << 24)

static enum hr_err
check_direct(const struct check *c, const struct hr_plan_stage *stage, bool written)
{
    struct hr_sequence_runs runs = {0};
    const struct hr_graph_node *batch;

    if (written != stage->direct)
        return FAIL(c, HR_ERR_GRAPH, stage, "\"direct\" is %s for this stage",
                    stage->direct ? "true" : "false");
    if (!stage->direct)
        return HR_OK;
    batch = &c->graph->nodes[stage->sequence[0]];
    batch->op->sequence.runs(batch->params, &runs);
    if (stage->memory.block_records != runs.size)
        return FAIL(c, HR_ERR_RANGE, stage,
                    "a block of a direct stage is a batch: \"block_records\" must be "
                    "%lld, not %u",
                    (long long)runs.size, stage->memory.block_records);
    if (stage->memory.block_count != c->plan->memory.batches_ahead)
        return FAIL(c, HR_ERR_RANGE, stage,
                    "a block of a direct stage is a batch: \"block_count\" must be "
                    "\"batches_ahead\", %u, not %u",
                    c->plan->memory.batches_ahead, stage->memory.block_count);
    return HR_OK;
}

static enum hr_err check_numbers(const struct check *c, bool written_direct)
{
    const struct hr_plan_stage *stage = stage_at(c);
    const struct hr_plan_stage_memory *m = &stage->memory;
    bool requests = makes_requests(stage);

    HR_TRY(check_direct(c, stage, written_direct));
    if (!stage->direct && (uint64_t)m->block_records * m->block_count > BLOCKED_MAX)
        return FAIL(
            c, HR_ERR_RANGE, stage,
            "\"block_records\" times \"block_count\" is %llu, and must be at most "
            "%llu",
            (unsigned long long)m->block_records * m->block_count,
            (unsigned long long)BLOCKED_MAX);
    if ((c->at == 0) != (m->queue_records == 0) || (c->at == 0) != (m->queue_bytes == 0))
        return FAIL(c, HR_ERR_RANGE, stage,
                    c->at == 0
                        ? "no queue leads to stage 1: \"queue_records\" and "
                          "\"queue_bytes\" must be 0"
                        : "\"queue_records\" and \"queue_bytes\" must be at least 1");
    if (requests != (stage->request_ns > 0))
        return FAIL(c, HR_ERR_RANGE, stage,
                    requests
                        ? "\"request_ns\" must be at least 1 where steps run in "
                          "processes"
                        : "\"request_ns\" must be 0 where no step runs in a process");
    if (requests && stage->chunk_records > HR_PLAN_REQUEST_RECORDS_MAX)
        return FAIL(c, HR_ERR_RANGE, stage,
                    "\"chunk_records\" must be 1 to %d where steps run in processes",
                    HR_PLAN_REQUEST_RECORDS_MAX);
    if (requests && c->plan->memory.channel == 0)
        return FAIL(c, HR_ERR_RANGE, stage,
                    "\"channel\" must be at least 1 where steps run in processes");
    return HR_OK;
}

/* ---- the whole ---- */

static enum hr_err place_stage(struct check *c)
{
    const struct hr_plan_stage *stage = stage_at(c);
    struct where where;

    for (size_t i = 0; i < stage->step_count; i++) {
        where = where_of(c, &stage->steps[i]);
        HR_TRY(check_key(c, stage->steps[i].node, "steps", &where));
        HR_TRY(place(c, stage->steps[i].node, &where));
    }
    where = where_of(c, NULL);
    if (stage->expand != HR_NO_NODE) {
        HR_TRY(check_key(c, stage->expand, "expand", &where));
        HR_TRY(place(c, stage->expand, &where));
    }
    for (size_t i = 0; i < stage->sequence_count; i++) {
        HR_TRY(check_key(c, stage->sequence[i], "sequence", &where));
        HR_TRY(place(c, stage->sequence[i], &where));
    }
    if (c->end == stage->feed)
        return FAIL(c, HR_ERR_GRAPH, &where, "the stage has no node");
    return HR_OK;
}

/* Every node has its place, and the last one is the graph's output. */
static enum hr_err check_complete(const struct check *c)
{
    const struct hr_plan_stage *last = &c->plan->stages[c->plan->stage_count - 1];
    uint32_t output = hr__node_records(c->graph, c->graph->output);

    for (uint32_t i = 0; i < c->graph->count; i++)
        if (c->stage_of[i] == 0 && !hr__node_is_index_order(c->graph, i))
            return FAIL(c, HR_ERR_GRAPH, last, "'%s' is missing from the plan",
                        node_name(c, i));
    if (c->end != output)
        return FAIL(c, HR_ERR_GRAPH, last, "the plan ends with '%s', the graph with '%s'",
                    node_name(c, c->end), node_name(c, output));
    return HR_OK;
}

static enum hr_err check_stage(struct check *c, bool written_direct)
{
    const struct hr_plan_stage *stage = stage_at(c);
    struct where where = where_of(c, NULL);

    for (size_t i = 0; i < stage->step_count; i++) {
        struct where at = where_of(c, &stage->steps[i]);

        HR_TRY(check_group(c, &stage->steps[i]));
        HR_TRY(check_variant(c, stage->steps[i].node, stage->steps[i].variant, &at));
    }
    if (stage->expand != HR_NO_NODE)
        HR_TRY(check_variant(c, stage->expand, stage->expand_variant, &where));
    return check_numbers(c, written_direct);
}

static enum hr_err check(struct check *c)
{
    bool direct[HR_PLAN_STAGES_MAX];
    const struct where top = {1, 1};

    hr__shape_find(c->graph, &c->shape);
    for (size_t i = 0; i < c->plan->stage_count; i++)
        direct[i] = c->plan->stages[i].direct;
    for (c->at = 0; c->at < c->plan->stage_count; c->at++) {
        c->plan->stages[c->at].feed = c->end;
        HR_TRY(place_stage(c));
    }
    HR_TRY(check_complete(c));
    c->plan->root = c->shape.root;
    hr__plan_settle(c->plan);
    for (c->at = 0; c->at < c->plan->stage_count; c->at++)
        HR_TRY(check_stage(c, direct[c->at]));
    hr__plan_sum(c->plan);
    if (c->plan->memory.budget > 0 && c->plan->memory.total > c->plan->memory.budget)
        return FAIL(c, HR_ERR_LIMIT, &top,
                    "the plan's memory adds up to %llu bytes, more than its budget of "
                    "%llu",
                    (unsigned long long)c->plan->memory.total,
                    (unsigned long long)c->plan->memory.budget);
    return HR_OK;
}

enum hr_err
hr__plan_check(struct hr_plan *plan, const char *name, struct hr_error *reterr)
{
    struct check *c = hr__calloc(1, sizeof *c);
    enum hr_err code;

    if (c == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    c->plan = plan;
    c->graph = plan->graph;
    c->name = name;
    c->error = reterr;
    c->end = HR_NO_NODE;
    code = check(c);
    hr__free(c);
    return code;
}
