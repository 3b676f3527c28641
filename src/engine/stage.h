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
 * A node of the stage's sequence while it runs; for the thread that sequences.
 *
 * `base` is where its state was last complete without the records that it holds: the
 * place of its next input then, and its state as text. Its outputs since are counted.
 */
struct hr_sequencer {
    const struct hr_op_sequence *op;
    const struct hr_graph_node *node;
    uint32_t number; /* of the node */
    void *state;     /* op->begin made it */
    struct hr_value *row;
    size_t fields;        /* of its outputs */
    bool draining;        /* next() has outputs to give */
    bool flushed, ended;  /* in this epoch */
    uint64_t skip;        /* outputs to leave out, of a restored state */
    struct hr_place base; /* of its input */
    char *base_state;     /* NULL: not yet made */
    struct hr_mark *mark; /* of `base`, made when it is needed first */
    uint64_t out;         /* outputs since `base`, those left out included */
    uint64_t came, gave;  /* records in and out, not added to the meter yet */
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
    int claims;          /* that were taken and are not complete */
    double record_ns;    /* moving estimates; they decide the size of chunks */
    double record_bytes; /* of scratch; where there is user code */

    /* Memory, where the plan has a budget; see budget.c. */
    uint64_t running;           /* records that are claimed and not done */
    uint64_t result_bytes;      /* of records that are done and wait for the sequencer */
    atomic_size_t in_bytes;     /* of inputs that have no result yet */
    atomic_size_t in_bytes_max; /* that may wait; the plan's queue_bytes */
    struct hr_stage_sizes seen; /* largest so far */
    bool unknown_sizes;         /* schemas do not say how large results are */
    bool stalled; /* the sequencer stopped for want of room, with outputs to give */

    /* stage 0: positions */
    uint64_t epoch, position, epoch_count;
    uint64_t cut; /* epochs below need no more records (a stream op said END) */
    bool exhausted;

    /* The sequencer: what follows is for the thread that set `sequencing`, under the
     * lock, and for the lock while it is false. */
    bool sequencing;
    struct hr_runner *sequencer; /* the thread that does; its meter counts what is done */
    struct hr_sequencer *sequencers;
    size_t sequencer_count;
    uint64_t sequence_epoch;           /* 1 + the epoch that the sequencers are in */
    uint64_t source_ended, source_end; /* 1 + epoch that its source has ended, where */
    uint64_t skip_children;            /* of the next record, of a restored state */
    char **columns; /* of the records given to add_rows; NULL where it is not used */
    bool counted;   /* places of outputs count from a mark, see hr__emit() */
    uint64_t room;  /* outputs that may go out before the lock is asked again */
    uint64_t released_bytes; /* results passed on, not subtracted yet */
    bool uneven;             /* bad records were skipped in this epoch */
    /* Places of the stage's input: before and after the record that is sequenced, and the
     * mark of its expansion, made when it is needed first. */
    struct hr_place before, after;
    struct hr_mark *parent;
    uint64_t children, child; /* it has; of which are consumed */
    /* The next stage's block that outputs go into, or NULL; the place before the first of
     * them when this stage has sequencers, see hr__emit(). */
    struct hr_block *filling;
    struct hr_place filling_base;
};

/* Consecutive records of a block that a runner takes through their stage. */
struct hr_claim {
    struct hr_stage *stage;
    struct hr_block *block;
    uint32_t at, count;
    double record_ns; /* what a record of the stage takes; 0: unknown */
    /* What running it told: scratch of its records; ticks that are nobody's. */
    uint64_t bytes, lost_ticks;
    uint64_t result_bytes, result_max, item_max, scratch; /* see budget.c */
};
HR_CHECK enum hr_err hr__stage_init(struct hr_stage *stage, struct hr_engine *engine,
                                    size_t number, struct hr_error *reterr);
void hr__stage_finish(struct hr_stage *stage);
bool hr__stage_claim(struct hr_stage *stage, struct hr_claim *ret_claim);
void hr__stage_complete(struct hr_stage *stage, const struct hr_claim *claim,
                        uint64_t ns);
bool hr__stage_drained(const struct hr_stage *stage);

#endif
