/*
 * engine/place.h - the point that a run has reached after a record. A new engine can
 * begin there, under any plan of the same graph.
 *
 * Usually that is a position of the source and a number of children: begin there, and
 * skip the first `child` children of its record. After a sequencer that holds records, or
 * an expansion whose parent is not a source record, it is a mark and a count: begin at
 * the mark, and skip the first `at` records that its node outputs.
 */
#ifndef HR_ENGINE_PLACE_H
#define HR_ENGINE_PLACE_H

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

/* A node's state at a place of its input. Shared and never changed. */
struct hr_mark {
    uint32_t refs;        /* by __atomic */
    uint32_t node, order; /* later nodes have larger orders */
    struct hr_place input;
    char *state; /* what hr_op_sequence.save printed; "" for none */
};

/* Takes over `input` and `state` (may be NULL), also on failure. Returns NULL when out of
 * memory. */
struct hr_mark *
hr__mark_create(uint32_t node, uint32_t order, struct hr_place *input, char *state);

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
