/*
 * engine/run.h - shared by the files that run records: run.c (the loop), runner.c (its
 * rows and contexts), rows.c (records that a source makes at once), bad.c (records that
 * fail), ahead.c (read-ahead), store.c (results), span.c (traces), user_code.c (user code
 * in this thread), process.c (steps in a worker process), feed.c (steps on remote
 * workers).
 * Everything here belongs to one runner; nothing is called under the lock.
 */
#ifndef HR_ENGINE_RUN_H
#define HR_ENGINE_RUN_H

#include <assert.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "engine/engine.h"
#include "engine/sample.h"

/* Largest number of rows in a chunk. */
#define HR_CHUNK_ROWS 512

struct hr_proc;
struct hr_proc_record;

/* `count` records of a block that are being run. */
struct hr_pass {
    struct hr_runner *runner;
    struct hr_stage *stage;
    struct hr_block *block;
    struct hr_chunk *chunk;
    uint32_t at, count; /* row 0 is record `at` */
    double record_ns;   /* see struct hr_claim */
    uint64_t attempt;
    uint64_t bytes;      /* needed by the rows beyond the arena */
    uint64_t lost_ticks; /* not charged to any record */
};

/* The rows of a pass. If a stage has requests, a runner alternates between two of these:
 * while a worker process has the records of one, the runner prepares and stores those of
 * the other. */
struct hr_chunk {
    uint32_t room, live_count;
    uint32_t *live;           /* rows that are still open, in order */
    struct hr_value *rows;    /* room x slot_count + 1 */
    struct hr_record_id *ids; /* room x id_count */
    uint16_t *resume;   /* per row: a cache knows it, so no step before this one runs */
    uint8_t *sample_of; /* per row: 1 + its sample; 0: it is not timed */
    struct hr_sample samples[HR_SAMPLES_MAX]; /* one where there are no segments */
    uint32_t sample_count;
    struct hr_proc **procs; /* per segment; NULL until it is used */
    struct hr_proc_record *records;
    struct hr_value *shipped; /* room x most inputs of a request */

    /* Only in stages with requests. */
    unsigned channel;      /* in the worker processes */
    struct hr_arena arena; /* the runner's own while these records run */
    struct hr_pass pass;   /* the current one */
    size_t waits_at;       /* segment of the outstanding request; segment_count: none */
    uint64_t begin_ticks;  /* when it began, for the trace */
};

/* bad.c */
/* Names the node in runner->error unless the error names one already, and counts the
 * error. */
void hr__run_blame(struct hr_runner *runner, uint32_t node);
/* Marks record `at` bad because of runner->error, which it clears. `ids` are the record's
 * identities, one per path. Takes `detail` over. */
void hr__run_note_bad(struct hr_runner *runner, struct hr_stage *stage,
                      struct hr_block *block, uint32_t at, const struct hr_record_id *ids,
                      char *detail, bool fatal);
/* Ends the run at record `at` because of runner->error, which it clears: what makes the
 * records failed, not a record or node. */
void hr__run_note_outside(struct hr_runner *runner, struct hr_block *block, uint32_t at);
/* Sets the record's identity in the error and appends the record, or the file that it is
 * in, to the message. */
void hr__run_locate(const struct hr_graph *graph, uint32_t source,
                    const struct hr_record_id *id, struct hr_error *error);
/* Whether another record may replace this bad one. */
bool hr__run_may_substitute(const struct hr_stage *stage, const struct hr_bad *last,
                            uint64_t attempt);

/* ahead.c: whether a source reads objects over a network; stage 0 is compiled. */
bool hr__ahead_is_remote(const struct hr_engine *engine);
/* Names to the reader what the source will read. */
void hr__run_ahead(struct hr_runner *runner, const struct hr_claim *claim);

/* rows.c: lets the source make records of the pass at once, from the first on. Returns
 * how many are done, which may be none: the one after them is to be run by itself. */
uint32_t hr__run_rows(struct hr_pass *pass);

/* finals.c: the place of a row's result in the batch or the block; NULL if the result has
 * no column. */
void *hr__pass_place(const struct hr_pass *pass, uint32_t row, size_t result);
/* Tells the ops where the row's placed results go. */
void hr__finals_set(const struct hr_pass *pass, uint32_t row);

/* cached.c: asks the caches before step `at`. Returns the step after the one that knows
 * the record, whose values are set or which is dropped; `at` if none does. */
size_t hr__cached_next(struct hr_pass *pass, uint32_t row, size_t at);
/* Makes the caches after `node` remember that the record was dropped there. */
void hr__cached_dropped(struct hr_pass *pass, uint32_t row, uint32_t node);
/* Whether a cache spares the source the record with these identities. */
bool hr__cached_holds(const struct hr_program *program, uint32_t source,
                      const struct hr_record_id *ids);
/* Lists in `live` the open rows that the segment is for; NULL: all open rows. */
void hr__cached_gather(struct hr_pass *pass, const struct hr_segment *segment);

/* run.c: runs the segment's steps for an open row in this thread. */
void hr__pass_run_row(struct hr_pass *pass, const struct hr_segment *segment,
                      uint32_t row);
/* feed.c: takes the open rows' values from where the segment's steps run. */
void hr__feed_segment(struct hr_pass *pass, const struct hr_segment *segment);

/* store.c */
HR_CHECK enum hr_err hr__store_column(struct hr_runner *runner, struct hr_value *value,
                                      const struct hr_out_field *out, char *to);
HR_CHECK enum hr_err
hr__store_children(struct hr_runner *runner, struct hr_stage *stage,
                   struct hr_block *block, uint32_t at, struct hr_value *slots);
/* Whether a stored value may keep the buffer that it lies in. */
bool hr__store_may_share(const struct hr_runner *runner, const struct hr_value *value);
/* Makes a value that outlives the record, with its bytes in a buffer. `value` stays
 * valid; its owner may move to the result. */
HR_CHECK enum hr_err hr__store_keep(struct hr_runner *runner, struct hr_value *value,
                                    struct hr_value *ret_value);
/* Stores a value for the next stage. A deferred one is made if the plan ends its group
 * there; else, or if it cannot be made, it is stored as BYTES that hold its description
 * and what that refers to, so a node that needs it reports the error. */
HR_CHECK enum hr_err
hr__store_at_cut(struct hr_runner *runner, const struct hr_program *p,
                 struct hr_value *value, struct hr_value *ret_value);
/* The reverse: the deferred value that such bytes describe, in this record's arena. It
 * refers to the bytes, so `kept` must live until the record ends. */
HR_CHECK enum hr_err
hr__store_described(struct hr_runner *runner, const struct hr_value *kept,
                    struct hr_value *ret_value);
/* Allocates memory that outlives the record, aligned to 16. Small pieces share a buffer.
 */
HR_CHECK enum hr_err hr__store_memory(struct hr_runner *runner, size_t bytes,
                                      void **ret_memory, struct hr_buffer **ret_owner);

/* Stores the results of the steps in the batch or the block. Inline, since a record of
 * numbers takes only a few ns. */
static inline enum hr_err
hr__store_results(struct hr_runner *runner, struct hr_stage *stage,
                  struct hr_block *block, uint32_t at, struct hr_value *slots)
{
    const struct hr_program *p = &stage->program;

    for (size_t f = 0; f < p->out_count; f++) {
        const struct hr_out_field *out = &p->out[f];
        struct hr_value *value = &slots[out->slot];
        char *to;

        if (block->columns[f] == NULL) {
            struct hr_value *row = &block->rows[at * p->out_count + f];

            HR_TRY(p->cut ? hr__store_at_cut(runner, p, value, row)
                          : hr__store_keep(runner, value, row));
            continue;
        }
        assert(!p->cut || !hr__field_may_defer(out->field));
        to = (char *)hr_buffer_data(block->columns[f]) + (size_t)at * (size_t)out->bytes;
        if (value->kind == HR_VALUE_TENSOR && value->bytes == 8 && out->bytes == 8 &&
            value->ndim == 0)
            memmove(to, value->data, 8);
        else
            HR_TRY(hr__store_column(runner, value, out, to));
    }
    return HR_OK;
}

/* span.c: spans of the trace, in ticks. hr_thread.part: a node's part of a record; it is
 * recorded with the record, or dropped by hr__span_begin. */
void hr__span_part(struct hr_thread *thread, uint32_t node, uint64_t begin, uint64_t end);
/* Drops parts without a record; returns now. */
uint64_t hr__span_begin(struct hr_runner *runner);
/* A record's steps, with the parts since hr__span_begin; or of one node only, if `node`
 * is not HR_NO_NODE. */
void hr__span_record(struct hr_runner *runner, const struct hr_pass *pass,
                     const struct hr_record_id *id, uint32_t node, uint64_t begin,
                     uint64_t end);
/* The consumer slept until now; `batch` is the one that it wants. */
void hr__span_wait(struct hr_runner *runner, uint64_t batch, uint64_t begin);
/* Where the bytes that pass `node` are added up while a record is timed, or NULL. */
static inline struct hr_charge *hr__run_charge(struct hr_runner *runner, uint32_t node)
{
    struct hr_charge *charges = runner->thread.charges;

    if (charges == NULL)
        return NULL;
    charges[node].ran = true;
    return &charges[node];
}
/* Bytes of these values. */
uint64_t hr__run_bytes(struct hr_value *const *values, size_t count);

static inline struct hr_value *hr__pass_slots(const struct hr_pass *pass, uint32_t row)
{
    return &pass->chunk->rows[row * (pass->stage->program.slot_count + 1)];
}

static inline struct hr_record_id *hr__pass_ids(const struct hr_pass *pass, uint32_t row)
{
    return &pass->chunk->ids[row * pass->stage->program.id_count];
}

/* Points the context of step `at` (step_count: the expansion) at a row. */
static inline void hr__pass_bind(const struct hr_pass *pass, size_t at, uint32_t row)
{
    const struct hr_step *step = hr__program_step(&pass->stage->program, at);
    struct hr_op_ctx *ctx = &pass->runner->ctxs[pass->stage->number][at];
    struct hr_value *slots = hr__pass_slots(pass, row);

    ctx->id = &hr__pass_ids(pass, row)[step->path];
    for (size_t i = 0; i < step->field_count; i++)
        ctx->fields[i] = &slots[step->fields[i]];
}

/* Runs the fork before step `at` and makes the values in the slots `made`, in every row;
 * rows where that fails leave the pass. Which slots is decided when the stage is
 * compiled, since rows differ: a flip by chance defers the image of some of them only. */
void hr__pass_prepare(struct hr_pass *pass, size_t at, const uint16_t *made,
                      size_t count);
/* Removes rows that are no longer open from `live`. */
void hr__pass_compact(struct hr_pass *pass);
/* Row `row` failed in `node` with runner->error. Takes `detail` over. */
void hr__pass_fail(struct hr_pass *pass, uint32_t row, uint32_t node, char *detail,
                   bool fatal);
static inline uint8_t *hr__pass_status(const struct hr_pass *pass, uint32_t row)
{
    return &pass->block->status[pass->at + row];
}
/* Rows that are still open, before `node`, will not be run. */
void hr__pass_give_up(struct hr_pass *pass, uint32_t node);
/* The row ended in `node` with this status. */
void hr__pass_ended(struct hr_pass *pass, uint32_t row, uint32_t node,
                    enum hr_record_status status);
/* If the row is timed, its time from begin to end is charged to `node`. */
static inline void hr__pass_time_begin(struct hr_pass *pass, uint32_t row, uint32_t node)
{
    const struct hr_chunk *chunk = pass->chunk;

    if (chunk->sample_of[row] > 0)
        hr__sample_resume(pass->runner, &chunk->samples[chunk->sample_of[row] - 1], node);
}
static inline void hr__pass_time_end(struct hr_pass *pass)
{
    if (pass->runner->thread.charges != NULL)
        hr__sample_pause(pass->runner);
}
bool hr__pass_stopped(const struct hr_pass *pass);

/* Note, for messages, that the thread enters user code of `node` at source index `record`
 * (UINT64_MAX: none), and that it has returned. */
static inline void
hr__runner_in_code(struct hr_runner *runner, uint32_t node, uint64_t record)
{
    atomic_store_explicit(
        &runner->code_since,
        atomic_load_explicit(&runner->engine->code_clock, memory_order_relaxed),
        memory_order_relaxed);
    atomic_store_explicit(&runner->code_record, record, memory_order_relaxed);
    atomic_store_explicit(&runner->code_node, node + 1, memory_order_relaxed);
}
/* Notes that the thread waits until another has left inline user code of `node`. It is
 * never the thread that others wait for. */
static inline void hr__runner_awaits_code(struct hr_runner *runner, uint32_t node)
{
    hr__runner_in_code(runner, node, UINT64_MAX);
    atomic_store_explicit(&runner->code_since, UINT64_MAX, memory_order_relaxed);
}
static inline void hr__runner_out_of_code(struct hr_runner *runner)
{
    atomic_store_explicit(&runner->code_node, 0, memory_order_relaxed);
}

/* user_code.c, process.c: run all open rows through a segment. A request has two halves;
 * hr__process_begin returns whether hr__process_end must follow. */
void hr__code_segment(struct hr_pass *pass, const struct hr_segment *segment);
bool hr__process_begin(struct hr_pass *pass, const struct hr_segment *segment,
                       struct hr_proc **proc);
void hr__process_end(struct hr_pass *pass, const struct hr_segment *segment,
                     struct hr_proc *proc);
/* At open: sets the host that starts worker processes. Fails if the program has requests
 * and the graph has no host. */
HR_CHECK enum hr_err
hr__process_host(struct hr_engine *engine, const struct hr_program *program,
                 struct hr_error *reterr);
HR_CHECK enum hr_err
hr__process_init(struct hr_chunk *chunk, const struct hr_program *program);
void hr__process_finish(struct hr_chunk *chunk, const struct hr_program *program);
/* Ends the runner's worker processes, of which none has records; they start again when
 * needed. */
void hr__process_release(struct hr_runner *runner);
/* Worker processes that a runner of the stage has. */
size_t hr__process_count(const struct hr_program *program);

#endif
