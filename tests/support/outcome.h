/*
 * tests/support/outcome.h - run a graph to its end and keep what can be compared.
 *
 * A run becomes one hash per batch (names, shapes and bytes of all fields), the state
 * behind each batch, and how it ended. Two runs that should be the same are compared
 * hash by hash, so that a difference is named by its batch.
 */
#ifndef HR_TESTS_OUTCOME_H
#define HR_TESTS_OUTCOME_H

#include "headrace/engine.h"

#define OUTCOME_NODES 8

struct outcome {
    enum hr_err code; /* HR_ERR_END when all went well */
    struct hr_error error;
    char detail[64]; /* of the error, cut */
    size_t batches, room;
    int64_t records;
    int64_t *sizes;         /* records of each batch */
    uint64_t *hashes;       /* of each batch */
    char **states;          /* behind each batch; NULLs without */
    struct hr_batch *first; /* or NULL */
    struct hr_iter_stats stats;
    struct hr_node_stats nodes[OUTCOME_NODES]; /* of a run that went well; no names */
};

/* What to run. `path` is a graph file, else `text` is the graph. */
struct outcome_job {
    const char *path, *text;
    struct hr_graph_param params[8];
    size_t param_count;
    struct hr_iter_options options;
    bool states; /* save behind each batch */
    bool first;  /* keep the first batch */
    /* NULL, or what a graph needs before it is opened, such as code. */
    enum hr_err (*prepare)(void *user, struct hr_graph *graph, struct hr_error *reterr);
    void *user;
};

/* The job with default options, inline. */
struct outcome_job outcome_job_text(const char *text);

/* The job with these options (NULL: default), with states where they are in order. */
struct outcome_job
outcome_job_with(const char *text, int threads, const struct hr_iter_options *options);

void outcome_job_threads(struct outcome_job *job, int threads); /* 0: inline */

/* The graph, prepared; NULL with *reterr. */
struct hr_graph *outcome_graph(const struct outcome_job *job, struct hr_error *reterr);

/* Allocates nothing. */
uint64_t outcome_hash(const struct hr_batch *batch);

/* Never fails by itself: the outcome tells. outcome_free() it. */
struct outcome *outcome_run(const struct outcome_job *job);
void outcome_free(struct outcome *outcome);

/* NULL when `other` is `whole` without its first `skip` batches, ended the same way; else
 * what differs, in static memory. */
const char *
outcome_difference(const struct outcome *whole, const struct outcome *other, size_t skip);

/* The test fails, with these words and the difference, when there is one. */
void outcome_check_same(const struct outcome *whole, const struct outcome *other,
                        size_t skip, const char *words);

/* Runs that go on behind up to `places` batches, spread evenly over `whole`, in turn
 * inline and in two threads, give its rest. */
void outcome_check_restarts(const struct outcome_job *job, const struct outcome *whole,
                            size_t places);

/* The graph, which ends well, gives the same inline, in threads and restarted. */
void outcome_check_threads_and_restarts(struct outcome_job job);

#endif
