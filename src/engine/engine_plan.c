/*
 * engine/engine_plan.c - the plan of a run with these options: the one given, or the one
 * that opt makes from what can be observed here.
 */
#include "engine/budget.h"
#include "engine/engine.h"

#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"
#include "opt/memory.h"
#include "opt/opt.h"
#include "opt/shape.h"

static bool has_cut(const struct hr_plan *plan)
{
    for (size_t i = 0; i < plan->stage_count; i++)
        if (hr__stage_is_cut(plan, i))
            return true;
    return false;
}

/* To substitute a record that failed after a cut, the stages before it would have to run
 * again. */
static enum hr_err
check_policy(const struct hr_plan *plan, const struct hr_iter_options *options,
             const char *name, struct hr_error *reterr)
{
    if (options->on_error != HR_ON_ERROR_SUBSTITUTE || !has_cut(plan))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "%s cuts a stage in two, and bad records are to be substituted: "
                    "substitutes run through whole stages only; join the stages, or let "
                    "bad records fail or be skipped",
                    name);
}

static enum hr_err
make(const struct hr_graph *graph, struct hr_opt_settings *settings,
     enum hr_variant variant, struct hr_plan *ret_plan, struct hr_error *reterr)
{
    bool *processes = NULL;
    enum hr_err code;

    if (variant == HR_VARIANT_PROCESSES) {
        processes = hr__malloc(graph->count * sizeof *processes);
        if (processes == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a plan");
        memset(processes, true, graph->count * sizeof *processes);
        settings->processes = processes;
    }
    code = hr__plan_make(graph, settings, ret_plan, reterr);
    hr__free(processes);
    return code;
}

static enum hr_err
measure(const struct hr_plan *plan, const struct hr_iter_options *options,
        struct hr_sizes *ret_sizes, struct hr_error *reterr)
{
    struct hr_extent *extents = hr__extents_create(plan->graph);
    enum hr_err code;

    if (extents == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a plan");
    hr__budget_limit_caches(plan, true); /* sizes are not known yet */
    code = hr__engine_survey(plan, options, extents, reterr);
    if (code == HR_OK)
        hr__sizes_estimate(plan, extents, ret_sizes);
    hr__free(extents);
    return code;
}

static enum hr_err
read_plan(const struct hr_graph *graph, const struct hr_iter_options *options,
          struct hr_plan *ret_plan, struct hr_error *reterr)
{
    const char *name = options->plan_name != NULL ? options->plan_name : "plan";

    HR_TRY(hr__plan_read(graph, options->plan, strlen(options->plan), name, ret_plan,
                         reterr));
    return check_policy(ret_plan, options, name, reterr);
}

enum hr_err
hr__engine_plan(const struct hr_graph *graph, const struct hr_iter_options *options,
                const uint32_t *remote, struct hr_plan *ret_plan,
                struct hr_sizes *ret_sizes, struct hr_error *reterr)
{
    struct hr_opt_settings settings = {
        .cpus = hr__cpu_count(),
        .threads = options->variant == HR_VARIANT_INLINE ? -1 : options->threads,
        .ordered = options->ordered,
        .fuse = options->fuse,
        .read_ahead_bytes = options->ahead_bytes,
        .remote = remote,
    };
    struct hr_plan plan = {0};
    enum hr_err code;

    code = options->plan != NULL
               ? read_plan(graph, options, &plan, reterr)
               : make(graph, &settings, options->variant, &plan, reterr);
    if (options->plan == NULL)
        plan.memory.budget = options->memory_bytes;
    if (code == HR_OK && plan.memory.budget > 0)
        code = measure(&plan, options, ret_sizes, reterr);
    if (code == HR_OK && plan.memory.budget > 0 && options->plan == NULL)
        code = hr__plan_divide(&plan, ret_sizes, options->ahead_bytes, false, reterr);
    if (code != HR_OK) {
        hr__plan_finish(&plan);
        return code;
    }
    *ret_plan = plan;
    return HR_OK;
}
