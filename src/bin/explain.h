/*
 * explain.h - the parts of `headrace explain`: what was asked, and the measuring of
 * modes.
 */
#ifndef BIN_EXPLAIN_H
#define BIN_EXPLAIN_H

#include "graph_file.h"

struct explain_options {
    struct cli_params params;
    int64_t threads, memory_bytes;
    int variant;
    bool json, no_fuse, measure, quiet;
    int64_t records, seed;
};

/* explain_measure.c: run the frozen graph in every mode and print how far the results are
 * from mode exact, and what each costs. Returns a cli_exit code. */
int explain_measure(const struct hr_graph *graph, const struct explain_options *options,
                    const char *path);

/* explain_graph.c: a copy of the graph in which every op that has the modes works in
 * `mode` (one of explain_modes), batches are of at most `batch` records, and no node
 * divides by a deviation, so that floats are 0..1 but for a shift. Returns a cli_exit
 * code; has printed what is wrong. */
#define EXPLAIN_MODES 3
extern const char *const explain_modes[EXPLAIN_MODES]; /* exact comes first */
int explain_graph_in(const struct hr_graph *graph, const char *mode, int batch,
                     struct hr_graph **ret_graph);

/* Whether node `at` has the modes. */
bool explain_has_modes(const struct hr_graph *graph, size_t at);

#endif
