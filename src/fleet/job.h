/*
 * fleet/job.h - what a client wants made, as a text that travels: its graph and options.
 *
 * JSON; docs/formats/job.md has the keys. The hash of the text identifies the job, so no
 * identifiers are assigned. Code is not sent: both sides refuse graphs with user code.
 */
#ifndef HR_FLEET_JOB_H
#define HR_FLEET_JOB_H

#include "core/str.h"
#include "graph/graph.h"
#include "headrace/engine.h"

#define HR_JOB_VERSION 2
#define HR_JOB_NAME_MAX 128u /* bytes */

uint64_t hr__job_id(const void *text, size_t bytes);

/* Appends the text of a run of this frozen graph. `name` tells apart jobs that are equal
 * otherwise. With options.service_consumer it is one of several consumers. `records`:
 * positions are records as they are, not batches. HR_ERR_UNSUPPORTED for user code,
 * HR_ERR_LIMIT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__job_print(const struct hr_graph *graph, const struct hr_iter_options *options,
              const char *name, bool records, struct hr_str *out,
              struct hr_error *reterr);

/* What concerns a dispatcher and workers before a job is read. To `kin`, unless it is
 * NULL, is appended what jobs that read the same batches have in common: all of the text
 * but the name and the number of epochs. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED,
 * HR_ERR_MEMORY. */
struct hr_job_head {
    char name[HR_JOB_NAME_MAX + 1]; /* no NULs within */
    bool consumers;                 /* its clients are independent consumers of it */
};
HR_CHECK enum hr_err
hr__job_head(const char *text, size_t bytes, struct hr_job_head *ret_head,
             struct hr_str *kin, struct hr_error *reterr);

/* Reads a job. The graph is not frozen; the caller owns a reference. Only the options
 * that a job has are changed. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED, or why the graph cannot
 * be read. */
struct hr_job {
    struct hr_graph *graph;
    char fingerprint[HR_FINGERPRINT_BYTES]; /* that the client's graph has */
    bool records;
};
HR_CHECK enum hr_err
hr__job_parse(const char *text, size_t bytes, struct hr_job *ret_job,
              struct hr_iter_options *options, struct hr_error *reterr);

#endif
