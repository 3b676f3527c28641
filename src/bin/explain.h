/*
 * explain.h - the parts of `headrace explain`: its options, what nodes cost, and the
 * comparison of modes.
 */
#ifndef BIN_EXPLAIN_H
#define BIN_EXPLAIN_H

#include "cache_report.h"
#include "graph_file.h"
#include "out.h"
#include "plan_options.h"

struct explain_options {
    struct cli_params params;
    struct plan_options plan;
    bool json, measure, quiet, accuracy;
    int64_t records, seed;
    const char *profile, *html; /* files */
    struct cli_params what_if;
    int strictness; /* enum hr_strictness */
    struct cache_ask cache;
};

/* explain_measure.c: runs the frozen graph, then in every mode if it has modes, and
 * prints what each node costs, what each mode costs and how far its results differ from
 * mode exact. Returns a cli_exit code. */
int explain_measure(struct hr_graph *graph, const struct explain_options *options,
                    const char *path);

/*
 * explain_compare.c: runs the graph in every mode, with its files in the page cache, and
 * compares. *ret_compare is NULL if no op of the graph has modes; end it with
 * explain_compare_finish(), also after a failure. Returns a cli_exit code; prints the
 * reason on failure.
 */
struct explain_compare;
int explain_compare_run(const struct hr_graph *graph,
                        const struct explain_options *options,
                        struct explain_compare **ret_compare);
void explain_compare_print(const struct explain_compare *compare);
/* Writes the members "modes" and what belongs to them. */
void explain_compare_json(struct json *json, const struct explain_compare *compare);
void explain_compare_finish(struct explain_compare *compare);

/* explain_graph.c: copies the graph with every op that has the modes set to `mode` (one
 * of explain_modes), batches of at most `batch` records, and no division by a standard
 * deviation, so that floats are 0..1 except for a shift. Returns a cli_exit code; prints
 * the reason on failure. */
#define EXPLAIN_MODES 3
extern const char *const explain_modes[EXPLAIN_MODES]; /* exact comes first */
int explain_graph_in(const struct hr_graph *graph, const char *mode, int batch,
                     struct hr_graph **ret_graph);

/* True if node `at` has the modes. */
bool explain_has_modes(const struct hr_graph *graph, size_t at);

#endif
