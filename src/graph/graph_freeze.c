/*
 * graph/graph_freeze.c - turns a built graph into a value.
 *
 * Wiring and kinds are checked first, then schemas are inferred node by node. States are
 * opened and records counted only if all of that is right, because opening a source may
 * walk a million files. Then groups are composed and fingerprints computed. A failure
 * closes what was opened and leaves the graph as it was.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

struct freeze {
    struct hr_graph *graph;
    uint32_t *order;
    int values;             /* values numbered so far, see struct hr_alias */
    struct hr_error *error; /* never NULL */
};

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

/* ---- fields ---- */

/* Whether the op by default makes field `name` from existing fields; *from is one of
 * them.
 */
static bool makes(const struct hr_op *op, const char *name, struct hr_schema *schema,
                  const char **from)
{
    bool made = false;

    *from = NULL;
    for (size_t i = 0; i < op->param_count; i++) {
        const struct hr_param *p = &op->params[i];

        if (p->type != HR_PARAM_FIELD || p->fallback == NULL ||
            p->access == HR_ACCESS_NONE)
            continue;
        if (p->access == HR_ACCESS_WRITE) {
            made = made || strcmp(p->fallback, name) == 0;
        } else {
            if (hr__schema_find(schema, p->fallback) == NULL)
                return false;
            *from = p->fallback;
        }
    }
    return made && *from != NULL;
}

static void add_remedy(const char *name, struct hr_schema *schema, struct hr_str *out)
{
    size_t count;
    const struct hr_op *const *ops = hr__op_list(&count);
    const char *from;

    for (size_t i = 0; i < count; i++) {
        if ((ops[i]->traits & HR_TRAIT_TEST_ONLY) || !makes(ops[i], name, schema, &from))
            continue;
        hr__str_addf(out, "; put %s before it, which makes \"%s\" from \"%s\"",
                     ops[i]->name, name, from);
        return;
    }
}

static enum hr_err missing(const struct hr_graph_node *n, const char *name,
                           struct hr_schema *schema, struct hr_error *error)
{
    const char *names[HR_SCHEMA_FIELDS_MAX], *near;
    struct hr_str tail;

    hr__str_init(&tail);
    for (size_t i = 0; i < schema->count; i++)
        names[i] = schema->fields[i].name;
    near = hr__nearest(name, names, schema->count);
    if (near != NULL)
        hr__str_addf(&tail, "; did you mean \"%s\"? Fields here: ", near);
    else
        hr__str_add(&tail,
                    schema->count > 0 ? "; fields here: " : "; there are none here");
    for (size_t i = 0; i < schema->count; i++)
        hr__str_addf(&tail, "%s%s", i > 0 ? ", " : "", names[i]);
    if (near == NULL)
        add_remedy(name, schema, &tail);
    hr__graph_point_at(n, name, error);
    snprintf(error->param, sizeof error->param, "%s", name);
    hr__fail(error, HR_ERR_GRAPH, "there is no field \"%s\"%s", name,
             hr__str_text(&tail));
    hr__str_finish(&tail);
    return HR_ERR_GRAPH;
}

/* A field may be bound twice if both only read, or if it is taken and written again. */
static enum hr_err
check_twice(const struct hr_graph_node *n, size_t at, struct hr_error *error)
{
    for (size_t i = 0; i < at; i++) {
        enum hr_param_access a = n->field_access[i], b = n->field_access[at];
        bool replaced = (a == HR_ACCESS_TAKE && b == HR_ACCESS_WRITE) ||
                        (a == HR_ACCESS_WRITE && b == HR_ACCESS_TAKE);

        if (strcmp(n->field_names[i], n->field_names[at]) != 0 || replaced ||
            (a == HR_ACCESS_READ && b == HR_ACCESS_READ))
            continue;
        hr__graph_point_at(n, n->field_names[at], error);
        snprintf(error->param, sizeof error->param, "%s", n->field_names[at]);
        return hr__fail(error, HR_ERR_GRAPH,
                        "field \"%s\" is named twice, once at least to be changed; name "
                        "another",
                        n->field_names[at]);
    }
    return HR_OK;
}

/* Names the fields that the node binds. */
static enum hr_err name_fields(struct hr_graph_node *n, const struct hr_schema *input,
                               struct hr_error *error)
{
    const struct hr_op *op = n->op;
    struct hr_bindings *more = NULL;
    size_t own = 0, count = hr__params_bindings(op->params, op->param_count, n->params,
                                                NULL, NULL, 0);

    if (op->binds != NULL) {
        more = n->bindings = hr__calloc(1, sizeof *more);
        if (more == NULL)
            return no_memory(error);
        HR_TRY(op->binds(n->params, n->state, input, more, error));
        own = more->count;
    }
    n->field_names = hr__calloc(count + own + 1, sizeof *n->field_names);
    n->field_access = hr__calloc(count + own + 1, sizeof *n->field_access);
    if (n->field_names == NULL || n->field_access == NULL)
        return no_memory(error);
    hr__params_bindings(op->params, op->param_count, n->params, n->field_names,
                        n->field_access, count);
    for (size_t i = 0; i < own; i++) {
        n->field_names[count] = more->items[i].name;
        n->field_access[count++] = more->items[i].access;
    }
    n->field_count = count;
    for (size_t i = 0; i < count; i++)
        HR_TRY(check_twice(n, i, error));
    return HR_OK;
}

static bool
binds(const struct hr_graph_node *n, const char *name, enum hr_param_access access)
{
    for (size_t i = 0; i < n->field_count; i++) {
        if (n->field_access[i] == access && strcmp(n->field_names[i], name) == 0)
            return true;
    }
    return false;
}

/* Finds or adds the bound fields in the output schema. Of a field that is written nothing
 * remains, unless the op takes it, too: its infer function then looks at what it was. */
static enum hr_err bind_fields(const struct hr_graph_node *n, struct hr_schema *output,
                               struct hr_field **fields, struct hr_error *error)
{
    for (size_t i = 0; i < n->field_count; i++) {
        const char *name = n->field_names[i];
        bool written = n->field_access[i] == HR_ACCESS_WRITE;

        fields[i] = hr__schema_find(output, name);
        if (fields[i] == NULL && !written)
            return missing(n, name, output, error);
        if (fields[i] == NULL || (written && !binds(n, name, HR_ACCESS_TAKE)))
            fields[i] = hr__schema_put(output, name);
        if (fields[i] == NULL)
            return hr__fail(error, HR_ERR_LIMIT,
                            "a record has at most %d fields, no room for \"%s\"",
                            HR_SCHEMA_FIELDS_MAX, name);
        if (written)
            fields[i]->classes = NULL;
    }
    return HR_OK;
}

static void remove_taken(const struct hr_graph_node *n, struct hr_schema *output)
{
    for (size_t i = 0; i < n->field_count; i++) {
        const char *name = n->field_names[i];
        struct hr_field *field;

        if (n->field_access[i] != HR_ACCESS_TAKE || binds(n, name, HR_ACCESS_WRITE))
            continue;
        field = hr__schema_find(output, name);
        if (field != NULL)
            hr__schema_remove(output, (size_t)(field - output->fields));
    }
}

/* ---- schemas ---- */

/* The nearest node before this one that made batches. */
static uint32_t batcher(const struct hr_graph *graph, uint32_t node)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    while (n->input_count > 0 && n->op->kind != HR_OP_SEQUENCE) {
        node = n->inputs[0];
        n = &graph->nodes[node];
    }
    return node;
}

static enum hr_err check_rank(const struct hr_graph *graph, const struct hr_graph_node *n,
                              struct hr_error *error)
{
    const struct hr_schema *input = &graph->nodes[n->inputs[0]].schema;
    const char *name;

    for (size_t i = 1; i < n->input_count; i++) {
        if (graph->nodes[n->inputs[i]].schema.batch_rank != input->batch_rank)
            return hr__fail(error, HR_ERR_GRAPH,
                            "some of its inputs are batches and some are records");
    }
    if (input->batch_rank == 0 || (n->op->traits & HR_TRAIT_BATCHED) ||
        n->op->kind == HR_OP_EXPAND)
        return HR_OK;
    name = graph->nodes[batcher(graph, n->inputs[0])].name;
    return hr__fail(error, HR_ERR_GRAPH,
                    "it works on single records, and '%s' has made batches of them: put "
                    "it before '%s'",
                    name, name);
}

/* Renumbers the values of an input that has several consumers. */
static enum hr_err share_input(struct freeze *f, struct hr_graph_node *n, size_t input,
                               struct hr_schema *schema)
{
    struct hr_alias *grown;

    assert(input < n->input_count);
    if (hr__graph_consumers(f->graph, n->inputs[input]) < 2)
        return HR_OK;
    grown = hr__realloc(n->aliases, (n->alias_count + schema->count + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(f->error);
    n->aliases = grown;
    for (size_t i = 0; i < schema->count; i++) {
        grown[n->alias_count++] =
            (struct hr_alias){schema->fields[i].slot, ++f->values, input};
        schema->fields[i].slot = f->values;
    }
    return HR_OK;
}

/* Copies the input schemas; the first is also the start of the output schema. */
static enum hr_err
gather_inputs(struct freeze *f, struct hr_graph_node *n, struct hr_schema **ret)
{
    struct hr_schema *all;

    *ret = NULL;
    if (n->input_count == 0)
        return HR_OK;
    all = hr__calloc(n->input_count, sizeof *all);
    if (all == NULL)
        return no_memory(f->error);
    *ret = all;
    for (size_t i = 0; i < n->input_count; i++) {
        all[i] = f->graph->nodes[n->inputs[i]].schema;
        HR_TRY(share_input(f, n, i, &all[i]));
    }
    n->schema = all[0];
    return HR_OK;
}

/* Written fields and those added by an infer function are new values. */
static void number_values(struct freeze *f, struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->schema.count; i++) {
        struct hr_field *field = &n->schema.fields[i];

        if (field->slot == 0 || binds(n, field->name, HR_ACCESS_WRITE))
            field->slot = ++f->values;
    }
}

/* `largest`: the schema of one record or of many, with sizes (hr__graph_join_when). */
static enum hr_err
run_infer(const struct hr_graph_node *n, const struct hr_schema *inputs, bool largest,
          struct hr_schema *output, struct hr_error *error)
{
    struct hr_field **fields = hr__calloc(n->field_count + 1, sizeof *fields);
    struct hr_infer infer = {
        .op = n->op,
        .params = n->params,
        .inputs = inputs,
        .input_count = n->input_count,
        .output = output,
        .fields = fields,
        .field_count = n->field_count,
        .error = error,
        .state = n->state,
    };
    enum hr_err code;

    if (fields == NULL)
        return no_memory(error);
    code = bind_fields(n, output, fields, error);
    if (code == HR_OK && n->op->infer != NULL) {
        code = n->op->infer(&infer);
        if (code != HR_OK && error->param[0] != '\0')
            hr__graph_point_at(n, error->param, error);
    }
    hr__free(fields);
    if (code == HR_OK)
        remove_taken(n, output);
    if (code == HR_OK && n->when_count > 0)
        code = hr__graph_join_when(n, &inputs[0], largest, output, error);
    return code;
}

enum hr_err hr__graph_infer(const struct hr_graph *graph, uint32_t node,
                            const struct hr_schema *inputs, struct hr_schema *ret_output)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    struct hr_error error = {0};

    assert(graph->frozen);
    if (n->input_count > 0)
        *ret_output = inputs[0];
    else
        *ret_output = (struct hr_schema){.records = -1};
    return run_infer(n, inputs, true, ret_output, &error);
}

/* Adds what this thread has allocated since. */
static void count_state(struct hr_graph_node *n, int64_t live_before)
{
    int64_t bytes = hr__alloc_live() - live_before;

    n->state_bytes += bytes > 0 ? (uint64_t)bytes : 0;
}

static enum hr_err prepare_node(struct freeze *f, struct hr_graph_node *n)
{
    int64_t live = hr__alloc_live();
    enum hr_err code;

    if (n->state == NULL)
        n->state_bytes = 0;
    if (n->op->prepare == NULL)
        return HR_OK;
    code = n->op->prepare(n->params, &n->state, f->error);
    count_state(n, live);
    return code;
}

static enum hr_err infer_node(struct freeze *f, uint32_t node)
{
    struct hr_graph_node *n = &f->graph->nodes[node];
    struct hr_schema *inputs = NULL;
    enum hr_err code = HR_OK;

    assert(n->field_names == NULL && n->aliases == NULL);
    memset(&n->schema, 0, sizeof n->schema);
    if (n->input_count > 0)
        code = check_rank(f->graph, n, f->error);
    if (code == HR_OK)
        code = gather_inputs(f, n, &inputs);
    n->schema.records = -1;
    if (code == HR_OK)
        code = prepare_node(f, n);
    if (code == HR_OK)
        code = name_fields(
            n, n->input_count > 0 ? &f->graph->nodes[n->inputs[0]].schema : NULL,
            f->error);
    if (code == HR_OK)
        code = hr__graph_check_when(n, f->error);
    if (code == HR_OK)
        code = run_infer(n, inputs, false, &n->schema, f->error);
    if (code == HR_OK)
        number_values(f, n);
    else
        hr__graph_blame(f->graph, node, f->error);
    hr__free(inputs);
    return code;
}

/* ---- states and counts ---- */

/* The node's own, or that of the first input that has one. */
static const char *side_file(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    const char *file =
        n->op->learner.side_file != NULL ? n->op->learner.side_file(n->params) : NULL;

    if (hr__node_numbers(n) && n->input_count > 0)
        return NULL; /* its records are not numbered as those of any one input */
    for (size_t i = 0; file == NULL && i < n->input_count; i++)
        file = graph->nodes[n->inputs[i]].side_file;
    return file;
}

/* Where the node's records get their numbers. */
static uint32_t source_of(const struct hr_graph *graph, uint32_t node)
{
    while (!hr__node_numbers(&graph->nodes[node]))
        node = graph->nodes[node].inputs[0];
    return node;
}

static void *twin(const struct freeze *f, uint32_t node)
{
    const struct hr_graph *graph = f->graph;

    for (size_t i = 0; i < graph->count && f->order[i] != node; i++) {
        const struct hr_graph_node *other = &graph->nodes[f->order[i]];

        if (other->op == graph->nodes[node].op && other->state != NULL &&
            source_of(graph, f->order[i]) == source_of(graph, node))
            return other->state;
    }
    return NULL;
}

static enum hr_err open_node(struct freeze *f, uint32_t node)
{
    struct hr_graph_node *n = &f->graph->nodes[node];
    int64_t live;
    struct hr_open open = {.params = n->params, .error = f->error};
    struct hr_graph_keys keys[HR_NODE_INPUTS_MAX];
    const struct hr_keys *all[HR_NODE_INPUTS_MAX];
    void *state = n->state;
    size_t key_count = 0;
    enum hr_err code = HR_OK;

    assert(n->state == NULL || n->op->prepare != NULL);
    n->side_file = side_file(f->graph, n);
    if (n->op->open == NULL)
        return HR_OK;
    open.output = &n->schema;
    open.codes = f->graph->codes;
    open.side_file = n->side_file;
    open.twin = twin(f, node);
    if (n->input_count > 0)
        open.input = &f->graph->nodes[n->inputs[0]].schema;
    if (n->op->order.by != NULL || n->op->zip.by != NULL)
        open.keys = all;
    while (open.keys != NULL && code == HR_OK && key_count < n->input_count) {
        size_t i = key_count++;

        code = hr__graph_keys(f->graph, node, i, &keys[i], f->error);
        all[i] = &keys[i].base;
    }
    live = hr__alloc_live();
    if (code == HR_OK)
        code = n->op->open(&open, &state);
    count_state(n, live);
    for (size_t i = 0; i < key_count; i++)
        hr__graph_keys_finish(&keys[i]);
    if (code == HR_OK) {
        n->state = state;
        return HR_OK;
    }
    if (f->error->param[0] != '\0')
        hr__graph_point_at(n, f->error->param, f->error);
    hr__graph_blame(f->graph, node, f->error);
    return code;
}

static int64_t count_of(uint64_t records)
{
    return records < HR_COUNT_UNKNOWN ? (int64_t)records : -1;
}

static int64_t count_ordered(const struct hr_graph_node *n, int64_t records)
{
    if (records < 0 || n->op->order.count == NULL)
        return records;
    return count_of(n->op->order.count(n->params, n->state, (uint64_t)records));
}

/* Records of the node, and positions if it has others. */
static void count_source(struct hr_graph_node *n)
{
    if (n->op->source.count != NULL)
        n->positions = count_of(n->op->source.count(n->params, n->state));
    n->schema.records = hr__op_drops(n->op, n->params) ? -1 : n->positions;
}

static bool
same_classes(const struct hr_field_classes *a, const struct hr_field_classes *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return a->count == b->count;
}

/* Equal numbers must mean equal classes. Their names are known once sources are open. */
static enum hr_err
check_classes(struct freeze *f, const struct hr_graph_node *n, size_t input)
{
    const struct hr_graph_node *nodes = f->graph->nodes;
    const struct hr_graph_node *first = &nodes[n->inputs[0]];
    const struct hr_schema *other = &nodes[n->inputs[input]].schema;

    for (size_t i = 0; i < first->schema.count; i++) {
        const struct hr_field *one = &first->schema.fields[i];
        const struct hr_field *two = hr__schema_get(other, one->name);

        if (!same_classes(one->classes, two->classes))
            return hr__fail(f->error, HR_ERR_GRAPH,
                            "field \"%s\" of '%s' and of '%s' number different "
                            "classes: give both sources the same `classes`",
                            one->name, first->name, nodes[n->inputs[input]].name);
    }
    return HR_OK;
}

static enum hr_err count_merge(struct freeze *f, uint32_t node, int64_t *ret_records)
{
    const struct hr_graph_node *n = &f->graph->nodes[node];
    uint64_t counts[HR_NODE_INPUTS_MAX], count = 0;
    struct hr_merge_inputs inputs = {counts, n->input_count};

    for (size_t i = 0; i < n->input_count; i++) {
        assert(f->graph->nodes[n->inputs[i]].schema.records >= 0); /* graph_check.c */
        counts[i] = (uint64_t)f->graph->nodes[n->inputs[i]].schema.records;
        HR_TRY(check_classes(f, n, i));
    }
    HR_TRY(n->op->merge.count(n->params, &inputs, &count, f->error));
    *ret_records = count_of(count);
    return HR_OK;
}

/* Whether an EXPAND makes other records than those of batches. */
static bool makes_children(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    return n->schema.batch_rank >= graph->nodes[n->inputs[0]].schema.batch_rank;
}

/* Of `records` that come to the node, those that leave it; -1: unknown. */
static int64_t count_joined(const struct hr_graph_node *n, int64_t records)
{
    if (n->op->sequence.count == NULL || records < 0)
        return -1;
    return count_of(n->op->sequence.count(n->params, (uint64_t)records));
}

/* Records of an epoch that leave a node at most, or -1. */
static int64_t most_records(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    switch (n->op->kind) {
    case HR_OP_SOURCE:
        return n->positions;
    case HR_OP_ORDER:
        return count_ordered(n, n->reach);
    case HR_OP_EXPAND:
        return makes_children(graph, n) ? -1 : n->reach;
    case HR_OP_SEQUENCE:
        return count_joined(n, n->reach);
    case HR_OP_MERGE:
    case HR_OP_ZIP:
        return n->schema.records;
    default:
        return n->reach;
    }
}

static enum hr_err count_node(struct freeze *f, uint32_t node)
{
    struct hr_graph_node *n = &f->graph->nodes[node];
    const struct hr_graph_node *input =
        n->input_count > 0 ? &f->graph->nodes[n->inputs[0]] : NULL;
    int64_t records = input != NULL ? input->schema.records : -1;
    enum hr_err code = HR_OK;

    n->positions = -1;
    n->reach = input != NULL ? most_records(f->graph, input) : -1;
    switch (n->op->kind) {
    case HR_OP_SOURCE:
        count_source(n);
        return HR_OK;
    case HR_OP_ORDER:
        if (records >= 0 || !hr__node_orders_kept(n))
            n->positions = count_ordered(n, input->positions);
        records = count_ordered(n, records);
        break;
    case HR_OP_FILTER:
        records = -1;
        break;
    case HR_OP_EXPAND: /* taking batches apart gives the records that went in */
        if (makes_children(f->graph, n))
            records = -1;
        break;
    case HR_OP_SEQUENCE:
        records = count_joined(n, records);
        break;
    case HR_OP_MERGE:
        code = count_merge(f, node, &records);
        n->positions = records;
        break;
    case HR_OP_ZIP:
        if (n->op->zip.by != NULL) {
            n->positions = records = count_of(n->op->zip.count(n->state));
            break;
        }
        n->positions = input->positions;
        code = hr__graph_check_pairs(f->graph, node, f->error);
        break;
    default:
        n->positions = input->positions;
        break;
    }
    n->schema.records = records;
    if (code != HR_OK)
        hr__graph_blame(f->graph, node, f->error);
    return code;
}

static void undo(struct hr_graph *graph)
{
    assert(!graph->frozen);
    for (size_t i = 0; i < graph->count; i++) {
        struct hr_graph_node *n = &graph->nodes[i];

        if (n->state != NULL)
            n->op->close(n->state);
        n->state = NULL;
        hr__free(n->field_names);
        hr__free(n->field_access);
        hr__free(n->bindings);
        hr__free(n->aliases);
        hr__free(n->made);
        n->made = NULL;
        n->bindings = NULL;
        n->aliases = NULL;
        n->alias_count = 0;
        n->field_names = NULL;
        n->field_access = NULL;
        n->field_count = 0;
        memset(&n->schema, 0, sizeof n->schema);
        memset(&n->fingerprint, 0, sizeof n->fingerprint);
        n->positions = -1;
        n->draws_for = 0;
        n->by_number = n->describes = n->made_after = false;
        n->strictness = n->made_strictness = n->passed_strictness = HR_STRICTNESS_EXACT;
        n->reason[0] = '\0';
    }
}

static enum hr_err freeze(struct freeze *f)
{
    size_t count = f->graph->count;
    uint32_t output = 0;

    HR_TRY(hr__graph_check(f->graph, f->order, &output, f->error));
    for (size_t i = 0; i < count; i++)
        HR_TRY(infer_node(f, f->order[i]));
    for (size_t i = 0; i < count; i++) {
        HR_TRY(open_node(f, f->order[i]));
        HR_TRY(count_node(f, f->order[i]));
    }
    f->graph->value_count = f->values;
    HR_TRY(hr__graph_compose(f->graph, f->order, f->error));
    HR_TRY(hr__graph_identify(f->graph, f->order, f->error));
    assert(output < count);
    f->graph->output = output;
    HR_TRY(hr__graph_check_caches(f->graph, f->order, f->error));
    return HR_OK;
}

enum hr_err hr__graph_freeze(struct hr_graph *graph, struct hr_error *reterr)
{
    struct hr_error unread = {0};
    struct freeze f = {.graph = graph, .error = reterr != NULL ? reterr : &unread};
    enum hr_err code;

    if (graph->frozen)
        return HR_OK;
    f.order = hr__calloc(graph->count + 1, sizeof *f.order);
    if (f.order == NULL)
        return no_memory(reterr);
    graph->opened_ns = hr__wall_ns();
    code = freeze(&f);
    hr__free(f.order);
    if (code != HR_OK) {
        hr__graph_tell_place(graph, reterr);
        undo(graph);
    }
    graph->frozen = code == HR_OK;
    return code;
}
