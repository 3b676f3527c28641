/*
 * graph/graph_when.c - nodes that run for some of the records (op/when.h): how `when` is
 * written, and what it means for a schema.
 *
 * A record that skips a node must fit what follows like one that does not. So only ops
 * that update fields in place can have draws, dtype, layout and meaning stay as they are,
 * and a size that the node changes is not known after it.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

/* ---- reading ---- */

static enum hr_err wrong(const struct hr_doc *at, enum hr_err code, const char *wants,
                         struct hr_error *reterr)
{
    char text[128];

    if (reterr != NULL)
        snprintf(reterr->param, sizeof reterr->param, "when");
    return hr__fail_at(reterr, code, NULL, at->line, at->column,
                       "parameter \"when\" wants %s, not %s", wants,
                       hr__param_value_text(at, text, sizeof text));
}

static bool number_of(const struct hr_doc *doc, double *ret_number)
{
    if (doc == NULL || (doc->kind != HR_DOC_INT && doc->kind != HR_DOC_DOUBLE))
        return false;
    *ret_number = doc->kind == HR_DOC_INT ? (double)doc->as.integer : doc->as.number;
    return true;
}

/* The sum of the first `count` weights; negative if one is no weight. */
static double weights_sum(const struct hr_doc *of, size_t count)
{
    double sum = 0, weight;

    for (size_t i = 0; i < count; i++) {
        if (!number_of(of->as.list.items[i], &weight) || !(weight >= 0) || weight > 1e9)
            return -1;
        sum += weight;
    }
    return sum;
}

/* {choice: i, of: [weights]} or {choice: i, of: count}. Parts of neighbours meet exactly,
 * since both ends come from the same sums. */
static enum hr_err
read_choice(const struct hr_doc *doc, struct hr_when *when, struct hr_error *reterr)
{
    static const char *const wants = "{choice: number from 0, of: count or [weights]}";
    const struct hr_doc *of = hr__doc_get(doc, "of");
    const struct hr_doc *choice = hr__doc_get(doc, "choice");
    size_t count;
    int64_t at;

    if (doc->as.map.count != 2 || of == NULL || choice == NULL ||
        choice->kind != HR_DOC_INT)
        return wrong(doc, HR_ERR_TYPE, wants, reterr);
    at = choice->as.integer;
    if (of->kind == HR_DOC_INT) {
        if (at < 0 || at >= of->as.integer)
            return wrong(doc, HR_ERR_RANGE, wants, reterr);
        when->from = (double)at / (double)of->as.integer;
        when->below = (double)(at + 1) / (double)of->as.integer;
        return HR_OK;
    }
    count = of->kind == HR_DOC_LIST ? of->as.list.count : 0;
    if (at < 0 || (uint64_t)at >= count)
        return wrong(doc, HR_ERR_RANGE, wants, reterr);
    if (!(weights_sum(of, count) > 0))
        return wrong(of, HR_ERR_RANGE, "weights of at least 0 with a sum above 0",
                     reterr);
    when->from = weights_sum(of, (size_t)at) / weights_sum(of, count);
    when->below = weights_sum(of, (size_t)at + 1) / weights_sum(of, count);
    assert(0 <= when->from && when->from <= when->below && when->below <= 1);
    return HR_OK;
}

static enum hr_err
read_draw(const struct hr_doc_pair *pair, struct hr_when *when, struct hr_error *reterr)
{
    const struct hr_doc *value = pair->value;

    when->draw_id = hr__when_draw_id(pair->key);
    when->from = 0;
    if (pair->key[0] == '\0' || strlen(pair->key) > HR_NODE_NAME_MAX)
        return wrong(value, HR_ERR_RANGE, "names of 1 to 63 bytes for its draws", reterr);
    if (value->kind == HR_DOC_MAP)
        return read_choice(value, when, reterr);
    if (!number_of(value, &when->below))
        return wrong(value, HR_ERR_TYPE,
                     "a probability or {choice: ..., of: ...} for each draw", reterr);
    if (!(when->below >= 0 && when->below <= 1))
        return wrong(value, HR_ERR_RANGE, "a probability from 0 to 1", reterr);
    return HR_OK;
}

enum hr_err hr__graph_read_when(struct hr_graph_node *node, const struct hr_doc *value,
                                struct hr_error *reterr)
{
    assert(node->when_count == 0);
    if (value->kind == HR_DOC_NULL)
        return HR_OK;
    if (value->kind != HR_DOC_MAP)
        return wrong(value, HR_ERR_TYPE, "a map from names of draws to probabilities",
                     reterr);
    if (value->as.map.count > HR_WHEN_MAX)
        return wrong(value, HR_ERR_LIMIT, "at most 8 draws", reterr);
    for (size_t i = 0; i < value->as.map.count; i++)
        HR_TRY(read_draw(&value->as.map.pairs[i], &node->when[i], reterr));
    node->when_count = value->as.map.count;
    return HR_OK;
}

/* ---- freezing ---- */

enum hr_err hr__graph_check_when(const struct hr_graph_node *n, struct hr_error *error)
{
    if (n->when_count == 0)
        return HR_OK;
    if (n->op->kind != HR_OP_MAP || n->op->code != NULL || n->op->cache.find != NULL) {
        snprintf(error->param, sizeof error->param, "when");
        hr__graph_point_at(n, "when", error);
        return hr__fail(error, HR_ERR_GRAPH,
                        "it cannot run for some records only (\"when\", a group "
                        "\"apply\" or \"one_of\"): ops of the library can that change "
                        "fields of a record");
    }
    for (size_t i = 0; i < n->field_count; i++) {
        if (n->field_access[i] != HR_ACCESS_WRITE && n->field_access[i] != HR_ACCESS_TAKE)
            continue;
        snprintf(error->param, sizeof error->param, "when");
        hr__graph_point_at(n, "when", error);
        return hr__fail(error, HR_ERR_GRAPH,
                        "it cannot run for some records only: the others would %s field "
                        "\"%s\"; put it outside of the group",
                        n->field_access[i] == HR_ACCESS_WRITE ? "lack" : "still have",
                        n->field_names[i]);
    }
    return HR_OK;
}

static bool alike(const struct hr_field *before, const struct hr_field *after)
{
    return before != NULL && before->kind == after->kind &&
           before->dtype == after->dtype && before->ndim == after->ndim &&
           before->meaning == after->meaning && before->layout == after->layout &&
           before->rate == after->rate;
}

static void join_dim(const struct hr_dim *before, bool largest, struct hr_dim *after)
{
    if (before->size == after->size)
        return;
    if (!largest || before->size < 0)
        hr__dim_unknown(after, before->name[0] != '\0' ? before->name : after->name);
    else if (after->size >= 0 && before->size > after->size)
        hr__dim_set(after, before->size);
}

static void name_side(struct hr_dim *side, const char *name)
{
    if (side->size < 0 && side->name[0] == '\0')
        hr__dim_unknown(side, name);
}

enum hr_err
hr__graph_join_when(const struct hr_graph_node *n, const struct hr_schema *before,
                    bool largest, struct hr_schema *after, struct hr_error *error)
{
    char was[128], is[128];

    assert(n->when_count <= HR_WHEN_MAX);
    if (n->when_count == 0)
        return HR_OK;
    for (size_t i = 0; i < after->count; i++) {
        struct hr_field *field = &after->fields[i];
        const struct hr_field *old = hr__schema_get(before, field->name);

        if (!alike(old, field)) {
            snprintf(error->param, sizeof error->param, "when");
            hr__graph_point_at(n, "when", error);
            return hr__fail(
                error, HR_ERR_TYPE,
                "it makes \"%s\" %s of %s, so it cannot run for some records only",
                field->name, hr__field_text(field, is, sizeof is),
                old != NULL ? hr__field_text(old, was, sizeof was) : "nothing");
        }
        for (int d = 0; d < field->ndim; d++)
            join_dim(&old->dims[d], largest, &field->dims[d]);
        if (hr__field_has_pixels(field)) {
            name_side(hr__field_height(field), "height");
            name_side(hr__field_width(field), "width");
        }
    }
    if (before->count == after->count)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "when");
    hr__graph_point_at(n, "when", error);
    return hr__fail(error, HR_ERR_GRAPH,
                    "it removes fields, so it cannot run for some records only");
}
