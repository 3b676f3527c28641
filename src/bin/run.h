/*
 * run.h - the parts of `headrace run`: its options, its result and the report.
 */
#ifndef BIN_RUN_H
#define BIN_RUN_H

#include "cli.h"
#include "headrace/dataset.h"
#include "headrace/engine.h"
#include "headrace/predict.h"
#include "plan_options.h"
#include "record_options.h"

struct run_options {
    struct cli_params params;
    struct plan_options plan;
    struct record_options records;
    const char *state, *trace, *batch_digests, *profile, *output, *service, *after, *job,
        *consumer, *token_file, *tls_ca, *tls_name, *tls_cert, *tls_key,
        *service_compress;
    int64_t save_every, rank, world, demand, weight;
    int even; /* enum hr_even */
    bool digest, no_cache, json, quiet, help_params;
};

struct run_result {
    const char *graph_path;
    const char *output; /* where arrays were written, or NULL */
    const char *status; /* "complete", "interrupted", "failed" */
    char message[768];  /* why it failed */
    bool resumed;
    bool has_digest;
    char digest[33];
    double cpu_seconds;
    uint64_t peak_rss_bytes;
    /* Everything after the first batches, whose page faults are not counted. */
    uint64_t steady_records;
    double steady_seconds, steady_cpu_seconds;
    /* With --profile: as predicted and as measured in that time. */
    bool predicted;
    struct hr_prediction_info prediction;
    struct hr_measured measured;
};

/* Digests everything delivered, in order: each field's data; for ragged fields also the
 * offsets, as little-endian i64. */
enum hr_err run_digest_batch(struct hr_digest *digest, const struct hr_batch *batch);

/* Print a report on stdout from the iterator's statistics. */
void run_report(const struct hr_iter *iter, const struct run_result *result);
void run_report_json(const struct hr_iter *iter, const struct hr_graph *graph,
                     const struct run_result *result);

#endif
