/*
 * opt/opt.h - from a frozen graph to a plan. Pure: no clock, no thread, no data.
 */
#ifndef HR_OPT_OPT_H
#define HR_OPT_OPT_H

#include "graph/plan.h"

/* What a plan is made from, beside the graph: what was observed and what was asked. */
struct hr_opt_settings {
    int cpus;    /* that the process may use */
    int threads; /* wanted; 0: as many as cpus; -1: inline */
    bool ordered;
    bool fuse;
    uint64_t memory_bytes;     /* budget; 0: none */
    uint64_t read_ahead_bytes; /* of it; 0: chosen */
};

/* Make a plan; hr__plan_finish() it. Fails when the graph has a form that the engine does
 * not run (a zip of branches that filter), naming the node. */
HR_CHECK enum hr_err
hr__plan_make(const struct hr_graph *graph, const struct hr_opt_settings *settings,
              struct hr_plan *ret_plan, struct hr_error *reterr);

/* Passes, each reading traits only. */
HR_CHECK enum hr_err hr__pass_stages(struct hr_plan *plan, struct hr_error *reterr);
void hr__pass_compose(struct hr_plan *plan, bool fuse);
void hr__pass_parallel(struct hr_plan *plan, const struct hr_opt_settings *settings);

#endif
