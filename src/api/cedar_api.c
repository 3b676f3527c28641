/*
 * api/cedar_api.c - include/headrace/cedar.h: checks arguments, owns what is returned.
 */
#include "headrace/cedar.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "opt/cedar_graph.h"
#include "opt/cedar_profile.h"

struct hr_cedar_outcome {
    struct hr_cedar_plan named; /* holds the names */
    struct hr_cedar_pipeline pipeline;
    struct hr_cedar_result result;
    int64_t order[HR_CEDAR_PIPES_MAX];
    /* Of all stages, one after the other. */
    int64_t ids[HR_CEDAR_PIPES_MAX];
    const char *names[HR_CEDAR_PIPES_MAX];
    size_t begins[HR_CEDAR_PIPES_MAX + 3];
};

#define CPUS 8

void hr_cedar_plan_options_init(struct hr_cedar_plan_options *options)
{
    memset(options, 0, sizeof *options);
    options->rule = HR_RULE_CEDAR;
    options->cpus = CPUS;
}

static enum hr_err
check_text(const struct hr_cedar_text *text, const char *what, struct hr_error *reterr)
{
    if (text == NULL || text->text == NULL || text->name == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%s must not be NULL", what);
    return HR_OK;
}

static enum hr_err
take_options(const struct hr_cedar_plan_options *given,
             struct hr_cedar_options *ret_options, struct hr_error *reterr)
{
    struct hr_cedar_plan_options options;
    struct hr_cedar_options made;

    hr_cedar_plan_options_init(&options);
    if (given != NULL)
        options = *given;
    if ((unsigned)options.rule > HR_RULE_WRITTEN || options.rule == HR_RULE_PECAN)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "rule %d finds no plans of cedar: take cedar, headrace or written",
            (int)options.rule);
    if (options.cpus < 0 || options.cache_samples < 0 || !(options.disk_free >= 0))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "cpus, cache_samples and disk_free must not be negative: %d, "
                        "%lld, %g",
                        options.cpus, (long long)options.cache_samples,
                        options.disk_free);
    hr__cedar_options_init(&made);
    made.cpus = options.cpus > 0 ? options.cpus : CPUS;
    made.demand = options.demand;
    made.reorder = options.rule != HR_RULE_WRITTEN;
    made.joint = options.rule == HR_RULE_HEADRACE;
    made.offload = !options.no_offload;
    made.fusion = !options.no_fusion;
    made.prefetch = !options.no_prefetch;
    made.drivers = !options.no_drivers;
    made.cache_samples = (uint64_t)options.cache_samples;
    made.disk_free = options.disk_free > 0 ? options.disk_free : HUGE_VAL;
    *ret_options = made;
    return HR_OK;
}

/* Numbers and names of pipes, for the functions below. */
static void fill(struct hr_cedar_outcome *outcome)
{
    const struct hr_cedar_result *result = &outcome->result;
    size_t count = 0;

    for (size_t i = 0; i < outcome->pipeline.stats.pipe_count; i++)
        outcome->order[i] = outcome->pipeline.entries[result->order[i]]->id;
    for (size_t i = 0; i < result->stage_count; i++) {
        outcome->begins[i] = count;
        for (size_t k = 0; k < result->stages[i].pipe_count; k++) {
            const struct hr_cedar_entry *entry =
                outcome->pipeline.entries[result->stages[i].pipes[k]];

            outcome->ids[count] = entry->id;
            outcome->names[count++] = entry->name;
        }
    }
}

static enum hr_err
optimize(const struct hr_cedar_text *stats, const struct hr_cedar_text *pipes,
         const struct hr_cedar_options *options, struct hr_cedar_outcome *outcome,
         struct hr_error *reterr)
{
    struct hr_cedar_measures measures;

    HR_TRY(hr__cedar_measures_parse(stats->text, stats->bytes, stats->name, &measures,
                                    reterr));
    HR_TRY(hr__cedar_plan_parse(pipes->text, pipes->bytes, pipes->name, &outcome->named,
                                reterr));
    HR_TRY(hr__cedar_join(&measures, stats->name, &outcome->named, pipes->name,
                          &outcome->pipeline, reterr));
    HR_TRY(
        hr__cedar_optimize(&outcome->pipeline.stats, options, &outcome->result, reterr));
    fill(outcome);
    return HR_OK;
}

enum hr_err
hr_cedar_optimize(const struct hr_cedar_text *stats, const struct hr_cedar_text *pipes,
                  const struct hr_cedar_plan_options *options,
                  struct hr_cedar_outcome **ret_plan, struct hr_error *reterr)
{
    struct hr_cedar_outcome *outcome;
    struct hr_cedar_options chosen;
    enum hr_err code;

    HR_TRY(check_text(stats, "stats", reterr));
    HR_TRY(check_text(pipes, "pipes", reterr));
    if (ret_plan == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "ret_plan must not be NULL");
    HR_TRY(take_options(options, &chosen, reterr));
    outcome = hr__calloc(1, sizeof *outcome);
    if (outcome == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = optimize(stats, pipes, &chosen, outcome, reterr);
    if (code != HR_OK)
        hr_cedar_plan_free(outcome);
    else
        *ret_plan = outcome;
    return code;
}

void hr_cedar_plan_free(struct hr_cedar_outcome *plan)
{
    if (plan == NULL)
        return;
    hr__cedar_plan_finish(&plan->named);
    hr__free(plan);
}

void hr_cedar_plan_info(const struct hr_cedar_outcome *plan,
                        struct hr_cedar_plan_info *ret_info)
{
    const struct hr_cedar_result *result;

    *ret_info = (struct hr_cedar_plan_info){.cache_after = -1};
    if (plan == NULL)
        return;
    result = &plan->result;
    *ret_info = (struct hr_cedar_plan_info){
        .orders = result->orders,
        .written_ms = result->written_ms,
        .order_ms = result->order_ms,
        .cost_ms = result->cost_ms,
        .best = result->best,
        .drivers = result->drivers,
        .order = plan->order,
        .pipe_count = plan->pipeline.stats.pipe_count,
        .cache_after = result->cache_after < 0 ? -1 : plan->order[result->cache_after],
    };
}

enum hr_err hr_cedar_plan_stage(const struct hr_cedar_outcome *plan, size_t at,
                                struct hr_cedar_stage_info *ret_info)
{
    static const char *const kinds[] = {[HR_CEDAR_PIPES] = "pipes",
                                        [HR_CEDAR_CACHE] = "cache",
                                        [HR_CEDAR_PREFETCH] = "prefetch"};
    const struct hr_cedar_stage *stage;

    if (plan == NULL || ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= plan->result.stage_count)
        return HR_ERR_RANGE;
    stage = &plan->result.stages[at];
    *ret_info = (struct hr_cedar_stage_info){
        .kind = kinds[stage->kind],
        .variant = hr__cedar_variants[stage->variant],
        .ids = plan->ids + plan->begins[at],
        .names = plan->names + plan->begins[at],
        .pipe_count = stage->pipe_count,
        .workers = stage->workers,
        .in_flight = stage->in_flight,
        .submit_batch = stage->submit_batch,
        .autotune = stage->autotune,
    };
    return HR_OK;
}

/* Moves the text to the caller. */
static enum hr_err
return_text(struct hr_str *text, char **ret_text, struct hr_error *reterr)
{
    *ret_text = hr__str_take(text);
    hr__str_finish(text);
    return *ret_text != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr_cedar_plan_print(const struct hr_cedar_outcome *plan, char **ret_yaml,
                                struct hr_error *reterr)
{
    struct hr_cedar_plan made;
    struct hr_str text;

    if (plan == NULL || ret_yaml == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "plan and ret_yaml must not be NULL");
    HR_TRY(hr__cedar_plan_make(&plan->pipeline, &plan->result, &made, reterr));
    hr__str_init(&text);
    hr__cedar_plan_print(&made, &text);
    hr__cedar_plan_finish(&made);
    return return_text(&text, ret_yaml, reterr);
}

/* ---- the order of a plan ---- */

static enum hr_err permute(const struct hr_cedar_plan *plan, const char *name,
                           struct hr_graph *graph, const struct hr_cedar_match *matches,
                           size_t match_count, enum hr_strictness strictness,
                           struct hr_graph **ret_graph, struct hr_error *reterr)
{
    uint32_t *nodes = hr__calloc(graph->count, sizeof *nodes);
    struct hr_graph *made = NULL;
    enum hr_err code;

    if (nodes == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__cedar_graph_order(plan, name, graph, matches, match_count, strictness,
                                 nodes, reterr);
    if (code == HR_OK)
        code = hr__graph_permute(graph, nodes, &made, reterr);
    hr__free(nodes);
    if (code != HR_OK)
        return code;
    code = hr__graph_freeze(made, reterr);
    if (code != HR_OK)
        hr__graph_unref(made);
    else
        *ret_graph = made;
    return code;
}

enum hr_err hr_cedar_to_graph(const struct hr_cedar_text *plan, struct hr_graph *graph,
                              const struct hr_cedar_match *matches, size_t match_count,
                              enum hr_strictness strictness, struct hr_graph **ret_graph,
                              struct hr_error *reterr)
{
    struct hr_cedar_plan parsed;
    enum hr_err code;

    HR_TRY(check_text(plan, "plan", reterr));
    if (graph == NULL || ret_graph == NULL || (matches == NULL && match_count > 0))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, matches and ret_graph must not be NULL");
    if ((unsigned)strictness > HR_STRICTNESS_RELAXED)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "strictness %d is unknown",
                        (int)strictness);
    HR_TRY(hr_graph_freeze(graph, reterr));
    HR_TRY(hr__cedar_plan_parse(plan->text, plan->bytes, plan->name, &parsed, reterr));
    code = permute(&parsed, plan->name, graph, matches, match_count, strictness,
                   ret_graph, reterr);
    hr__cedar_plan_finish(&parsed);
    return code;
}

/* ---- profiles ---- */

/* Numbers of the measured pipes, in the order of `pipes`, or from the highest down. */
static enum hr_err
take_order(const struct hr_cedar_measures *measures, const struct hr_cedar_text *stats,
           const struct hr_cedar_text *pipes, int64_t *ret_ids, struct hr_error *reterr)
{
    struct hr_cedar_pipeline pipeline;
    struct hr_cedar_plan plan;
    enum hr_err code;

    for (size_t i = 0; i < measures->pipe_count; i++) {
        size_t above = 0;

        for (size_t k = 0; k < measures->pipe_count; k++)
            above += measures->pipes[k].id > measures->pipes[i].id;
        ret_ids[above] = measures->pipes[i].id;
    }
    if (pipes == NULL)
        return HR_OK;
    HR_TRY(hr__cedar_plan_parse(pipes->text, pipes->bytes, pipes->name, &plan, reterr));
    code = hr__cedar_join(measures, stats->name, &plan, pipes->name, &pipeline, reterr);
    for (size_t i = 0; code == HR_OK && i < pipeline.stats.pipe_count; i++)
        ret_ids[i] = pipeline.entries[i]->id;
    hr__cedar_plan_finish(&plan);
    return code;
}

enum hr_err hr_cedar_to_profile(const struct hr_cedar_text *stats,
                                const struct hr_cedar_text *pipes, struct hr_graph *graph,
                                const struct hr_cedar_match *matches, size_t match_count,
                                struct hr_profile **ret_profile, struct hr_error *reterr)
{
    struct hr_cedar_measures measures;
    struct hr_profile profile, *made;
    int64_t ids[HR_CEDAR_PIPES_MAX];
    enum hr_err code;

    HR_TRY(check_text(stats, "stats", reterr));
    if (pipes != NULL)
        HR_TRY(check_text(pipes, "pipes", reterr));
    if (graph == NULL || ret_profile == NULL || (matches == NULL && match_count > 0))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, matches and ret_profile must not be NULL");
    HR_TRY(hr__cedar_measures_parse(stats->text, stats->bytes, stats->name, &measures,
                                    reterr));
    HR_TRY(take_order(&measures, stats, pipes, ids, reterr));
    HR_TRY(hr_graph_freeze(graph, reterr));
    made = hr__malloc(sizeof *made);
    if (made == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__cedar_to_profile(&measures, ids, graph, matches, match_count, &profile,
                                reterr);
    if (code != HR_OK) {
        hr__free(made);
        return code;
    }
    *made = profile;
    *ret_profile = made;
    return HR_OK;
}

/* What cedar must not move: all but ops of the library that work on single values and
 * leave their dtype and layout. The graph, which would tell more, is not here. */
static bool is_fixed(const struct hr_op *op)
{
    const uint32_t stay = HR_TRAIT_DECODES | HR_TRAIT_DTYPE | HR_TRAIT_LAYOUT;

    return op == NULL || op->kind != HR_OP_MAP || op->code != NULL ||
           (op->traits & stay) != 0;
}

static void print_names(const struct hr_profile *profile, struct hr_str *text)
{
    hr__str_add(text, "logical_plan:\n  pipes:\n");
    for (size_t i = 0; i < profile->node_count; i++) {
        const struct hr_profile_node *node = &profile->nodes[i];
        const struct hr_op *op = hr__op_find(node->op);

        hr__str_addf(text, "    %zu: {name: ", profile->node_count - 1 - i);
        hr__str_add_json(text, node->name, strlen(node->name));
        if (is_fixed(op))
            hr__str_add(text, ", fix: true");
        if (op != NULL && (op->traits & HR_TRAIT_RANDOM) != 0)
            hr__str_add(text, ", is_random: true");
        hr__str_add(text, "}\n");
    }
}

enum hr_err hr_cedar_from_profile(const struct hr_profile *profile, char **ret_stats,
                                  char **ret_names, struct hr_error *reterr)
{
    struct hr_cedar_measures measures;
    struct hr_str text;
    char *stats = NULL;
    enum hr_err code;

    if (profile == NULL || ret_stats == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "profile and ret_stats must not be NULL");
    HR_TRY(hr__cedar_from_profile(profile, &measures, reterr));
    hr__str_init(&text);
    hr__cedar_measures_print(&measures, &text);
    HR_TRY(return_text(&text, &stats, reterr));
    if (ret_names != NULL) {
        print_names(profile, &text);
        code = return_text(&text, ret_names, reterr);
        if (code != HR_OK) {
            hr__free(stats);
            return code;
        }
    }
    *ret_stats = stats;
    return HR_OK;
}
