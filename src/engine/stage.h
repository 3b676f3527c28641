/*
 * engine/stage.h - a stage: its blocks, the queue before it, its sequencer.
 *
 * Unless a field says otherwise it is set when the engine opens, before there are
 * threads, or guarded by the engine's lock.
 */
#ifndef HR_ENGINE_STAGE_H
#define HR_ENGINE_STAGE_H

#include "engine/block.h"

struct hr_engine;
struct hr_runner;

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
    int claims;          /* that were taken and are not complete */
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

/* Consecutive records of a block that a runner takes through their stage. */
struct hr_claim {
    struct hr_stage *stage;
    struct hr_block *block;
    uint32_t at, count;
    double record_ns; /* what a record of the stage takes; 0: unknown */
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

#endif
