/*
 * headrace/cedar.h - statistics and plans of cedar (Zhao et al., VLDB 2024): planned as
 * cedar does and as we do, and turned into profiles and back. docs/formats/cedar.md
 * describes the files.
 *
 *     hr_cedar_plan_options_init(&options);
 *     hr_cedar_optimize(&stats, &pipes, &options, &plan, &error);
 *     hr_cedar_plan_info(plan, &info);
 *     for (at = 0; hr_cedar_plan_stage(plan, at, &stage) == HR_OK; at++)
 *         ... stage.variant ...
 *     hr_cedar_plan_free(plan);
 */
#ifndef HR_CEDAR_H
#define HR_CEDAR_H

#include "headrace/optimize.h"

HR_BEGIN_DECLS

/* A file's text; `name` is used in messages, and ".json" at its end selects JSON. */
struct hr_cedar_text {
    const char *text;
    size_t bytes;
    const char *name;
};

struct hr_cedar_plan_options {
    /* HR_RULE_CEDAR: pass by pass, as cedar does; HR_RULE_HEADRACE: order, cache and
     * placement together; HR_RULE_WRITTEN: as CEDAR, but in the written order. All under
     * cedar's model of cost. */
    enum hr_rule rule;
    int cpus;      /* of the local machine; 0: 8 */
    double demand; /* samples per second that are wanted; 0: as many as possible */
    int64_t cache_samples; /* samples of an epoch, to consider a cache; 0: none */
    double disk_free;      /* bytes that the cache may take; 0: no limit */
    /* Passes that are left out: actors elsewhere, fusion of pipes, a prefetcher at the
     * end, several processes that run the pipeline. */
    bool no_offload, no_fusion, no_prefetch, no_drivers;
    uint64_t reserved[8]; /* zero */
};
/* Defaults: rule cedar, 8 CPUs, no cache, all passes. */
HR_API void hr_cedar_plan_options_init(struct hr_cedar_plan_options *options);

struct hr_cedar_outcome;

/*
 * Finds a plan for a pipeline: `stats` is what cedar measured, `pipes` its plan file with
 * names and hints. Free *ret_plan with hr_cedar_plan_free(). HR_ERR_FORMAT, _TYPE and
 * _RANGE have the place in the file; HR_ERR_STATE: the two files do not fit each other,
 * or a cache needs disk_info.
 */
HR_API HR_CHECK enum hr_err
hr_cedar_optimize(const struct hr_cedar_text *stats, const struct hr_cedar_text *pipes,
                  const struct hr_cedar_plan_options *options,
                  struct hr_cedar_outcome **ret_plan, struct hr_error *reterr);

/* NULL is allowed. */
HR_API void hr_cedar_plan_free(struct hr_cedar_outcome *plan);

/* Milliseconds are of one sample, of one process's time. */
struct hr_cedar_plan_info {
    double orders;        /* that are legal; infinite: too many to count */
    double written_ms;    /* as written */
    double order_ms;      /* in the plan's order, everything in the process */
    double cost_ms;       /* with its cache and what is offloaded */
    bool best;            /* no cheaper order, or, with HR_RULE_HEADRACE, plan exists */
    int drivers;          /* processes that run the pipeline */
    const int64_t *order; /* numbers of the pipes */
    size_t pipe_count;
    int64_t cache_after;  /* number of a pipe; -1: no cache */
    uint64_t reserved[8]; /* zero */
};
/* Of a NULL plan, zeros. */
HR_API void hr_cedar_plan_info(const struct hr_cedar_outcome *plan,
                               struct hr_cedar_plan_info *ret_info);

/* What runs as one pipe. */
struct hr_cedar_stage_info {
    const char *kind;    /* "pipes", "cache" or "prefetch" */
    const char *variant; /* "INPROCESS", "RAY", ... */
    const int64_t *ids;  /* of its pipes, in the order of application */
    const char *const *names;
    size_t pipe_count;
    int workers;          /* actors or processes; 0: none */
    int in_flight;        /* samples at most; 0: not limited */
    int submit_batch;     /* samples of a request; 0: none */
    bool autotune;        /* TensorFlow chooses how many calls run at once */
    uint64_t reserved[8]; /* zero */
};
/* Stages from source to output; HR_ERR_RANGE past the last. */
HR_API HR_CHECK enum hr_err
hr_cedar_plan_stage(const struct hr_cedar_outcome *plan, size_t at,
                    struct hr_cedar_stage_info *ret_info);

/* The plan as YAML that cedar loads; free with hr_free(). */
HR_API HR_CHECK enum hr_err hr_cedar_plan_print(const struct hr_cedar_outcome *plan,
                                                char **ret_yaml, struct hr_error *reterr);

/* A pipe of cedar's and the node that does its work. */
struct hr_cedar_match {
    int64_t id;
    const char *node;
};

/*
 * Statistics of cedar as a profile of a graph, which is frozen if necessary. `matches`
 * say which node does the work of which pipe; several pipes of one node are added up, and
 * nodes without a pipe are not measured. Without matches, the graph's nodes are the pipes
 * in their order: that of `pipes`, or, if that is NULL, of the numbers from the highest
 * down. hr_profile_free() the result.
 */
HR_API HR_CHECK enum hr_err
hr_cedar_to_profile(const struct hr_cedar_text *stats, const struct hr_cedar_text *pipes,
                    struct hr_graph *graph, const struct hr_cedar_match *matches,
                    size_t match_count, struct hr_profile **ret_profile,
                    struct hr_error *reterr);

/*
 * A graph, which is one chain and is frozen if necessary, with its nodes in the order of
 * a plan's physical section (else its logical one). `matches` as above; the plan's pipes
 * and their written order without. *ret_graph is frozen; hr_graph_unref() it.
 * HR_ERR_STATE names two nodes that must not change places, by their traits and hints or
 * with this strictness. Records are not compared; hr_graph_optimize() does that.
 */
HR_API HR_CHECK enum hr_err
hr_cedar_to_graph(const struct hr_cedar_text *plan, struct hr_graph *graph,
                  const struct hr_cedar_match *matches, size_t match_count,
                  enum hr_strictness strictness, struct hr_graph **ret_graph,
                  struct hr_error *reterr);

/* A profile of a chain of nodes as cedar's statistics, and the nodes' names as a plan
 * (NULL: not wanted), with what their ops tell: which draw (`is_random`), and which must
 * stay where they are (`fix`): sources, orders, batches, user code, and what decodes or
 * changes dtype or layout. Free both with hr_free(). HR_ERR_STATE if nothing was
 * measured. */
HR_API HR_CHECK enum hr_err
hr_cedar_from_profile(const struct hr_profile *profile, char **ret_stats,
                      char **ret_names, struct hr_error *reterr);

HR_END_DECLS

#endif
