/*
 * graph/graph_compose.c - composition: which nodes share one piece of work on a deferred
 * value, and where the value is made.
 *
 * A node with DEFERS only edits a description. The first one on a value (one that
 * DECODES, or any that meets a tensor) heads a group; later ones join while the
 * description can carry them. The value is made where the group ends: before a node that
 * needs bytes, before a second resampling, and before anything that spans records.
 *
 * This is done at freeze and not by the optimizer, because it decides bytes: a photo in
 * mode close is decoded at the scale that its whole group allows. So the graph owns the
 * groups and the fingerprint covers them; a plan may end a group early only where that
 * changes no byte (hr__graph_may_split).
 *
 * A node that moves several fields has each in the group of its own description, and is
 * counted to that of the first, the image that the others follow.
 *
 * Descriptions are followed by the numbers of their values, so a field that is renamed
 * stays in its group. At a fork each branch continues with a copy of the description: two
 * views of a photo are two windows of one decode, and share what they decode.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <stdio.h>

#include "core/alloc.h"

/* State of a value at the current node. */
struct described {
    bool deferred;
    bool resampled;
    bool shared;   /* another branch continues with the same description */
    uint32_t head; /* node that heads its group */
};

struct compose {
    struct hr_graph *graph;
    struct described *values; /* by number; graph->value_count + 1 of them */
};

static struct described *value_of(struct compose *c, int value)
{
    assert(value >= 0 && value <= c->graph->value_count);
    return &c->values[value];
}

static const char *name_of(const struct compose *c, uint32_t node)
{
    return c->graph->nodes[node].name;
}

static enum hr_strictness strictness_of(const struct hr_graph_node *head)
{
    return head->op->composes != NULL ? head->op->composes(head->params)
                                      : HR_STRICTNESS_EXACT;
}

bool hr__node_spans_records(const struct hr_graph_node *n)
{
    switch (n->op->kind) {
    case HR_OP_EXPAND:
    case HR_OP_SEQUENCE:
    case HR_OP_MERGE: /* of inputs whose groups may differ */
        return true;
    case HR_OP_ORDER:
        return !n->by_number;
    default:
        return false;
    }
}

static uint64_t at_most(const struct hr_graph_node *n, uint64_t records)
{
    return n->reach >= 0 && (uint64_t)n->reach < records ? (uint64_t)n->reach : records;
}

uint64_t hr__node_joins(const struct hr_graph_node *n, const struct hr_schema *input)
{
    const struct hr_op_sequence *op = &n->op->sequence;
    struct hr_sequence_runs runs = {0};
    uint64_t records;

    if (op->runs == NULL && op->joins == NULL)
        return 0;
    if (op->runs != NULL)
        op->runs(n->params, &runs);
    records =
        op->runs != NULL ? (uint64_t)runs.size : op->joins(n->params, n->state, input);
    records = at_most(n, records);
    return records > 0 ? records : 1;
}

uint64_t hr__node_holds(const struct hr_graph_node *n, const struct hr_schema *input)
{
    const struct hr_op_sequence *op = &n->op->sequence;

    if (op->runs != NULL || op->holds == NULL)
        return 0;
    return at_most(n, op->holds(n->params, n->state, input));
}

/* The number under which the node sees a value of one of its inputs. */
static int seen_as(const struct hr_graph_node *n, size_t input, int value)
{
    for (size_t i = 0; i < n->alias_count; i++)
        if (n->aliases[i].input == input && n->aliases[i].from == value)
            return n->aliases[i].to;
    return value;
}

/* ---- where values are made ---- */

/* Ends the value's group before the node. Returns how bytes depend on where it ends. */
static enum hr_strictness
make(struct compose *c, struct hr_graph_node *n, struct described *v)
{
    enum hr_strictness strictness = strictness_of(&c->graph->nodes[v->head]);

    assert(v->deferred && v->head < c->graph->count);
    v->deferred = false;
    if (strictness > n->made_strictness)
        n->made_strictness = strictness;
    return strictness;
}

static void
make_field(struct compose *c, struct hr_graph_node *n, size_t at, struct described *v)
{
    assert(at < n->field_count && !n->made[at].before);
    n->made[at].before = true;
    n->made[at].strictness = make(c, n, v);
}

static void
need_bytes(struct compose *c, struct hr_graph_node *n, size_t at, struct described *v)
{
    snprintf(n->reason, sizeof n->reason,
             "needs pixels: '%s' is made before it, by the group of '%s'",
             n->field_names[at], name_of(c, v->head));
    make_field(c, n, at, v);
}

/* Makes all values of the node's inputs before it, whether it binds them or not. */
static void make_all(struct compose *c, struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->field_count; i++) {
        int value = hr__graph_bound_value(c->graph, n, i);

        if (value >= 0 && value_of(c, value)->deferred)
            make_field(c, n, i, value_of(c, value));
    }
    for (size_t i = 0; i < n->input_count; i++) {
        const struct hr_schema *schema = &c->graph->nodes[n->inputs[i]].schema;

        for (size_t f = 0; f < schema->count; f++) {
            struct described *v = value_of(c, seen_as(n, i, schema->fields[f].slot));

            if (v->deferred)
                make(c, n, v);
        }
    }
}

/* ---- groups ---- */

/* What a node saves by joining. */
static const char *
gain_of(const struct compose *c, const struct described *v, const struct hr_op *op)
{
    bool decodes = c->graph->nodes[v->head].op->traits & HR_TRAIT_DECODES;

    if (op->traits & HR_TRAIT_RESAMPLING)
        return v->shared && decodes
                   ? "only what other views have not decoded of the window is decoded"
                   : "only the window is decoded and resampled";
    if (op->traits & HR_TRAIT_GEOMETRIC)
        return "it only moves the window";
    if (op->traits & HR_TRAIT_AFFINE)
        return "it is one multiply and add in the store";
    if (op->traits & HR_TRAIT_LAYOUT)
        return "it is the order in which the store writes";
    return "it only edits the description";
}

/* A node that edits the description of a field joins its group, or begins one. */
static void
join(struct compose *c, struct hr_graph_node *n, size_t at, struct described *v)
{
    uint32_t node = (uint32_t)(n - c->graph->nodes), traits = n->op->traits;
    struct described fresh = {.deferred = true, .head = node};
    bool first = !n->describes; /* fields that follow may be in groups of their own */
    char other[sizeof n->reason], *reason = first ? n->reason : other;

    assert(traits & HR_TRAIT_DEFERS);
    if (v->deferred && v->resampled && (traits & HR_TRAIT_RESAMPLING)) {
        snprintf(reason, sizeof n->reason,
                 "starts a new group: '%s' is already resampled by '%s', and two "
                 "resamplings are not one",
                 n->field_names[at], name_of(c, v->head));
        make_field(c, n, at, v);
        *v = fresh;
    } else if (v->deferred) {
        snprintf(reason, sizeof n->reason, "composed with '%s': %s", name_of(c, v->head),
                 gain_of(c, v, n->op));
    } else {
        snprintf(reason, sizeof n->reason, "begins a description of '%s'",
                 n->field_names[at]);
        *v = fresh;
    }
    n->describes = true;
    if (first)
        n->group = v->head;
    if (strictness_of(&c->graph->nodes[v->head]) > n->strictness)
        n->strictness = strictness_of(&c->graph->nodes[v->head]);
    v->resampled = v->resampled || (traits & HR_TRAIT_RESAMPLING);
}

/* Both branches of a fork continue with what was described before it. */
static void fork_values(struct compose *c, const struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->alias_count; i++) {
        struct described *from = value_of(c, n->aliases[i].from);

        from->shared = from->shared || from->deferred;
        *value_of(c, n->aliases[i].to) = *from;
    }
}

static bool changes(const struct hr_graph_node *n, size_t at)
{
    return n->field_access[at] == HR_ACCESS_WRITE ||
           n->field_access[at] == HR_ACCESS_UPDATE;
}

static void compose_fields(struct compose *c, struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->field_count; i++) {
        const struct hr_field *field = hr__schema_find(&n->schema, n->field_names[i]);
        int value = hr__graph_bound_value(c->graph, n, i);

        if (value < 0)
            continue;
        if (!(n->op->traits & HR_TRAIT_DEFERS)) {
            if (value_of(c, value)->deferred)
                need_bytes(c, n, i, value_of(c, value));
        } else if (changes(n, i) && field != NULL && hr__field_has_pixels(field)) {
            join(c, n, i, value_of(c, value));
        } else if (changes(n, i) && value_of(c, value)->deferred) {
            need_bytes(c, n, i, value_of(c, value));
        }
    }
}

/* ---- rewrites ---- */

const char *hr__strictness_name(enum hr_strictness strictness)
{
    static const char *const names[] = {"exact", "close", "relaxed"};

    return names[strictness];
}

static void
make_results(struct compose *c, struct hr_graph_node *n, struct hr_graph_rewrite *rewrite)
{
    for (size_t i = 0; i < n->field_count; i++) {
        int value = hr__graph_bound_value(c->graph, n, i);
        struct described *v = changes(n, i) && value >= 0 ? value_of(c, value) : NULL;

        if (v == NULL || !v->deferred)
            continue;
        v->deferred = false;
        n->made_after = true;
        if (strictness_of(&c->graph->nodes[v->head]) > rewrite->strictness)
            rewrite->strictness = strictness_of(&c->graph->nodes[v->head]);
    }
    if (n->made_after)
        snprintf(n->reason, sizeof n->reason,
                 "its values are made right after it: rewrite '%s', %s", rewrite->name,
                 hr__strictness_name(rewrite->strictness));
}

static void run_rewrites(struct compose *c, struct hr_graph_node *n)
{
    struct hr_graph *graph = c->graph;

    for (size_t i = 0; i < graph->rewrite_count; i++)
        if (&graph->nodes[graph->rewrites[i].node] == n)
            make_results(c, n, &graph->rewrites[i]);
}

/* ---- all nodes ---- */

/* True if the node's output records are a function of their number: neither it nor a node
 * before it drops, makes or joins records. A source may drop some of them. */
static bool is_by_number(const struct hr_graph *graph, const struct hr_graph_node *n)
{
    enum hr_op_kind kind = n->op->kind;

    for (size_t i = 0; i < n->input_count; i++)
        if (!graph->nodes[n->inputs[i]].by_number)
            return false;
    if (kind == HR_OP_ORDER)
        return n->positions >= 0;
    return kind == HR_OP_SOURCE || kind == HR_OP_MAP || kind == HR_OP_ZIP ||
           kind == HR_OP_MERGE;
}

/* Whether the records of an incomplete last batch are read decides whether a bad one
 * among them is an error, so the graph decides it and not the plan. */
static void note_whole_batches(struct hr_graph *graph, const struct hr_graph_node *n)
{
    struct hr_sequence_runs runs = {0};

    if (n->op->sequence.runs == NULL || !graph->nodes[n->inputs[0]].by_number ||
        hr__node_drops(&graph->nodes[n->inputs[0]]))
        return;
    n->op->sequence.runs(n->params, &runs);
    if (runs.drop_last)
        graph->whole = runs.size;
}

/* What a node still describes after `n`, in the same groups. */
static void note_passed(struct compose *c, const struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->input_count; i++) {
        struct hr_graph_node *before = &c->graph->nodes[n->inputs[i]];

        for (size_t f = 0; f < before->schema.count; f++) {
            const struct described *v =
                value_of(c, seen_as(n, i, before->schema.fields[f].slot));
            const struct hr_graph_node *head = &c->graph->nodes[v->head];

            if (v->deferred && head != n &&
                strictness_of(head) > before->passed_strictness)
                before->passed_strictness = strictness_of(head);
        }
    }
}

static enum hr_err compose_node(struct compose *c, uint32_t node)
{
    struct hr_graph_node *n = &c->graph->nodes[node];

    assert(n->made == NULL);
    n->made = hr__calloc(n->field_count + 1, sizeof *n->made);
    if (n->made == NULL)
        return HR_ERR_MEMORY;
    n->group = node;
    n->by_number = is_by_number(c->graph, n);
    note_whole_batches(c->graph, n);
    fork_values(c, n);
    if (hr__node_spans_records(n))
        make_all(c, n);
    else
        compose_fields(c, n);
    note_passed(c, n);
    run_rewrites(c, n);
    return HR_OK;
}

enum hr_err
hr__graph_compose(struct hr_graph *graph, const uint32_t *order, struct hr_error *reterr)
{
    struct compose c = {.graph = graph};
    enum hr_err code = HR_OK;

    graph->whole = 0;
    assert(!graph->frozen);
    c.values = hr__calloc((size_t)graph->value_count + 1, sizeof *c.values);
    if (c.values == NULL)
        code = HR_ERR_MEMORY;
    for (size_t i = 0; code == HR_OK && i < graph->count; i++)
        code = compose_node(&c, order[i]);
    hr__free(c.values);
    return code == HR_OK ? HR_OK : hr__fail(reterr, code, "out of memory");
}

bool hr__graph_may_split(const struct hr_graph *graph, uint32_t node)
{
    assert(node < graph->count);
    return graph->nodes[node].strictness == HR_STRICTNESS_EXACT;
}

enum hr_err hr__graph_make_after(struct hr_graph *graph, uint32_t node)
{
    struct hr_graph_rewrite *grown;

    assert(!graph->frozen && node < graph->count);
    grown = hr__realloc(graph->rewrites, (graph->rewrite_count + 1) * sizeof *grown);
    if (grown == NULL)
        return HR_ERR_MEMORY;
    graph->rewrites = grown;
    grown[graph->rewrite_count++] = (struct hr_graph_rewrite){"make", node, 0};
    return HR_OK;
}
