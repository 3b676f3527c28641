/*
 * engine/runner.h - a thread of the engine, or the consumer's inside of hr_iter_next,
 * with all that it needs to run records of any stage. Only that thread touches it, but
 * for the fields that say otherwise.
 */
#ifndef HR_ENGINE_RUNNER_H
#define HR_ENGINE_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/meter.h"
#include "engine/stage.h"

struct hr_span {
    uint64_t begin, end; /* ticks */
    struct hr_record_id id;
    uint32_t stage;
};

struct hr_chunk; /* engine/run.h */

struct hr_runner {
    struct hr_thread thread; /* first */
    struct hr_engine *engine;
    int number;
    pthread_t handle; /* for the caller's own: of the latest hr_iter_next */
    bool started;
    bool inside; /* by the engine's lock; see close.c */
    /* What user code it is in: 1 + node, 0 for none; source index, UINT64_MAX for none.
     */
    atomic_uint code_node;
    atomic_ullong code_record;
    struct hr_op_ctx **ctxs; /* per stage: one per step, then the expansion */
    struct hr_meter meter;
    struct hr_chunk *chunks; /* two per stage; the second one where there are requests */
    struct hr_chunk *under_way; /* whose records a worker process has, or NULL */
    unsigned turn;              /* which of the two is next */
    struct hr_buffer *slab;     /* small results share it */
    size_t slab_used;
    struct hr_error error;
    struct hr_span *spans; /* read by others up to span_count */
    atomic_size_t span_count;
    size_t span_room;
};

HR_CHECK enum hr_err
hr__runner_init(struct hr_runner *runner, struct hr_engine *engine, int number);
/* By any thread, once no thread uses the runner any more. */
void hr__runner_finish(struct hr_runner *runner);
/* Runs the claim, outside of the lock. On return *claim is the completed claim, which is
 * an earlier one where a worker process has the records meanwhile, or none (stage NULL).
 */
void hr__run_claim(struct hr_runner *runner, struct hr_claim *claim);

#endif
