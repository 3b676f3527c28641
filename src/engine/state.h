/*
 * engine/state.h - states as text: printed, read, restored, merged.
 */
#ifndef HR_ENGINE_STATE_H
#define HR_ENGINE_STATE_H

#include "core/str.h"
#include "engine/done.h"
#include "engine/place.h"
#include "headrace/engine.h"

struct hr_engine;

/* A node's part of a state. The texts point into the document. */
struct hr_saved_node {
    const char *node, *state; /* its name; the text that its sequencer saved, or "" */
    uint64_t skip;            /* outputs to skip */
};
#define HR_SAVED_NODES_MAX HR_PLACE_MARKS_MAX

/* A parsed state, of this or another engine. `fingerprint` points into the document; the
 * caller must finish `done`. */
#define HR_STATE_VERSION 4
struct hr_saved {
    const char *fingerprint;
    uint64_t seed, base, world, rank, records;
    bool moves, even;
    uint64_t epoch, position, child;
    /* For other worlds: all positions below end_position, and end_child children of the
     * record there, were put into batches or dropped. */
    uint64_t end_position, end_child;
    struct hr_saved_node nodes[HR_SAVED_NODES_MAX]; /* in the order of records */
    size_t node_count;
    struct hr_done done;
    const struct hr_doc *classes; /* as written, unchecked; or NULL */
};
HR_CHECK enum hr_err hr__saved_parse(const struct hr_doc *doc, struct hr_saved *ret_saved,
                                     struct hr_error *reterr);
/* Appends everything but nodes, done and classes, and the brace at the end. */
void hr__saved_print_head(const struct hr_saved *saved, struct hr_str *out);
/* The rank and world of a run with these options, which hr__engine_set_world() checked:
 * theirs, or those of the graph. */
struct hr_graph;
void hr__state_share(const struct hr_graph *graph, const struct hr_iter_options *options,
                     uint64_t *ret_rank, uint64_t *ret_world);
/* Where the ranks of a world are after the step, of that many records each, in which one
 * of them came to `position`. A short last batch ends the longest rank's share, too. A
 * rank alone is where it is: a limit may have cut its batch. */
uint64_t hr__state_step_end(uint64_t world, uint64_t step, uint64_t position);
HR_CHECK enum hr_err hr__state_print(const struct hr_engine *engine, struct hr_str *out);
HR_CHECK enum hr_err
hr__state_restore(struct hr_engine *engine, const char *json, struct hr_error *reterr);

/* state_classes.c: appends the names of the classes of all sources, if there are any. */
void hr__state_print_classes(const struct hr_graph *graph, struct hr_str *out);
/* HR_ERR_STATE, which names the first difference, if the graph has other classes. */
HR_CHECK enum hr_err
hr__state_check_classes(const struct hr_graph *graph, const struct hr_doc *classes,
                        struct hr_error *reterr);

/* merge.c: merges the states of all ranks of a world into one, for any world. */
HR_CHECK enum hr_err hr__state_merge(const char *const *states, size_t count,
                                     struct hr_str *out, struct hr_error *reterr);

#endif
