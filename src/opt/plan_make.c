/*
 * opt/plan_make.c - making a plan: the passes in their order. What is left out: measured
 * costs, so no pass changes the order of steps, caches or places by them.
 */
#include "opt/memory.h"
#include "opt/opt.h"

enum hr_err
hr__plan_make(const struct hr_graph *graph, const struct hr_opt_settings *settings,
              struct hr_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_plan plan = {.graph = graph};
    struct hr_sizes sizes;
    enum hr_err code = hr__pass_stages(&plan, reterr);

    if (code == HR_OK) {
        hr__pass_compose(&plan, settings->fuse);
        hr__pass_parallel(&plan, settings);
        hr__sizes_estimate(&plan, &sizes);
        plan.memory.budget = settings->memory_bytes;
        code = hr__plan_divide(&plan, &sizes, settings->read_ahead_bytes, false, reterr);
    }
    if (code != HR_OK) {
        hr__plan_finish(&plan);
        return code;
    }
    *ret_plan = plan;
    return HR_OK;
}
