/*
 * opt/sizes.c - estimates the sizes of records from schemas.
 */
#include "opt/memory.h"

#include <string.h>

/* A record of a field whose size no schema knows: a path, a sentence, a small file. */
#define UNKNOWN_BYTES 4096
/* A side of an image that no schema knows. */
#define UNKNOWN_SIDE 512
/* A thread's arena and codec state while a record runs. */
#define SCRATCH_BYTES ((uint64_t)4 << 20)

uint64_t hr__values_bytes(size_t fields)
{
    return sizeof(struct hr_record_id) + fields * sizeof(struct hr_value);
}

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

struct estimate {
    const struct hr_graph *graph;
    const struct hr_extent *extents; /* or NULL */
};

static const struct hr_schema *schema_of(const struct estimate *e, uint32_t node)
{
    return e->extents != NULL && e->extents[node].known ? &e->extents[node].schema
                                                        : &e->graph->nodes[node].schema;
}

/* Batches are estimated by their records: the schema of a batch has one dimension more,
 * which is unknown where the last batch is smaller. */
static uint64_t node_estimate(const struct estimate *e, uint32_t node)
{
    const struct hr_graph_node *n = &e->graph->nodes[node];
    uint64_t joins = 0;

    if (e->extents != NULL && e->extents[node].known)
        return extent_bytes(&e->extents[node]);
    if (n->input_count > 0)
        joins = hr__node_joins(n, schema_of(e, n->inputs[0]));
    if (joins > 0)
        return hr__bytes_times(joins, node_estimate(e, n->inputs[0]));
    if (n->op->kind == HR_OP_ORDER)
        return node_estimate(e, n->inputs[0]);
    return record_estimate(&n->schema);
}

/* Taking a batch apart copies nothing; other expansions are assumed to make four
 * children. */
static uint64_t children_estimate(const struct estimate *e, uint32_t expand)
{
    const struct hr_graph_node *n = &e->graph->nodes[expand];
    uint64_t parent = node_estimate(e, n->inputs[0]), child = node_estimate(e, expand);

    if (e->extents != NULL && e->extents[expand].children > 0)
        return e->extents[expand].children;
    if (n->op->traits & HR_TRAIT_ZERO_COPY)
        return parent;
    return parent > hr__bytes_times(4, child) ? parent : hr__bytes_times(4, child);
}

/* ---- scratch ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static const struct hr_field *
find_tensor(const struct estimate *e, uint32_t node, const char *name)
{
    const struct hr_schema *schema = schema_of(e, node);

    for (size_t i = 0; i < schema->count; i++)
        if (strcmp(schema->fields[i].name, name) == 0)
            return schema->fields[i].kind == HR_FIELD_TENSOR ? &schema->fields[i] : NULL;
    return NULL;
}

static uint32_t traits_of(const struct estimate *e, uint32_t node)
{
    return (uint32_t)e->graph->nodes[node].op->traits;
}

/* Whether values that the node describes show what is decoded, without a copy. Steps that
 * rename and drop fields or records change nothing. */
static bool shows_decoded(const struct estimate *e, uint32_t node)
{
    while (e->graph->nodes[node].input_count == 1 &&
           (traits_of(e, node) & HR_TRAIT_DEFERS) &&
           (traits_of(e, node) & HR_TRAIT_ZERO_COPY))
        node = e->graph->nodes[node].inputs[0];
    return traits_of(e, node) & HR_TRAIT_DECODES;
}

/* Whether an edit may not fit the description so far, whose pixels are made first: see
 * ops/image_job.c. */
static bool
may_settle(const struct estimate *e, uint32_t node, const struct hr_field *before)
{
    const struct hr_graph_node *n = &e->graph->nodes[node];
    bool cuts = traits_of(e, node) & (HR_TRAIT_RESAMPLING | HR_TRAIT_SHRINKS);
    bool rounds = before->dtype != HR_F32 && before->dtype != HR_U8;

    return n->group != node && (rounds || (cuts && n->strictness == HR_STRICTNESS_EXACT));
}

/* What an op that edits a description makes of it all the same. */
static uint64_t edit_scratch(const struct estimate *e, uint32_t node,
                             const struct hr_field *before, bool shows)
{
    bool half = before->dtype == HR_F16 || before->dtype == HR_BF16;
    uint64_t made = field_estimate(before);
    uint64_t wide = half ? hr__bytes_times(3, made) : 0; /* a copy, and one in float32 */

    if (e->graph->nodes[node].group == node)
        return wide;
    if (!shows && (e->extents[node].frames > 0 || may_settle(e, node, before)))
        return hr__bytes_plus(made, wide);
    return 0;
}

static uint64_t field_scratch(const struct estimate *e, uint32_t node, size_t at)
{
    const struct hr_graph_node *n = &e->graph->nodes[node];
    const struct hr_field *before = find_tensor(e, n->inputs[0], n->field_names[at]);
    const struct hr_field *after = find_tensor(e, node, n->field_names[at]);
    bool shows = shows_decoded(e, n->inputs[0]);
    uint64_t bytes = 0;

    if (n->made[at].before && before != NULL && !shows)
        bytes = field_estimate(before);
    if ((n->field_access[at] != HR_ACCESS_UPDATE &&
         n->field_access[at] != HR_ACCESS_WRITE) ||
        after == NULL || (n->op->traits & (HR_TRAIT_ZERO_COPY | HR_TRAIT_DECODES)))
        return bytes;
    if (!(n->op->traits & HR_TRAIT_DEFERS))
        return hr__bytes_plus(bytes, field_estimate(after));
    if (before == NULL || !hr__field_has_pixels(before)) /* a copy, and the result */
        return hr__bytes_plus(bytes, hr__bytes_times(2, field_estimate(after)));
    return hr__bytes_plus(bytes, edit_scratch(e, node, before, shows));
}

static uint64_t step_scratch(const struct estimate *e, uint32_t node)
{
    const struct hr_graph_node *n = &e->graph->nodes[node];
    bool forces = false;
    uint64_t bytes = e->extents[node].frames;

    if (n->input_count == 0)
        return node_estimate(e, node);
    for (size_t i = 0; i < n->field_count; i++) {
        bytes = hr__bytes_plus(bytes, field_scratch(e, node, i));
        forces = forces || n->made[i].before;
    }
    return hr__bytes_plus(bytes, forces ? e->extents[n->inputs[0]].force : 0);
}

/* What the steps of a record keep until it ends: the source's bytes, decoded pixels, and
 * what each op makes that does not just edit descriptions; not less than it was for
 * records that were run. Worker processes have memory of their own; while they have one
 * record, the thread prepares the next. */
static uint64_t
scratch_estimate(const struct estimate *e, const struct hr_plan_stage *stage)
{
    bool local = true, requests = false;
    uint64_t bytes = 0, ran = 0, read = 0;

    if (e->extents == NULL)
        return SCRATCH_BYTES;
    for (size_t i = 0; i < stage->step_count; i++) {
        uint32_t node = stage->steps[i].node;

        local = stage->steps[i].variant != HR_PLAN_PROCESSES;
        requests = requests || !local;
        if (local)
            bytes = hr__bytes_plus(bytes, step_scratch(e, node));
        ran = larger(ran, e->extents[node].ran);
        if (e->graph->nodes[node].input_count == 0)
            read = hr__bytes_plus(read, node_estimate(e, node));
    }
    if (local)
        bytes = hr__bytes_plus(bytes, e->extents[stage->last].force);
    if (requests)
        bytes = hr__bytes_times(2, bytes);
    if (ran > 0)
        ran = hr__bytes_plus(ran, hr__bytes_plus(read, e->extents[stage->last].force));
    return hr__bytes_plus(SCRATCH_BYTES, larger(bytes, ran));
}

static uint64_t held_records(const struct estimate *e, const struct hr_plan_stage *stage)
{
    uint64_t records = 0;

    for (size_t i = 0; i < stage->sequence_count; i++) {
        const struct hr_graph_node *n = &e->graph->nodes[stage->sequence[i]];

        records += hr__node_holds(n, schema_of(e, n->inputs[0]));
    }
    return records;
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
        if (stage->describes && extents != NULL)
            s->result = hr__bytes_plus(s->result, extents[stage->last].encoded);
        s->item = expands ? node_estimate(&e, stage->expand) : s->result;
        if (expands)
            s->result = children_estimate(&e, stage->expand);
        s->scratch = scratch_estimate(&e, stage);
        s->known = extents != NULL && extents[hr__plan_stage_end(stage)].known;
        s->held = held_records(&e, stage);
        if (batch != HR_NO_NODE)
            s->batch = node_estimate(&e, batch);
    }
}
