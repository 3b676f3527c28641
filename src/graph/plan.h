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
 * Memory of a stage. Bytes count what is alive in a place; an empty place always accepts
 * one unit (a block of one record, a record of the queue), however large it is, so a run
 * makes progress under any limits. hr__plan_divide() sets them such that all places
 * together, each with one unit of the largest size, fit the budget.
 */
struct hr_plan_stage_memory {
    uint32_t block_records; /* records handed out together, at most */
    uint32_t block_count;   /* blocks alive at once, at most */
    uint64_t block_bytes;   /* of all live blocks: inputs, results, children */
    uint32_t queue_records; /* in the queue before the stage; 0 for stage 0 */
    uint64_t queue_bytes;
    uint64_t held_bytes; /* records that its end holds: shuffle window, batch that is
                            gathered, and the batch made of them. Not a limit: graphs
                            decide this. */
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
    uint32_t streams[HR_NODE_INPUTS_MAX]; /* ORDER nodes in stream form, in order */
    size_t stream_count;
    uint32_t batch; /* node or HR_NO_NODE */
    bool filters;   /* a step may drop records */
    bool describes; /* the next stage goes on with deferred values of this one: they cross
                       the cut as descriptions, not made */
    bool direct;    /* positions of records are known beforehand: results go straight into
                       batch slots */
    char reason[HR_PLAN_REASON_MAX];
    int line, column; /* where it was written, or 0 */

    int parallelism; /* threads that run its steps at once, at most */
    /* A thread takes chunks of about `chunk_ns` of work, and no more records or bytes of
     * scratch than these. Requests to worker processes are larger, up to `request_ns`,
     * but such that all threads have some (0: the stage makes no requests). */
    uint64_t chunk_ns, request_ns;
    uint32_t chunk_records;
    uint64_t chunk_bytes;
    /* A thread prepares the next request while the process works on one, unless records
     * take longer than this: then it would take work from other processes. 0: never. */
    uint64_t overlap_ns;
    struct hr_plan_stage_memory memory;
};

/* Memory of the whole run, in bytes; see hr__plan_divide(). */
struct hr_plan_memory {
    uint64_t budget;  /* 0: none was given */
    uint64_t program; /* libraries, graph, threads: what a run takes before any record */
    uint64_t scratch; /* of one thread while a record runs, arena and codec included */
    uint64_t channel; /* one direction of one channel to a worker process; 0: no such */
    uint64_t read_ahead;
    uint32_t read_ahead_files;
    uint64_t batch;         /* one batch of output */
    uint32_t batches_ahead; /* made and not taken yet, at most */
    /* A large batch is begun only when the consumer has released the one before its own,
     * or after this time. 0: do not wait. */
    uint64_t release_wait_ns;
    uint64_t total; /* all of the above times their numbers, with all stages and one
                       batch that the consumer holds */
    uint64_t least; /* the least budget that would do */
    bool measured;  /* by sizes of records that ran, not by schemas alone */
    char reason[HR_PLAN_REASON_MAX];
};

struct hr_plan {
    const struct hr_graph *graph; /* borrowed */
    struct hr_plan_stage stages[HR_PLAN_STAGES_MAX];
    size_t stage_count;
    uint32_t root; /* everything up to this node is one to one, and positions are known */
    int threads;   /* 0: inline */
    bool ordered;
    char threads_reason[HR_PLAN_REASON_MAX];
    uint64_t help_ns; /* the consumer's thread helps with batches that take less; 0: never
                         but inline */
    struct hr_plan_memory memory;
};

/* Frees what the plan holds. */
void hr__plan_finish(struct hr_plan *plan);

/* Equal in everything that is written, for the same graph; places in files do not count.
 */
bool hr__plan_equal(const struct hr_plan *a, const struct hr_plan *b);

/* The shape of the plan for people: stages, groups, reasons. */
void hr__plan_explain(const struct hr_plan *plan, struct hr_str *out);

/* The whole plan as YAML or JSON. hr__plan_parse() reads an equal plan from it. Marks
 * `out` as failed when out of memory. */
void hr__plan_print(const struct hr_plan *plan, enum hr_graph_format format,
                    struct hr_str *out);

/*
 * Read a plan of this graph, which is frozen. Checks the fingerprint, all names, types
 * and ranges; what the graph allows is hr__plan_check's to say (opt/opt.h), which also
 * fills in the members that follow from the graph. On failure *reterr has file (`name`),
 * line and column. hr__plan_finish() the result.
 */
HR_CHECK enum hr_err
hr__plan_parse(const struct hr_graph *graph, const char *text, size_t bytes,
               const char *name, struct hr_plan *ret_plan, struct hr_error *reterr);

/* For messages about a plan that was read: "name:line:column: " and the text, with the
 * same place in the error; the text alone where line is 0. */
enum hr_err
hr__plan_fail_at(struct hr_error *error, enum hr_err code, const char *name, int line,
                 int column, const char *format, ...) HR_PRINTF(6, 7);

#endif
