/*
 * headrace/variants.h - which user code of a graph gains by running in worker processes,
 * by a profile.
 *
 *     hr_graph_profile(graph, NULL, &profile, &error);    inline: the default
 *     hr_graph_choose_variants(graph, profile, NULL, &choice, &error);
 *     hr_variant_choice_plan(choice, &text, &error);
 *     ... run with options.plan = text ...
 *     hr_variant_choice_free(choice);
 */
#ifndef HR_VARIANTS_H
#define HR_VARIANTS_H

#include "headrace/engine.h"
#include "headrace/optimize.h"
#include "headrace/predict.h"
#include "headrace/profile.h"

HR_BEGIN_DECLS

struct hr_variant_options {
    /* Puts the nodes in the cheapest order first, by this rule and strictness, as
     * hr_graph_predict_order() does; NULL: as written. */
    const struct hr_optimize_options *order;
    const struct hr_iter_options *run; /* how the graph will run; NULL: the defaults. Its
                                          plan and variant processes are not looked at */
    struct hr_machine machine;         /* zeros: that of the profile */
    /* Only user code moves, not what is built in between: for graphs that say `variant:
     * processes` instead of using the plan. */
    bool code_only;
    uint64_t reserved[8]; /* zero */
};
HR_API void hr_variant_options_init(struct hr_variant_options *options);

struct hr_variant_choice;

/*
 * Predicts runs with every set of the graph's free steps of user code (variant: threads)
 * in worker processes, and chooses the set that is fastest, if it gains at least 5 %. A
 * step is free if worker processes can run its code, there is a host to start them, and
 * the profile knows what it costs in other variants. Freezes the graph if necessary. Free
 * *ret_choice. HR_ERR_STATE if the profile is of another graph.
 */
HR_API HR_CHECK enum hr_err
hr_graph_choose_variants(struct hr_graph *graph, const struct hr_profile *profile,
                         const struct hr_variant_options *options,
                         struct hr_variant_choice **ret_choice, struct hr_error *reterr);

/* A step of user code. Strings live as long as the choice. */
struct hr_variant_node {
    const char *node;
    enum hr_variant variant; /* as chosen */
    bool moved;              /* elsewhere than written */
    const char *reason;
    uint64_t reserved[8]; /* zero */
};
/* In the order of the graph; HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_variant_choice_node(const struct hr_variant_choice *choice, size_t at,
                       struct hr_variant_node *ret_node);

/* A way to run the graph, as predicted. */
struct hr_variant_case {
    const char *processes; /* names of what moves to worker processes, with commas; "" */
    double rate;           /* records/s */
    double cpu_ns;         /* per record */
    double gain;           /* rate by that as written */
    const char *reason;    /* what limits it */
    uint64_t reserved[8];  /* zero */
};
/* The chosen one, then the others from the fastest on; HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_variant_choice_case(const struct hr_variant_choice *choice, size_t at,
                       struct hr_variant_case *ret_case);

/* The plan with the chosen variants, of the graph in the order that was asked for, as
 * YAML; free with hr_free(). */
HR_API HR_CHECK enum hr_err
hr_variant_choice_plan(const struct hr_variant_choice *choice, char **ret_text,
                       struct hr_error *reterr);

/* NULL is allowed. */
HR_API void hr_variant_choice_free(struct hr_variant_choice *choice);

HR_END_DECLS

#endif
