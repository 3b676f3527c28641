/*
 * engine/engine.h - running a plan. See ARCHITECTURE.md, "How a record moves".
 *
 * Each stage hands out positions in blocks; threads claim chunks of a block, run the
 * records to completion, and put what they made into the block. The stage's sequencer,
 * run by whichever thread completes a block, passes the records on in order: as a whole
 * batch if the block is one (direct), else past holes, with children, through the stage's
 * sequencers (op/sequence.h). One mutex guards all bookkeeping. It is taken once per
 * chunk, and chunks are long enough for that cost to be negligible. Records are made and
 * copied without it.
 */
#ifndef HR_ENGINE_ENGINE_H
#define HR_ENGINE_ENGINE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/str.h"
#include "core/thread.h"
#include "engine/contention.h"
#include "engine/demand.h"
#include "engine/done.h"
#include "engine/feed.h"
#include "engine/ledger.h"
#include "engine/positions.h"
#include "engine/rerun.h"
#include "engine/runner.h"
#include "engine/sample.h"
#include "engine/stage.h"
#include "engine/state.h"
#include "store/reader.h"

#define HR_OUT_MAX 128

struct hr_engine {
    /* Set when the engine opens, before there are threads. */
    struct hr_graph *graph; /* a reference */
    struct hr_plan plan;
    struct hr_iter_options options;
    size_t stage_count;
    struct hr_pool *pool;       /* a reference */
    bool pool_shared;           /* that of hr__engine_open_in() */
    const struct hr_feed *feed; /* of hr__engine_open_in(), or NULL */
    bool bare;                  /* likewise */
    int nice;                   /* likewise */
    struct hr_reader *reader;
    struct hr_runner *runners; /* threads, then the consumer's own */
    int thread_count;
    int ahead_depth;
    bool remote; /* a source reads over a network */
    size_t out_max;
    uint64_t errors_max, epochs_max;
    uint64_t earlier_records; /* before the state that the run resumed from */
    uint64_t open_ns, open_cpu_ns, start_ticks;
    char fingerprint[HR_FINGERPRINT_BYTES]; /* that states bear */
    struct hr_code_host host;               /* the graph's; called under `host_lock` */
    /* The expansion whose children a place without a mark counts: the first one, when no
     * node before it sees records in order. Or HR_NO_NODE. */
    uint32_t child_node;
    struct hr_sizes
        sizes;           /* of records, as far as known; with a budget, under the lock */
    uint64_t kept_least; /* hr__plan_kept_least() when memory was divided; as sizes */
    /* With a budget: how many bytes more than a value takes its buffer may have, so that
     * a stored value keeps it. Larger buffers, such as decoded pages, would stay for a
     * few of their values, and only values are counted. */
    size_t owner_spare;
    /* Ranks that divide the records of the sources; 0 of 1 where all ranks read all of
     * them, because they divide the outputs of a sequencer (hr__engine_divider);
     * world 0: the graph has an order.shard. */
    uint64_t source_rank, source_world;
    uint32_t divider; /* that sequencer's node, or HR_NO_NODE */
    /* Where this consumer's positions of an epoch begin: at global position `base` in
     * `base_epoch` (a state was restored), at 0 in all others; and which records after
     * `base` were already done. */
    uint64_t base_epoch, base;
    struct hr_done done;
    struct hr_rerun rerun; /* those before a state's place that are made again */
    bool one_record; /* each record is record 0 of epoch 0 (hr_iter_seed); without threads
                        only */

    /* Synchronised by their own means. */
    struct hr_stage stages[HR_PLAN_STAGES_MAX]; /* see stage.h */
    pthread_mutex_t host_lock;
    atomic_bool cancelled, stop;
    struct hr_stolen stolen;  /* see sample.h */
    atomic_ullong code_clock; /* advances whenever the consumer wakes; dates code_since */
    atomic_size_t shared_bytes; /* with worker processes */
    atomic_int processes;       /* of them, alive */
    atomic_ullong worker_ns;    /* CPU time in them */
    uint64_t positions_first;   /* where the run begins */
    uint64_t positions_max; /* that records_max needs from there; UINT64_MAX: unknown */
    uint64_t ahead_next;    /* by __atomic: first position not yet named; see ahead.c */
    uint64_t errors, substituted; /* by __atomic: the sequencers add */
    struct hr_ledger ledger;      /* has a lock of its own */

    /* Guarded by `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* for threads; for the consumer */
    pthread_cond_t left;        /* a thread has left; this and the next three: close.c */
    int inside;                 /* threads */
    bool stop_asked, closed;
    int idle; /* threads that sleep */
    struct hr_contention contention;
    struct hr_demand demand;
    bool consumer_waits;
    bool lacked_room;     /* a block that could be sequenced last time had no room */
    size_t wake_at;       /* the number of ready batches at which it is woken */
    uint64_t waiting_ns;  /* since when the consumer wants a batch; 0: it has one */
    atomic_bool finished; /* records_max has gone into batches; read without the lock */
    /* Stage whose sequencer met the error that ends the run; -1 for none. That stage and
     * those before it stop; later stages finish what precedes the error. */
    atomic_int fail_stage; /* read without the lock */
    struct hr_error error;
    char *detail;      /* long text about `error`, or NULL */
    bool detail_given; /* the consumer has `error` */
    struct hr_batch *out[HR_OUT_MAX];
    struct hr_place out_place[HR_OUT_MAX]; /* after each of them */
    size_t out_head, out_count;
    uint64_t sequenced_records; /* into batches, earlier ones included; written by the
                                   last stage's sequencer, which reads it without */
    uint64_t epoch;             /* of the last batch given */
    struct hr_place place;      /* after it */
    int64_t epoch_of_delivery;
    uint64_t delivered_records, delivered_batches, delivered_bytes, epoch_delivered;
    uint64_t popped_ns; /* when the consumer took the last one */
    uint64_t first_batch_ns, wait_ns, blocked_ns;
};

/* Called by every function that says "under the lock". */
static inline void hr__engine_assert_locked(const struct hr_engine *engine)
{
    hr__assert_locked(&engine->lock);
}

/* The fast case of hr__engine_map, for graphs without order ops, whose records may cost
 * only nanoseconds. Returns false if the general function is needed. */
static inline bool
hr__engine_map_plain(const struct hr_engine *engine, const struct hr_path *path,
                     uint64_t epoch, uint64_t position, struct hr_record_id *ret_id)
{
    uint64_t at = position * engine->source_world + engine->source_rank;

    if (engine->source_world == 0 || epoch == engine->base_epoch || at >= path->n ||
        engine->one_record)
        return false;
    assert(path->count == 0 && epoch < HR_DRAW_EPOCHS_MAX);
    ret_id->seed = engine->options.seed;
    ret_id->position = ret_id->index = at;
    ret_id->epoch = ret_id->draw_epoch = (uint32_t)epoch;
    ret_id->depth = 0;
    return true;
}

/* engine.c: hr_iter_seed() for a run in this process. */
HR_CHECK enum hr_err
hr__engine_seed(struct hr_engine *engine, uint64_t seed, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__engine_open(struct hr_graph *graph, const struct hr_iter_options *options,
                struct hr_engine **ret_engine, struct hr_error *reterr);
/* What a run of the service has beside its options. Zeros: nothing. */
struct hr_engine_place {
    /* For batches, in runs that follow each other: fresh memory costs more than many a
     * batch. The engine takes a reference; the plan's limit of idle memory is not set in
     * it. */
    struct hr_pool *pool;
    const struct hr_feed *feed; /* makes the first steps' records; lives until its close()
                                   is called, also after failure */
    /* A graph without a batch op delivers the values of each record as they are, not as a
     * batch of one. */
    bool bare;
    int nice; /* steps by which its threads get less of the cores (hr__thread_nice) */
};
HR_CHECK enum hr_err
hr__engine_open_in(struct hr_graph *graph, const struct hr_iter_options *options,
                   const struct hr_engine_place *place, struct hr_engine **ret_engine,
                   struct hr_error *reterr);
/* feed.c: says where the run begins, once that is known and before there are threads. */
HR_CHECK enum hr_err hr__feed_begin(struct hr_engine *engine, struct hr_error *reterr);
/* engine_plan.c: the plan that a run of this frozen graph with these options obeys;
 * hr__plan_finish() it. With a budget also the sizes of its records, from a survey.
 * `remote`: as in hr_opt_settings. */
HR_CHECK enum hr_err
hr__engine_plan(const struct hr_graph *graph, const struct hr_iter_options *options,
                const uint32_t *remote, struct hr_plan *ret_plan,
                struct hr_sizes *ret_sizes, struct hr_error *reterr);
/* survey.c: raises `most`, one per node, to the sizes of records of the first epochs. */
HR_CHECK enum hr_err
hr__engine_survey(const struct hr_plan *plan, const struct hr_iter_options *options,
                  struct hr_extent *most, struct hr_error *reterr);
/* Waits until the clock shows `until_ns` at most (UINT64_MAX: no limit); then *ret_batch
 * is NULL. */
HR_CHECK enum hr_err
hr__engine_next(struct hr_engine *engine, uint64_t until_ns, struct hr_batch **ret_batch,
                struct hr_error *reterr);
/* Whether everything has been output and counted; after a failure, everything that
 * precedes the error. Under the lock. */
bool hr__engine_drained(const struct hr_engine *engine);
/* Ends the run at this stage with this error. An error of a later stage replaces it,
 * since it comes earlier in the order of records. Takes *detail over if it keeps the
 * error; `detail` may be NULL. Under the lock. */
void hr__engine_fail(struct hr_engine *engine, size_t stage, const struct hr_error *error,
                     char **detail);
bool hr__stage_failed(const struct hr_stage *stage);

/* threads.c */
HR_CHECK enum hr_err
hr__engine_start_threads(struct hr_engine *engine, struct hr_error *reterr);
/* Does one piece of work, if there is any, and returns whether it did. Under the lock,
 * which it releases while it works. */
bool hr__engine_work(struct hr_engine *engine, struct hr_runner *runner);
/* Sleeps until the condition is signalled, `until_ns` or 50 ms have passed. Under the
 * lock. */
void hr__engine_sleep(struct hr_runner *runner, pthread_cond_t *condition,
                      uint64_t until_ns);

/* epoch_size.c. hr__engine_check_options checks ranges. hr__engine_set_world checks rank
 * and world against the graph; afterwards world is 0 only if the graph has an
 * order.shard. For the size of an epoch see hr_graph_epoch_size. */
HR_CHECK enum hr_err
hr__engine_check_options(const struct hr_iter_options *o, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__engine_set_world(const struct hr_graph *graph, struct hr_iter_options *o,
                     struct hr_error *reterr);
/* The output, or what the maps before it work on: a node whose records have numbers, or
 * the last that is no map. */
uint32_t hr__engine_last_not_mapped(const struct hr_graph *graph);
/* The node whose outputs ranks divide, because it joins neighbouring records: the last
 * one in the order of records. HR_NO_NODE: ranks divide the records of the sources. */
uint32_t hr__engine_divider(const struct hr_graph *graph);
HR_CHECK enum hr_err
hr__engine_epoch_size(const struct hr_graph *graph, const struct hr_iter_options *options,
                      struct hr_epoch_size *ret_size, struct hr_error *reterr);

/* close.c. A thread enters and leaves under the lock; leaving unlocks, and may free the
 * engine. Stopping fails with HR_ERR_LIMIT when threads are still inside after
 * `timeout_ns`, and names one. Closing waits 2 s, unless the engine was asked to stop
 * before; then the last thread inside frees it. */
void hr__engine_enter(struct hr_runner *runner);
void hr__engine_leave(struct hr_runner *runner);
HR_CHECK enum hr_err
hr__engine_stop(struct hr_engine *engine, uint64_t timeout_ns, struct hr_error *reterr);
/* HR_ERR_TIMEOUT, which says what the engine's threads are doing. Under the lock, in the
 * consumer's thread. */
void hr__engine_time_out(const struct hr_engine *engine, struct hr_error *error);
void hr__engine_close(struct hr_engine *engine);

/* sequence.c: sequences one block that is ready, if there is one, and returns whether it
 * did anything. Called under the lock, which it releases while it works. */
bool hr__engine_pump(struct hr_engine *engine, struct hr_runner *runner);

/* stats.c */
void hr__engine_stats(struct hr_engine *engine, struct hr_iter_stats *ret_stats);
HR_CHECK enum hr_err hr__engine_node_stats(struct hr_engine *engine, size_t at,
                                           struct hr_node_stats *ret_stats);
/* The sampled records of node `at` so far: y is their CPU time in the node, x their
 * bytes. */
struct hr_fit hr__engine_node_fit(struct hr_engine *engine, size_t at);
HR_CHECK enum hr_err hr__engine_trace(struct hr_engine *engine, struct hr_str *out);

#endif
