/*
 * graph/graph_key_steps.c - keys that nodes make of those that sources know.
 *
 * A key is a field of the records where they are joined or chosen. From there the
 * way to a source is walked with the values that are still needed: a node that makes or
 * changes one becomes a step, and what it reads is needed instead. At the source all of
 * them must be keys that it knows. No record is read: a step runs on a row that holds
 * nothing else.
 */
#include "graph/graph_key_steps.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "op/thread.h"
#include "op/when.h"

/* ---- what is needed ---- */

void hr__key_need_init(struct hr_key_need *need, int value, const char *by,
                       const char *of, const char *chooser)
{
    *need = (struct hr_key_need){
        .values = {value}, .count = 1, .by = by, .of = of, .chooser = chooser};
}

void hr__key_need_finish(struct hr_key_need *need)
{
    hr__free(need->steps);
}

static bool needs(const struct hr_key_need *need, int value)
{
    for (size_t i = 0; i < need->count; i++)
        if (need->values[i] == value)
            return true;
    return false;
}

static void drop(struct hr_key_need *need, int value)
{
    for (size_t i = 0; i < need->count; i++)
        if (need->values[i] == value)
            need->values[i--] = need->values[--need->count];
}

/* There is room: all of them are fields of one node's records. */
static void want(struct hr_key_need *need, int value)
{
    if (needs(need, value))
        return;
    assert(need->count < HR_SCHEMA_FIELDS_MAX);
    need->values[need->count++] = value;
}

static enum hr_err
add_step(struct hr_key_need *need, struct hr_key_step step, struct hr_error *error)
{
    if (!hr__array_room(&need->steps, need->step_count, &need->room, 1,
                        sizeof *need->steps))
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    need->steps[need->step_count++] = step;
    return HR_OK;
}

/* A value has another number before. */
static enum hr_err
move(struct hr_key_need *need, int from, int to, struct hr_error *error)
{
    if (!needs(need, to) || from == to)
        return HR_OK;
    drop(need, to);
    want(need, from);
    return add_step(need, (struct hr_key_step){HR_KEY_MOVE, from, to}, error);
}

static enum hr_err check_node(const struct hr_key_need *need,
                              const struct hr_graph_node *n, struct hr_error *error)
{
    const char *why = n->op->code != NULL                ? "which is your code"
                      : !(n->op->traits & HR_TRAIT_PURE) ? "which draws at random"
                      : n->when_count > 0                ? "which some records skip"
                      : n->op->kind != HR_OP_MAP ? "which is no op on single fields"
                                                 : NULL;

    if (why == NULL)
        return HR_OK;
    if (need->chooser != NULL)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "the \"%s\" of '%s' is made by '%s' (%s), %s, and keys are found "
                        "before records are read: put '%s' before '%s', choose by "
                        "another field, or store this one in the data",
                        need->by, need->of, n->name, n->op->name, why, need->chooser,
                        n->name);
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "the \"%s\" of '%s' is made by '%s' (%s), %s, and keys are found "
                    "before records are read: join by a field that the source has, or "
                    "store this one in the data",
                    need->by, need->of, n->name, n->op->name, why);
}

static bool makes(const struct hr_key_need *need, const struct hr_graph *graph,
                  const struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->field_count; i++)
        if ((n->field_access[i] == HR_ACCESS_WRITE ||
             n->field_access[i] == HR_ACCESS_UPDATE) &&
            needs(need, hr__graph_bound_value(graph, n, i)))
            return true;
    return false;
}

static enum hr_err need_before_map(struct hr_key_need *need, const struct hr_graph *graph,
                                   uint32_t node, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    if ((n->op->traits & HR_TRAIT_IDENTITY) || !makes(need, graph, n))
        return HR_OK;
    HR_TRY(check_node(need, n, error));
    HR_TRY(add_step(need, (struct hr_key_step){.node = node}, error));
    for (size_t i = 0; i < n->field_count; i++)
        if (n->field_access[i] == HR_ACCESS_WRITE)
            drop(need, hr__graph_bound_value(graph, n, i));
    for (size_t i = 0; i < n->field_count; i++)
        if (n->field_access[i] != HR_ACCESS_WRITE)
            want(need, hr__graph_bound_value(graph, n, i));
    return HR_OK;
}

enum hr_err hr__key_need_before(struct hr_key_need *need, const struct hr_graph *graph,
                                uint32_t node, size_t input, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    const struct hr_schema *in = &graph->nodes[n->inputs[input]].schema;

    HR_TRY(need_before_map(need, graph, node, error));
    for (size_t i = 0; n->op->kind == HR_OP_MERGE && i < n->schema.count; i++) {
        const struct hr_field *to = &n->schema.fields[i];
        const struct hr_field *from = hr__schema_get(in, to->name);

        assert(from != NULL); /* hr__infer_merge */
        HR_TRY(move(need, from->slot, to->slot, error));
    }
    for (size_t i = 0; n->op->kind != HR_OP_MERGE && i < n->alias_count; i++)
        if (n->aliases[i].input == input)
            HR_TRY(move(need, n->aliases[i].from, n->aliases[i].to, error));
    return HR_OK;
}

static bool is_of(const struct hr_graph *graph, const struct hr_graph_node *n,
                  size_t input, int value)
{
    const struct hr_schema *in = &graph->nodes[n->inputs[input]].schema;

    for (size_t i = 0; i < n->alias_count; i++)
        if (n->aliases[i].to == value)
            return n->aliases[i].input == input;
    for (size_t i = 0; i < in->count; i++)
        if (in->fields[i].slot == value)
            return true;
    return false;
}

enum hr_err
hr__key_need_input(const struct hr_key_need *need, const struct hr_graph *graph,
                   uint32_t node, size_t *ret_input, struct hr_error *error)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    for (size_t i = 0; i < n->input_count; i++) {
        size_t count = 0;

        for (size_t k = 0; k < need->count; k++)
            count += is_of(graph, n, i, need->values[k]);
        *ret_input = i;
        if (count == need->count)
            return HR_OK;
    }
    return hr__fail(
        error, HR_ERR_ARGUMENT,
        "the \"%s\" of '%s' is made of fields of several inputs of '%s', or by "
        "it: %s by a field of one of them",
        need->by, need->of, n->name, need->chooser != NULL ? "choose" : "join");
}

/* ---- the steps of a source ---- */

void hr__key_steps_destroy(struct hr_key_steps *steps)
{
    if (steps == NULL)
        return;
    hr__free(steps->inputs);
    hr__free(steps->steps);
    hr__free(steps->values);
    hr__free(steps);
}

/* Names are looked up here, once, and not for each key. */
static void add_values(struct hr_key_steps *steps, const struct hr_graph *graph,
                       struct hr_key_step *step)
{
    const struct hr_graph_node *n;

    step->bound = steps->value_count;
    if (step->node == HR_KEY_MOVE) {
        steps->values[steps->value_count++] = step->to;
        return;
    }
    n = &graph->nodes[step->node];
    for (size_t i = 0; i < n->field_count; i++) {
        int value = hr__graph_bound_value(graph, n, i);

        steps->values[steps->value_count++] = value > 0 ? value : 0;
    }
}

static size_t most_values(const struct hr_key_need *need, const struct hr_graph *graph)
{
    size_t count = need->count;

    for (size_t i = 0; i < need->step_count; i++)
        count += need->steps[i].node == HR_KEY_MOVE
                     ? 1
                     : graph->nodes[need->steps[i].node].field_count;
    return count;
}

struct hr_key_steps *
hr__key_steps_create(const struct hr_key_need *need, const struct hr_graph *graph,
                     const struct hr_schema *source, int result)
{
    struct hr_key_steps *steps = hr__calloc(1, sizeof *steps);

    if (steps == NULL)
        return NULL;
    steps->result = result;
    steps->inputs = hr__calloc(need->count + 1, sizeof *steps->inputs);
    steps->steps = hr__calloc(need->step_count + 1, sizeof *steps->steps);
    steps->values = hr__calloc(most_values(need, graph) + 1, sizeof *steps->values);
    if (steps->inputs == NULL || steps->steps == NULL || steps->values == NULL) {
        hr__key_steps_destroy(steps);
        return NULL;
    }
    for (size_t i = 0; i < source->count; i++) {
        if (!needs(need, source->fields[i].slot))
            continue;
        steps->inputs[steps->input_count++] = (struct hr_key_input){
            .field = &source->fields[i], .value = source->fields[i].slot};
        steps->values[steps->value_count++] = source->fields[i].slot;
    }
    for (size_t i = need->step_count; i-- > 0;) {
        struct hr_key_step *step = &steps->steps[steps->step_count++];

        *step = need->steps[i];
        add_values(steps, graph, step);
    }
    return steps;
}

/* ---- running ---- */

struct hr_key_runner {
    const struct hr_graph *graph;
    struct hr_thread thread;
    struct hr_value *row;     /* by value; 0: what is discarded */
    struct hr_value **fields; /* of a step */
};

static int most(int a, int b)
{
    return a > b ? a : b;
}

struct hr_key_runner *hr__key_runner_create(const struct hr_graph *graph)
{
    struct hr_key_runner *r = hr__calloc(1, sizeof *r);
    size_t fields = 0;
    int last = 0;

    if (r == NULL)
        return NULL;
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];

        for (size_t k = 0; k < n->schema.count; k++)
            last = most(last, n->schema.fields[k].slot);
        for (size_t k = 0; k < n->alias_count; k++)
            last = most(last, n->aliases[k].to);
        fields = n->field_count > fields ? n->field_count : fields;
    }
    hr__arena_init(&r->thread.arena);
    r->graph = graph;
    r->row = hr__calloc((size_t)last + 1, sizeof *r->row);
    r->fields = hr__calloc(fields + 1, sizeof *r->fields);
    r->thread.pool = hr_pool_create(0);
    if (r->row != NULL && r->fields != NULL && r->thread.pool != NULL)
        return r;
    hr__key_runner_destroy(r);
    return NULL;
}

void hr__key_runner_destroy(struct hr_key_runner *r)
{
    if (r == NULL)
        return;
    hr__thread_objects_destroy(&r->thread);
    hr_pool_unref(r->thread.pool);
    hr__arena_finish(&r->thread.arena);
    hr__free(r->row);
    hr__free(r->fields);
    hr__free(r);
}

/* The text of a key as the value of its field. */
static enum hr_err set_value(struct hr_key_runner *r, const struct hr_key_input *input,
                             const struct hr_str *key, struct hr_error *error)
{
    struct hr_value *value = &r->row[input->value];
    enum hr_dtype dtype = input->field->dtype;
    void *memory = hr__arena_alloc(&r->thread.arena, key->length + sizeof(int64_t));
    int64_t number;
    double real;
    float single;

    if (memory == NULL || !hr__str_ok(key))
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    if (input->field->kind == HR_FIELD_BYTES) {
        memcpy(memory, hr__str_text(key), key->length);
        hr__value_set_bytes(value, memory, key->length, NULL);
        return HR_OK;
    }
    number = strtoll(hr__str_text(key), NULL, 10);
    memcpy(memory, &number, sizeof number); /* little-endian */
    if (dtype == HR_F32 || dtype == HR_F64) {
        if (!hr__double_parse(hr__str_text(key), key->length, &real))
            return hr__fail(error, HR_ERR_FORMAT, "\"%.60s\" is no number",
                            hr__str_text(key));
        single = (float)real;
        memcpy(memory, dtype == HR_F32 ? (void *)&single : (void *)&real,
               hr_dtype_size(dtype));
    }
    hr__value_set_tensor(value, dtype, 0, NULL, memory, NULL);
    return HR_OK;
}

static void add_value(const struct hr_value *value, struct hr_str *key)
{
    enum hr_dtype dtype = (enum hr_dtype)value->dtype;
    double real;
    float single;

    if (value->kind == HR_VALUE_BYTES) {
        hr__str_add_bytes(key, value->bytes > 0 ? value->data : "", value->bytes);
    } else if (dtype == HR_F64) {
        memcpy(&real, value->data, sizeof real);
        hr__str_add_double(key, real);
    } else if (dtype == HR_F32) {
        memcpy(&single, value->data, sizeof single);
        hr__str_add_double(key, (double)single);
    } else {
        hr__str_addf(key, "%lld", (long long)hr__integer_at(dtype, value->data));
    }
}

static enum hr_err run_node(struct hr_key_runner *r, const struct hr_key_steps *steps,
                            const struct hr_key_step *step, const struct hr_record_id *id,
                            struct hr_error *error)
{
    const struct hr_graph_node *n = &r->graph->nodes[step->node];
    struct hr_op_ctx ctx = {.params = n->params,
                            .state = n->state,
                            .node = step->node,
                            .draw_id = n->draw_id,
                            .thread = &r->thread,
                            .error = error,
                            .id = id,
                            .fields = r->fields,
                            .field_count = n->field_count};

    for (size_t i = 0; i < n->field_count; i++) {
        r->fields[i] = &r->row[steps->values[step->bound + i]];
        if (!(n->op->traits & HR_TRAIT_DEFERS))
            HR_TRY(hr__value_force(&r->thread, r->fields[i], NULL, error));
    }
    HR_TRY(hr__op_apply(n->op, &ctx));
    for (size_t i = 0; i < n->field_count; i++)
        if (n->field_access[i] == HR_ACCESS_TAKE)
            hr__value_clear(r->fields[i]);
    return HR_OK;
}

static enum hr_err run_steps(struct hr_key_runner *r, const struct hr_key_steps *steps,
                             uint64_t index, struct hr_str *key, struct hr_error *error)
{
    struct hr_record_id id = {.index = index};
    struct hr_value *result = &r->row[steps->result];

    for (size_t i = 0; i < steps->step_count; i++) {
        const struct hr_key_step *step = &steps->steps[i];

        if (step->node == HR_KEY_MOVE) {
            hr__value_alias(&r->row[step->to], &r->row[step->from]);
        } else if (run_node(r, steps, step, &id, error) != HR_OK) {
            hr__error_prefix(error, "'%s'", r->graph->nodes[step->node].name);
            return error->code == HR_ERR_MEMORY ? HR_ERR_MEMORY : HR_ERR_FORMAT;
        }
    }
    HR_TRY(hr__value_force(&r->thread, result, NULL, error));
    hr__str_clear(key);
    add_value(result, key);
    return HR_OK;
}

enum hr_err hr__key_run(struct hr_key_runner *r, const struct hr_key_steps *steps,
                        const struct hr_graph_node *source, uint64_t index,
                        struct hr_str *key, struct hr_error *error)
{
    enum hr_err code = HR_OK;

    for (size_t i = 0; code == HR_OK && i < steps->input_count; i++) {
        hr__str_clear(key);
        code = source->op->source.key(source->params, source->state, steps->inputs[i].key,
                                      index, key, error);
        if (code == HR_OK)
            code = set_value(r, &steps->inputs[i], key, error);
    }
    if (code == HR_OK)
        code = run_steps(r, steps, index, key, error);
    for (size_t i = 0; i < steps->value_count; i++)
        hr__value_clear(&r->row[steps->values[i]]);
    hr__arena_reset(&r->thread.arena);
    return code;
}
