/*
 * api/predict_api.c - include/headrace/predict.h, predictions: plans the graph, and asks
 * opt/cost.h.
 */
#include "api/prediction.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define CORES_MAX 65536

void hr_predict_options_init(struct hr_predict_options *options)
{
    memset(options, 0, sizeof *options);
}

static bool is_rate(double value)
{
    return value >= 0 && value < HUGE_VAL;
}

enum hr_err hr__machine_check(const struct hr_machine *m, struct hr_error *reterr)
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
    HR_TRY(hr__machine_check(&options->machine, reterr));
    ret->machine = options->machine;
    if (options->run != NULL)
        ret->run = *options->run;
    if (ret->run.threads == 0 && ret->run.plan == NULL && ret->machine.cores > 0)
        ret->run.threads = (int)ceil(ret->machine.cores);
    return HR_OK;
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
    struct hr_cost_fact *facts = NULL;
    struct hr_graph *same = NULL;
    struct hr_error error = {0};
    struct hr_asked asked;
    enum hr_err code;

    if (graph == NULL || profile == NULL || ret_prediction == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, profile and ret_prediction must not be NULL");
    HR_TRY(take(profile, options, &asked, reterr));
    HR_TRY(hr_graph_freeze(graph, reterr));
    code = hr__ordered_facts(graph, profile, NULL, &same, &facts, &error);
    if (code == HR_OK)
        code = make(same, facts, &asked, ret_prediction, &error);
    hr__graph_unref(same);
    hr__free(facts);
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}

/* ---- another order ---- */

enum hr_err
hr_graph_predict_order(struct hr_graph *graph, const struct hr_profile *profile,
                       const struct hr_optimize_options *order,
                       const struct hr_predict_options *options,
                       struct hr_graph **ret_graph, struct hr_prediction **ret_prediction,
                       struct hr_error *reterr)
{
    struct hr_optimize_options defaults;
    struct hr_cost_fact *facts = NULL;
    struct hr_graph *other = NULL;
    struct hr_error error = {0};
    struct hr_asked asked;
    enum hr_err code;

    if (graph == NULL || profile == NULL || ret_graph == NULL || ret_prediction == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, profile, ret_graph and ret_prediction must not be NULL");
    hr_optimize_options_init(&defaults);
    HR_TRY(take(profile, options, &asked, reterr));
    HR_TRY(hr_graph_freeze(graph, reterr));
    code = hr__ordered_facts(graph, profile, order != NULL ? order : &defaults, &other,
                             &facts, &error);
    if (code == HR_OK)
        code = make(other, facts, &asked, ret_prediction, &error);
    hr__free(facts);
    if (code == HR_OK)
        *ret_graph = other;
    else
        hr__graph_unref(other);
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
