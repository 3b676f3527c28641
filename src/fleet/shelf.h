/*
 * fleet/shelf.h - batches that a worker has made for one client and keeps for others.
 *
 * Clients of equal jobs read the same batches, each at its own cursor. A batch that was
 * made for one of them is kept until all others whose cursor it lies beyond got it, so
 * it is made once while their distance fits in the budget. Beyond it those batches go
 * that would be needed last: a client that is far behind does not crowd out what others
 * need next, and what is missing is made again. What is kept is the latest part of an
 * epoch, like the sliding window of tf.data service's CrossTrainerCache, but no client
 * skips anything.
 *
 * Not locked. Up to HR_SHELF_FOLLOWERS clients of a job count; further ones find what is
 * kept for those.
 */
#ifndef HR_FLEET_SHELF_H
#define HR_FLEET_SHELF_H

#include "headrace/engine.h"

#define HR_SHELF_FOLLOWERS 64u
#define HR_SHELF_NOBODY HR_SHELF_FOLLOWERS /* a client that does not count */

/* Of all jobs of a worker, which divide it equally. */
struct hr_shelf_budget {
    size_t most; /* bytes */
    size_t jobs; /* with more than one follower */
};

struct hr_shelf_entry {
    uint64_t number; /* of the batch */
    uint64_t got;    /* bits: followers that got it */
    struct hr_batch *batch;
    size_t bytes;
};

/* Of a job. Zero: empty. */
struct hr_shelf {
    struct hr_shelf_entry *entries; /* [first, first + count), by number */
    size_t first, count, room;
    size_t bytes;
    uint64_t followers; /* bits */
    uint64_t cursors[HR_SHELF_FOLLOWERS];
};

/* A client that needs the batches from `cursor` on; its number, or HR_SHELF_NOBODY. Trim
 * the other jobs after it. */
uint32_t
hr__shelf_join(struct hr_shelf *shelf, struct hr_shelf_budget *budget, uint64_t cursor);
/* It needs none below this any more; it needs none at all. */
void hr__shelf_move(struct hr_shelf *shelf, uint32_t follower, uint64_t cursor);
void hr__shelf_leave(struct hr_shelf *shelf, struct hr_shelf_budget *budget,
                     uint32_t follower);

/* A batch for this follower, with a reference of the caller's, or NULL. */
struct hr_batch *
hr__shelf_take(struct hr_shelf *shelf, uint64_t number, uint32_t follower);
bool hr__shelf_has(const struct hr_shelf *shelf, uint64_t number);

/* A batch that was made for this follower. Keeps a reference if another one needs it, as
 * far as the budget goes; true if it did. */
bool hr__shelf_put(struct hr_shelf *shelf, const struct hr_shelf_budget *budget,
                   uint64_t number, uint32_t follower, struct hr_batch *batch);
/* Drops what is beyond the job's part of the budget. */
void hr__shelf_trim(struct hr_shelf *shelf, const struct hr_shelf_budget *budget);

void hr__shelf_finish(struct hr_shelf *shelf, struct hr_shelf_budget *budget);

#endif
