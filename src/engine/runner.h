/*
 * engine/runner.h - a thread of the engine, or the consumer's thread during hr_iter_next,
 * with all that it needs to run records of any stage. Only that thread uses it, except
 * for the fields that say otherwise.
 */
#ifndef HR_ENGINE_RUNNER_H
#define HR_ENGINE_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/cpu.h"
#include "engine/meter.h"
#include "engine/stage.h"

/* What a thread did, for the trace. */
enum hr_span_kind {
    HR_SPAN_RECORD, /* a record's steps of a stage that one thread runs together */
    HR_SPAN_NODE,   /* a node's part of it */
    HR_SPAN_WAIT,   /* the consumer slept */
};

struct hr_span {
    uint64_t begin, end;    /* ticks */
    struct hr_record_id id; /* but of WAIT */
    int64_t batch;          /* of the run, from 0; -1: not known yet */
    uint32_t stage, node;   /* node of NODE */
    enum hr_span_kind kind;
};

struct hr_chunk; /* engine/run.h */

struct hr_runner {
    struct hr_thread thread; /* first */
    struct hr_engine *engine;
    int number;
    pthread_t handle; /* for the consumer: of the latest hr_iter_next */
    bool started;
    bool inside; /* guarded by the engine's lock; see close.c */
    /* The user code that it is in: 1 + node, or 0; source index, or UINT64_MAX; since
     * when, by the engine's code_clock, or UINT64_MAX while it waits to enter. */
    atomic_uint code_node;
    atomic_ullong code_record, code_since;
    struct hr_cpu_watch watch; /* of some claims, where there is a demand */
    uint64_t watched_ticks;    /* when the last of them ended */
    uint64_t queued_ticks;     /* of this piece of work: for a lock of user code */
    struct hr_op_ctx **ctxs;   /* per stage: one per step, then the expansion */
    struct hr_meter meter;
    struct hr_chunk *chunks;    /* two per stage; the second is used only with requests */
    struct hr_chunk *under_way; /* the chunk with an outstanding request, or NULL */
    struct hr_record_id *ahead_ids; /* of a record to read ahead: one per path */
    int processes;                  /* worker processes that it has started */
    unsigned turn;                  /* which of the two chunks is next */
    struct hr_buffer *slab;         /* small results share it */
    size_t slab_used;
    struct hr_error error;
    struct hr_span *spans; /* read by others up to span_count */
    atomic_size_t span_count;
    size_t span_next; /* those from span_count on are of a record that is not done */
    size_t span_room;
};

HR_CHECK enum hr_err
hr__runner_init(struct hr_runner *runner, struct hr_engine *engine, int number);
/* Any thread, once no thread uses the runner. */
void hr__runner_finish(struct hr_runner *runner);
/* Runs the claim, without the lock. On return *claim is the completed claim: an earlier
 * one if the records are with a worker process now, or none (stage NULL). */
void hr__run_claim(struct hr_runner *runner, struct hr_claim *claim);

#endif
