/*
 * engine/program.c - compiles a stage. Every field of every schema has the number of its
 * value, set at freeze; compiling maps these numbers to slots of a row.
 */
#include "engine/program.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "opt/shape.h"

struct compiler {
    struct hr_program *program;
    const struct hr_plan *plan;
    const struct hr_graph *graph;
    size_t stage;
    uint16_t *slot_of; /* value number -> slot + 1; value_count + 1 of them */
    bool full;         /* more slots than a row can have */
    uint32_t below[HR_GRAPH_NODES_MAX]; /* node -> 1 + the ORDER node that it was reached
                                           through */
    uint16_t path_of[HR_GRAPH_NODES_MAX]; /* node -> path + 1 */
    uint32_t
        orders[HR_GRAPH_NODES_MAX]; /* ORDER nodes from the root to the current node */
    size_t order_count, order_base; /* from the last merge on */
    uint32_t branch;                /* number of the merge's input; 0: before none */
    size_t parent, input;           /* of the paths found now */
};

static uint16_t new_slot(struct compiler *c)
{
    if (c->program->slot_count == UINT16_MAX) {
        c->full = true;
        return 0;
    }
    return (uint16_t)c->program->slot_count++;
}

static uint16_t slot(struct compiler *c, int value)
{
    uint16_t *known;

    assert(value > 0 && value <= c->graph->value_count);
    known = &c->slot_of[value];
    if (*known == 0)
        *known = (uint16_t)(new_slot(c) + 1);
    return (uint16_t)(*known - 1);
}

/* An optional field that its records do not have (labels that were not asked for) has no
 * value number: what is written there is discarded. */
static uint16_t bound_slot(struct compiler *c, const struct hr_graph_node *n, size_t at)
{
    int value = hr__graph_bound_value(c->graph, n, at);

    assert(value >= 0 || n->field_access[at] == HR_ACCESS_WRITE);
    return value < 0 ? new_slot(c) : slot(c, value);
}

static uint16_t *list(struct compiler *c, size_t room)
{
    return hr__arena_zalloc(&c->program->arena, (room + 1) * sizeof(uint16_t));
}

static bool
bind_fields(struct compiler *c, struct hr_step *step, const struct hr_graph_node *n)
{
    step->fields = list(c, n->field_count);
    step->clear = list(c, n->field_count);
    if (step->fields == NULL || step->clear == NULL)
        return false;
    for (size_t i = 0; i < n->field_count; i++) {
        step->fields[i] = bound_slot(c, n, i);
        if (n->field_access[i] == HR_ACCESS_TAKE)
            step->clear[step->clear_count++] = step->fields[i];
    }
    step->field_count = (uint16_t)n->field_count;
    return true;
}

static bool
bind_aliases(struct compiler *c, struct hr_step *step, const struct hr_graph_node *n)
{
    step->alias = list(c, 2 * n->alias_count);
    if (step->alias == NULL)
        return false;
    for (size_t i = 0; i < n->alias_count; i++) {
        step->alias[2 * i] = slot(c, n->aliases[i].from);
        step->alias[2 * i + 1] = slot(c, n->aliases[i].to);
    }
    step->alias_count = (uint16_t)n->alias_count;
    return true;
}

/* The value of the input's field when the node runs: that of a fork has an alias. */
static int value_seen(const struct hr_graph_node *n, size_t input, int value)
{
    for (size_t i = 0; i < n->alias_count; i++)
        if (n->aliases[i].input == input && n->aliases[i].from == value)
            return n->aliases[i].to;
    return value;
}

/* The fields of the inputs of a join by keys in which there may be no record. */
static bool
bind_fills(struct compiler *c, struct hr_step *step, const struct hr_graph_node *n)
{
    size_t room = (n->schema.count + 1) * sizeof *step->fills;

    if (n->op->zip.optional == NULL)
        return true;
    step->fills = hr__arena_zalloc(&c->program->arena, room);
    if (step->fills == NULL)
        return false;
    for (size_t i = 0; i < n->input_count; i++) {
        const struct hr_schema *in = &c->graph->nodes[n->inputs[i]].schema;

        for (size_t k = 0; n->op->zip.optional(n->params, i) && k < in->count; k++) {
            int value = value_seen(n, i, in->fields[k].slot);
            size_t f = 0;

            while (f < n->schema.count && n->schema.fields[f].slot != value)
                f++;
            if (f < n->schema.count)
                step->fills[step->fill_count++] =
                    (struct hr_fill){(uint16_t)(c->path_of[n->inputs[i]] - 1),
                                     slot(c, value), (uint16_t)f};
        }
    }
    return true;
}

static bool
bind_merge(struct compiler *c, struct hr_step *step, const struct hr_graph_node *n)
{
    size_t at = 0;

    step->alias = list(c, 2 * n->input_count * n->schema.count);
    if (step->alias == NULL)
        return false;
    for (size_t i = 0; i < n->input_count; i++)
        for (size_t f = 0; f < n->schema.count; f++) {
            const struct hr_field *to = &n->schema.fields[f];
            const struct hr_field *from =
                hr__schema_get(&c->graph->nodes[n->inputs[i]].schema, to->name);

            assert(from != NULL); /* hr__infer_merge */
            step->alias[at++] = slot(c, from->slot);
            step->alias[at++] = slot(c, to->slot);
        }
    step->alias_count = (uint16_t)(at / 2);
    return true;
}

/* Lists the slots to be made before the step, as the graph requires, and after it, as the
 * graph requires or because the plan ends a group early. */
static bool bind_forces(struct compiler *c, struct hr_step *step,
                        const struct hr_graph_node *n, const struct hr_plan_step *planned)
{
    step->before = list(c, n->field_count);
    step->after = list(c, n->field_count);
    step->early = planned->force_after && !n->made_after;
    if (step->before == NULL || step->after == NULL)
        return false;
    for (size_t i = 0; i < n->field_count; i++) {
        enum hr_param_access access = n->field_access[i];

        if (n->made[i].before)
            step->before[step->before_count++] = step->fields[i];
        if (planned->force_after &&
            (access == HR_ACCESS_WRITE || access == HR_ACCESS_UPDATE))
            step->after[step->after_count++] = step->fields[i];
    }
    return true;
}

/* The number of the identity; there is room for one view per step and the expansion. */
static uint16_t view_of(struct hr_program *p, uint16_t path, uint32_t draws_for)
{
    size_t paths = p->id_count - p->view_count, at = 0;

    while (at < p->view_count &&
           (p->views[at].path != path || p->views[at].draws_for != draws_for))
        at++;
    if (at == p->view_count) {
        p->views[p->view_count++] = (struct hr_view){path, draws_for};
        p->id_count++;
    }
    return (uint16_t)(paths + at);
}

static bool
make_step(struct compiler *c, struct hr_step *step, const struct hr_plan_step *planned)
{
    const struct hr_graph_node *n = &c->graph->nodes[planned->node];

    memset(step, 0, sizeof *step);
    step->op = n->op;
    step->params = n->params;
    step->state = n->state;
    step->code = hr__node_code(n);
    step->node = planned->node;
    step->draw_id = n->draw_id;
    step->when = n->when;
    step->when_count = n->when_count;
    step->access = n->field_access;
    step->group = planned->group;
    step->variant = planned->variant;
    if (c->stage == 0) {
        step->path = (uint16_t)(c->path_of[planned->node] - 1);
        step->branches = c->program->paths[step->path].branches;
        if (n->op->kind == HR_OP_MERGE)
            step->merge = c->program->paths[step->path].merge;
    }
    if (n->draws_for > 0)
        step->path = view_of(c->program, step->path, n->draws_for);
    if (!(step->merge != NULL ? bind_merge(c, step, n) : bind_aliases(c, step, n)) ||
        !bind_fills(c, step, n) || !bind_fields(c, step, n) ||
        !bind_forces(c, step, n, planned))
        return false;
    step->plain = step->alias_count + step->fill_count + step->before_count +
                          step->after_count + step->clear_count ==
                      0 &&
                  !step->branches && step->when_count == 0;
    return true;
}

static void
make_order(struct hr_path_order *order, const struct hr_graph *graph, uint32_t node)
{
    const struct hr_graph_node *n = &graph->nodes[node];

    order->op = n->op;
    order->params = n->params;
    order->state = n->state;
    order->draw_id = n->draw_id;
    order->node = node;
    order->shards = (n->op->traits & HR_TRAIT_SHARDS) != 0;
}

static enum hr_err
make_merge(struct compiler *c, const struct hr_graph_node *n, struct hr_path *path)
{
    struct hr_arena *arena = &c->program->arena;
    struct hr_merge *merge = path->merge = hr__arena_zalloc(arena, sizeof *merge);

    if (merge == NULL)
        return HR_ERR_MEMORY;
    merge->op = n->op;
    merge->params = n->params;
    merge->draw_id = n->draw_id;
    merge->n = (uint64_t)n->schema.records;
    merge->counts = hr__arena_zalloc(arena, n->input_count * sizeof *merge->counts);
    merge->bases = hr__arena_zalloc(arena, n->input_count * sizeof *merge->bases);
    merge->paths = hr__arena_zalloc(arena, n->input_count * sizeof *merge->paths);
    if (merge->counts == NULL || merge->bases == NULL || merge->paths == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < n->input_count; i++)
        merge->counts[i] = (uint64_t)c->graph->nodes[n->inputs[i]].schema.records;
    merge->inputs = (struct hr_merge_inputs){merge->counts, n->input_count};
    merge->passes = n->op->merge.passes != NULL
                        ? n->op->merge.passes(n->params, &merge->inputs, merge->n)
                        : 1;
    c->program->merges = true;
    return HR_OK;
}

static enum hr_err
make_join(struct compiler *c, const struct hr_graph_node *n, struct hr_path *path)
{
    struct hr_join *join = path->join =
        hr__arena_zalloc(&c->program->arena, sizeof *join);

    if (join == NULL)
        return HR_ERR_MEMORY;
    *join = (struct hr_join){n->op, n->params, n->state, c->graph};
    path->span = n->op->zip.count(n->state);
    c->program->merges = true;
    return HR_OK;
}

/* Whether some records have none of an input of the merge or join. */
static bool branches(const struct hr_path *parent, size_t input)
{
    const struct hr_join *join = parent->join;

    return parent->branches || parent->merge != NULL ||
           (join->op->zip.optional != NULL &&
            join->op->zip.optional(join->params, input));
}

/* At a source, merge or join: the order ops passed on the way down become its path. */
static enum hr_err make_path(struct compiler *c, uint32_t source, uint16_t *ret_path)
{
    struct hr_program *p = c->program;
    struct hr_path *path = &p->paths[p->path_count];
    const struct hr_graph_node *n = &c->graph->nodes[source];
    uint64_t count =
        n->op->source.count != NULL ? n->op->source.count(n->params, n->state) : 0;

    path->source = source;
    path->parent = c->parent;
    path->input = c->input;
    path->branches = c->parent != HR_NO_PATH && branches(&p->paths[c->parent], c->input);
    path->count = c->order_count - c->order_base;
    path->orders = hr__arena_zalloc(&p->arena, (path->count + 1) * sizeof *path->orders);
    if (path->orders == NULL)
        return HR_ERR_MEMORY;
    path->span = count;
    if (n->op->kind == HR_OP_MERGE) {
        HR_TRY(make_merge(c, n, path));
        count = path->merge->n;
    }
    if (n->op->zip.by != NULL) {
        HR_TRY(make_join(c, n, path));
        count = path->span;
    }
    for (size_t i = path->count; i-- > 0;) {
        struct hr_path_order *order = &path->orders[i];

        make_order(order, c->graph, c->orders[c->order_base + i]);
        order->n = count;
        count = order->op->order.count(order->params, order->state, count);
    }
    path->n = count;
    *ret_path = (uint16_t)++p->path_count;
    return HR_OK;
}

static enum hr_err find_paths(struct compiler *c, uint32_t node, struct hr_error *reterr);

/* The paths of the inputs of a merge or join, which lead on from its own. */
static enum hr_err
find_branches(struct compiler *c, uint32_t node, size_t path, struct hr_error *reterr)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    size_t base = c->order_base, parent = c->parent, input = c->input;
    struct hr_path *paths = c->program->paths;
    struct hr_merge *merge = paths[path].merge;
    uint32_t branch = c->branch;

    for (size_t i = 0; i < n->input_count; i++) {
        c->order_base = c->order_count;
        c->parent = path;
        c->input = i;
        c->branch = node * HR_NODE_INPUTS_MAX + (uint32_t)i + 1;
        if (merge != NULL) {
            merge->paths[i] = c->program->path_count;
            merge->bases[i] = paths[path].span;
        }
        HR_TRY(find_paths(c, n->inputs[i], reterr));
        if (merge != NULL)
            paths[path].span += paths[merge->paths[i]].span;
    }
    c->order_base = base;
    c->parent = parent;
    c->input = input;
    c->branch = branch;
    return HR_OK;
}

/* Gives every node of the one-to-one part the path of its first source. */
static enum hr_err find_paths(struct compiler *c, uint32_t node, struct hr_error *reterr)
{
    const struct hr_graph_node *n = &c->graph->nodes[node];
    bool order = n->op->kind == HR_OP_ORDER;
    size_t depth = c->order_count;
    uint32_t below =
        depth > c->order_base ? c->orders[depth - 1] + 1 : c->branch + HR_GRAPH_NODES_MAX;
    uint16_t first = 0;

    if (c->path_of[node] != 0) {
        if (c->below[node] == below)
            return HR_OK;
        hr__fail(reterr, HR_ERR_GRAPH,
                 "one source is reached through two different orders; add the source "
                 "twice instead");
        hr__graph_blame(c->graph, node, reterr);
        return HR_ERR_GRAPH;
    }
    if (order)
        c->orders[c->order_count++] = node;
    if (hr__node_numbers(n)) {
        HR_TRY(make_path(c, node, &first));
        HR_TRY(find_branches(c, node, first - 1u, reterr));
    }
    for (size_t i = 0; !hr__node_numbers(n) && i < n->input_count; i++) {
        HR_TRY(find_paths(c, n->inputs[i], reterr));
        if (i == 0)
            first = c->path_of[n->inputs[0]];
    }
    c->order_count = depth;
    c->below[node] = below;
    c->path_of[node] = first;
    return HR_OK;
}

static struct hr_out_field *
make_out(struct compiler *c, const struct hr_schema *schema, size_t *ret_count)
{
    struct hr_out_field *out =
        hr__arena_zalloc(&c->program->arena, (schema->count + 1) * sizeof *out);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < schema->count; i++) {
        out[i].slot = slot(c, schema->fields[i].slot);
        out[i].field = &schema->fields[i];
        out[i].bytes = schema->fields[i].kind == HR_FIELD_TENSOR
                           ? hr__field_bytes(&schema->fields[i])
                           : -1;
    }
    *ret_count = schema->count;
    return out;
}

static bool make_inputs(struct compiler *c)
{
    struct hr_program *p = c->program;
    const struct hr_schema *schema;

    if (c->stage == 0)
        return true;
    schema = &c->graph->nodes[p->plan->feed].schema;
    p->in_slots = list(c, schema->count);
    p->in_kept = list(c, schema->count);
    if (p->in_slots == NULL || p->in_kept == NULL)
        return false;
    p->in_count = schema->count;
    for (size_t i = 0; i < schema->count; i++) {
        p->in_slots[i] = slot(c, schema->fields[i].slot);
        if (!hr__stage_is_cut(c->plan, c->stage - 1) ||
            !hr__field_may_defer(&schema->fields[i]))
            continue;
        p->in_kept[i] = (uint16_t)++p->slot_count;
        p->in_described = true;
    }
    return true;
}

/* Where the values that remote workers make go. */
static bool make_remote(struct compiler *c)
{
    struct hr_program *p = c->program;
    const struct hr_schema *schema;

    if (c->stage > 0 || c->plan->remote == HR_NO_NODE)
        return true;
    schema = &c->graph->nodes[c->plan->remote].schema;
    p->remote_slots = list(c, schema->count);
    if (p->remote_slots == NULL)
        return false;
    for (size_t i = 0; i < schema->count; i++)
        p->remote_slots[p->remote_count++] = slot(c, schema->fields[i].slot);
    return true;
}

static bool make_end(struct compiler *c)
{
    struct hr_program *p = c->program;
    const struct hr_plan_stage *s = p->plan;
    uint32_t batch = hr__plan_stage_batch(c->plan, s);

    p->cut = hr__stage_is_cut(c->plan, c->stage);
    p->out = make_out(c, &c->graph->nodes[s->last].schema, &p->out_count);
    if (p->out == NULL)
        return false;
    if (s->expand != HR_NO_NODE) {
        struct hr_plan_step planned = {
            .node = s->expand, .group = s->expand, .variant = s->expand_variant};

        if (!make_step(c, &p->expand, &planned))
            return false;
        p->children = make_out(c, &c->graph->nodes[s->expand].schema, &p->child_count);
        if (p->children == NULL)
            return false;
    }
    p->leaving = &c->graph->nodes[hr__plan_stage_end(s)].schema;
    if (batch != HR_NO_NODE && c->graph->nodes[batch].op->sequence.runs != NULL)
        c->graph->nodes[batch].op->sequence.runs(c->graph->nodes[batch].params, &p->runs);
    if (s->direct) {
        p->batch = &c->graph->nodes[s->sequence[0]];
        assert(p->batch->op->sequence.runs != NULL);
        p->batch->op->sequence.runs(p->batch->params, &p->runs);
    }
    return true;
}

static void add_node(struct hr_program *p, uint32_t node)
{
    for (size_t i = 0; i < p->node_count; i++)
        if (p->nodes[i] == node)
            return;
    p->nodes[p->node_count++] = node;
}

static bool list_nodes(struct compiler *c)
{
    struct hr_program *p = c->program;
    const struct hr_plan_stage *s = p->plan;

    p->nodes = hr__arena_zalloc(&p->arena, c->graph->count * sizeof *p->nodes);
    if (p->nodes == NULL)
        return false;
    for (size_t i = 0; i < p->path_count; i++) {
        for (size_t k = 0; k < p->paths[i].count; k++)
            add_node(p, p->paths[i].orders[k].node);
        add_node(p, p->paths[i].source);
    }
    for (size_t i = 0; i < p->step_count; i++)
        add_node(p, p->steps[i].node);
    p->store_node = HR_NO_NODE;
    if (s->expand != HR_NO_NODE)
        add_node(p, s->expand);
    else if (s->sequence_count > 0)
        add_node(p, p->store_node = s->sequence[0]);
    if (p->node_count == 0)
        add_node(p, s->last);
    return true;
}

static enum hr_err compile(struct compiler *c, struct hr_error *reterr)
{
    struct hr_program *p = c->program;
    const struct hr_plan_stage *s = p->plan;

    p->steps = hr__arena_zalloc(&p->arena, (s->step_count + 1) * sizeof *p->steps);
    p->paths = hr__arena_zalloc(&p->arena, (s->step_count + 1) * sizeof *p->paths);
    p->views = hr__arena_zalloc(&p->arena, (s->step_count + 1) * sizeof *p->views);
    if (p->steps == NULL || p->paths == NULL || p->views == NULL)
        return HR_ERR_MEMORY;
    if (c->stage == 0)
        HR_TRY(find_paths(c, c->plan->root, reterr));
    p->id_count = p->path_count > 0 ? p->path_count : 1;
    if (!make_inputs(c))
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < s->step_count; i++) {
        uint32_t node = s->steps[i].node;

        if (c->stage == 0 && c->path_of[node] == 0)
            c->path_of[node] = c->path_of[c->graph->nodes[node].inputs[0]];
        if (!make_step(c, &p->steps[i], &s->steps[i]))
            return HR_ERR_MEMORY;
        p->step_count++;
    }
    if (c->stage == 0 && s->expand != HR_NO_NODE)
        c->path_of[s->expand] = 1;
    if (c->stage == 0 && !hr__program_stamps(p, c->graph, c->path_of))
        return HR_ERR_MEMORY;
    return make_remote(c) && make_end(c) && list_nodes(c) &&
                   hr__program_caches(p, c->graph) && hr__program_finals(p) &&
                   hr__program_cut(p, c->graph) && hr__program_rows(p)
               ? HR_OK
               : HR_ERR_MEMORY;
}

enum hr_err hr__program_init(struct hr_program *program, const struct hr_plan *plan,
                             size_t at, struct hr_error *reterr)
{
    struct compiler *c = hr__calloc(1, sizeof *c);
    enum hr_err code = HR_ERR_MEMORY;

    memset(program, 0, sizeof *program);
    hr__arena_init(&program->arena);
    program->plan = &plan->stages[at];
    if (c != NULL) {
        c->program = program;
        c->plan = plan;
        c->graph = plan->graph;
        c->stage = at;
        c->parent = HR_NO_PATH;
        c->slot_of = hr__calloc((size_t)c->graph->value_count + 1, sizeof *c->slot_of);
        code = c->slot_of != NULL ? compile(c, reterr) : HR_ERR_MEMORY;
        if (code == HR_OK && c->full)
            code = hr__fail(reterr, HR_ERR_LIMIT,
                            "stage %zu has more than %d values; split the graph", at + 1,
                            UINT16_MAX);
        hr__free(c->slot_of);
    }
    hr__free(c);
    if (code == HR_ERR_MEMORY)
        hr__fail(reterr, code, "out of memory");
    return code;
}

void hr__program_finish(struct hr_program *program)
{
    hr__arena_finish(&program->arena);
    memset(program, 0, sizeof *program);
}

const struct hr_out_field *
hr__program_results(const struct hr_program *program, size_t *ret_count)
{
    *ret_count = program->expand.op != NULL ? program->child_count : program->out_count;
    return program->expand.op != NULL ? program->children : program->out;
}
