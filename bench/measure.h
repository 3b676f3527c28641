/*
 * measure.h - what the benchmark programs share: rounds, medians, ratios, a table, JSON.
 *
 * Contenders take turns in every round, and a ratio is the median over rounds of the
 * ratio inside a round, so that a slow minute of the machine meets both sides. Beside the
 * wall clock stands the CPU time of the process: on a machine that others use too, it is
 * the steadier of the two. Claims are printed with what was measured and never decide the
 * exit status.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/engine.h"

#define ROUNDS_MAX 64
#define ROWS_MAX 48
#define CLAIMS_MAX 16
#define FACTS_MAX 24

struct bench_row {
    char name[48];
    const char *group; /* as set when it came; NULL: none */
    int count;
    double wall[ROUNDS_MAX];
    double cpu[ROUNDS_MAX]; /* negative: not measured */
};

struct bench_claim {
    char what[96];
    double value, spread[2], limit;
    bool at_least;
};

struct bench_fact {
    char key[32], text[160];
};

struct bench {
    const char *name, *what, *unit;
    const char *dir; /* the argument, or NULL */
    const char *cpu_heading;
    bool json;
    int rounds;
    struct bench_row rows[ROWS_MAX];
    int row_count;
    const char *group; /* what rows are added to and looked up in */
    struct bench_claim claims[CLAIMS_MAX];
    int claim_count;
    struct bench_fact facts[FACTS_MAX];
    int fact_count;
};

/* Read `[DIR] [--json] [--rounds N]`; on bad usage or --help prints and exits. Notes the
 * machine. */
void bench_init(struct bench *bench, int argc, char **argv, const char *name,
                const char *what, const char *unit);

/* From here on rows are of this group (text that stays): a part of the table under its
 * own heading, whose ratios are to its own first row. Begin the same groups in every
 * round. */
void bench_group(struct bench *bench, const char *group);

/* A figure of one round; rows appear in the order of their first figure. */
void bench_add(struct bench *bench, const char *row, double wall, double cpu);

/* Median and extremes over rounds of row a / row b, by wall clock or by CPU time. */
double bench_ratio(const struct bench *bench, const char *a, const char *b, bool cpu,
                   double ret_spread[2]);
/* The middle of at most ROUNDS_MAX figures; the least and the greatest. */
double bench_middle(const double *values, int count, double ret_spread[2]);
double bench_median(const struct bench *bench, const char *row);

/* What the project says of itself, beside what came out. */
void bench_claim_ratio(struct bench *bench, const char *what, const char *a,
                       const char *b, bool cpu, bool at_least, double limit);
void bench_claim_value(struct bench *bench, const char *what, double value, bool at_least,
                       double limit);

void bench_fact(struct bench *bench, const char *key, const char *text, ...)
    HR_PRINTF(3, 4);
void bench_print(const struct bench *bench);

/* ---- tools of the programs ---- */

/* Prints and exits with 1. */
_Noreturn void bench_die(const char *text, ...) HR_PRINTF(1, 2);
void bench_must(enum hr_err code, const struct hr_error *error);

double bench_now(void);         /* seconds */
double bench_cpu_seconds(void); /* of the process, all threads */

/* Keep the process, and threads it starts from now on, on the first `cpus` CPUs that it
 * had at the start; 0: all of them. */
void bench_pin(int cpus);
int bench_cpus(void);

/* A path beside the program, in the build folder. */
void bench_path(char *path, size_t room, const char *name);

/* The photos: the argument, else synthesised ones, made once. */
const char *bench_photos(struct bench *bench, char *path, size_t room);

/* A graph of examples/. `params` may be NULL. */
struct hr_graph *
bench_example(const char *name, const struct hr_graph_param *params, size_t count);

/* Start the program args[0] and take the line that it prints, without its end; returns
 * seconds from the start to that line. */
double bench_child(char *line, size_t room, const char *const *args);

#endif
