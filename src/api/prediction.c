/*
 * api/prediction.c - see prediction.h.
 */
#include "api/prediction.h"

#include "core/alloc.h"
#include "core/error.h"
#include "engine/engine.h"
#include "opt/reorder.h"

void hr__asked_machine(const struct hr_asked *asked, struct hr_cost_machine *ret)
{
    const struct hr_machine *m = &asked->machine;

    hr__cost_machine(asked->profile, ret);
    ret->cores = m->cores > 0 ? m->cores : ret->cores;
    ret->disk = m->disk > 0 ? m->disk : ret->disk;
    ret->copy = m->copy > 0 ? m->copy : ret->copy;
    ret->memory = m->memory;
    ret->price = m->price;
}

enum hr_err hr__predict(struct hr_graph *graph, const struct hr_cost_fact *facts,
                        const struct hr_asked *asked, struct hr_prediction *made,
                        struct hr_error *reterr)
{
    struct hr_cost_machine machine;
    struct hr_plan plan;
    struct hr_sizes sizes;
    enum hr_err code;

    hr__asked_machine(asked, &machine);
    HR_TRY(hr__engine_plan(graph, &asked->run, NULL, &plan, &sizes, reterr));
    made->threads = plan.threads;
    code = hr__cost_plan(&plan, facts, &machine, &made->cost, reterr);
    hr__plan_finish(&plan);
    return code;
}

/* ---- facts, also of another order ---- */

/* Facts of the graph as it is; NULL on failure. */
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

static enum hr_err move_facts(struct hr_graph *graph, const struct hr_reorder *order,
                              struct hr_graph **ret_graph, struct hr_cost_fact **facts,
                              struct hr_error *error)
{
    struct hr_cost_fact *moved = hr__calloc(graph->count, sizeof *moved);
    struct hr_graph *other;

    if (moved == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    other = permuted(graph, order, error);
    if (other == NULL) {
        hr__free(moved);
        return error->code;
    }
    hr__cost_reorder(*facts, order, other, moved);
    hr__free(*facts);
    *facts = moved;
    *ret_graph = other;
    return HR_OK;
}

enum hr_err
hr__ordered_facts(struct hr_graph *graph, const struct hr_profile *profile,
                  const struct hr_optimize_options *options, struct hr_graph **ret_graph,
                  struct hr_cost_fact **ret_facts, struct hr_error *error)
{
    struct hr_cost_fact *facts = facts_of(graph, profile, error);
    struct hr_reorder order = {0};
    enum hr_err code = HR_OK;

    if (facts == NULL)
        return error->code;
    if (options == NULL) {
        hr__graph_ref(graph);
        *ret_graph = graph;
    } else {
        struct hr_reorder_settings settings = {options->rule, options->strictness};

        code = hr__reorder(graph, profile, &settings, &order, error);
        if (code == HR_OK)
            code = move_facts(graph, &order, ret_graph, &facts, error);
        hr__reorder_finish(&order);
    }
    if (code == HR_OK)
        *ret_facts = facts;
    else
        hr__free(facts);
    return code;
}
