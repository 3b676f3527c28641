/*
 * opt/pecan.c - see pecan.h.
 */
#include "opt/pecan.h"

static bool is_half(const struct hr_field *field)
{
    return field != NULL && (field->dtype == HR_F16 || field->dtype == HR_BF16);
}

/* Whether the node casts to a type for which few kernels exist. */
static bool casts_to_half(const struct hr_graph_node *n, const struct hr_schema *input)
{
    for (size_t i = 0; i < n->field_count; i++)
        if (n->field_access[i] == HR_ACCESS_UPDATE &&
            is_half(hr__schema_get(&n->schema, n->field_names[i])) &&
            !is_half(hr__schema_get(input, n->field_names[i])))
            return true;
    return false;
}

static bool is_of_kind(const struct hr_field *field, enum hr_field_kind kind)
{
    return field != NULL && field->kind == kind;
}

/* Whether what the node reads and what it makes are numbers on one side only. */
static bool converts(const struct hr_graph_node *n, const struct hr_schema *input)
{
    bool bytes[2] = {false, false}, numbers[2] = {false, false}; /* read, made */

    for (size_t i = 0; i < n->field_count; i++) {
        const struct hr_field *before = hr__schema_get(input, n->field_names[i]);
        const struct hr_field *after = hr__schema_get(&n->schema, n->field_names[i]);

        if (n->field_access[i] != HR_ACCESS_WRITE) {
            bytes[0] = bytes[0] || is_of_kind(before, HR_FIELD_BYTES);
            numbers[0] = numbers[0] || is_of_kind(before, HR_FIELD_TENSOR);
        }
        if (n->field_access[i] == HR_ACCESS_WRITE ||
            n->field_access[i] == HR_ACCESS_UPDATE) {
            bytes[1] = bytes[1] || is_of_kind(after, HR_FIELD_BYTES);
            numbers[1] = numbers[1] || is_of_kind(after, HR_FIELD_TENSOR);
        }
    }
    return (bytes[0] && numbers[1]) || (numbers[0] && bytes[1]);
}

static bool changes_rank(const struct hr_graph_node *n, const struct hr_schema *input)
{
    for (size_t i = 0; i < n->field_count; i++) {
        const struct hr_field *before = hr__schema_get(input, n->field_names[i]);
        const struct hr_field *after = hr__schema_get(&n->schema, n->field_names[i]);

        if (n->field_access[i] == HR_ACCESS_UPDATE &&
            is_of_kind(before, HR_FIELD_TENSOR) && is_of_kind(after, HR_FIELD_TENSOR) &&
            before->ndim != after->ndim)
            return true;
    }
    return false;
}

/* Bytes of what the node makes by bytes of what that takes the place of; 1 if it makes
 * nothing. Above 1 it is larger than a record's, below 1 smaller: fields that the node
 * leaves alone are in both. The rule asks only on which side of 1 it is. */
static double growth(const struct hr_graph_node *n, const struct hr_schema *input,
                     const struct hr_profile_node *measured)
{
    double replaced = measured->bytes_in;
    bool makes = false, replaces = false;

    for (size_t i = 0; i < n->field_count; i++) {
        const struct hr_field *before = hr__schema_get(input, n->field_names[i]);
        int64_t known = before != NULL ? hr__field_bytes(before) : -1;

        if (n->field_access[i] == HR_ACCESS_READ)
            replaced -= known > 0 ? (double)known : 0;
        else
            makes = true;
        replaces = replaces || n->field_access[i] == HR_ACCESS_UPDATE ||
                   n->field_access[i] == HR_ACCESS_TAKE;
    }
    if (!makes)
        return 1;
    if (!replaces || replaced < 1)
        return measured->bytes_out > 0 ? 1 + measured->bytes_out : 1;
    return measured->bytes_out / replaced;
}

void hr__pecan_step(const struct hr_graph *graph, const struct hr_graph_node *node,
                    const struct hr_profile_node *measured,
                    struct hr_pecan_step *ret_step)
{
    const struct hr_schema *input = &graph->nodes[node->inputs[0]].schema;
    double inflation = growth(node, input, measured) * hr__profile_kept(measured);

    *ret_step = (struct hr_pecan_step){
        .inflation = inflation,
        .fixed = converts(node, input) || changes_rank(node, input),
        .last = inflation < 1 && casts_to_half(node, input),
    };
}
