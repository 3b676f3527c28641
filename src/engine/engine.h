/*
 * engine/engine.h - running a plan. See ARCHITECTURE.md, "How a record moves".
 *
 * Each stage hands out positions in blocks; threads claim chunks of a block, run the
 * records to completion, and put what they made into the block. The stage's sequencer,
 * which is whichever thread finds a block complete, takes the records in order: straight
 * on as a batch when the block is one (direct), else through holes, children, stream ops
 * and batcher. One mutex guards all bookkeeping; it is taken once per chunk, and chunks
 * are sized so that this does not show. Records are made and copied outside of it.
 */
#ifndef HR_ENGINE_ENGINE_H
#define HR_ENGINE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/str.h"
#include "engine/batch.h"
#include "engine/done.h"
#include "engine/meter.h"
#include "store/reader.h"

#define HR_CURSOR_STREAMS 16

/*
 * Where a record stands, so that a new engine can begin at it: run again from `position`
 * of stage 0 with these ordinals, and leave out what each sequencer would give before it.
 */
struct hr_cursor {
    uint64_t epoch, position;
    uint64_t skip_children[HR_PLAN_STAGES_MAX]; /* children of the first record */
    uint64_t skip_out[HR_PLAN_STAGES_MAX]; /* records behind the stage's stream ops */
    uint64_t ordinals[HR_CURSOR_STREAMS];  /* of all stream ops, stage by stage */
    /* For other worlds. All positions of stage 0 below this one, and so many children of
     * the record there, have gone into batches or were dropped; not so with stream ops.
     */
    uint64_t end_position, end_child;
    uint64_t uneven; /* 1: bad records were skipped, so other ranks stand elsewhere */
};

enum hr_record_status {
    HR_RECORD_OPEN,
    HR_RECORD_GOOD,
    HR_RECORD_DROPPED, /* by a filter */
    HR_RECORD_BAD,
    HR_RECORD_UNRUN, /* the run was stopped */
    HR_RECORD_END,   /* the source has none here nor behind */
};

/* A bad attempt at a record; several when substitutes were bad too. */
struct hr_bad {
    struct hr_error error;
    uint64_t index, offset;
    char *detail; /* or NULL */
    bool fatal;   /* not the record's fault: no policy may hide it */
    struct hr_bad *next;
};

struct hr_children {
    uint64_t count;
    struct hr_value *values; /* count x child fields */
};

enum hr_block_state {
    HR_BLOCK_EMPTY,
    HR_BLOCK_OPEN,
    HR_BLOCK_READY,
};

struct hr_block {
    enum hr_block_state state;
    uint64_t number; /* of blocks of its stage */
    uint64_t epoch, first;
    uint32_t size, claimed, done;
    uint32_t holes;
    bool last;   /* the epoch ends behind it */
    uint32_t at; /* the sequencer's next record, and child of it */
    uint64_t child;
    uint8_t *status;
    struct hr_bad **bad;
    struct hr_value
        *rows; /* size x results; in direct stages only fields without a column */
    struct hr_buffer **columns; /* per result; NULL for those in rows */
    struct hr_value *inputs;    /* later stages: size x fields that came in */
    struct hr_record_id *ids;
    struct hr_cursor *cursors; /* later stages */
    struct hr_children *children;
};

/* A record between stages, or the mark that an epoch ends. */
struct hr_item {
    struct hr_record_id id;
    struct hr_cursor cursor;
    uint64_t epoch;
    bool epoch_end;
};

struct hr_batcher {
    int64_t count; /* records so far */
    uint64_t epoch;
    struct hr_buffer **columns;   /* per field, or NULL */
    struct hr_value *rows;        /* size x fields without column */
    struct hr_cursor first, last; /* of the records in it */
    struct hr_record_id id;
};

struct hr_window {
    uint64_t block; /* records permuted together; 0: no such op */
    size_t stream;  /* which stream op */
    uint64_t count, number,
        at; /* records held; blocks so far in the epoch; next to go out */
    struct hr_value *rows;
    struct hr_record_id *ids;
    struct hr_cursor cursor; /* of the first record held */
    uint64_t out;            /* records that have left the stage since `cursor` */
    bool draining;
};

struct hr_stage {
    struct hr_program program;
    struct hr_engine *engine;
    size_t number;
    bool direct;
    uint32_t block_size;
    struct hr_block *blocks;
    size_t block_count, live;
    struct hr_block *open;
    uint64_t blocks_opened;
    double record_ns;    /* moving estimates; they decide the size of chunks */
    double record_bytes; /* of scratch; where there is user code */

    /* stage 0: positions */
    uint64_t epoch, position, epoch_count;
    uint64_t cut; /* epochs below need no more records (a stream op said END) */
    bool exhausted;

    /* later stages: the queue before it */
    struct hr_item *queue;
    struct hr_value *queue_values;
    size_t queue_room, queue_head, queue_count;

    /* sequencer: whoever holds `sequencing` */
    bool sequencing;
    struct hr_runner *sequencer; /* the thread that does; its meter counts what is done */
    size_t ordinal_first;        /* place of its stream ops in hr_cursor.ordinals */
    struct hr_cursor now;        /* ordinals now; skips that are still to be left out */
    uint64_t ended_epoch;        /* 1 + epoch that a stream op has ended */
    uint64_t source_ended, source_end; /* 1 + epoch that its source has ended, where */
    struct hr_window window;
    struct hr_batcher batcher;
    struct hr_value *row; /* a record on its way through the sequencer */
};

/* Counters of a node in one thread. */
struct hr_node_meter {
    uint64_t records, timed, errors, dropped, bytes_in, bytes_out, ticks;
};

struct hr_span {
    uint64_t begin, end; /* ticks */
    uint64_t position;
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
    struct hr_value **slots;  /* per stage: row of slots */
    struct hr_op_ctx **ctxs;  /* per stage: one per step, then the expansion */
    struct hr_record_id *ids; /* per path */
    struct hr_meter meter;
    struct hr_node_meter *meters; /* per node */
    uint64_t *ticks;              /* per node, of the record that is being timed */
    struct hr_chunk *chunks;      /* two per stage; empty where there is no user code */
    struct hr_chunk *under_way;   /* whose records a worker process has, or NULL */
    unsigned turn;                /* which of the two is next */
    struct hr_buffer *slab;       /* small results share it */
    size_t slab_used;
    struct hr_error error;
    struct hr_span *spans;
    size_t span_count, span_room;
};

#define HR_OUT_MAX 128

struct hr_engine {
    struct hr_graph *graph; /* a reference */
    struct hr_plan plan;
    struct hr_iter_options options;
    struct hr_stage stages[HR_PLAN_STAGES_MAX];
    size_t stage_count;
    struct hr_pool *pool;
    struct hr_reader *reader;
    struct hr_runner *runners; /* threads, then the caller's own */
    int thread_count;
    uint64_t ahead_next; /* atomic: first position not yet named to the reader */
    int ahead_depth;

    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* for workers; for the consumer */
    pthread_cond_t left; /* a thread has left; see close.c, as for the three below */
    int inside;          /* threads */
    bool stop_asked, closed;
    int idle;
    bool consumer_waits;
    bool processes;             /* some code runs in worker processes */
    atomic_size_t shared_bytes; /* with them */
    struct hr_code_host host;   /* the graph's, called by one thread at a time */
    pthread_mutex_t host_lock;
    atomic_bool cancelled, stop;
    bool finished;
    /* Stage whose sequencer met the error that ends the run, -1 for none. It and the
     * stages before it do no more; those behind it finish what is in order before the
     * error. */
    int fail_stage;
    struct hr_error error;
    char *detail;      /* long text about `error`, or NULL */
    bool detail_given; /* the consumer has `error` */
    struct hr_batch *out[HR_OUT_MAX];
    struct hr_cursor out_cursor[HR_OUT_MAX];
    size_t out_head, out_count, out_max;
    uint64_t popped_ns; /* when the consumer took the last one */

    /* Where this consumer's share of an epoch begins: at global position `base` in
     * `base_epoch` (a state was restored), at 0 in all others. */
    uint64_t base_epoch, base;
    struct hr_done done; /* and in that epoch, what was done already behind `base` */

    /* consumer's place and counts */
    struct hr_cursor cursor; /* behind the last batch given */
    int64_t epoch_of_delivery;
    uint64_t delivered_records, delivered_batches, delivered_bytes, epoch_delivered;
    uint64_t earlier_records;   /* before the state that the run goes on from */
    uint64_t sequenced_records; /* into batches, those included, for records_max */
    uint64_t errors, substituted, errors_max;
    int ledger_fd;
    uint64_t open_ns, first_batch_ns, wait_ns, blocked_ns, start_ticks;
    char fingerprint[HR_FINGERPRINT_BYTES];
};

/* engine.c */
HR_CHECK enum hr_err
hr__engine_open(struct hr_graph *graph, const struct hr_iter_options *options,
                struct hr_engine **ret_engine, struct hr_error *reterr);
/* *ret_batch is NULL when none came until `until_ns` of the clock (UINT64_MAX: never). */
HR_CHECK enum hr_err
hr__engine_next(struct hr_engine *engine, uint64_t until_ns, struct hr_batch **ret_batch,
                struct hr_error *reterr);
/* Under the lock: the run ends at this stage with this error. One at a later stage comes
 * earlier in the order of records and takes its place. *detail (detail may be NULL) is
 * taken over when the error is. */
void hr__engine_fail(struct hr_engine *engine, size_t stage, const struct hr_error *error,
                     char **detail);
bool hr__stage_failed(const struct hr_stage *stage);

/* Global position (and so the source index) of a consumer's position; positions in an
 * epoch. What stands in for a bad record at the n-th attempt is the n-th behind it of all
 * ranks', the first ones behind the last. Any thread. */
void hr__engine_map(const struct hr_engine *engine, const struct hr_path *path,
                    uint64_t epoch, uint64_t position, uint64_t attempt,
                    struct hr_record_id *id);
uint64_t hr__engine_positions(const struct hr_engine *engine, uint64_t epoch);
/* Whether another world did the record at this position of stage 0; else how many of its
 * children. */
bool hr__engine_is_done(const struct hr_engine *engine, uint64_t epoch, uint64_t position,
                        uint64_t *ret_children);

/* close.c. A thread enters and leaves under the lock; leaving unlocks, and may free the
 * engine. Stopping fails with HR_ERR_LIMIT when threads are still inside after
 * `timeout_ns`, and names one. Closing waits 2 s, unless the engine was asked to stop
 * before; then the last thread inside frees it. */
void hr__engine_enter(struct hr_runner *runner);
void hr__engine_leave(struct hr_runner *runner);
HR_CHECK enum hr_err
hr__engine_stop(struct hr_engine *engine, uint64_t timeout_ns, struct hr_error *reterr);
void hr__engine_close(struct hr_engine *engine);

/* stage.c: under the lock */
struct hr_claim {
    struct hr_stage *stage;
    struct hr_block *block;
    uint32_t at, count;
    /* What running it told: scratch of its records; ticks that are nobody's. */
    uint64_t bytes, lost_ticks;
};
HR_CHECK enum hr_err hr__stage_init(struct hr_stage *stage, struct hr_engine *engine,
                                    size_t number, struct hr_error *reterr);
void hr__stage_finish(struct hr_stage *stage);
bool hr__stage_claim(struct hr_stage *stage, struct hr_claim *ret_claim);
void hr__stage_complete(struct hr_stage *stage, const struct hr_claim *claim,
                        uint64_t ns);
bool hr__stage_drained(const struct hr_stage *stage);
/* Outside of the lock: give up all that the block holds; it may be opened again once its
 * state is EMPTY. */
void hr__block_clear(struct hr_stage *stage, struct hr_block *block);
void hr__children_clear(struct hr_children *children, size_t fields);

/* Errors that are not the record's: no policy may hide them. */
static inline bool hr__error_is_fatal(enum hr_err code)
{
    return code == HR_ERR_MEMORY || code == HR_ERR_INTERNAL || code == HR_ERR_CANCELLED ||
           code == HR_ERR_STATE;
}

/* run.c: outside of the lock. What is done when a claim was run is what hr__run_claim
 * says: another one where a worker process has the records meanwhile, or none (stage
 * NULL). */
HR_CHECK enum hr_err
hr__runner_init(struct hr_runner *runner, struct hr_engine *engine, int number);
void hr__runner_finish(struct hr_runner *runner);
void hr__run_claim(struct hr_runner *runner, struct hr_claim *claim);

/* sequence.c: find a block that can go on and take it on; true when something was done.
 * Called under the lock, which is let go meanwhile. */
bool hr__engine_pump(struct hr_engine *engine, struct hr_runner *runner);

/* state.c: a state that was read, of this or another engine. `fingerprint` lies in the
 * document; `done` is the caller's to finish. */
#define HR_STATE_VERSION 2
struct hr_saved {
    const char *fingerprint;
    uint64_t seed, base, world, rank, records;
    bool moves, even;
    struct hr_cursor cursor;
    struct hr_done done;
};
HR_CHECK enum hr_err hr__saved_parse(const struct hr_doc *doc, struct hr_saved *ret_saved,
                                     struct hr_error *reterr);
HR_CHECK enum hr_err hr__state_print(const struct hr_engine *engine, struct hr_str *out);
HR_CHECK enum hr_err
hr__state_restore(struct hr_engine *engine, const char *json, struct hr_error *reterr);

/* merge.c: one state of those of all ranks of a world, for any world. */
HR_CHECK enum hr_err hr__state_merge(const char *const *states, size_t count,
                                     struct hr_str *out, struct hr_error *reterr);

/* ledger.c */
HR_CHECK enum hr_err hr__ledger_open(struct hr_engine *engine, struct hr_error *reterr);
void hr__ledger_add(struct hr_engine *engine, const struct hr_bad *bad, uint64_t epoch,
                    uint64_t position, const char *outcome);

/* stats.c */
void hr__engine_stats(struct hr_engine *engine, struct hr_iter_stats *ret_stats);
HR_CHECK enum hr_err hr__engine_node_stats(struct hr_engine *engine, size_t at,
                                           struct hr_node_stats *ret_stats);
HR_CHECK enum hr_err hr__engine_trace(struct hr_engine *engine, struct hr_str *out);

#endif
