/*
 * api/prediction.h - what a prediction holds.
 */
#ifndef HR_API_PREDICTION_H
#define HR_API_PREDICTION_H

#include "headrace/predict.h"
#include "opt/cost.h"

struct hr_prediction {
    struct hr_graph *graph; /* a reference; frozen */
    struct hr_cost cost;
    int threads; /* of the plan */
    /* At hr_prediction_start(); 0: not called. */
    uint64_t began_ns, cpu_ns, delay_ns;
};

/* What a prediction is made of. */
struct hr_asked {
    const struct hr_profile *profile;
    struct hr_iter_options run;
    struct hr_machine machine;
};

/* HR_ERR_ARGUMENT if a number is not possible. */
HR_CHECK enum hr_err
hr__machine_check(const struct hr_machine *machine, struct hr_error *reterr);

/* The machine of the profile, with what was asked in place. */
void hr__asked_machine(const struct hr_asked *asked, struct hr_cost_machine *ret);

/* Plans the graph, which is frozen, and predicts the plan with these facts: sets the cost
 * and the threads of `ret`. */
HR_CHECK enum hr_err hr__predict(struct hr_graph *graph, const struct hr_cost_fact *facts,
                                 const struct hr_asked *asked, struct hr_prediction *ret,
                                 struct hr_error *reterr);

/* Facts of a frozen graph, or with `options` of it in the order that the profile says is
 * cheapest, by their rule and strictness. *ret_graph is that graph, frozen; unref it, and
 * free *ret_facts with hr__free(). `error` is not NULL. */
HR_CHECK enum hr_err
hr__ordered_facts(struct hr_graph *graph, const struct hr_profile *profile,
                  const struct hr_optimize_options *options, struct hr_graph **ret_graph,
                  struct hr_cost_fact **ret_facts, struct hr_error *error);

/* The pairs, in the user's cache folder; at this size the file is put aside, as
 * hr__accuracy_older(), and another one begun. */
#define HR_ACCURACY_FILE "accuracy.jsonl"
#define HR_ACCURACY_BYTES ((size_t)1 << 20)
/* Free it with hr__free(); NULL when out of memory. */
char *hr__accuracy_older(const char *path);

/* From the lines of such a file; NULL when out of memory. */
struct hr_accuracies *hr__accuracies_parse(const char *text);

#endif
