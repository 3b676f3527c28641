/*
 * bench.h - named measurements: cases that are compared, run in turns, medians.
 *
 * A round runs every case once, so that a slow minute of the machine meets all of them
 * alike; the figure of a case is the median over rounds, its spread least to greatest.
 */
#ifndef BIN_BENCH_H
#define BIN_BENCH_H

#include "cli.h"
#include "headrace/engine.h"

#define BENCH_ROUNDS_MAX 99
#define BENCH_CASES_MAX 24

struct bench_options {
    const char *data; /* folder of photos; NULL: synthesised ones */
    int64_t rounds, count, threads;
    bool json, quiet, list;
};

struct bench_case {
    char name[64];
    double values[BENCH_ROUNDS_MAX];
    int rounds;
};

struct bench {
    const struct bench_options *options;
    const char *name, *unit; /* "records/s", "ns per record", "seconds" */
    bool less_is_better;
    struct bench_case cases[BENCH_CASES_MAX];
    int case_count;
    char temp[256]; /* a folder of the bench's own, removed at the end; "" until made */
};

/* A benchmark: fills in name and cases. Returns a cli_exit code. */
struct bench_kind {
    const char *name, *what;
    int (*run)(struct bench *bench);
};
extern const struct bench_kind bench_kinds[]; /* ends with a NULL name */

/* A graph to run: text and parameters, and what to set in the options. */
struct bench_run {
    const char *text;
    struct hr_graph_param params[8];
    size_t param_count;
    enum hr_variant variant;
    int threads;
    bool no_fuse;
    bool twice; /* two epochs instead of one */
    bool first_batch_only;
};

/* From parsing to the end, or to the first batch; and each epoch, from its first wait. */
struct bench_outcome {
    double seconds, epoch_seconds[2];
    uint64_t records, epoch_records[2];
};
int bench_graph(const struct bench_run *run, struct bench_outcome *ret_outcome);

/* Number of a case, made on first use; add a figure of this round to it. */
void bench_add(struct bench *bench, const char *name, double value);

/* The bench's folder, made on first use; NULL after printing why not. */
const char *bench_temp(struct bench *bench);

/* A folder of photos: --data, or synthesised ones. NULL after printing why not. */
const char *bench_photos(struct bench *bench);

int bench_cpus(void); /* that this process may use */

#endif
