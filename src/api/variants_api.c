/*
 * api/variants_api.c - include/headrace/variants.h: asks opt/variants.h.
 */
#include "headrace/variants.h"

#include <string.h>

#include "api/prediction.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/str.h"
#include "opt/variants.h"

struct hr_variant_choice {
    struct hr_graph *graph; /* a reference; in the order that was asked for */
    struct hr_opt_settings settings;
    struct hr_variants variants;
    char **names; /* per set: what moves */
};

void hr_variant_options_init(struct hr_variant_options *options)
{
    memset(options, 0, sizeof *options);
}

/* As engine/engine_plan.c makes a plan of these options. */
static struct hr_opt_settings settings_of(const struct hr_variant_options *options)
{
    struct hr_iter_options run;

    hr_iter_options_init(&run);
    if (options->run != NULL)
        run = *options->run;
    return (struct hr_opt_settings){
        .cpus =
            options->machine.cores >= 1 ? (int)options->machine.cores : hr__cpu_count(),
        .threads = run.variant == HR_VARIANT_INLINE ? -1 : run.threads,
        .ordered = run.ordered,
        .fuse = run.fuse,
        .read_ahead_bytes = run.ahead_bytes,
    };
}

/* The names of a set's nodes; NULL when out of memory. */
static char *names_of(const struct hr_graph *graph, const struct hr_variant_set *set)
{
    struct hr_str text;
    char *names;

    hr__str_init(&text);
    for (uint32_t i = 0; i < graph->count; i++)
        if (set->processes[i])
            hr__str_addf(&text, "%s%s", text.length > 0 ? ", " : "",
                         graph->nodes[i].name);
    names = hr__str_take(&text);
    hr__str_finish(&text);
    return names;
}

static enum hr_err name_sets(struct hr_variant_choice *made, struct hr_error *reterr)
{
    made->names = hr__calloc(made->variants.set_count, sizeof *made->names);
    if (made->names == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < made->variants.set_count; i++) {
        made->names[i] = names_of(made->graph, &made->variants.sets[i]);
        if (made->names[i] == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    return HR_OK;
}

static enum hr_err choose(struct hr_graph *graph, const struct hr_profile *profile,
                          const struct hr_variant_options *options,
                          struct hr_variant_choice *made, struct hr_error *error)
{
    const struct hr_asked asked = {.profile = profile, .machine = options->machine};
    struct hr_cost_fact *facts = NULL;
    struct hr_cost_machine machine;
    enum hr_err code;

    HR_TRY(
        hr__ordered_facts(graph, profile, options->order, &made->graph, &facts, error));
    hr__asked_machine(&asked, &machine);
    code = hr__variants_choose(made->graph, &made->settings, options->code_only, facts,
                               &machine, &made->variants, error);
    hr__free(facts);
    return code == HR_OK ? name_sets(made, error) : code;
}

enum hr_err
hr_graph_choose_variants(struct hr_graph *graph, const struct hr_profile *profile,
                         const struct hr_variant_options *options,
                         struct hr_variant_choice **ret_choice, struct hr_error *reterr)
{
    struct hr_variant_options defaults;
    struct hr_variant_choice *made;
    struct hr_error error = {0};
    enum hr_err code;

    if (graph == NULL || profile == NULL || ret_choice == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "graph, profile and ret_choice must not be NULL");
    hr_variant_options_init(&defaults);
    if (options == NULL)
        options = &defaults;
    HR_TRY(hr__machine_check(&options->machine, reterr));
    HR_TRY(hr__graph_freeze(graph, reterr));
    made = hr__calloc(1, sizeof *made);
    if (made == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    made->settings = settings_of(options);
    code = choose(graph, profile, options, made, &error);
    if (code != HR_OK) {
        hr_variant_choice_free(made);
        if (reterr != NULL)
            *reterr = error;
        return code;
    }
    *ret_choice = made;
    return HR_OK;
}

/* ---- the result ---- */

enum hr_err hr_variant_choice_node(const struct hr_variant_choice *choice, size_t at,
                                   struct hr_variant_node *ret_node)
{
    static const enum hr_variant variants[HR_PLAN_VARIANTS] = {
        [HR_PLAN_THREADS] = HR_VARIANT_THREADS,
        [HR_PLAN_INLINE] = HR_VARIANT_INLINE,
        [HR_PLAN_PROCESSES] = HR_VARIANT_PROCESSES,
    };
    const struct hr_variant_step *step;

    if (choice == NULL || ret_node == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= choice->variants.step_count)
        return HR_ERR_RANGE;
    step = &choice->variants.steps[at];
    *ret_node =
        (struct hr_variant_node){.node = choice->graph->nodes[step->node].name,
                                 .variant = variants[step->variant],
                                 .moved = choice->variants.sets[0].processes[step->node],
                                 .reason = step->reason};
    return HR_OK;
}

enum hr_err hr_variant_choice_case(const struct hr_variant_choice *choice, size_t at,
                                   struct hr_variant_case *ret_case)
{
    const struct hr_variants *v;

    if (choice == NULL || ret_case == NULL)
        return HR_ERR_ARGUMENT;
    v = &choice->variants;
    if (at >= v->set_count)
        return HR_ERR_RANGE;
    *ret_case =
        (struct hr_variant_case){.processes = choice->names[at],
                                 .rate = v->sets[at].rate,
                                 .cpu_ns = v->sets[at].cpu_ns,
                                 .gain = v->sets[at].rate / v->sets[v->written].rate,
                                 .reason = v->sets[at].reason};
    return HR_OK;
}

enum hr_err hr_variant_choice_plan(const struct hr_variant_choice *choice,
                                   char **ret_text, struct hr_error *reterr)
{
    struct hr_opt_settings settings;
    struct hr_plan plan;
    struct hr_str text;

    if (choice == NULL || ret_text == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "choice and ret_text must not be NULL");
    settings = choice->settings;
    settings.processes = choice->variants.sets[0].processes;
    HR_TRY(hr__plan_make(choice->graph, &settings, &plan, reterr));
    hr__str_init(&text);
    hr__plan_print(&plan, HR_GRAPH_YAML, &text);
    hr__plan_finish(&plan);
    *ret_text = hr__str_take(&text);
    hr__str_finish(&text);
    return *ret_text != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

void hr_variant_choice_free(struct hr_variant_choice *choice)
{
    if (choice == NULL)
        return;
    for (size_t i = 0; choice->names != NULL && i < choice->variants.set_count; i++)
        hr__free(choice->names[i]);
    hr__free(choice->names);
    hr__variants_finish(&choice->variants);
    hr__graph_unref(choice->graph);
    hr__free(choice);
}
