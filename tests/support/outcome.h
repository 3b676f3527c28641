/*
 * tests/support/outcome.h - runs a graph to its end and keeps what can be compared.
 *
 * A run is recorded as one hash per batch (names, shapes and bytes of all fields), the
 * state after each batch, and how it ended. Two runs that should be equal are compared
 * hash by hash, so that a difference is reported by its batch.
 */
#ifndef HR_TESTS_OUTCOME_H
#define HR_TESTS_OUTCOME_H

#include "headrace/engine.h"

#define OUTCOME_NODES 8

struct outcome {
    enum hr_err code; /* HR_ERR_END on success, HR_OK if it was stopped */
    struct hr_error error;
    char detail[64]; /* of the error, truncated */
    size_t batches, room;
    int64_t records;
    int64_t *sizes;         /* records of each batch */
    uint64_t *hashes;       /* of each batch */
    char **states;          /* after each batch; NULLs if not saved */
    char *ledger;           /* lines that the run appended; NULL if it kept none */
    size_t *listed;         /* their bytes after each batch */
    struct hr_batch *first; /* or NULL */
    struct hr_iter_stats stats;
    int64_t decoded; /* records that entered image.decode nodes */
    struct hr_node_stats nodes[OUTCOME_NODES]; /* of a successful run; without names */
};

/* What to run: `path`, a graph file, or else `text`, a graph. */
struct outcome_job {
    const char *path, *text;
    struct hr_graph_param params[8];
    size_t param_count;
    struct hr_iter_options options;
    bool states;        /* save after each batch */
    bool first;         /* keep the first batch */
    size_t batches_max; /* stop after these, without an error; 0: run to the end */
    /* NULL, or registers what a graph needs before it is opened, such as code. */
    enum hr_err (*prepare)(void *user, struct hr_graph *graph, struct hr_error *reterr);
    void *user;
};

/* A job with default options, inline. */
struct outcome_job outcome_job_text(const char *text);

/* A job with these options (NULL: default); saves states if batches are ordered. */
struct outcome_job
outcome_job_with(const char *text, int threads, const struct hr_iter_options *options);

void outcome_job_threads(struct outcome_job *job, int threads); /* 0: inline */

/* The graph, prepared; NULL and *reterr on failure. */
struct hr_graph *outcome_graph(const struct outcome_job *job, struct hr_error *reterr);

/* The plan with another value after the first `key: `; frees the one that is given. Free
 * it with hr_free(). */
char *outcome_edit_plan(char *plan, const char *key, const char *value);

/* Allocates nothing. */
uint64_t outcome_hash(const struct hr_batch *batch);

/* Never fails: errors are part of the outcome. Free it with outcome_free(). */
struct outcome *outcome_run(const struct outcome_job *job);
void outcome_free(struct outcome *outcome);

/* NULL if `other` equals `whole` without its first `skip` batches and ended the same way,
 * with the same ledger where both have one; else a description of the difference, in
 * static memory. */
const char *
outcome_difference(const struct outcome *whole, const struct outcome *other, size_t skip);

/* Fails the test with `words` and the difference, if there is one. */
void outcome_check_same(const struct outcome *whole, const struct outcome *other,
                        size_t skip, const char *words);

/* Checks that runs resumed after up to `places` batches, spread evenly over `whole`,
 * alternately inline and with two threads, give the rest of it. */
void outcome_check_restarts(const struct outcome_job *job, const struct outcome *whole,
                            size_t places);

/* Checks that a graph that succeeds gives the same inline, in threads and restarted. */
void outcome_check_threads_and_restarts(struct outcome_job job);

#endif
