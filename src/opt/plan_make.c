/*
 * opt/plan_make.c - making a plan: the passes in their order. What is left out: measured
 * costs, so no pass changes the order of steps, caches or places by them.
 */
#include "opt/memory.h"
#include "opt/opt.h"

static enum hr_err
run_passes(struct hr_plan *plan, const struct hr_opt_settings *settings,
           struct hr_error *reterr)
{
    struct hr_sizes sizes;

    HR_TRY(hr__pass_stages(plan, reterr));
    for (size_t i = 0; i < settings->cut_count; i++)
        HR_TRY(hr__pass_cut(plan, settings->cuts[i], reterr));
    hr__pass_compose(plan, settings->fuse);
    hr__pass_parallel(plan, settings);
    hr__sizes_estimate(plan, NULL, &sizes);
    HR_TRY(hr__plan_divide(plan, &sizes, settings->read_ahead_bytes, false, reterr));
    return settings->cut_count > 0 ? hr__plan_check(plan, "cut", reterr) : HR_OK;
}

enum hr_err
hr__plan_make(const struct hr_graph *graph, const struct hr_opt_settings *settings,
              struct hr_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_plan plan = {.graph = graph,
                           .remote =
                               settings->remote != NULL ? *settings->remote : HR_NO_NODE};
    enum hr_err code = run_passes(&plan, settings, reterr);

    if (code != HR_OK) {
        hr__plan_finish(&plan);
        return code;
    }
    *ret_plan = plan;
    return HR_OK;
}

enum hr_err
hr__plan_read(const struct hr_graph *graph, const char *text, size_t bytes,
              const char *name, struct hr_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_plan plan;
    enum hr_err code;

    HR_TRY(hr__plan_parse(graph, text, bytes, name, &plan, reterr));
    code = hr__plan_check(&plan, name, reterr);
    if (code != HR_OK) {
        hr__plan_finish(&plan);
        return code;
    }
    *ret_plan = plan;
    return HR_OK;
}
