/*
 * measure.h - shared by the benchmark programs: rounds, medians, ratios, a table, JSON.
 *
 * Contenders alternate in every round, and a ratio is the median over rounds of the ratio
 * within a round, so that interference affects both sides alike. CPU time of the process
 * is reported along with wall-clock time: on a machine with other load it is the more
 * stable of the two. Claims are printed with the measurements and never affect the exit
 * status.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "headrace/engine.h"

#define ROUNDS_MAX 64
#define ROWS_MAX 96
#define CLAIMS_MAX 16
#define FACTS_MAX 24

struct bench_row {
    char name[48];
    const char *group; /* the current group when it was added; NULL: none */
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
    const char *group; /* where rows are added and looked up */
    struct bench_claim claims[CLAIMS_MAX];
    int claim_count;
    struct bench_fact facts[FACTS_MAX];
    int fact_count;
};

/* Parses `[DIR] [--json] [--rounds N]`; prints and exits on bad usage or --help. Records
 * facts about the machine. */
void bench_init(struct bench *bench, int argc, char **argv, const char *name,
                const char *what, const char *unit);

/* Starts a group for the following rows (`group` must stay valid): a part of the table
 * with its own heading, whose ratios are to its own first row. Every round must start the
 * same groups. */
void bench_group(struct bench *bench, const char *group);

/* Adds a figure of one round; rows appear in the order of their first figure. */
void bench_add(struct bench *bench, const char *row, double wall, double cpu);

/* Median, minimum and maximum over rounds of row a / row b, by wall clock or CPU time. */
double bench_ratio(const struct bench *bench, const char *a, const char *b, bool cpu,
                   double ret_spread[2]);
/* The median of at most ROUNDS_MAX figures; their minimum and maximum. */
double bench_middle(const double *values, int count, double ret_spread[2]);
double bench_median(const struct bench *bench, const char *row);
double bench_median_cpu(const struct bench *bench, const char *row);

/* The project's claim, printed with the measurement. */
void bench_claim_ratio(struct bench *bench, const char *what, const char *a,
                       const char *b, bool cpu, bool at_least, double limit);
void bench_claim_value(struct bench *bench, const char *what, double value, bool at_least,
                       double limit);

void bench_fact(struct bench *bench, const char *key, const char *text, ...)
    HR_PRINTF(3, 4);
void bench_print(const struct bench *bench);

/* ---- utilities ---- */

/* Prints and exits with 1. */
_Noreturn void bench_die(const char *text, ...) HR_PRINTF(1, 2);
void bench_must(enum hr_err code, const struct hr_error *error);

double bench_now(void);         /* seconds */
double bench_cpu_seconds(void); /* of the process, all threads */
double bench_cpu_of(pid_t pid); /* of another process; 0 if it is gone */

/* Restricts the process and the threads it starts from now on to the first `cpus` CPUs of
 * those it had at the start; 0: all of them. */
void bench_pin(int cpus);
int bench_cpus(void);

/* A path next to the program, in the build folder. */
void bench_path(char *path, size_t room, const char *name);

/* The photos: the argument, else synthetic ones, generated once. */
const char *bench_photos(struct bench *bench, char *path, size_t room);

/* A graph of examples/. `params` may be NULL. */
struct hr_graph *
bench_example(const char *name, const struct hr_graph_param *params, size_t count);

/* Opens a run of the graph, drops its batches and closes it; adds the time of all that
 * per record, in ns. */
void bench_add_run(struct bench *bench, const char *row, struct hr_graph *graph,
                   const struct hr_iter_options *options, int64_t records);

/* Starts the program args[0] and reads the line that it prints, without its newline;
 * returns seconds from the start to that line. */
double bench_child(char *line, size_t room, const char *const *args);

#endif
