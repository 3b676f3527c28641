/*
 * opt/extent.c - sizes of records from node to node.
 */
#include "opt/extent.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

struct hr_extent *hr__extents_create(const struct hr_graph *graph)
{
    return hr__calloc(graph->count, sizeof(struct hr_extent));
}

/* The records that a node joins into one; 1 if it joins none, or if it joins fewer of
 * larger records, whose sizes are known after the last one. */
static uint64_t
joined(const struct hr_graph_node *n, const struct hr_schema *input, bool largest)
{
    uint64_t records = hr__node_joins(n, input);

    return records > 0 && (largest || n->op->sequence.runs != NULL) ? records : 1;
}

/* The records in a batch that the node takes apart. */
static uint64_t taken_apart(const struct hr_graph *graph, uint32_t node,
                            const struct hr_extent *all, bool largest)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    int rank = n->schema.batch_rank;

    while (n->input_count > 0) {
        n = &graph->nodes[n->inputs[0]];
        if (n->input_count > 0 && n->schema.batch_rank == rank + 1 &&
            hr__node_joins(n, &all[n->inputs[0]].schema) > 0)
            return joined(n, &all[n->inputs[0]].schema, largest);
    }
    return 1;
}

static int64_t diagonal(int64_t height, int64_t width)
{
    return height < 0 || width < 0 ? HR_DIM_UNKNOWN
                                   : (int64_t)ceil(sqrt((double)height * (double)height +
                                                        (double)width * (double)width));
}

static int64_t wider(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Sets the sides that infer has left open to what the op says. If it says nothing, those
 * of one record stay as they were, which keeps the aspect for ops that go by it. */
static void close_sides(const struct hr_graph_node *n, struct hr_field *before,
                        bool largest, struct hr_field *field)
{
    int64_t height = hr__field_height(before)->size,
            width = hr__field_width(before)->size;
    struct hr_dim *to_height = hr__field_height(field),
                  *to_width = hr__field_width(field);

    if (n->op->largest != NULL && height >= 0 && width >= 0)
        n->op->largest(n->params, !largest, &height, &width);
    else if (largest)
        height = width = diagonal(height, width);
    if (n->when_count > 0) { /* some records skip the node */
        height = wider(height, hr__field_height(before)->size);
        width = wider(width, hr__field_width(before)->size);
    }
    if (to_height->size < 0)
        to_height->size = height;
    if (to_width->size < 0)
        to_width->size = width;
}

static void close_field(const struct hr_graph_node *n, struct hr_schema *input,
                        bool largest, struct hr_field *field)
{
    struct hr_field *before = hr__schema_find(input, field->name);

    if (field->ndim > 0 && field->dims[0].size < 0 && hr__node_joins(n, input) > 0)
        field->dims[0].size = (int64_t)joined(n, input, largest);
    if (before != NULL && hr__field_has_pixels(before) && hr__field_has_pixels(field))
        close_sides(n, before, largest, field);
}

/* Whether no value of the node's records is deferred. An image that it does not touch
 * stays as it is. */
static bool all_are_made(const struct hr_graph_node *n, const struct hr_schema *inputs)
{
    size_t made = 0, pixels = 0;

    if (n->made_after || hr__node_spans_records(n))
        return true;
    for (size_t i = 0; i < n->field_count; i++)
        made += n->made[i].before;
    for (size_t i = 0; i < n->input_count; i++)
        for (size_t f = 0; f < inputs[i].count; f++)
            pixels += hr__field_has_pixels(&inputs[i].fields[f]);
    return made >= pixels;
}

static uint64_t frames_of(const struct hr_graph_node *n, struct hr_schema *input)
{
    uint64_t bytes = 0;

    for (size_t i = 0; n->op->frames != NULL && i < n->field_count; i++) {
        struct hr_field *field = hr__schema_find(input, n->field_names[i]);

        if (field != NULL && hr__field_has_pixels(field))
            bytes += n->op->frames(n->params, field);
    }
    return bytes;
}

/* The largest of the inputs that are known: a record comes from one of them. */
static bool infer_merge(const struct hr_graph_node *n, const struct hr_extent *all,
                        struct hr_extent *ret)
{
    ret->known = false;
    ret->force = ret->frames = ret->bytes = ret->ran = ret->children = 0;
    ret->encoded = 0;
    ret->measured = false;
    ret->schema = n->schema;
    for (size_t i = 0; i < n->input_count; i++) {
        const struct hr_extent *one = &all[n->inputs[i]];

        if (!one->known)
            continue;
        ret->bytes = one->bytes > ret->bytes ? one->bytes : ret->bytes;
        for (size_t f = 0; f < ret->schema.count; f++) {
            struct hr_field *to = &ret->schema.fields[f];
            const struct hr_field *from = hr__schema_get(&one->schema, to->name);

            for (int d = 0; from != NULL && d < to->ndim; d++)
                if (!ret->known || from->dims[d].size > to->dims[d].size)
                    to->dims[d].size = from->dims[d].size;
        }
        ret->known = true;
    }
    return ret->known;
}

static bool only_tensors(const struct hr_schema *schema)
{
    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].kind != HR_FIELD_TENSOR)
            return false;
    return true;
}

/* Infers the node from its inputs, which are known. */
static bool infer(const struct hr_graph *graph, uint32_t node,
                  const struct hr_extent *all, bool largest, struct hr_extent *ret)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    struct hr_schema *inputs = hr__calloc(n->input_count + 1, sizeof *inputs);
    uint64_t bytes = 0;

    if (n->op->kind == HR_OP_MERGE) {
        hr__free(inputs);
        return infer_merge(n, all, ret);
    }
    if (inputs == NULL)
        return false;
    ret->force = ret->ran = ret->children = ret->encoded = 0;
    ret->measured = false;
    for (size_t i = 0; i < n->input_count; i++) {
        inputs[i] = all[n->inputs[i]].schema;
        bytes += all[n->inputs[i]].bytes;
        ret->force += all[n->inputs[i]].force;
        ret->encoded += all[n->inputs[i]].encoded;
    }
    ret->frames = frames_of(n, &inputs[0]);
    if (all_are_made(n, inputs))
        ret->force = ret->encoded = 0;
    ret->known = hr__graph_infer(graph, node, inputs, &ret->schema) == HR_OK;
    for (size_t f = 0; ret->known && f < ret->schema.count; f++)
        close_field(n, &inputs[0], largest, &ret->schema.fields[f]);
    ret->bytes = bytes * (n->input_count > 0 ? joined(n, &inputs[0], largest) : 1);
    if (n->op->kind == HR_OP_EXPAND)
        ret->bytes = bytes / taken_apart(graph, node, all, largest);
    if (ret->known && only_tensors(&ret->schema))
        ret->bytes = 0;
    hr__free(inputs);
    return ret->known;
}

void hr__extents_infer(const struct hr_graph *graph, uint32_t node, struct hr_extent *all)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (all[node].known)
        return;
    for (size_t i = 0; i < n->input_count; i++) {
        hr__extents_infer(graph, n->inputs[i], all);
        if (!all[n->inputs[i]].known && n->op->kind != HR_OP_MERGE)
            return;
    }
    (void)infer(graph, node, all, false, &all[node]);
}

static void raise_to(struct hr_extent *most, const struct hr_extent *one)
{
    if (!one->known)
        return;
    if (!most->known) {
        *most = *one;
        return;
    }
    most->bytes = one->bytes > most->bytes ? one->bytes : most->bytes;
    most->measured = most->measured || one->measured;
    most->encoded = one->encoded > most->encoded ? one->encoded : most->encoded;
    most->force = one->force > most->force ? one->force : most->force;
    most->frames = one->frames > most->frames ? one->frames : most->frames;
    most->ran = one->ran > most->ran ? one->ran : most->ran;
    most->children = one->children > most->children ? one->children : most->children;
    for (size_t f = 0; f < most->schema.count && f < one->schema.count; f++) {
        struct hr_field *to = &most->schema.fields[f];
        const struct hr_field *from = &one->schema.fields[f];

        if (to->kind == HR_FIELD_RAGGED) /* packed, it takes no more than stacked */
            to->kind = from->kind;
        for (int d = 0; d < to->ndim && d < from->ndim; d++)
            if (from->dims[d].size > to->dims[d].size)
                to->dims[d].size = from->dims[d].size;
    }
}

void hr__extents_add(const struct hr_graph *graph, struct hr_extent *one,
                     struct hr_extent *most)
{
    hr__extents_infer(graph, graph->output, one);
    for (uint32_t i = 0; i < graph->count; i++) {
        if (!one[i].measured) /* hr__extents_close() infers it from the largest */
            one[i].bytes = one[i].encoded = 0;
        raise_to(&most[i], &one[i]);
    }
}

static void close_node(const struct hr_graph *graph, uint32_t node, bool *done,
                       struct hr_extent *most, struct hr_extent *scratch)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if (done[node] || n->input_count == 0)
        return;
    done[node] = true;
    for (size_t i = 0; i < n->input_count; i++) {
        close_node(graph, n->inputs[i], done, most, scratch);
        if (!most[n->inputs[i]].known && n->op->kind != HR_OP_MERGE)
            return;
    }
    memset(scratch, 0, sizeof *scratch);
    if (!infer(graph, node, most, true, scratch))
        return;
    if (most[node].known) /* by record: its scratch does not follow from the sizes */
        scratch->force = scratch->frames = 0;
    if (most[node].measured)
        scratch->bytes = scratch->encoded = 0;
    raise_to(&most[node], scratch);
}

enum hr_err hr__extents_close(const struct hr_graph *graph, struct hr_extent *most)
{
    bool *done = hr__calloc(graph->count, sizeof *done);
    struct hr_extent *scratch = hr__calloc(1, sizeof *scratch);
    enum hr_err code = done == NULL || scratch == NULL ? HR_ERR_MEMORY : HR_OK;

    if (code == HR_OK)
        close_node(graph, graph->output, done, most, scratch);
    hr__free(done);
    hr__free(scratch);
    return code;
}
