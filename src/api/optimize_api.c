/*
 * api/optimize_api.c - include/headrace/optimize.h: finds an order (opt/reorder.h), and
 * takes it only if the records stay as they should be.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "core/error.h"
#include "opt/reorder.h"

#define RECORDS 64
#define SLOWER 1.02 /* by more than what runs can tell */

void hr_optimize_options_init(struct hr_optimize_options *options)
{
    memset(options, 0, sizeof *options);
    options->records_max = RECORDS;
}

static enum hr_err
check(const struct hr_optimize_options *options, struct hr_error *reterr)
{
    if ((unsigned)options->rule > HR_RULE_WRITTEN)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "rule %d is unknown",
                        (int)options->rule);
    if ((unsigned)options->strictness > HR_STRICTNESS_RELAXED)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "strictness %d is unknown",
                        (int)options->strictness);
    if (options->records_max < 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "records_max must not be negative: %lld",
                        (long long)options->records_max);
    return HR_OK;
}

/* Why the runs speak against the order. */
static void say_slower(const struct hr_comparison *found, enum hr_strictness needs,
                       char *ret_why, size_t room)
{
    if (found->ratio > SLOWER)
        snprintf(ret_why, room, "it takes %.2f times the CPU time of the written order",
                 found->ratio);
    else if (needs > HR_STRICTNESS_EXACT)
        snprintf(ret_why, room,
                 "it changes values, and runs do not confirm that it saves %.0f %% for "
                 "that: %.2f times the CPU time",
                 100 * (1 - HR_REORDER_WORTH), found->ratio);
    else
        snprintf(ret_why, room,
                 "runs do not confirm that it is faster: %.2f times the CPU time",
                 found->ratio);
}

/* Why an order cannot be taken after it was compared; "": it can. */
static void
judge(const struct hr_comparison *found, const struct hr_optimize_options *options,
      enum hr_strictness needs, char *ret_why, size_t room)
{
    double most = options->strictness == HR_STRICTNESS_EXACT   ? 0
                  : options->strictness == HR_STRICTNESS_CLOSE ? HR_CLOSE_MAX
                                                               : HUGE_VAL;

    if (found->wrong[0] != '\0')
        snprintf(ret_why, room, "%.250s", found->wrong);
    else if (found->difference > most)
        snprintf(ret_why, room, "levels would differ by up to %.2g %% of their range",
                 100 * found->difference);
    else if (options->rule == HR_RULE_HEADRACE && found->trial == HR_TRIAL_DROP)
        say_slower(found, needs, ret_why, room);
    else if (found->records == 0)
        snprintf(ret_why, room,
                 "no record reached the output, so that nothing could be compared");
}

/* What their states bear: nodes are named in them, and those that states know do not
 * move. */
static void share_states(const struct hr_graph *graph, struct hr_graph *other)
{
    if (graph->states_of[0] != '\0')
        memcpy(other->states_of, graph->states_of, sizeof other->states_of);
    else
        hr__hash_text(graph->nodes[graph->output].fingerprint, other->states_of);
}

/* Whether the order's graph can be taken; else, why not. */
static enum hr_err
try_graph(struct hr_graph *const graphs[2], const struct hr_reorder *order,
          const struct hr_optimize_options *options, struct hr_optimize_result *result,
          char *ret_why, size_t room, struct hr_error *reterr)
{
    double most = order->needs > HR_STRICTNESS_EXACT ? HR_REORDER_WORTH : 1;
    struct hr_comparison found;

    HR_TRY(hr__compare(graphs, options, order->needs < HR_STRICTNESS_RELAXED,
                       order->expected, most, &found, reterr));
    result->records = found.records;
    result->difference = found.difference;
    result->written_run_ns = found.ns[0];
    result->run_ns = found.ns[1];
    judge(&found, options, order->needs, ret_why, room);
    return HR_OK;
}

/* The graph in the order, or NULL: the first reason goes to result->dropped. */
static enum hr_err
try_order(struct hr_graph *graph, const struct hr_reorder *order,
          const struct hr_optimize_options *options, struct hr_graph **ret_graph,
          struct hr_optimize_result *result, struct hr_error *reterr)
{
    char why[sizeof result->dropped] = "";
    struct hr_graph *other;
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    HR_TRY(hr__graph_permute(graph, order->nodes, &other, reterr));
    if (hr__graph_freeze(other, &error) != HR_OK)
        snprintf(why, sizeof why, "%.250s", error.message);
    else
        code = try_graph((struct hr_graph *[2]){graph, other}, order, options, result,
                         why, sizeof why, reterr);
    if (code == HR_OK && why[0] == '\0') {
        share_states(graph, other);
        *ret_graph = other;
        return HR_OK;
    }
    if (result->dropped[0] == '\0')
        memcpy(result->dropped, why, sizeof why);
    hr__graph_unref(other);
    return code;
}

/* The cheapest order with the strictness, or NULL; *ret_needs is what it would need. */
static enum hr_err optimize_as(struct hr_graph *graph, const struct hr_profile *profile,
                               const struct hr_reorder_settings *settings,
                               const struct hr_optimize_options *options,
                               enum hr_strictness *ret_needs, struct hr_graph **ret_graph,
                               struct hr_optimize_result *result, struct hr_error *reterr)
{
    struct hr_reorder order;
    enum hr_err code = HR_OK;

    HR_TRY(hr__reorder(graph, profile, settings, &order, reterr));
    *ret_needs = order.needs;
    *ret_graph = NULL;
    if (order.moved > 0)
        code = try_order(graph, &order, options, ret_graph, result, reterr);
    result->best = order.best;
    result->written_ns = result->predicted_ns = order.written_ns;
    if (code == HR_OK && *ret_graph != NULL) {
        result->moved = order.moved;
        result->needs = order.needs;
        result->predicted_ns = order.ns;
    }
    hr__reorder_finish(&order);
    return code;
}

/* An order that cannot be taken leaves those that need less. */
static enum hr_err
optimize(struct hr_graph *graph, const struct hr_profile *profile,
         const struct hr_optimize_options *options, struct hr_graph **ret_graph,
         struct hr_optimize_result *result, struct hr_error *reterr)
{
    struct hr_reorder_settings settings = {options->rule, options->strictness};
    enum hr_strictness needs;

    for (;;) {
        HR_TRY(optimize_as(graph, profile, &settings, options, &needs, ret_graph, result,
                           reterr));
        if (*ret_graph != NULL)
            return HR_OK;
        if (options->rule != HR_RULE_HEADRACE || needs == HR_STRICTNESS_EXACT)
            break;
        settings.strictness = needs - 1;
    }
    hr__graph_ref(graph);
    *ret_graph = graph;
    return HR_OK;
}

enum hr_err
hr_graph_optimize(struct hr_graph *graph, const struct hr_profile *profile,
                  const struct hr_optimize_options *options, struct hr_graph **ret_graph,
                  struct hr_optimize_result *ret_result, struct hr_error *reterr)
{
    struct hr_optimize_options chosen;
    struct hr_optimize_result result = {0};

    if (graph == NULL || profile == NULL || ret_graph == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%s must not be NULL",
                        graph == NULL     ? "graph"
                        : profile == NULL ? "profile"
                                          : "ret_graph");
    hr_optimize_options_init(&chosen);
    if (options != NULL) {
        HR_TRY(check(options, reterr));
        chosen = *options;
        chosen.records_max = options->records_max > 0 ? options->records_max : RECORDS;
    }
    HR_TRY(hr__graph_freeze(graph, reterr));
    HR_TRY(optimize(graph, profile, &chosen, ret_graph, &result, reterr));
    if (ret_result != NULL)
        *ret_result = result;
    return HR_OK;
}
