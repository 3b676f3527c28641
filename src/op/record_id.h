/*
 * op/record_id.h - the identity of a record, and its streams of random numbers.
 */
#ifndef HR_OP_RECORD_ID_H
#define HR_OP_RECORD_ID_H

#include "core/rng.h"
#include "core/str.h"
#include "headrace/base.h"

/* Bit of draw_epoch: a substitute draws numbers of its own. */
#define HR_EPOCH_SUBSTITUTE 0x80000000u

/* Epochs as draws count them, and source indices, are below these: the bits above tell
 * substitutes and children from other records. */
#define HR_DRAW_EPOCHS_MAX ((uint64_t)HR_EPOCH_SUBSTITUTE)
#define HR_INDEX_MAX ((uint64_t)1 << 62)
#define HR_INDEX_NONE UINT64_MAX /* there is no such record */

/*
 * The identity of a record, from its source to the ledger: the same in every run, stage,
 * process and machine. A substitute has the position that it fills and its own index. An
 * expansion appends the child's number to the path; a batch has the identity of its first
 * record. seed, index, draw_epoch and child path name its random draws, so that these do
 * not depend on the order in which records are visited.
 */
struct hr_record_id {
    uint64_t seed;       /* of the run */
    uint64_t position;   /* place in the epoch's order, over all ranks */
    uint64_t index;      /* in its source */
    uint32_t epoch;      /* of the run */
    uint32_t draw_epoch; /* the same with each pass of order.repeat counted as an epoch;
                            a hash after order.sample; with HR_EPOCH_SUBSTITUTE */
    uint32_t depth;      /* numbers in `child` */
    uint32_t child[HR_CHILD_DEPTH_MAX];
    /* Beside the identity, and set only before a cache that asks for it: what the files
     * of the record were when it began (hr__store_stamp). */
    uint64_t stamp;
};

/* Turns the identity into that of the record's child. depth < HR_CHILD_DEPTH_MAX and
 * child <= UINT32_MAX: a graph with deeper paths, a record with more children are refused
 * before. */
void hr__record_child(struct hr_record_id *id, uint64_t child);

/* Appends "epoch":e,"position":p,"record":index,"children":[...] of a JSON object. */
void hr__record_json(const struct hr_record_id *id, struct hr_str *out);

/* The record's stream of random numbers for the node with this draw_id (graph/graph.h):
 * 2^32 blocks, shared with no other node or record of the run. */
void hr__record_rng(const struct hr_record_id *id, uint64_t draw_id,
                    struct hr_rng *ret_rng);

#endif
