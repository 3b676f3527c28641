/*
 * engine/stage.h - a stage: its blocks, and the sequencers at its end.
 *
 * Unless a field says otherwise it is set when the engine opens, before there are
 * threads, or guarded by the engine's lock.
 */
#ifndef HR_ENGINE_STAGE_H
#define HR_ENGINE_STAGE_H

#include <stdatomic.h>

#include "engine/block.h"
#include "op/sequence.h"
#include "opt/memory.h"

struct hr_engine;
struct hr_runner;

/*
 * The running form of a sequencer node; used only by the thread that sequences.
 *
 * `base` is the last point at which it held no records: the place of its next input
 * there, and its state as text. Outputs since then are counted.
 */
struct hr_sequencer {
    const struct hr_op_sequence *op;
    const struct hr_graph_node *node;
    uint32_t number; /* of the node */
    void *state;     /* op->begin made it */
    struct hr_value *row;
    size_t fields;            /* of its outputs */
    bool draining;            /* next() has more outputs */
    bool flushed, ended;      /* in this epoch */
    uint64_t skip;            /* outputs to leave out after a restore */
    struct hr_place base;     /* of its input */
    char *base_state;         /* NULL: not yet made */
    struct hr_mark *mark;     /* of `base`; made on first use */
    uint64_t out;             /* outputs since `base`, those left out included */
    uint64_t received, given; /* records in and out that the meter does not have yet */
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
    int claims;          /* taken and not completed */
    double record_ns;    /* moving averages; the size of chunks follows from them */
    double record_bytes; /* scratch; only with user code */

    /* Memory, only if the plan has a budget; see budget.c. */
    uint64_t running;           /* records claimed and not done */
    uint64_t back;              /* records that threads have given back */
    uint64_t result_bytes;      /* of records that are done and wait for the sequencer */
    atomic_size_t in_bytes;     /* of inputs that have no result yet */
    atomic_size_t in_bytes_max; /* that may wait; the plan's queue_bytes */
    struct hr_stage_sizes seen; /* largest so far */
    bool sizes_vary;            /* the schema does not determine the size of results */
    bool unknown_sizes;         /* nor are they estimated from other records */
    bool stalled;               /* the sequencer has outputs but no room for them */

    /* stage 0: positions */
    uint64_t epoch, position, epoch_count;
    uint64_t positions_opened; /* in all epochs, less those without a record */
    uint64_t cut; /* epochs below this need no more records (a sequencer ended them) */
    bool exhausted;

    /* The sequencers. What follows belongs to the thread that set `sequencing` (under the
     * lock); while it is false, the lock guards it. */
    bool sequencing;
    struct hr_runner *sequencer; /* the thread that sequences; its meter is charged */
    struct hr_sequencer *sequencers;
    size_t sequencer_count;
    uint64_t sequence_epoch;           /* 1 + the epoch that the sequencers are in */
    uint64_t source_ended, source_end; /* 1 + epoch that ended early; where */
    uint64_t skip_children; /* children of the next record to skip after a restore */
    char **columns; /* of the records given to add_rows; NULL where it is not used */
    uint64_t room;  /* outputs that may leave before the lock is taken again */
    uint64_t released_bytes; /* results passed on, not subtracted yet */
    bool uneven;             /* bad records were skipped in this epoch */
    /* Places of the stage's input: before and after the record that is sequenced, and the
     * mark of its expansion, made on first use. */
    struct hr_place before, after;
    struct hr_mark *parent;
    uint64_t children, child; /* of that record; how many are consumed */
    struct hr_marks marks;
    struct hr_block *filling; /* the next stage's block that outputs go into, or NULL */
    /* A bad record, and a sequencer that fails, count once all outputs before them have
     * passed the later stages, since one of those may end the epoch. Whether the next
     * record waits for that; whether they have; 1 + the epoch that this stage or a later
     * one has ended, written only while there are outputs that have not passed; the error
     * of the sequencer that failed, or code HR_OK. */
    bool waits, next_quiet;
    uint64_t ended_epoch;
    struct hr_error failure;
};

/* Consecutive records of a block that one runner runs. */
struct hr_claim {
    struct hr_stage *stage;
    struct hr_block *block;
    uint32_t at, count;
    double record_ns;    /* expected time of a record; 0: unknown */
    uint64_t room_bytes; /* that its results may take, with a budget */
    uint32_t back;       /* set by running it: records after `count` that were not run */
    /* Set by running it: scratch of its records, and ticks not charged to any node. */
    uint64_t bytes, lost_ticks;
    uint64_t result_bytes, result_max, item_max, scratch; /* see budget.c */
    uint32_t largest;                                     /* the record of result_max */
};
HR_CHECK enum hr_err hr__stage_init(struct hr_stage *stage, struct hr_engine *engine,
                                    size_t number, struct hr_error *reterr);
void hr__stage_finish(struct hr_stage *stage);
bool hr__stage_claim(struct hr_stage *stage, struct hr_claim *ret_claim);
void hr__stage_complete(struct hr_stage *stage, const struct hr_claim *claim,
                        uint64_t ns);
bool hr__stage_drained(const struct hr_stage *stage);
/* A block to fill, or NULL. Under the lock. */
struct hr_block *hr__stage_empty_block(struct hr_stage *stage);

#endif
