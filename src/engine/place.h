/*
 * engine/place.h - the point that a run has reached after a record. A new engine can
 * begin there, under any plan of the same graph.
 *
 * Usually that is a position of the source and a number of children: begin there, and
 * skip the first `child` children of its record. After a sequencer that has a state, or
 * an expansion whose parent is not a source record, it is a mark and a count: begin at
 * the mark, and skip the first `at` records that its node outputs.
 *
 * A place depends only on the records before it: it is the same with any number of
 * threads and wherever the plan is cut. So places order what stages found concurrently.
 */
#ifndef HR_ENGINE_PLACE_H
#define HR_ENGINE_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "headrace/base.h"

struct hr_mark;

struct hr_place {
    struct hr_mark *mark; /* one reference, or NULL */
    uint64_t at;          /* with a mark: outputs of its node to skip; else a position */
    uint64_t child; /* without a mark: children of that record to skip, at the graph's
                       first expansion */
    bool uneven;    /* bad records were skipped: other ranks are elsewhere */
};

#define HR_PLACE_MARKS_MAX 64 /* sequencers and expansions between source and output */

struct hr_marks;

/* A node's state at a place of its input. Shared and never changed. */
struct hr_mark {
    struct hr_marks *marks; /* where it returns to */
    uint32_t refs;          /* by __atomic */
    uint32_t node, order;   /* later nodes have larger orders */
    struct hr_place input;
    char *state;     /* what hr_op_sequence.save printed; "" for none; NULL: */
    uint64_t number; /* hr_op_sequence.number */
};

/* Marks of one owner for reuse, since some stages need one per record. Any thread may
 * release a mark; one at a time creates them. All zero at first. */
struct hr_marks {
    struct hr_mark *free;
    _Atomic(struct hr_mark *) released;
};

/* Both take over `input`, and the first `state` (may be NULL), also on failure. Return
 * NULL when out of memory. */
struct hr_mark *hr__mark_create(struct hr_marks *marks, uint32_t node, uint32_t order,
                                struct hr_place *input, char *state);
struct hr_mark *hr__mark_number(struct hr_marks *marks, uint32_t node, uint32_t order,
                                struct hr_place *input, uint64_t number);
/* After all marks were released. */
void hr__marks_finish(struct hr_marks *marks);

/* The source position at the end of its chain of marks. */
const struct hr_place *hr__place_source(const struct hr_place *place);

/* Negative, 0 or positive if a run reaches `a` before, at or after `b`, in the same
 * epoch. */
int hr__place_compare(const struct hr_place *a, const struct hr_place *b);

/* Copies *from; releases *to first. They must differ. */
void hr__place_copy(struct hr_place *to, const struct hr_place *from);
/* The same, but leaves *from empty. */
void hr__place_move(struct hr_place *to, struct hr_place *from);
void hr__place_clear(struct hr_place *place);

#endif
