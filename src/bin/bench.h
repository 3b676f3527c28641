/*
 * bench.h - named benchmarks: cases to compare, alternated in rounds, reported as
 * medians.
 *
 * A round runs every case once, so that interference from other work on the machine
 * affects all of them alike. A case's figure is the median over rounds, its spread from
 * minimum to maximum.
 */
#ifndef BIN_BENCH_H
#define BIN_BENCH_H

#include "cli.h"
#include "headrace/engine.h"

#define BENCH_ROUNDS_MAX 99
#define BENCH_CASES_MAX 24

struct bench_options {
    const char *data; /* folder of photos; NULL: synthetic ones */
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
    char temp[256]; /* the benchmark's temporary folder, removed at the end; "" until
                       created */
};

/* A benchmark: runs its cases and adds their figures. Returns a cli_exit code. */
struct bench_kind {
    const char *name, *what;
    int (*run)(struct bench *bench);
};
extern const struct bench_kind bench_kinds[]; /* ends with a NULL name */

/* A graph to run: its text, parameters and options. */
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

/* Seconds from parsing to the end, or to the first batch; and of each epoch, from the
 * request for its first batch. */
struct bench_outcome {
    double seconds, epoch_seconds[2];
    uint64_t records, epoch_records[2];
};
int bench_graph(const struct bench_run *run, struct bench_outcome *ret_outcome);

/* Adds a figure of this round to the case of that name, which is created on first use. */
void bench_add(struct bench *bench, const char *name, double value);

/* The benchmark's temporary folder, created on first use; prints the reason and returns
 * NULL on failure. */
const char *bench_temp(struct bench *bench);

/* A folder of photos: --data, or synthetic ones. Prints the reason and returns NULL on
 * failure. */
const char *bench_photos(struct bench *bench);

int bench_cpus(void); /* that this process may use */

#endif
