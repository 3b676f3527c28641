/*
 * opt/pass_compose.c - composition: which steps share one piece of work on a deferred
 * value.
 *
 * A step with DEFERS only edits a description. The first one (DECODES, or any that meets
 * a tensor) heads a group; later ones join while the description can carry them. An op
 * without DEFERS needs the bytes: its deferred fields are made before it. What is still
 * deferred at a batch is stored straight into the batch.
 *
 * Descriptions are followed by their values' numbers, so a field that is renamed stays
 * what it is. At a fork each branch goes on with a copy of the description: two views of
 * a photo are two windows of one decode's description, and share what they decode.
 */
#include "opt/opt.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

/* More are made at once; a stage with as many keeps working. */
#define PENDING_MAX 256

/* A deferred value on its way through the stage. */
struct pending {
    int value;
    uint32_t head; /* node that heads its group */
    bool resampled;
    bool shared; /* another branch goes on with the same description */
};

struct compose {
    const struct hr_graph *graph;
    struct pending pending[PENDING_MAX];
    size_t count;
    bool overflowed; /* not all deferred values are known any more */
};

static struct pending *find(struct compose *c, int value)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->pending[i].value == value)
            return &c->pending[i];
    return NULL;
}

static void forget(struct compose *c, struct pending *p)
{
    *p = c->pending[--c->count];
}

static const char *node_name(const struct compose *c, uint32_t node)
{
    return c->graph->nodes[node].name;
}

/* What a step saves by joining. */
static const char *
gain_of(const struct compose *c, const struct pending *p, const struct hr_op *op)
{
    bool decodes = c->graph->nodes[p->head].op->traits & HR_TRAIT_DECODES;

    if (op->traits & HR_TRAIT_RESAMPLING)
        return p->shared && decodes
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

/* A step that edits descriptions joins, restarts or begins the group of the field it
 * updates. */
static void join(struct compose *c, struct hr_plan_step *step, const struct hr_op *op,
                 const char *field, int value)
{
    struct pending *p = find(c, value);
    bool again = p != NULL && p->resampled && (op->traits & HR_TRAIT_RESAMPLING);

    if (again) {
        step->force_before = true;
        snprintf(step->reason, sizeof step->reason,
                 "begins anew: '%s' is already resampled by '%s', and two resamplings "
                 "are not one",
                 field, node_name(c, p->head));
        forget(c, p);
        p = NULL;
    }
    if (p == NULL) {
        if (c->count == PENDING_MAX) {
            c->overflowed = true;
            return;
        }
        p = &c->pending[c->count++];
        *p = (struct pending){.value = value, .head = step->node};
        if (!again)
            snprintf(step->reason, sizeof step->reason, "begins a description of '%s'",
                     field);
    } else {
        step->group = p->head;
        snprintf(step->reason, sizeof step->reason, "composed with '%s': %s",
                 node_name(c, p->head), gain_of(c, p, op));
    }
    p->resampled = p->resampled || (op->traits & HR_TRAIT_RESAMPLING);
}

static void
need_bytes(struct compose *c, struct hr_plan_step *step, const char *field, int value)
{
    struct pending *p = find(c, value);

    step->force_before = step->force_before || c->overflowed;
    if (p == NULL)
        return;
    step->force_before = true;
    snprintf(step->reason, sizeof step->reason,
             "needs pixels: '%s' is made before it, by the group of '%s'", field,
             node_name(c, p->head));
    forget(c, p);
}

/* Where a step runs that shares no work with others. */
static const char *place_of(const struct hr_graph_node *n)
{
    const struct hr_code_use *use = n->op->code != NULL ? n->op->code(n->state) : NULL;

    if (use == NULL)
        return "runs in the same thread on the same record";
    switch (use->variant) {
    case HR_CODE_PROCESSES:
        return "your code, in worker processes: many records a trip";
    case HR_CODE_INLINE:
        return "your code, in the engine's threads, one at a time: entered once for many "
               "records";
    default:
        return "your code, in the engine's threads: entered once for many records";
    }
}

/* Both branches of a fork go on with what was described before it. */
static void fork_pending(struct compose *c, const struct hr_graph_node *n)
{
    for (size_t i = 0; i < n->alias_count; i++) {
        struct pending *p = find(c, n->aliases[i].from);

        if (p == NULL)
            continue;
        if (c->count == PENDING_MAX) {
            c->overflowed = true;
            continue;
        }
        p->shared = true;
        c->pending[c->count] = *p;
        c->pending[c->count++].value = n->aliases[i].to;
    }
}

static void compose_step(struct compose *c, struct hr_plan_step *step, bool fuse)
{
    const struct hr_graph_node *n = &c->graph->nodes[step->node];

    snprintf(step->reason, sizeof step->reason, "%s", place_of(n));
    fork_pending(c, n);
    for (size_t i = 0; i < n->field_count; i++) {
        enum hr_param_access access = n->field_access[i];
        int value = hr__graph_bound_value(c->graph, n, i);

        if (!(n->op->traits & HR_TRAIT_DEFERS))
            need_bytes(c, step, n->field_names[i], value);
        else if (access == HR_ACCESS_WRITE || access == HR_ACCESS_UPDATE)
            join(c, step, n->op, n->field_names[i], value);
    }
    if (!fuse && (n->op->traits & HR_TRAIT_DEFERS)) {
        step->force_after = true;
        step->group = step->node;
        snprintf(step->reason, sizeof step->reason, "runs alone, as asked");
        c->count = 0;
    }
}

void hr__pass_compose(struct hr_plan *plan, bool fuse)
{
    for (size_t i = 0; i < plan->stage_count; i++) {
        struct compose c = {.graph = plan->graph};

        for (size_t k = 0; k < plan->stages[i].step_count; k++)
            compose_step(&c, &plan->stages[i].steps[k], fuse);
    }
}
