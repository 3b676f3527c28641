/*
 * headrace/predict.h - how fast a graph will run, here or on another machine, by a
 * profile; and how well earlier predictions held.
 *
 *     hr_graph_profile(graph, &options, &profile, &error);
 *     hr_graph_predict(graph, profile, NULL, &prediction, &error);
 *     hr_prediction_info(prediction, &info);
 *     ... info.rate, info.reason ...
 *     hr_prediction_free(prediction);
 */
#ifndef HR_PREDICT_H
#define HR_PREDICT_H

#include "headrace/engine.h"
#include "headrace/optimize.h"
#include "headrace/profile.h"

HR_BEGIN_DECLS

/* A machine; 0: as the profile's. */
struct hr_machine {
    double cores;    /* at least 1 */
    double disk;     /* bytes per second that sources can read */
    double copy;     /* bytes per second that a core copies to or from a worker process */
    double price;    /* of the machine for an hour, in any currency; 0: not known */
    uint64_t memory; /* bytes; 0: any */
    uint64_t reserved[8]; /* zero */
};

struct hr_predict_options {
    /* How the graph would run; NULL: defaults. `threads` 0: one per core of `machine`. */
    const struct hr_iter_options *run;
    struct hr_machine machine;
    uint64_t reserved[8]; /* zero */
};

/* Defaults: the profile's machine, and runs as hr_iter_options_init() has them. */
HR_API void hr_predict_options_init(struct hr_predict_options *options);

struct hr_prediction;

/*
 * Plans the graph and predicts the plan (docs/decisions/0041-cost-model.md); runs nothing
 * unless options->run has a budget of memory. Freezes the graph if necessary. NULL
 * options: defaults. Free *ret_prediction with hr_prediction_free(). HR_ERR_STATE if the
 * profile lacks a node of the graph; the message names it.
 */
HR_API HR_CHECK enum hr_err
hr_graph_predict(struct hr_graph *graph, const struct hr_profile *profile,
                 const struct hr_predict_options *options,
                 struct hr_prediction **ret_prediction, struct hr_error *reterr);

/*
 * The same for the graph in the order that the profile says is cheapest, by `order` (its
 * rule and strictness). Unlike hr_graph_optimize it runs nothing, so the order is not
 * compared with the written one. *ret_graph is that graph, frozen; hr_graph_unref() it.
 */
HR_API HR_CHECK enum hr_err
hr_graph_predict_order(struct hr_graph *graph, const struct hr_profile *profile,
                       const struct hr_optimize_options *order,
                       const struct hr_predict_options *options,
                       struct hr_graph **ret_graph, struct hr_prediction **ret_prediction,
                       struct hr_error *reterr);

/* NULL is allowed. */
HR_API void hr_prediction_free(struct hr_prediction *prediction);

/* Strings live as long as the prediction. "Per record" is per record that is delivered.
 */
struct hr_prediction_info {
    double rate;          /* records per second */
    double cpu_ns;        /* of CPU time per record, in worker processes included */
    double busy;          /* cores that compute, on average */
    const char *limit;    /* what limits the rate: "cores", "threads", "sequence", "user
                             code", "disk" */
    const char *node;     /* where: the node with most of its time */
    const char *reason;   /* what limits the rate and where, as a sentence */
    int threads;          /* of the plan; 0: inline */
    uint64_t memory;      /* bytes that the plan takes at most */
    bool fits;            /* in the machine's memory */
    double price;         /* of a million records; 0: not known */
    uint64_t reserved[8]; /* zero */
};
HR_API void hr_prediction_info(const struct hr_prediction *prediction,
                               struct hr_prediction_info *ret_info);

struct hr_prediction_node {
    const char *node, *op;
    double cpu_ns, wait_ns; /* per record */
    double share;           /* of the CPU time of all nodes, 0 to 1 */
    uint64_t reserved[4];   /* zero */
};
/* Nodes in the order of the graph; HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_prediction_node(const struct hr_prediction *prediction, size_t at,
                   struct hr_prediction_node *ret_node);

/* The rate that each limit alone would allow, infinity if it is none: *ret_limit is as in
 * hr_prediction_info. HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_prediction_limit(const struct hr_prediction *prediction, size_t at,
                    const char **ret_limit, double *ret_rate);

/* ---- predicted and measured ---- */

/* What a run did since hr_prediction_start(). */
struct hr_measured {
    int64_t records;
    double seconds;
    double cpu_seconds;   /* of this process, and of the run's worker processes */
    double delay_seconds; /* in which a thread was ready but other programs had the cores,
                             summed over threads; 0 where the system does not count it */
    double rate;          /* records per second, without that time */
    double cpu_ns;        /* per record */
    bool kept;            /* the pair is in the file */
    uint64_t reserved[3]; /* zero */
};

/* Call it when the predicted run is under way: what follows is measured. `iter` is the
 * run; NULL if it has no worker processes. */
HR_API void
hr_prediction_start(struct hr_prediction *prediction, const struct hr_iter *iter);

/*
 * Measures the time since hr_prediction_start(), in which `records` were delivered, while
 * the threads of the run are still alive, and appends it and the prediction to the
 * user's file of such pairs ($HEADRACE_CACHE, else $XDG_CACHE_HOME/headrace, else
 * ~/.cache/headrace; accuracy.jsonl). `name` is for people: the graph's file.
 * Measurements of less than 0.2 s are not kept, nor is a prediction without a limit.
 */
HR_API HR_CHECK enum hr_err
hr_prediction_keep(struct hr_prediction *prediction, const struct hr_iter *iter,
                   int64_t records, const char *name, struct hr_measured *ret_measured,
                   struct hr_error *reterr);

/* How far the predictions of a graph were from what was measured. */
struct hr_accuracy {
    const char *name, *graph; /* graph: its fingerprint; NULL and "" for all graphs */
    size_t runs;
    /* |predicted - measured| / measured, of the rate and of CPU time per record: the
     * median, and the 90th percentile. */
    double rate[2], cpu[2];
    uint64_t reserved[4]; /* zero */
};
struct hr_accuracies;
/* From the user's file; without one there are no runs. Lines that are damaged are left
 * out. Free with hr_accuracies_free(). */
HR_API HR_CHECK enum hr_err
hr_accuracies_read(struct hr_accuracies **ret_accuracies, struct hr_error *reterr);
/* 0: over the medians of all graphs; then each graph, in the order of their first runs.
 * HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_accuracies_get(const struct hr_accuracies *accuracies, size_t at,
                  struct hr_accuracy *ret_accuracy);
/* NULL is allowed. */
HR_API void hr_accuracies_free(struct hr_accuracies *accuracies);

HR_END_DECLS

#endif
