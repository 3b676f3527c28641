/*
 * graph/plan.h - how a graph is run: a value that opt makes and engine obeys.
 *
 * A plan cuts the graph into stages. A stage carries a record through all of its steps
 * (run to completion) and hands it to the stage's end: an expansion into children, order
 * ops that must see the stream, a batcher. A queue bounded in bytes connects two stages.
 * Inside a stage, groups of steps share one piece of work on a deferred value (decode,
 * crop, resize, normalise, store).
 *
 * The plan is complete: the engine takes every size, limit and place of a step from it.
 */
#ifndef HR_GRAPH_PLAN_H
#define HR_GRAPH_PLAN_H

#include "graph/graph.h"

#define HR_PLAN_VERSION 1
#define HR_PLAN_STAGES_MAX 16
#define HR_PLAN_SEQUENCE_MAX 16
#define HR_PLAN_REASON_MAX 160
#define HR_PLAN_BATCHES_MAX 64 /* made ahead */
#define HR_PLAN_BYTES_MAX ((uint64_t)1 << 50)
#define HR_PLAN_REQUEST_RECORDS_MAX 512
#define HR_NO_NODE UINT32_MAX

/* Where a step runs. A stage is carried by threads; with `threads: 0` in the plan, by the
 * thread that calls hr_iter_next. */
enum hr_plan_variant {
    HR_PLAN_THREADS,   /* in the thread that carries the record */
    HR_PLAN_INLINE,    /* there too, but never two calls at once */
    HR_PLAN_PROCESSES, /* in a worker process, many records a request */
    HR_PLAN_REMOTE,    /* on a remote worker */
    HR_PLAN_VARIANTS
};

struct hr_plan_step {
    uint32_t node;
    enum hr_plan_variant variant;
    uint32_t group; /* node that heads the composed work this step belongs to; itself when
                       alone */
    bool force_after; /* its deferred results are made at once: a rewrite of the graph, or
                         a split that changes no byte */
    char reason[HR_PLAN_REASON_MAX]; /* why it was or was not composed */
    int line, column;                /* where it was written, or 0 */
};

/*
 * Memory of a stage. Limits in bytes apply to what is alive at once, but an empty stage
 * or queue always accepts one record, however large it is, so a run makes progress under
 * any limits. hr__plan_divide() sets limits that fit the budget with records of the
 * largest size.
 */
struct hr_plan_stage_memory {
    uint32_t block_records; /* records handed out together, at most */
    uint32_t block_count;   /* blocks alive at once, at most */
    uint64_t block_bytes;   /* of all live blocks: inputs, results, children */
    uint32_t queue_records; /* in the queue before the stage; 0 for stage 0 */
    uint64_t queue_bytes;
    uint64_t held_bytes; /* in the shuffle window and in the batch being gathered or made.
                            Not a limit: the graph decides these. */
    char reason[HR_PLAN_REASON_MAX];
};

struct hr_plan_stage {
    struct hr_plan_step *steps;
    size_t step_count;
    uint32_t feed;   /* node whose records come in; HR_NO_NODE for stage 0, which reads
                        sources */
    uint32_t last;   /* node whose records the steps end with: the last step, or feed */
    uint32_t expand; /* node or HR_NO_NODE */
    enum hr_plan_variant expand_variant;
    /* Nodes that see the records in order, one after the other: batchers, windows, take
     * after a filter (op/sequence.h). */
    uint32_t sequence[HR_PLAN_SEQUENCE_MAX];
    size_t sequence_count;
    bool filters;   /* a step may drop records */
    bool describes; /* deferred values cross the cut after it as descriptions, because a
                       later stage continues their group */
    bool direct;    /* positions of records are known beforehand: results go straight into
                       batch slots */
    char reason[HR_PLAN_REASON_MAX];
    int line, column; /* where it was written, or 0 */

    int parallelism; /* threads that run its steps at once, at most */
    /* A thread takes chunks of about `chunk_ns` of work, within these limits on records
     * and bytes of scratch. Requests to worker processes are larger, up to `request_ns`,
     * but are shared out over all threads (0: the stage makes no requests). */
    uint64_t chunk_ns, request_ns;
    uint32_t chunk_records;
    uint64_t chunk_bytes;
    /* A thread prepares the next request while a process works, unless records take
     * longer than this: then other processes might have none left. 0: never. */
    uint64_t overlap_ns;
    struct hr_plan_stage_memory memory;
};

/* Memory of the whole run, in bytes; see hr__plan_divide(). */
struct hr_plan_memory {
    uint64_t budget;  /* 0: none was given */
    uint64_t program; /* resident before the first record: libraries, graph, threads */
    uint64_t scratch; /* of one thread while it runs a record: arena and codec state */
    uint64_t kept;    /* by states of nodes, between records: tables, caches */
    uint64_t channel; /* one direction of a channel to a worker process; 0: none */
    uint64_t read_ahead;
    uint32_t read_ahead_files;
    uint64_t batch;         /* one batch of output */
    uint32_t batches_ahead; /* finished or in progress and not yet delivered, at most */
    /* A large batch starts only after the consumer has released its previous one, or
     * after this time. 0: at once. */
    uint64_t release_wait_ns;
    uint64_t total; /* sum of everything, including all stages and the batch that the
                       consumer holds */
    uint64_t least; /* the smallest budget that works */
    bool measured;  /* sizes were measured, not estimated from schemas */
    char reason[HR_PLAN_REASON_MAX];
};

struct hr_plan {
    const struct hr_graph *graph; /* borrowed */
    struct hr_plan_stage stages[HR_PLAN_STAGES_MAX];
    size_t stage_count;
    uint32_t root; /* everything up to this node is one to one, and positions are known */
    uint32_t remote; /* steps up to this node run on remote workers; HR_NO_NODE: none. Not
                        part of the text: options say where the workers are */
    int threads;     /* 0: inline */
    bool ordered;
    char threads_reason[HR_PLAN_REASON_MAX];
    uint64_t help_ns; /* the consumer's thread makes batches too if one takes less than
                         this; 0: only when there are no threads */
    uint64_t wake_ns; /* if a batch takes less than this, the consumer's thread sleeps
                         until several are ready, but no longer than this; 0: until one */
    struct hr_plan_memory memory;
};

/* The last node that the stage's records pass, and so what the next stage is fed with. */
uint32_t hr__plan_stage_end(const struct hr_plan_stage *stage);

/* The stage's last node that joins records (hr_op_sequence.runs or joins), or HR_NO_NODE.
 */
uint32_t
hr__plan_stage_batch(const struct hr_plan *plan, const struct hr_plan_stage *stage);

/* Frees what the plan holds. */
void hr__plan_finish(struct hr_plan *plan);

/* True if both are for the same graph and print the same text. */
bool hr__plan_equal(const struct hr_plan *a, const struct hr_plan *b);

/* The shape of the plan for people: stages, groups, reasons. */
void hr__plan_explain(const struct hr_plan *plan, struct hr_str *out);

/* The whole plan as YAML or JSON. hr__plan_parse() reads an equal plan from it. Marks
 * `out` as failed when out of memory. */
void hr__plan_print(const struct hr_plan *plan, enum hr_graph_format format,
                    struct hr_str *out);

/*
 * Reads a plan of this frozen graph. Checks the fingerprint, all names, types and ranges;
 * hr__plan_check (opt/opt.h) then checks it against the graph and sets the members that
 * follow from the graph. On failure *reterr has file (`name`), line and column.
 * hr__plan_finish() the result.
 */
HR_CHECK enum hr_err
hr__plan_parse(const struct hr_graph *graph, const char *text, size_t bytes,
               const char *name, struct hr_plan *ret_plan, struct hr_error *reterr);

/* Sets an error about a plan that was read: its place and "name:line:column: " before the
 * message; the message alone if line is 0. */
enum hr_err
hr__plan_fail_at(struct hr_error *error, enum hr_err code, const char *name, int line,
                 int column, const char *format, ...) HR_PRINTF(6, 7);

#endif
