/*
 * tests/support/outcome.h - run a graph to its end and keep what can be compared.
 *
 * A run becomes one hash per batch (names, shapes and bytes of all fields), the state
 * behind each batch, and how it ended. Two runs that should be the same are compared
 * hash by hash, so that a difference is named by its batch.
 */
#ifndef HR_TESTS_OUTCOME_H
#define HR_TESTS_OUTCOME_H

#include "core/hash.h"
#include "headrace/engine.h"

struct outcome {
    enum hr_err code; /* HR_ERR_END when all went well */
    struct hr_error error;
    size_t batches, room;
    int64_t records;
    struct hr_hash128 *hashes;
    char **states; /* NULL without */
    struct hr_iter_stats stats;
};

/* What to run. `path` is a graph file, else `text` is the graph. */
struct outcome_job {
    const char *path, *text;
    struct hr_graph_param params[8];
    size_t param_count;
    struct hr_iter_options options;
    bool states; /* save behind each batch */
};

/* The job with default options, inline. */
struct outcome_job outcome_job_text(const char *text);
void outcome_job_threads(struct outcome_job *job, int threads); /* 0: inline */

struct hr_graph *outcome_graph(const struct outcome_job *job, struct hr_error *reterr);
struct hr_hash128 outcome_hash(const struct hr_batch *batch);

/* Never fails by itself: the outcome tells. outcome_free() it. */
struct outcome *outcome_run(const struct outcome_job *job);
void outcome_free(struct outcome *outcome);

/* NULL when `other` is `whole` without its first `skip` batches, ended the same way; else
 * what differs, in static memory. */
const char *
outcome_difference(const struct outcome *whole, const struct outcome *other, size_t skip);

#endif
