/*
 * opt/plan_make.c - making a plan: the passes in their order. What is left out: measured
 * costs, so no pass changes the order of steps, caches or places by them.
 */
#include "opt/opt.h"

#include <stdio.h>

void hr__pass_parallel(struct hr_plan *plan, const struct hr_opt_settings *settings)
{
    plan->ordered = settings->ordered;
    if (settings->threads < 0) {
        plan->threads = 0;
        snprintf(plan->threads_reason, sizeof plan->threads_reason,
                 "inline: all work in the caller's thread, as asked");
    } else if (settings->threads > 0) {
        plan->threads = settings->threads;
        snprintf(plan->threads_reason, sizeof plan->threads_reason, "as asked");
    } else {
        plan->threads = settings->cpus;
        snprintf(plan->threads_reason, sizeof plan->threads_reason,
                 "the CPUs that this process may use");
    }
}

enum hr_err
hr__plan_make(const struct hr_graph *graph, const struct hr_opt_settings *settings,
              struct hr_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_plan plan = {.graph = graph};
    enum hr_err code = hr__pass_stages(&plan, reterr);

    if (code != HR_OK) {
        hr__plan_finish(&plan);
        return code;
    }
    hr__pass_compose(&plan, settings->fuse);
    hr__pass_parallel(&plan, settings);
    *ret_plan = plan;
    return HR_OK;
}
