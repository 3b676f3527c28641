/*
 * engine/program.h - a compiled stage: names resolved to slots, and nodes to steps that
 * hold all they need. Read-only while threads run it.
 */
#ifndef HR_ENGINE_PROGRAM_H
#define HR_ENGINE_PROGRAM_H

#include "graph/plan.h"
#include "proc/proc.h"

/* An order op between a position and a source index. */
struct hr_path_order {
    const struct hr_op *op;
    const void *params;
    void *state;
    uint64_t draw_id; /* of the node */
    uint64_t n;       /* records that it chooses from */
    uint32_t node;
    bool shards;
};

#define HR_NO_PATH SIZE_MAX

/* The end of a path at a merge. The records of its inputs are numbered one input after
 * the other. */
struct hr_merge {
    const struct hr_op *op;
    const void *params;
    uint64_t draw_id, passes, n;
    struct hr_merge_inputs inputs;
    uint64_t *counts; /* records of each input */
    uint64_t *bases;  /* numbers of the records of the inputs before it */
    size_t *paths;    /* the first path of each */
};

/* The end of a path at a join by keys, whose records are numbered by themselves. */
struct hr_join {
    const struct hr_op *op;
    const void *params, *state;
    const struct hr_graph *graph;
};

/* Maps a record's position in the epoch to the index that one source reads, or to the
 * position of a merge or a join by keys, from where a path of each source of one input of
 * the merge, or of all inputs of the join, leads on; outermost op first. */
struct hr_path {
    struct hr_path_order *orders;
    size_t count;
    uint32_t source;        /* or the node of the merge or join */
    uint64_t n;             /* positions in an epoch */
    uint64_t span;          /* indices of the source, merge or join */
    struct hr_merge *merge; /* NULL: does not end at a merge */
    struct hr_join *join;   /* NULL: does not end at a join */
    size_t parent; /* the path that ends at the merge or join before it; or HR_NO_PATH */
    size_t input;  /* of that merge or join */
    bool branches; /* some records have none of it: of an input that a merge does not
                      choose, or that has no record for a join. hr_record_id.index is
                      then HR_INDEX_NONE */
};

/* An identity whose draws stay the same for some epochs: that of a path, or of the record
 * in later stages, with an earlier draw_epoch. It follows the paths' identities. */
struct hr_view {
    uint16_t path;
    uint32_t draws_for; /* hr_graph_node.draws_for */
};

/* A value that a join makes of a field of an input that has no record. */
struct hr_fill {
    uint16_t path;  /* of the input; the record may have none of it */
    uint16_t slot;  /* of the value */
    uint16_t field; /* of the join's schema */
};

/* A path whose identity bears the stamp of the files of a source, among others. */
struct hr_stamp {
    uint16_t path, source; /* the path that ends at the source */
};

struct hr_step {
    const struct hr_op *op;
    const void *params;
    void *state;
    uint32_t node;
    uint64_t draw_id;
    const struct hr_when *when; /* the node's */
    size_t when_count;
    enum hr_plan_variant variant;
    uint16_t field_count, before_count, after_count, clear_count, alias_count, fill_count;
    bool plain;    /* only a call of apply, for all records: no aliases, nothing to
                      fill, make or clear */
    uint16_t path; /* whose identity the record has, or which view of one; a SOURCE also
                      reads by it */
    bool branches; /* its path does: runs only for records that have it */
    const struct hr_merge *merge; /* of a MERGE; the aliases of its inputs follow one
                                     another, equally many of each */
    uint16_t *fields;             /* bound fields' slots, in table order */
    uint16_t *before;             /* slots to be made before the step */
    uint16_t *after;              /* slots to be made right after it */
    bool early;                   /* only the plan asks for that, not the graph */
    uint16_t *clear;              /* slots that the step removes from the record */
    uint16_t *alias;              /* pairs from, to: aliased before the step (a fork) */
    struct hr_fill *fills;        /* of a join by keys: after the aliases */
    uint32_t group;               /* head node of its group */
    uint16_t cache_count;         /* caches that are asked before the step */
    uint16_t *caches;             /* their steps, the last one first */
    const enum hr_param_access *access; /* of the bound fields; the graph's */
    const struct hr_code_use *code;     /* of user code: its inputs and outputs */
    uint16_t *finals; /* of user code and ops with `placed`: per bound field, 1 + the
                         stage's result that the step makes, when no later step touches
                         it; else 0 */
};

/* A field of the records that leave the stage. */
struct hr_out_field {
    uint16_t slot;
    const struct hr_field *field;
    int64_t bytes; /* of one record's tensor when its shape is known, else -1 */
};

/* A result that an op of the library makes where it is stored (finals.c). */
struct hr_placed {
    uint16_t step, field, out;
};

/*
 * A stage with user code or worker processes is run segment by segment, many records at a
 * time: an interpreter's lock is taken, or a request sent, once for all of them. Steps
 * are numbered; step_count stands for the expansion.
 */
enum hr_segment_kind {
    HR_SEGMENT_LOCAL,   /* ops of the library, in this thread */
    HR_SEGMENT_CODE,    /* one step of user code in this thread */
    HR_SEGMENT_PROCESS, /* steps of any kind in a worker process */
    HR_SEGMENT_REMOTE,  /* all steps up to a node, on remote workers (feed.h) */
};

struct hr_segment {
    enum hr_segment_kind kind;
    uint16_t from, to;
    bool branches; /* its steps do */
    struct hr_proc_program *program;
    uint16_t *inputs,
        *results;        /* PROCESS: slots of the row that are sent; that are received */
    size_t result_count; /* REMOTE: of `results` */
    uint16_t *made;      /* PROCESS: the inputs that may be deferred and must be made */
    size_t made_count;
};

struct hr_program {
    const struct hr_plan_stage *plan;
    bool cut; /* its records go to the next stage as the steps leave them */
    struct hr_step *steps;
    size_t step_count;
    struct hr_path *paths; /* stage 0 only */
    size_t path_count;
    bool merges; /* some paths end at merges or joins */
    struct hr_view *views;
    size_t view_count;
    size_t id_count; /* identities of a row: of the paths or the record, and the views */
    size_t cache_count;      /* caches that are asked */
    struct hr_stamp *stamps; /* for the caches of this stage and of later ones */
    size_t stamp_count;
    /* The only step is a source that makes many records at once (rows.c): 1 + the result
     * that each of its fields is. NULL: not so. */
    uint16_t *row_results;
    size_t slot_count;
    uint16_t *in_slots; /* later stages: slot of each field of the records that come in */
    uint16_t *in_kept;  /* of each that may arrive as a description: 1 + the slot that
                           holds what it refers to; else 0 */
    bool in_described;  /* there are such fields */
    size_t in_count;
    struct hr_out_field *out; /* fields after the steps */
    size_t out_count;
    struct hr_placed *placed; /* none in a stage with an expansion */
    size_t placed_count;
    struct hr_step expand;         /* op NULL when there is none */
    struct hr_out_field *children; /* fields of the children */
    size_t child_count;
    const struct hr_schema *leaving;   /* of the records that leave the stage */
    const struct hr_graph_node *batch; /* of a direct stage, else NULL */
    struct hr_sequence_runs runs;      /* of the last joining node; size 0: none */
    /* The first node of the sequence, which is charged for storing results; HR_NO_NODE
     * for none. */
    uint32_t store_node;
    /* The nodes that a record passes before it is stored, in this order: order ops from
     * the last one on, sources, steps, the expansion or `store_node`. Never empty. */
    uint32_t *nodes;
    size_t node_count;
    struct hr_segment *segments;
    size_t segment_count;    /* 0: all steps run in this thread, record by record */
    bool expands_in_segment; /* the expansion is user code, or in a worker process */
    bool processes;          /* some of them go to a worker process */
    uint16_t *remote_slots;  /* of the fields that remote workers make; NULL: none do */
    size_t remote_count;
    bool one_at_a_time;    /* some user code is in one call at a time */
    bool may_wait;         /* a call of some user code may */
    struct hr_arena arena; /* holds all of the above */
};

static inline const struct hr_step *
hr__program_step(const struct hr_program *program, size_t at)
{
    return at < program->step_count ? &program->steps[at] : &program->expand;
}

/* The identities of all paths, by that of the step's. */
static inline const struct hr_record_id *
hr__step_ids(const struct hr_step *step, const struct hr_record_id *id)
{
    return id - step->path;
}

/* rows.c: sets row_results. Returns false when out of memory. */
HR_CHECK bool hr__program_rows(struct hr_program *program);

/* finals.c: sets `finals` and `placed`. Returns false when out of memory. */
HR_CHECK bool hr__program_finals(struct hr_program *program);

/* cached.c: finds out before which steps caches are asked. Returns false when out of
 * memory. */
HR_CHECK bool
hr__program_caches(struct hr_program *program, const struct hr_graph *graph);

/* cached.c: lists the stamps that the caches of the graph need, in stage 0; path_of is 1
 * + the path of a node, or 0. Returns false when out of memory. */
HR_CHECK bool hr__program_stamps(struct hr_program *program, const struct hr_graph *graph,
                                 const uint16_t *path_of);

/* No cache is asked. */
void hr__program_uncache(struct hr_program *program);

/* segments.c: whether a step at or after `from` uses the slot. */
bool hr__program_touches(const struct hr_program *program, size_t from, uint16_t slot);
/* finals.c: 1 + the stage's result that the slot holds, or 0. */
uint16_t hr__program_result(const struct hr_program *program, uint16_t slot);

/* requests.c: builds the description of a segment for its worker process. Returns false
 * when out of memory. */
HR_CHECK bool hr__segment_pack(struct hr_program *program, struct hr_segment *segment,
                               const struct hr_graph *graph);

/* segments.c: cuts the steps into segments. Returns false when out of memory. */
HR_CHECK bool hr__program_cut(struct hr_program *program, const struct hr_graph *graph);

/* Compiles stage `at` of the plan. Call hr__program_finish() also after failure. */
HR_CHECK enum hr_err
hr__program_init(struct hr_program *program, const struct hr_plan *plan, size_t at,
                 struct hr_error *reterr);
void hr__program_finish(struct hr_program *program);

static inline bool hr__path_shards(const struct hr_path *path)
{
    return path->count > 0 && path->orders[0].shards;
}

/* Positions of an epoch over all ranks. */
static inline uint64_t hr__path_global_count(const struct hr_path *path)
{
    return hr__path_shards(path) ? path->orders[0].n : path->n;
}

/* The global position of a rank's `position`, for a path that shards: the ranks divide
 * the positions from `base` on, and wrap around to the beginning of the epoch if `even`
 * needs more. */
uint64_t hr__path_share(const struct hr_path *path, uint64_t base, uint64_t position);

/* Sets id->index to what `path` reads at a global position of the epoch. Reads seed and
 * draw_epoch of `id`; may change draw_epoch (repeat). Time is charged to the order ops,
 * unless `thread` is NULL. */
void hr__path_map(const struct hr_path *path, uint64_t position, struct hr_thread *thread,
                  struct hr_record_id *id);

/* Completes the identities of a record whose paths without a parent are mapped: those of
 * the inputs that merges choose, of the inputs of joins that have a record, and of the
 * merges. Others get HR_INDEX_NONE. */
void hr__paths_branch(const struct hr_program *program, struct hr_thread *thread,
                      struct hr_record_id *ids);

/* cached.c: looks at the files of the record with these identities and sets their stamps.
 * Before hr__views_set. Time is charged to the sources, unless `thread` is NULL. */
void hr__stamps_set(const struct hr_program *program, const struct hr_graph *graph,
                    struct hr_thread *thread, struct hr_record_id *ids);
/* cached.c: sets the views from the other identities. */
void hr__views_set(const struct hr_program *program, struct hr_record_id *ids);
/* The path that identity `id` of a step is of: `id` itself, or that of the view. */
static inline size_t hr__program_path(const struct hr_program *program, size_t id)
{
    size_t paths = program->id_count - program->view_count;

    return id < paths ? id : program->views[id - paths].path;
}

/* Makes the values of a join whose inputs have no record. `ctx` is that of the step. */
HR_CHECK enum hr_err
hr__step_fill(const struct hr_step *step, struct hr_value *slots, struct hr_op_ctx *ctx);

/* The source of the record with this index at the end of a path, for a join that of its
 * first input, and its index there. */
uint32_t hr__path_source(const struct hr_program *program, size_t path, uint64_t *index);

/* Positions in an epoch for a consumer that started it at global position `base`. */
uint64_t hr__path_count(const struct hr_path *path, uint64_t base);

/* The fields of a record that leaves the stage for the next one or for its sequencers. */
const struct hr_out_field *
hr__program_results(const struct hr_program *program, size_t *ret_count);

#endif
