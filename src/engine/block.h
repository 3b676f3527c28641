/*
 * engine/block.h - the records that are in a stage.
 *
 * Who owns a block: while it is FILLING, the sequencer of the stage before, or the lock
 * if that sequencer is not running. While it is EMPTY or OPEN, `state`, `claimed`,
 * `done`, `holes` and the numbers above them are guarded by the engine's lock. The
 * entries of the arrays that a claim names belong to the runner that has the claim,
 * without the lock. Once the block is READY, which is set under the lock, all of it
 * belongs to the stage's sequencer.
 */
#ifndef HR_ENGINE_BLOCK_H
#define HR_ENGINE_BLOCK_H

#include "engine/batch.h"
#include "engine/place.h"

struct hr_stage;

enum hr_record_status {
    HR_RECORD_OPEN,
    HR_RECORD_GOOD,
    HR_RECORD_DROPPED, /* by a filter */
    HR_RECORD_BAD,
    HR_RECORD_UNRUN, /* the run was stopped */
    HR_RECORD_END,   /* the source ended before this position */
};

/* A bad attempt at a record; several when substitutes were bad too. */
struct hr_bad {
    struct hr_error error;  /* with the file, where there is one */
    struct hr_record_id id; /* in the source that the file belongs to */
    char *detail;           /* or NULL */
    bool fatal;             /* no record is at fault: on_error does not apply */
    bool outside;           /* nor is a node: it is not counted, listed or located */
    bool noted;             /* in the counters and the ledger; set in the first attempt */
    struct hr_bad *next;
};

struct hr_children {
    uint64_t count;
    struct hr_value *values; /* count x child fields */
};

/* Of a record in an open block. */
enum hr_record_claim {
    HR_CLAIM_NONE, /* not claimed yet, or a thread has it */
    HR_CLAIM_DONE,
    HR_CLAIM_BACK, /* a thread had it, and did not run it */
};

enum hr_block_state {
    HR_BLOCK_EMPTY,
    HR_BLOCK_FILLING, /* later stages: the sequencer before it adds records */
    HR_BLOCK_OPEN,    /* records may be claimed */
    HR_BLOCK_READY,
};

struct hr_block {
    enum hr_block_state state;
    uint64_t number; /* counts the blocks of its stage from 0 */
    uint64_t epoch, first;
    uint32_t size, claimed, done;
    uint32_t holes;
    uint32_t ready; /* while it is open: records from 0 on that are done */
    uint32_t back;  /* records that wait to be claimed again */
    bool last;      /* the epoch ends with it */
    uint32_t at;    /* the record that is sequenced next, and its child */
    uint64_t child;
    uint8_t *status;
    uint8_t *claims;        /* per record, guarded by the lock: enum hr_record_claim */
    uint64_t *result_bytes; /* of the results that wait for the sequencer */
    uint64_t *input_bytes;  /* later stages: of the record's input */
    struct hr_bad **bad;
    struct hr_value
        *rows; /* size x results; in direct stages only fields without a column */
    size_t rows_bytes;
    struct hr_buffer **columns; /* per result; NULL for those in rows */
    bool *in_columns;           /* per result: it was given a column, which may be in a
                                   batch by now */
    struct hr_value *inputs;    /* later stages: size x fields that came in */
    struct hr_record_id *ids;
    int64_t *records;        /* later stages: that each input stands for, see
                                struct hr_sequence_record */
    struct hr_place *places; /* later stages: after each input */
    struct hr_place end;     /* later stages, with `last`: of the epoch */
    struct hr_children *children;
};

/* Allocates columns for results of fixed size, which are written in place; in a direct
 * stage that is all of them. On failure the block has no columns. */
HR_CHECK enum hr_err
hr__block_columns(struct hr_stage *stage, struct hr_block *block, uint32_t size);

/* Releases everything that the block holds. Called by its owner, without the lock. The
 * block can be opened again once its state is EMPTY. */
void hr__block_clear(struct hr_stage *stage, struct hr_block *block);
void hr__children_clear(struct hr_children *children, size_t fields);

/* Errors that no record is at fault for: on_error does not apply to them. */
static inline bool hr__error_is_fatal(enum hr_err code)
{
    return code == HR_ERR_MEMORY || code == HR_ERR_INTERNAL || code == HR_ERR_CANCELLED ||
           code == HR_ERR_STATE;
}

#endif
