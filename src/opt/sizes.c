/*
 * opt/sizes.c - estimates the sizes of records from schemas.
 */
#include "opt/memory.h"

/* A record of a field whose size no schema knows: a path, a sentence, a small file. */
#define UNKNOWN_BYTES 4096
/* A side of an image that no schema knows. */
#define UNKNOWN_SIDE 512
/* A thread's arena and codec state while a record runs. */
#define SCRATCH_BYTES ((uint64_t)4 << 20)

static uint64_t field_estimate(const struct hr_field *field)
{
    uint64_t bytes = hr_dtype_size(field->dtype);

    if (field->kind != HR_FIELD_TENSOR ||
        (!hr__field_has_pixels(field) && hr__field_bytes(field) < 0))
        return UNKNOWN_BYTES;
    for (int d = 0; d < field->ndim; d++)
        bytes = hr__bytes_times(bytes, field->dims[d].size >= 0
                                           ? (uint64_t)field->dims[d].size
                                           : UNKNOWN_SIDE);
    return bytes;
}

static uint64_t record_estimate(const struct hr_schema *schema)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < schema->count; i++)
        bytes = hr__bytes_plus(bytes, field_estimate(&schema->fields[i]));
    return bytes > 0 ? bytes : 1;
}

static uint64_t records_of_batch(const struct hr_graph_node *n)
{
    struct hr_sequence_runs runs = {.size = 1};

    if (n->op->sequence.runs != NULL)
        n->op->sequence.runs(n->params, &runs);
    return runs.size > 0 ? (uint64_t)runs.size : 1;
}

/* Batches are estimated by their records: the schema of a batch has one dimension more,
 * which is unknown where the last batch is smaller. */
static uint64_t node_estimate(const struct hr_graph *graph, uint32_t node)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (n->op->sequence.runs != NULL)
        return hr__bytes_times(records_of_batch(n), node_estimate(graph, n->inputs[0]));
    if (n->op->kind == HR_OP_ORDER)
        return node_estimate(graph, n->inputs[0]);
    return record_estimate(&n->schema);
}

/* Taking a batch apart gives about as many bytes as went in; other expansions are assumed
 * to make four children. */
static uint64_t children_estimate(const struct hr_graph *graph, uint32_t expand)
{
    const struct hr_graph_node *n = &graph->nodes[expand];
    uint64_t parent = node_estimate(graph, n->inputs[0]);
    uint64_t child = node_estimate(graph, expand);

    return parent > hr__bytes_times(4, child) ? parent : hr__bytes_times(4, child);
}

void hr__sizes_estimate(const struct hr_plan *plan, struct hr_sizes *ret_sizes)
{
    *ret_sizes = (struct hr_sizes){0};
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage *stage = &plan->stages[i];
        struct hr_stage_sizes *s = &ret_sizes->stages[i];
        uint32_t batch = hr__plan_stage_batch(plan, stage);
        bool expands = stage->expand != HR_NO_NODE;

        s->result = node_estimate(plan->graph, stage->last);
        s->item = expands ? node_estimate(plan->graph, stage->expand) : s->result;
        if (expands)
            s->result = children_estimate(plan->graph, stage->expand);
        s->scratch = SCRATCH_BYTES;
        if (batch != HR_NO_NODE)
            s->batch = node_estimate(plan->graph, batch);
    }
}

void hr__sizes_merge(struct hr_sizes *sizes, const struct hr_sizes *measured)
{
    for (size_t i = 0; i < HR_PLAN_STAGES_MAX; i++)
        if (measured->stages[i].records > 0)
            sizes->stages[i] = measured->stages[i];
}
