/*
 * tests/conformance/random_graph.h - graphs drawn from the registry.
 *
 * A graph grows step by step: an operator is drawn, its parameters from its own table,
 * and steps that freezing rejects are removed again. So new operators are tested without
 * a change here. A drawn step may fail on records (a crop larger than the image). A third
 * of the graphs has user code, defined in random_graph.c.
 */
#ifndef HR_TESTS_RANDOM_GRAPH_H
#define HR_TESTS_RANDOM_GRAPH_H

#include "core/rng.h"
#include "headrace/code.h"

#define RANDOM_GRAPH_MAX 8192

struct random_graph {
    struct hr_rng rng;
    char text[RANDOM_GRAPH_MAX];
    size_t length;
    struct hr_graph *graph; /* frozen from the text */
    size_t steps, forks, codes;
    bool wants_code;
    bool decodes; /* there is a decode, in mode exact */
};

/* Graph number `seed`; `photos` is a folder. Unref m->graph afterwards. */
void random_graph_make(struct random_graph *m, uint64_t seed, const char *photos);

/* The same for a graph over numbers whose records fail, are dropped, counted, shuffled,
 * expanded, and put into batches and taken out again. */
void random_graph_sequence(struct random_graph *m, uint64_t seed);

/* The same for a graph that begins with what one of all ops needs: texts and tokens,
 * sounds, images with boxes, rows of tables, archives. Has its own data. */
void random_graph_items(struct random_graph *m, uint64_t seed);

/* For the makers: adds text; then freezes the graph, and if that fails, or there are too
 * many records, truncates the text to `length` and returns false. */
void HR_PRINTF(2, 3) random_graph_add(struct random_graph *m, const char *format, ...);
bool random_graph_keep(struct random_graph *m, size_t length);

/* Adds an op that makes batches, where there are records to put in one. */
void random_graph_batch(struct random_graph *m);

/* A number below n, for choices of the test that belong to the graph. */
uint64_t random_graph_below(struct random_graph *m, uint64_t n);

/* As outcome_job.prepare, and in a peer: the pieces of code that graphs name. */
enum hr_err
random_graph_prepare(void *user, struct hr_graph *graph, struct hr_error *reterr);
const struct hr_code *random_graph_code(void *user, const char *name);

#endif
