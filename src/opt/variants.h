/*
 * opt/variants.h - which steps of user code run in worker processes, chosen by the cost
 * model. Pure.
 *
 * Candidates are the steps that the graph leaves free (variant: threads) and that worker
 * processes can run. Sets of them are predicted, and again with the built-in steps
 * between two of them, so that records need not come back in between: every set of up to
 * HR_VARIANT_SETS_MAX candidates. Of more, every set of those with the most CPU time, and
 * slices of the chain. A step stays in threads unless the whole run gains.
 */
#ifndef HR_OPT_VARIANTS_H
#define HR_OPT_VARIANTS_H

#include "opt/cost.h"
#include "opt/opt.h"

#define HR_VARIANT_GAIN 1.05 /* what worker processes must gain */
#define HR_VARIANT_SETS_MAX 8
/* Places at which slices of more candidates begin; then the ends of the best one move. */
#define HR_VARIANT_BORDERS_MAX 16
#define HR_VARIANT_TEXT_MAX 320

/* Steps that run in worker processes together. */
struct hr_variant_set {
    bool *processes; /* per node: in worker processes */
    size_t count;    /* of these that are user code */
    size_t slices;   /* runs of them: a record goes there as many times */
    double lock_ns; /* that candidates hold a lock in threads, per record of the source */
    double rate, cpu_ns;
    char reason[160]; /* what limits it */
};

/* A step of user code. */
struct hr_variant_step {
    uint32_t node;
    enum hr_plan_variant variant; /* as chosen */
    char reason[HR_VARIANT_TEXT_MAX];
};

struct hr_variants {
    struct hr_variant_set *sets; /* the chosen one, the others from the best on */
    size_t set_count;
    size_t written;                /* the set in which nothing moves */
    struct hr_variant_step *steps; /* in the order of the graph */
    size_t step_count;
};

/* Chooses for runs of a frozen graph with these settings, whose `processes` is NULL.
 * `code_only`: built-in steps do not move. hr__variants_finish() the result. */
HR_CHECK enum hr_err
hr__variants_choose(const struct hr_graph *graph, const struct hr_opt_settings *settings,
                    bool code_only, const struct hr_cost_fact *facts,
                    const struct hr_cost_machine *machine, struct hr_variants *ret,
                    struct hr_error *reterr);
void hr__variants_finish(struct hr_variants *variants);

#endif
