/*
 * engine/outputs.h - what a run delivers, as a list: where each batch of it begins.
 *
 * If a graph's records are numbered and its batches are runs of them, batch k of an epoch
 * begins at position k * step, so any batch can be made without those before it. That is
 * what a service needs, whose workers make batches here and there. All other graphs
 * (filters, expansions, packers, batches of batches) are refused.
 *
 * With `bare`, the graph makes records for steps that run elsewhere (feed.h): each is
 * delivered as it is, in a batch of its own.
 */
#ifndef HR_ENGINE_OUTPUTS_H
#define HR_ENGINE_OUTPUTS_H

#include "core/str.h"
#include "graph/graph.h"
#include "headrace/engine.h"

#define HR_OUTPUTS_MAX ((uint64_t)1 << 59) /* of an endless run */

struct hr_outputs {
    const struct hr_graph *graph; /* frozen; borrowed, as are pointers in the options */
    struct hr_iter_options options;
    bool bare;        /* set by the caller after hr__outputs_init() */
    uint64_t step;    /* records of a batch; the last one of an epoch may have fewer */
    uint64_t records; /* of an epoch, in batches */
    uint64_t batches; /* of an epoch */
    uint64_t end;     /* batches of the run */
};

/* How many records may be made at once, of a run that delivers them one by one: as many
 * as fit in `bytes`, at most `most`. 1: no more, since their sizes differ, they are
 * large, batches have several records, or a node keeps records in a cache, which a
 * second graph would not share. */
uint64_t
hr__outputs_pack_size(const struct hr_outputs *outputs, size_t bytes, uint64_t most);
/* The run's graph with its records stacked, `size` at a time: the rows of its batches are
 * the batches of the run. Frozen; the caller releases it. HR_ERR_UNSUPPORTED: its epochs
 * have other records. */
HR_CHECK enum hr_err
hr__outputs_pack(const struct hr_outputs *outputs, uint64_t size,
                 struct hr_graph **ret_packed, struct hr_error *reterr);

/* The graph is frozen. HR_ERR_UNSUPPORTED, which names the node, for graphs and options
 * whose batches cannot be made one by one. */
HR_CHECK enum hr_err
hr__outputs_init(struct hr_outputs *outputs, const struct hr_graph *graph,
                 const struct hr_iter_options *options, struct hr_error *reterr);

/* The epoch of a batch of the run (the number of the epoch, not of the pass), and its
 * number in that epoch. */
uint64_t hr__outputs_epoch(const struct hr_outputs *outputs, uint64_t number,
                           uint64_t *ret_within);
/* Records in the batches of the run before this one; of this one. */
uint64_t hr__outputs_before(const struct hr_outputs *outputs, uint64_t number);
uint64_t hr__outputs_records(const struct hr_outputs *outputs, uint64_t number);

/* Appends the state (engine/state.h) of a run that has delivered the batches before
 * `number`. HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__outputs_state(const struct hr_outputs *outputs, uint64_t number,
                                       struct hr_str *out, struct hr_error *reterr);
/* How many batches a run has delivered that saved this state. HR_ERR_FORMAT,
 * HR_ERR_STATE; HR_ERR_UNSUPPORTED for a state between batches or of another world. It is
 * the number of all batches if the limit of records was reached. */
HR_CHECK enum hr_err
hr__outputs_resume(const struct hr_outputs *outputs, const char *state,
                   uint64_t *ret_number, struct hr_error *reterr);

/* Opens an engine that delivers the batches [from, until), which are of one epoch, with
 * the options' threads and memory. `packed`, unless NULL, is from hr__outputs_pack: the
 * engine delivers its batches, whose rows these are. `pool`, or NULL, and `nice`: as of
 * struct hr_engine_place. */
struct hr_engine;
HR_CHECK enum hr_err
hr__outputs_open(const struct hr_outputs *outputs, struct hr_graph *packed, uint64_t from,
                 uint64_t until, struct hr_pool *pool, int nice,
                 struct hr_engine **ret_engine, struct hr_error *reterr);

#endif
