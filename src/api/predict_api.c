/*
 * api/predict_api.c - include/headrace/predict.h, predictions: plans the graph, and asks
 * opt/cost.h.
 */
#include "api/prediction.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "opt/reorder.h"

#define CORES_MAX 65536

void hr_predict_options_init(struct hr_predict_options *options)
{
    memset(options, 0, sizeof *options);
}

static bool is_rate(double value)
{
    return value >= 0 && value < HUGE_VAL;
}

static enum hr_err check(const struct hr_machine *m, struct hr_error *reterr)
{
    if (m->cores != 0 && !(m->cores >= 1 && m->cores <= CORES_MAX))
        return hr__fail(reterr, HR_ERR_ARGUMENT, "cores must be 1 to %d, not %g",
                        CORES_MAX, m->cores);
    if (!is_rate(m->disk) || !is_rate(m->copy) || !is_rate(m->price))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "disk, copy and price must not be negative");
    return HR_OK;
}

static enum hr_err
take(const struct hr_profile *profile, const struct hr_predict_options *options,
     struct hr_asked *ret, struct hr_error *reterr)
{
    memset(ret, 0, sizeof *ret);
    ret->profile = profile;
    hr_iter_options_init(&ret->run);
    if (options == NULL)
        return HR_OK;
    HR_TRY(check(&options->machine, reterr));
    ret->machine = options->machine;
    if (options->run != NULL)
        ret->run = *options->run;
    if (ret->run.threads == 0 && ret->run.plan == NULL && ret->machine.cores > 0)
        ret->run.threads = (int)ceil(ret->machine.cores);
    return HR_OK;
}

/* Facts of the graph; NULL on failure. */
static struct hr_cost_fact *
facts_of(const struct hr_graph *graph, const struct hr_profile *profile,
         struct hr_error *reterr)
{
    struct hr_cost_fact *facts = hr__calloc(graph->count, sizeof *facts);

    if (facts == NULL)
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    else if (hr__cost_facts(graph, profile, facts, reterr) != HR_OK) {
        hr__free(facts);
        facts = NULL;
    }
    return facts;
}

static struct hr_prediction *begin(struct hr_graph *graph, struct hr_error *reterr)
{
    struct hr_prediction *made = hr__calloc(1, sizeof *made);

    if (made == NULL) {
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        return NULL;
    }
    made->graph = graph;
    hr__graph_ref(graph);
    return made;
}

static enum hr_err
make(struct hr_graph *graph, const struct hr_cost_fact *facts,
     const struct hr_asked *asked, struct hr_prediction **ret, struct hr_error *reterr)
{
    struct hr_prediction *made = begin(graph, reterr);
    enum hr_err code = HR_ERR_MEMORY;

    if (made != NULL)
        code = hr__predict(graph, facts, asked, made, reterr);
    if (code != HR_OK)
        hr_prediction_free(made);
    else
        *ret = made;
    return code;
}

enum hr_err
hr_graph_predict(struct hr_graph *graph, const struct hr_profile *profile,
                 const struct hr_predict_options *options,
                 struct hr_prediction **ret_prediction, struct hr_error *reterr)
{
    struct hr_error error = {0};
    struct hr_cost_fact *facts;
    struct hr_asked asked;
    enum hr_err code;

    if (graph == NULL || profile == NULL || ret_prediction == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, profile and ret_prediction must not be NULL");
    HR_TRY(take(profile, options, &asked, reterr));
    HR_TRY(hr_graph_freeze(graph, reterr));
    facts = facts_of(graph, profile, &error);
    code =
        facts != NULL ? make(graph, facts, &asked, ret_prediction, &error) : error.code;
    hr__free(facts);
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}

/* ---- another order ---- */

/* The graph in another order, frozen; NULL on failure. */
static struct hr_graph *
permuted(struct hr_graph *graph, const struct hr_reorder *order, struct hr_error *reterr)
{
    struct hr_graph *other = NULL;

    if (order->moved == 0) {
        hr__graph_ref(graph);
        return graph;
    }
    if (hr__graph_permute(graph, order->nodes, &other, reterr) != HR_OK)
        return NULL;
    if (hr__graph_freeze(other, reterr) == HR_OK)
        return other;
    hr__graph_unref(other);
    return NULL;
}

static enum hr_err
predict_order(struct hr_graph *graph, const struct hr_cost_fact *facts,
              const struct hr_reorder *order, const struct hr_asked *asked,
              struct hr_graph **ret_graph, struct hr_prediction **ret_prediction,
              struct hr_error *reterr)
{
    struct hr_cost_fact *moved = hr__calloc(graph->count, sizeof *moved);
    struct hr_graph *other = NULL;
    enum hr_err code;

    if (moved == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    other = permuted(graph, order, reterr);
    code = other != NULL ? HR_OK : reterr->code;
    if (code == HR_OK) {
        hr__cost_reorder(facts, order, other, moved);
        code = make(other, moved, asked, ret_prediction, reterr);
    }
    hr__free(moved);
    if (code != HR_OK)
        hr__graph_unref(other);
    else
        *ret_graph = other;
    return code;
}

/* The graph is frozen; *error is set on failure. */
static enum hr_err
find_order(struct hr_graph *graph, const struct hr_optimize_options *options,
           const struct hr_asked *asked, struct hr_graph **ret_graph,
           struct hr_prediction **ret_prediction, struct hr_error *error)
{
    struct hr_reorder_settings settings = {options->rule, options->strictness};
    struct hr_cost_fact *facts = facts_of(graph, asked->profile, error);
    struct hr_reorder order = {0};
    enum hr_err code = facts != NULL ? HR_OK : error->code;

    if (code == HR_OK)
        code = hr__reorder(graph, asked->profile, &settings, &order, error);
    if (code == HR_OK)
        code =
            predict_order(graph, facts, &order, asked, ret_graph, ret_prediction, error);
    hr__reorder_finish(&order);
    hr__free(facts);
    return code;
}

enum hr_err
hr_graph_predict_order(struct hr_graph *graph, const struct hr_profile *profile,
                       const struct hr_optimize_options *order,
                       const struct hr_predict_options *options,
                       struct hr_graph **ret_graph, struct hr_prediction **ret_prediction,
                       struct hr_error *reterr)
{
    struct hr_optimize_options defaults;
    struct hr_error error = {0};
    struct hr_asked asked;
    enum hr_err code;

    if (graph == NULL || profile == NULL || ret_graph == NULL || ret_prediction == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, profile, ret_graph and ret_prediction must not be NULL");
    hr_optimize_options_init(&defaults);
    HR_TRY(take(profile, options, &asked, reterr));
    HR_TRY(hr_graph_freeze(graph, reterr));
    code = find_order(graph, order != NULL ? order : &defaults, &asked, ret_graph,
                      ret_prediction, &error);
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}

/* ---- the result ---- */

void hr_prediction_free(struct hr_prediction *prediction)
{
    if (prediction == NULL)
        return;
    hr__cost_finish(&prediction->cost);
    hr__graph_unref(prediction->graph);
    hr__free(prediction);
}

void hr_prediction_info(const struct hr_prediction *prediction,
                        struct hr_prediction_info *ret_info)
{
    const struct hr_cost *cost = &prediction->cost;

    *ret_info = (struct hr_prediction_info){
        .rate = cost->rate,
        .cpu_ns = cost->cpu_ns,
        .busy = cost->busy,
        .limit = hr__cost_limit_text(cost->limit),
        .node = prediction->graph->nodes[cost->node].name,
        .reason = cost->reason,
        .threads = prediction->threads,
        .memory = cost->memory,
        .fits = cost->fits,
        .price = cost->price,
    };
}

enum hr_err hr_prediction_node(const struct hr_prediction *prediction, size_t at,
                               struct hr_prediction_node *ret_node)
{
    const struct hr_graph_node *node;

    if (prediction == NULL || ret_node == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= prediction->graph->count)
        return HR_ERR_RANGE;
    node = &prediction->graph->nodes[at];
    *ret_node = (struct hr_prediction_node){
        .node = node->name,
        .op = node->op->name,
        .cpu_ns = prediction->cost.nodes[at].cpu_ns,
        .wait_ns = prediction->cost.nodes[at].wait_ns,
        .share = prediction->cost.nodes[at].share,
    };
    return HR_OK;
}

enum hr_err hr_prediction_limit(const struct hr_prediction *prediction, size_t at,
                                const char **ret_limit, double *ret_rate)
{
    if (prediction == NULL || ret_limit == NULL || ret_rate == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= HR_COST_LIMITS)
        return HR_ERR_RANGE;
    *ret_limit = hr__cost_limit_text((enum hr_cost_limit)at);
    *ret_rate = prediction->cost.rates[at];
    return HR_OK;
}
