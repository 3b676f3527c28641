/*
 * opt/swap.c - which nodes commute, by what their ops declare.
 */
#include "opt/swap.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "op/kind.h"

static void
    HR_PRINTF(3, 4) answer(struct hr_swap *swap, bool allowed, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(swap->reason, sizeof swap->reason, format, args);
    va_end(args);
    swap->allowed = allowed;
}

static bool is_bound(const struct hr_graph_node *n, const char *field)
{
    for (size_t i = 0; i < n->field_count; i++)
        if (strcmp(n->field_names[i], field) == 0)
            return true;
    return false;
}

/* Whether the fields that the node is not bound to leave it as they came. */
static bool passes_on(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    const struct hr_schema *input = &graph->nodes[n->inputs[0]].schema;

    for (size_t i = 0; i < input->count; i++) {
        const char *name = input->fields[i].name;
        const struct hr_field *after = hr__schema_get(&n->schema, name);

        if (!is_bound(n, name) && (after == NULL || after->slot != input->fields[i].slot))
            return false;
    }
    for (size_t i = 0; i < n->schema.count; i++)
        if (!is_bound(n, n->schema.fields[i].name) &&
            hr__schema_get(input, n->schema.fields[i].name) == NULL)
            return false;
    return true;
}

static bool is_movable(const struct hr_graph *graph, const struct hr_graph_node *n,
                       struct hr_swap *swap)
{
    if (n->keep_position)
        answer(swap, false, "'%.64s' keeps its position", n->name);
    else if (n->op->kind != HR_OP_MAP && n->op->kind != HR_OP_FILTER)
        answer(swap, false, "'%.64s' makes, orders or gathers records", n->name);
    else if (n->op->cache.begin != NULL)
        answer(swap, false, "'%.64s' remembers the records that are made before it",
               n->name);
    else if (n->op->code != NULL)
        answer(swap, false, "'%.64s' is user code, of which nothing is known", n->name);
    else if (!passes_on(graph, n))
        answer(swap, false, "'%.64s' drops or renames fields", n->name);
    else
        return true;
    return false;
}

static bool depends(const struct hr_graph_node *n, const struct hr_graph_node *on)
{
    for (size_t i = 0; i < n->depends_count; i++)
        if (strcmp(n->depends_on[i], on->name) == 0)
            return true;
    return false;
}

/* Whether the node makes a field that its input does not have. */
static bool adds_field(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    const struct hr_schema *input = &graph->nodes[n->inputs[0]].schema;

    for (size_t i = 0; i < n->field_count; i++)
        if (n->field_access[i] == HR_ACCESS_WRITE &&
            hr__schema_get(input, n->field_names[i]) == NULL)
            return true;
    return false;
}

/* A field that both touch and that one of them changes, or NULL. *ret_updates: it is the
 * only one, and both give it a new value. */
static const char *shared_field(const struct hr_graph_node *a,
                                const struct hr_graph_node *b, bool *ret_updates)
{
    const char *found = NULL;

    *ret_updates = true;
    for (size_t i = 0; i < a->field_count; i++)
        for (size_t k = 0; k < b->field_count; k++) {
            if (strcmp(a->field_names[i], b->field_names[k]) != 0 ||
                (a->field_access[i] == HR_ACCESS_READ &&
                 b->field_access[k] == HR_ACCESS_READ))
                continue;
            *ret_updates = found == NULL && a->field_access[i] == HR_ACCESS_UPDATE &&
                           b->field_access[k] == HR_ACCESS_UPDATE;
            found = a->field_names[i];
        }
    return found;
}

/* Whether the node's groups, and those that end at it, make the same pixels wherever they
 * end. */
static bool is_exact(const struct hr_graph_node *n)
{
    return n->strictness == HR_STRICTNESS_EXACT &&
           n->made_strictness == HR_STRICTNESS_EXACT;
}

#define MOVES (HR_TRAIT_GEOMETRIC | HR_TRAIT_RESAMPLING | HR_TRAIT_WARPS)

/* Whether the node leaves an image of these sizes as large as it is. */
static bool keeps_size(const struct hr_graph *graph, uint32_t node, const char *name,
                       int64_t height, int64_t width)
{
    struct hr_schema input = graph->nodes[graph->nodes[node].inputs[0]].schema, output;
    struct hr_field *field = hr__schema_find(&input, name);
    const struct hr_field *after;

    if (field == NULL || !hr__field_has_pixels(field))
        return false;
    hr__dim_set(hr__field_height(field), height);
    hr__dim_set(hr__field_width(field), width);
    if (hr__graph_infer(graph, node, &input, &output) != HR_OK)
        return false;
    after = hr__schema_get(&output, name);
    for (int d = 0; after != NULL && d < field->ndim; d++)
        if (after->ndim != field->ndim || after->dims[d].size != field->dims[d].size)
            return false;
    return after != NULL;
}

/* Whether it does so wherever it stands: two sizes that no op has as its own tell. */
static bool keeps_any_size(const struct hr_graph *graph, uint32_t node, const char *field)
{
    return keeps_size(graph, node, field, 1021, 1499) &&
           keeps_size(graph, node, field, 1733, 1151);
}

/* The other of two nodes if one warps, else NULL. */
static const struct hr_graph_node *
beside_warp(const struct hr_graph_node *a, const struct hr_graph_node *b)
{
    if ((a->op->traits & HR_TRAIT_WARPS) != 0)
        return b;
    return (b->op->traits & HR_TRAIT_WARPS) != 0 ? a : NULL;
}

/* Whether the node beside a warp crops. A warp fills the edges, which few crops show;
 * after the crop, every image would show the fill, and networks learn less from those. */
static bool would_show_fill(const struct hr_graph_node *other)
{
    return other != NULL && (other->op->traits & HR_TRAIT_CROPS) != 0;
}

#define SMALL_SIDE 112 /* pixels */

static bool is_small(const struct hr_graph_node *n, const char *name)
{
    const struct hr_field *found = hr__schema_get(&n->schema, name);
    struct hr_field field;
    int64_t sides[2];

    if (found == NULL || !hr__field_has_pixels(found))
        return false;
    field = *found;
    sides[0] = hr__field_height(&field)->size;
    sides[1] = hr__field_width(&field)->size;
    return (sides[0] >= 0 && sides[0] < SMALL_SIDE) ||
           (sides[1] >= 0 && sides[1] < SMALL_SIDE);
}

/* Whether the node beside a warp makes the image small. A warp interpolates, which blurs
 * by about a pixel: a larger part of a small image. */
static bool would_blur(const struct hr_graph_node *other, const char *field)
{
    return other != NULL && (other->op->traits & HR_TRAIT_RESAMPLING) != 0 &&
           is_small(other, field);
}

/* The nodes change the same image. */
static void swap_pixels(const struct hr_graph *graph, uint32_t first, uint32_t second,
                        const char *field, struct hr_swap *swap)
{
    const struct hr_graph_node *a = &graph->nodes[first], *b = &graph->nodes[second];
    uint32_t traits = a->op->traits, other = b->op->traits;
    bool first_is_pixel = (traits & HR_TRAIT_POINTWISE) != 0;
    uint32_t point = first_is_pixel ? traits : other;
    uint32_t moves = first_is_pixel ? other : traits;

    if ((point & HR_TRAIT_POINTWISE) != 0 && (moves & HR_TRAIT_GEOMETRIC) != 0) {
        answer(swap, true,
               "one changes each pixel of '%.32s', the other moves whole pixels", field);
        if (!is_exact(a) || !is_exact(b))
            swap->needs = HR_STRICTNESS_CLOSE;
    } else if ((point & HR_TRAIT_AFFINE) != 0 && (moves & HR_TRAIT_RESAMPLING) != 0) {
        answer(swap, true,
               "a linear map of levels and an interpolation of '%.32s': equal but for "
               "rounding",
               field);
        swap->needs = HR_STRICTNESS_CLOSE;
    } else if ((point & HR_TRAIT_POINTWISE) != 0 &&
               (moves & (HR_TRAIT_RESAMPLING | HR_TRAIT_WARPS)) != 0) {
        answer(swap, true,
               "one changes each pixel of '%.32s', the other interpolates between pixels",
               field);
        swap->needs = HR_STRICTNESS_RELAXED;
    } else if (would_show_fill(beside_warp(a, b))) {
        answer(swap, false,
               "one crops '%.32s', the other fills it where it has no pixels", field);
    } else if (would_blur(beside_warp(a, b), field)) {
        answer(swap, false, "one makes '%.32s' small, where the other would blur it more",
               field);
    } else if ((traits & MOVES) != 0 && (other & MOVES) != 0 &&
               (keeps_any_size(graph, first, field) ||
                keeps_any_size(graph, second, field))) {
        answer(swap, true, "both move pixels of '%.32s', and one of them keeps its size",
               field);
        swap->needs = HR_STRICTNESS_RELAXED;
    } else {
        answer(swap, false, "both change '%.32s'", field);
    }
}

/* A field that the node makes one that an image takes with it, or makes none of them, as
 * boxes of which only the widths remain; or NULL. */
static const char *
changed_kind(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    const struct hr_schema *input = &graph->nodes[n->inputs[0]].schema;

    for (size_t i = 0; i < n->field_count; i++) {
        const struct hr_field *before = hr__schema_get(input, n->field_names[i]);
        const struct hr_field *after = hr__schema_get(&n->schema, n->field_names[i]);

        if ((before != NULL ? hr__kind_of(before) : NULL) !=
            (after != NULL ? hr__kind_of(after) : NULL))
            return n->field_names[i];
    }
    return NULL;
}

/* The field of one node that the other, which moves an image, would have to move with it
 * on one side of it only; or NULL. */
static const char *
moved_field(const struct hr_graph *graph, const struct hr_graph_node *a,
            const struct hr_graph_node *b)
{
    if ((b->op->traits & MOVES) != 0)
        return changed_kind(graph, a);
    return (a->op->traits & MOVES) != 0 ? changed_kind(graph, b) : NULL;
}

#ifndef NDEBUG
/* Whether a chain leads from one to the other. */
static bool follows(const struct hr_graph *graph, uint32_t first, uint32_t second)
{
    for (uint32_t at = second; at != first; at = graph->nodes[at].inputs[0])
        if (graph->nodes[at].input_count != 1 ||
            hr__graph_consumers(graph, graph->nodes[at].inputs[0]) != 1)
            return false;
    return first != second;
}
#endif

void hr__swap(const struct hr_graph *graph, uint32_t first, uint32_t second,
              struct hr_swap *ret_swap)
{
    const struct hr_graph_node *a = &graph->nodes[first], *b = &graph->nodes[second];
    bool updates;
    const char *field;

    assert(graph->frozen && follows(graph, first, second));
    memset(ret_swap, 0, sizeof *ret_swap);
    ret_swap->needs = HR_STRICTNESS_EXACT;
    if (!is_movable(graph, a, ret_swap) || !is_movable(graph, b, ret_swap))
        return;
    field = shared_field(a, b, &updates);
    if (depends(b, a))
        answer(ret_swap, false, "'%.64s' depends on '%.64s'", b->name, a->name);
    else if (field != NULL && updates)
        swap_pixels(graph, first, second, field, ret_swap);
    else if (field != NULL)
        answer(ret_swap, false, "one makes or changes '%.32s', which the other uses",
               field);
    else if ((field = moved_field(graph, a, b)) != NULL)
        answer(ret_swap, false,
               "one moves an image, with which '%.32s' would have to move on one side of "
               "the other",
               field);
    else if (adds_field(graph, a) && adds_field(graph, b))
        answer(ret_swap, false, "both add fields, whose order would change");
    else
        answer(ret_swap, true, "no field of one is made or changed by the other");
}
