/*
 * headrace/optimize.h - puts the nodes of a graph in the order that is cheapest.
 *
 *     hr_graph_profile(graph, NULL, &profile, &error);
 *     hr_optimize_options_init(&options);
 *     hr_graph_optimize(graph, profile, &options, &faster, &result, &error);
 *     ... run `faster`, or keep hr_graph_print(faster) ...
 */
#ifndef HR_OPTIMIZE_H
#define HR_OPTIMIZE_H

#include "headrace/graph.h"
#include "headrace/profile.h"

HR_BEGIN_DECLS

/* How an order is found. */
enum hr_rule {
    HR_RULE_HEADRACE, /* the cheapest legal one, by the profile */
    HR_RULE_PECAN,    /* Pecan's AutoOrder: by how nodes change the size of records */
    HR_RULE_CEDAR,    /* the cheapest legal one if all costs were linear in bytes, and no
                         node dropped records */
    HR_RULE_WRITTEN,  /* as written */
};

struct hr_optimize_options {
    enum hr_rule rule;
    enum hr_strictness
        strictness;      /* how far records may differ from the written order's */
    int64_t records_max; /* that both orders are run over, to compare; 0: 64 */
    uint64_t seed;       /* of order and augmentation, below 2^63 */
    /* Called with the records that were compared and records_max; NULL: none. */
    hr_progress_fn *progress;
    void *user;
    uint64_t reserved[8]; /* zero */
};

/* Defaults: rule headrace, exact. */
HR_API void hr_optimize_options_init(struct hr_optimize_options *options);

struct hr_optimize_result {
    size_t moved; /* nodes that stand elsewhere than written */
    /* How far its swaps let records differ, by the traits of the nodes: with rule
     * headrace, as little as pays, else what was asked for; exact if nothing moved. */
    enum hr_strictness needs;
    bool best; /* the profile knows no cheaper order that needs no more */
    /* CPU time for each record of the sources, of all nodes that might have moved: as
     * measured, and as predicted in the new order. */
    double written_ns, predicted_ns;
    int64_t records; /* that were compared; 0 if nothing moved */
    /* The largest difference of a level (uint8 or float), as a part of the range of its
     * field; 0: the bytes are the same. Not looked at where swaps need
     * HR_STRICTNESS_RELAXED. */
    double difference;
    /* CPU time for each record that was compared, written and new, everything included:
     * medians of the runs. */
    double written_run_ns, run_ns;
    char dropped[256];    /* why a cheaper order was not taken: "" if none was dropped */
    uint64_t reserved[8]; /* zero */
};

/* Differences that are close (HR_STRICTNESS_CLOSE), as a part of the range. */
#define HR_CLOSE_MAX 0.01

/*
 * Finds the order of a graph's nodes, runs both orders over the same records, and
 * compares their batches: field by field, with the random draws of the written order.
 * Freezes the graph if necessary. Bad records are skipped. *ret_graph is the graph in the
 * new order, frozen; or the same graph if nothing moves or all orders were dropped: their
 * records differ by more than `strictness` allows, or they are slower although rule
 * headrace took them for cheaper. Rule headrace changes values only for 2 % of the CPU
 * time, as predicted and as the runs show; where such an order is dropped, it tries the
 * cheapest that changes less. States of runs of either (hr_iter_save) resume the other:
 * exact, with the same records as if nothing had changed. A graph read back from the
 * result's text is another graph, which they do not resume. hr_graph_unref() it.
 * HR_ERR_STATE if the profile lacks a node that might move; HR_ERR_CANCELLED if
 * `progress` returned false.
 */
HR_API HR_CHECK enum hr_err
hr_graph_optimize(struct hr_graph *graph, const struct hr_profile *profile,
                  const struct hr_optimize_options *options, struct hr_graph **ret_graph,
                  struct hr_optimize_result *ret_result, struct hr_error *reterr);

HR_END_DECLS

#endif
