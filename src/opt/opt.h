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
    uint64_t read_ahead_bytes; /* 0: chosen */
    const uint32_t *cuts;      /* nodes after which to cut a stage in two */
    size_t cut_count;
    /* Per node: its step runs in a worker process if it can. NULL: none but the user code
     * whose node says so. */
    const bool *processes;
    /* The node up to which steps run on remote workers; NULL: none. It is one to one, all
     * sources are before it, and no group goes on after it. */
    const uint32_t *remote;
};

/* Make a plan without a budget (opt/memory.h divides one); hr__plan_finish() it. Fails
 * when the graph has a form that the engine does not run (a zip of branches that filter),
 * naming the node. */
HR_CHECK enum hr_err
hr__plan_make(const struct hr_graph *graph, const struct hr_opt_settings *settings,
              struct hr_plan *ret_plan, struct hr_error *reterr);

/* The plan that a text holds, checked (hr__plan_check). */
HR_CHECK enum hr_err
hr__plan_read(const struct hr_graph *graph, const char *text, size_t bytes,
              const char *name, struct hr_plan *ret_plan, struct hr_error *reterr);

/* Checks that the graph allows the plan and that the engine can run it; sets the members
 * that follow from the graph, and the sum of its memory. On failure *reterr has the place
 * of the first error in file `name`. */
HR_CHECK enum hr_err
hr__plan_check(struct hr_plan *plan, const char *name, struct hr_error *reterr);

/* Passes, each reading traits only. */
HR_CHECK enum hr_err hr__pass_stages(struct hr_plan *plan, struct hr_error *reterr);
/* Ends a stage after this step; hr__plan_check says whether that is legal. */
HR_CHECK enum hr_err
hr__pass_cut(struct hr_plan *plan, uint32_t after, struct hr_error *reterr);
void hr__pass_compose(struct hr_plan *plan, bool fuse);
void hr__pass_parallel(struct hr_plan *plan, const struct hr_opt_settings *settings);

#endif
