/*
 * opt/reorder.c - chains of a graph as steps of opt/order.h, and back.
 */
#include "opt/reorder.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "opt/pecan.h"
#include "opt/swap.h"

#define EXPECTED_MIN 0.01 /* of the time as written: orders save no more */

struct chain {
    uint32_t nodes[HR_ORDER_STEPS_MAX]; /* as written, each reads the one before */
    size_t count;
    struct hr_order_step steps[HR_ORDER_STEPS_MAX];
    double records; /* that reach it, for each record of the source */
};

struct reorder {
    const struct hr_graph *graph;
    const struct hr_profile *profile;
    const struct hr_profile_node **measured; /* per node, or NULL */
    const struct hr_reorder_settings *settings;
    struct hr_reorder *result;
};

/* ---- chains ---- */

static bool is_link(const struct hr_graph_node *n)
{
    return n->input_count == 1 &&
           (n->op->kind == HR_OP_MAP || n->op->kind == HR_OP_FILTER);
}

/* The node after `node` in its chain, or -1. */
static int64_t next_link(const struct hr_graph *graph, uint32_t node)
{
    if (hr__graph_consumers(graph, node) != 1)
        return -1;
    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].input_count > 0 && graph->nodes[i].inputs[0] == node)
            return is_link(&graph->nodes[i]) ? (int64_t)i : -1;
    return -1;
}

/* Whether the node begins a chain. */
static bool begins(const struct hr_graph *graph, uint32_t node)
{
    const struct hr_graph_node *n = &graph->nodes[node];
    uint32_t before;

    if (!is_link(n))
        return false;
    before = n->inputs[0];
    return !is_link(&graph->nodes[before]) || hr__graph_consumers(graph, before) != 1;
}

/* ---- steps ---- */

static bool changes(const struct hr_graph_node *n, const char *field)
{
    for (size_t i = 0; field != NULL && i < n->field_count; i++)
        if (n->field_access[i] != HR_ACCESS_READ && strcmp(n->field_names[i], field) == 0)
            return true;
    return false;
}

/* The field whose bytes decide what nodes cost: the one that nodes with the most time
 * between them update; NULL: none is updated. */
static const char *main_field(const struct reorder *r, const struct chain *chain)
{
    const char *best = NULL;
    double most = -1;

    for (size_t i = 0; i < chain->count; i++) {
        const struct hr_graph_node *n = &r->graph->nodes[chain->nodes[i]];

        for (size_t f = 0; f < n->field_count; f++) {
            double ns = 0;

            if (n->field_access[f] != HR_ACCESS_UPDATE)
                continue;
            for (size_t k = 0; k < chain->count; k++)
                if (changes(&r->graph->nodes[chain->nodes[k]], n->field_names[f]))
                    ns += r->measured[chain->nodes[k]]->cpu_ns;
            if (ns > most) {
                most = ns;
                best = n->field_names[f];
            }
        }
    }
    return best;
}

/* A node's cost: per byte of the main field unless the profile knows better; a node that
 * leaves that field alone costs the same everywhere. */
static void
take_cost(const struct hr_graph_node *n, const struct hr_profile_node *measured,
          const char *main, struct hr_order_step *step)
{
    bool scales = changes(n, main) && measured->bytes_in >= 1;

    *step = (struct hr_order_step){.ns = measured->cpu_ns,
                                   .fixed = 1,
                                   .bytes_in = 1,
                                   .growth = 1,
                                   .kept = hr__profile_kept(measured)};
    if (!scales)
        return;
    step->fixed = measured->fixed != HR_PROFILE_UNKNOWN ? measured->fixed : 0;
    step->bytes_in = measured->bytes_in;
    step->growth = measured->bytes_out / measured->bytes_in;
}

/* ---- what may move ---- */

/* Whether more nodes share the work of this one's group. */
static bool in_group(const struct hr_graph *graph, uint32_t node)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (i != node && graph->nodes[i].group == graph->nodes[node].group)
            return true;
    return false;
}

/* Whether `later`, which needs pixels, would come before an end of the group of `early`,
 * whose nodes describe them: that would divide their work, and what the profile measured
 * of them would not hold. */
static bool divides(const struct hr_graph *graph, uint32_t early, uint32_t later)
{
    return in_group(graph, early) &&
           (graph->nodes[later].op->traits & HR_TRAIT_DEFERS) == 0;
}

static bool may_swap(const struct reorder *r, uint32_t a, uint32_t b)
{
    struct hr_swap swap;

    if (divides(r->graph, a, b))
        return false;
    hr__swap(r->graph, a, b, &swap);
    return swap.allowed && swap.needs <= r->settings->strictness;
}

static void take_swaps(const struct reorder *r, struct chain *chain)
{
    uint64_t swaps[HR_ORDER_STEPS_MAX] = {0};

    for (size_t i = 0; i < chain->count; i++)
        for (size_t k = i + 1; k < chain->count; k++)
            if (may_swap(r, chain->nodes[i], chain->nodes[k])) {
                swaps[k] |= (uint64_t)1 << i;
                swaps[i] |= (uint64_t)1 << k;
            }
    hr__order_from_swaps(chain->steps, chain->count, swaps);
}

/* ---- an order ---- */

/* Whether the step may change places with no other one. */
static bool is_fixed(const struct chain *chain, size_t at)
{
    for (size_t i = 0; i < chain->count; i++) {
        size_t early = i < at ? i : at, late = i < at ? at : i;

        if (i != at && (chain->steps[late].after >> early & 1) == 0)
            return false;
    }
    return true;
}

/* Takes the steps in the order that Pecan's rule asks for, each as soon as those are
 * placed that it must come after: the rule knows nothing of what is legal. */
static void
pecan(const struct reorder *r, const struct chain *chain, struct hr_order *order)
{
    struct hr_pecan_step steps[HR_ORDER_STEPS_MAX];
    uint8_t wanted[HR_ORDER_STEPS_MAX];
    uint64_t placed = 0;

    for (size_t i = 0; i < chain->count; i++) {
        hr__pecan_step(r->graph, &r->graph->nodes[chain->nodes[i]],
                       r->measured[chain->nodes[i]], &steps[i]);
        steps[i].fixed = steps[i].fixed || is_fixed(chain, i);
    }
    hr__order_pecan(steps, chain->count, wanted);
    for (size_t made = 0; made < chain->count; made++) {
        size_t at = 0;

        while ((placed >> wanted[at] & 1) != 0 ||
               (chain->steps[wanted[at]].after & ~placed) != 0) {
            at++;
            assert(at < chain->count); /* the first that is left as written may come */
        }
        order->steps[made] = wanted[at];
        placed |= (uint64_t)1 << wanted[at];
    }
}

/* The cheapest order under cedar's model: time and bytes are linear in the bytes that a
 * node reads, and every record is kept. */
static enum hr_err cedar(const struct reorder *r, const struct chain *chain,
                         struct hr_order *order, struct hr_error *reterr)
{
    struct hr_order_step steps[HR_ORDER_STEPS_MAX];
    struct hr_order_chain orders = {steps, chain->count, 0};

    for (size_t i = chain->count; i-- > 0;) {
        const struct hr_profile_node *measured = r->measured[chain->nodes[i]];
        bool scales = measured->bytes_in >= 1;

        steps[i] = (struct hr_order_step){
            .ns = measured->cpu_ns,
            .fixed = !scales,
            .bytes_in = scales ? measured->bytes_in : 1,
            .growth = scales ? measured->bytes_out / measured->bytes_in : 1,
            .kept = 1,
            .after = chain->steps[i].after};
        if (scales)
            orders.bytes = measured->bytes_in;
    }
    HR_TRY(hr__order_check(&orders, reterr));
    return hr__order_cedar(&orders, order, reterr);
}

static enum hr_err
find_order(const struct reorder *r, struct chain *chain, struct hr_error *reterr)
{
    struct hr_order_chain orders = {chain->steps, chain->count, 0};
    struct hr_order order = {.best = false}, best;
    struct hr_reorder *result = r->result;
    double ns, parts[HR_ORDER_STEPS_MAX];

    for (size_t i = 0; i < chain->count; i++)
        order.steps[i] = (uint8_t)i;
    for (size_t i = chain->count; i-- > 0;)
        if (chain->steps[i].fixed < 1) /* as the first that scales was given it */
            orders.bytes = chain->steps[i].bytes_in;
    HR_TRY(hr__order_check(&orders, reterr));
    result->written_ns += chain->records * hr__order_ns(&orders, order.steps);
    HR_TRY(hr__order_find(&orders, &best, reterr));
    if (r->settings->rule == HR_RULE_HEADRACE)
        order = best;
    else if (r->settings->rule == HR_RULE_PECAN)
        pecan(r, chain, &order);
    else if (r->settings->rule == HR_RULE_CEDAR)
        HR_TRY(cedar(r, chain, &order, reterr));
    assert(hr__order_is_legal(&orders, order.steps));
    ns = hr__order_ns(&orders, order.steps);
    result->best = result->best && best.best && ns <= best.ns * (1 + 1e-9);
    result->ns += chain->records * ns;
    hr__order_parts(&orders, order.steps, parts);
    for (size_t i = 0; i < chain->count; i++) {
        result->nodes[chain->nodes[i]] = chain->nodes[order.steps[i]];
        result->node_ns[chain->nodes[i]] = parts[i];
        result->moved += order.steps[i] != i;
    }
    return HR_OK;
}

/* Records that leave the node for each record of the source. */
static double records_after(const struct reorder *r, uint32_t node)
{
    const struct hr_graph_node *n = &r->graph->nodes[node];
    double before = 1;

    if (n->input_count > 0)
        before = records_after(r, n->inputs[0]);
    return r->measured[node] != NULL ? before * hr__profile_kept(r->measured[node])
                                     : before;
}

/* The chain that begins at the node; what is beyond HR_ORDER_STEPS_MAX stays as written.
 */
static enum hr_err gather(const struct reorder *r, uint32_t first, struct chain *chain,
                          struct hr_error *reterr)
{
    const struct hr_graph *graph = r->graph;
    const char *main;

    chain->count = 0;
    for (int64_t at = first; at >= 0 && chain->count < HR_ORDER_STEPS_MAX;
         at = next_link(graph, (uint32_t)at)) {
        if (r->measured[at] == NULL)
            return hr__profile_lacks(r->profile, &graph->nodes[at], reterr);
        chain->nodes[chain->count++] = (uint32_t)at;
    }
    main = main_field(r, chain);
    for (size_t i = 0; i < chain->count; i++)
        take_cost(&graph->nodes[chain->nodes[i]], r->measured[chain->nodes[i]], main,
                  &chain->steps[i]);
    take_swaps(r, chain);
    chain->records = records_after(r, graph->nodes[first].inputs[0]);
    return HR_OK;
}

static enum hr_err order_chains(const struct reorder *r, struct hr_error *reterr)
{
    struct chain *chain = hr__malloc(sizeof *chain); /* 4 kB */
    enum hr_err code = HR_OK;

    if (chain == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; code == HR_OK && i < r->graph->count; i++) {
        if (!begins(r->graph, i))
            continue;
        code = gather(r, i, chain, reterr);
        if (code == HR_OK)
            code = find_order(r, chain, reterr);
    }
    hr__free(chain);
    return code;
}

/* CPU time of all nodes that were measured, for each record of the source. */
static double total_ns(const struct reorder *r)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->graph->count; i++) {
        const struct hr_graph_node *n = &r->graph->nodes[i];

        if (r->measured[i] != NULL)
            sum += r->measured[i]->cpu_ns *
                   (n->input_count > 0 ? records_after(r, n->inputs[0]) : 1);
    }
    return sum;
}

/* Nothing costs less than none, whatever the parts of a sum were rounded to. */
static double expected_ratio(const struct reorder *r)
{
    double all = total_ns(r), saved = r->result->written_ns - r->result->ns;

    return all > 0 ? fmax(1 - saved / all, EXPECTED_MIN) : 1;
}

static enum hr_err
reorder_as(const struct hr_graph *graph, const struct hr_profile *profile,
           const struct hr_reorder_settings *settings, struct hr_reorder *ret_reorder,
           struct hr_error *reterr)
{
    struct reorder r = {
        .graph = graph, .profile = profile, .settings = settings, .result = ret_reorder};
    enum hr_err code = HR_ERR_MEMORY;

    *ret_reorder = (struct hr_reorder){.best = true, .needs = settings->strictness};
    ret_reorder->nodes = hr__calloc(graph->count, sizeof *ret_reorder->nodes);
    ret_reorder->node_ns = hr__calloc(graph->count, sizeof *ret_reorder->node_ns);
    r.measured = hr__calloc(graph->count, sizeof *r.measured);
    if (ret_reorder->nodes == NULL || ret_reorder->node_ns == NULL ||
        r.measured == NULL) {
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    } else {
        for (uint32_t i = 0; i < graph->count; i++) {
            ret_reorder->nodes[i] = i;
            ret_reorder->node_ns[i] = -1;
        }
        hr__profile_match(graph, profile, r.measured);
        code = order_chains(&r, reterr);
        ret_reorder->expected = expected_ratio(&r);
    }
    hr__free(r.measured);
    if (code != HR_OK)
        hr__reorder_finish(ret_reorder);
    return code;
}

/* Takes the order of the next strictness, where values must change, if it is worth that.
 */
static enum hr_err loosen(const struct hr_graph *graph, const struct hr_profile *profile,
                          const struct hr_reorder_settings *settings,
                          struct hr_reorder *reorder, struct hr_error *reterr)
{
    struct hr_reorder looser, worse;

    HR_TRY(reorder_as(graph, profile, settings, &looser, reterr));
    worse = looser;
    if (looser.expected < HR_REORDER_WORTH * reorder->expected) {
        worse = *reorder;
        *reorder = looser;
    }
    hr__reorder_finish(&worse);
    return HR_OK;
}

enum hr_err hr__reorder(const struct hr_graph *graph, const struct hr_profile *profile,
                        const struct hr_reorder_settings *settings,
                        struct hr_reorder *ret_reorder, struct hr_error *reterr)
{
    struct hr_reorder_settings tried = *settings;
    enum hr_err code;

    assert(graph->frozen);
    if (settings->rule == HR_RULE_HEADRACE)
        tried.strictness = HR_STRICTNESS_EXACT;
    code = reorder_as(graph, profile, &tried, ret_reorder, reterr);
    while (code == HR_OK && tried.strictness < settings->strictness) {
        tried.strictness++;
        code = loosen(graph, profile, &tried, ret_reorder, reterr);
        if (code != HR_OK)
            hr__reorder_finish(ret_reorder);
    }
    return code;
}

void hr__reorder_finish(struct hr_reorder *reorder)
{
    hr__free(reorder->nodes);
    hr__free(reorder->node_ns);
    *reorder = (struct hr_reorder){0};
}
