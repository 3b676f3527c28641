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

static uint64_t extent_bytes(const struct hr_extent *extent)
{
    const struct hr_schema *schema = &extent->schema;
    uint64_t bytes = extent->bytes;

    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].kind == HR_FIELD_TENSOR)
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

struct estimate {
    const struct hr_graph *graph;
    const struct hr_extent *extents; /* or NULL */
};

/* Batches are estimated by their records: the schema of a batch has one dimension more,
 * which is unknown where the last batch is smaller. */
static uint64_t node_estimate(const struct estimate *e, uint32_t node)
{
    const struct hr_graph_node *n = &e->graph->nodes[node];

    if (e->extents != NULL && e->extents[node].known)
        return extent_bytes(&e->extents[node]);
    if (n->op->sequence.runs != NULL)
        return hr__bytes_times(records_of_batch(n), node_estimate(e, n->inputs[0]));
    if (n->op->kind == HR_OP_ORDER)
        return node_estimate(e, n->inputs[0]);
    return record_estimate(&n->schema);
}

/* Taking a batch apart gives about as many bytes as went in; other expansions are assumed
 * to make four children. */
static uint64_t children_estimate(const struct estimate *e, uint32_t expand)
{
    const struct hr_graph_node *n = &e->graph->nodes[expand];
    uint64_t parent = node_estimate(e, n->inputs[0]), child = node_estimate(e, expand);

    return parent > hr__bytes_times(4, child) ? parent : hr__bytes_times(4, child);
}

static uint32_t
traits_of(const struct estimate *e, const struct hr_plan_stage *stage, size_t step)
{
    return (uint32_t)e->graph->nodes[stage->steps[step].node].op->traits;
}

/* A decode that may use a reduced scale leaves at most this many times the pixels that
 * are wanted of it. */
#define DECODED_PER_WANTED 9

/* The pixels that are decoded for a description that step `at` begins. */
static uint64_t
decode_estimate(const struct estimate *e, const struct hr_plan_stage *stage, size_t at)
{
    const struct hr_graph_node *n = &e->graph->nodes[stage->steps[at].node];
    uint64_t whole = node_estimate(e, stage->steps[at].node), wanted;

    if (n->op->composes == NULL || n->op->composes(n->params) == HR_STRICTNESS_EXACT)
        return whole;
    while (at + 1 < stage->step_count && (traits_of(e, stage, at + 1) & HR_TRAIT_DEFERS))
        at++;
    wanted = hr__bytes_times(DECODED_PER_WANTED, node_estimate(e, stage->steps[at].node));
    return whole < wanted ? whole : wanted;
}

/* What the steps of a record keep until it ends: the source's bytes, decoded pixels, and
 * what each op makes that does not just edit descriptions. */
static uint64_t
scratch_estimate(const struct estimate *e, const struct hr_plan_stage *stage)
{
    uint64_t bytes = SCRATCH_BYTES;

    for (size_t i = 0; e->extents != NULL && i < stage->step_count; i++) {
        uint32_t node = stage->steps[i].node;

        if (traits_of(e, stage, i) & HR_TRAIT_DECODES)
            bytes = hr__bytes_plus(bytes, decode_estimate(e, stage, i));
        /* Pixels that are resampled twice are made in between. */
        if ((traits_of(e, stage, i) & HR_TRAIT_DEFERS) &&
            !(traits_of(e, stage, i) & HR_TRAIT_RESAMPLING))
            continue;
        bytes = hr__bytes_plus(bytes, node_estimate(e, node));
        if (i > 0 && (traits_of(e, stage, i - 1) & HR_TRAIT_DEFERS) &&
            !(traits_of(e, stage, i - 1) & HR_TRAIT_DECODES))
            bytes = hr__bytes_plus(bytes, node_estimate(e, stage->steps[i - 1].node));
    }
    return bytes;
}

void hr__sizes_estimate(const struct hr_plan *plan, const struct hr_extent *extents,
                        struct hr_sizes *ret_sizes)
{
    const struct estimate e = {plan->graph, extents};

    *ret_sizes = (struct hr_sizes){0};
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage *stage = &plan->stages[i];
        struct hr_stage_sizes *s = &ret_sizes->stages[i];
        uint32_t batch = hr__plan_stage_batch(plan, stage);
        bool expands = stage->expand != HR_NO_NODE;

        s->result = node_estimate(&e, stage->last);
        s->item = expands ? node_estimate(&e, stage->expand) : s->result;
        if (expands)
            s->result = children_estimate(&e, stage->expand);
        s->scratch = scratch_estimate(&e, stage);
        s->known = extents != NULL && extents[hr__plan_stage_end(stage)].known;
        if (batch != HR_NO_NODE)
            s->batch = node_estimate(&e, batch);
    }
}
