/*
 * engine/place.h - where a run stands after a record, so that a new engine can begin
 * there, under any plan of the same graph.
 *
 * Usually that is a position of the source: begin there, and leave out the first `at`
 * children of its record. After a sequencer that holds records, or an expansion whose
 * parent is not a source record, it is a mark and a count: begin where the mark says, and
 * leave out the first `at` records that the mark's node gives.
 */
#ifndef HR_ENGINE_PLACE_H
#define HR_ENGINE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "headrace/base.h"

struct hr_mark;

struct hr_place {
    struct hr_mark *mark; /* one reference, or NULL */
    uint64_t at;    /* records of mark->node to leave out; a position without mark */
    uint64_t child; /* without mark: children of the record there to leave out, at the
                       graph's first expansion */
    bool uneven;    /* bad records were skipped, so other ranks stand elsewhere */
};

#define HR_PLACE_MARKS_MAX 64 /* sequencers and expansions in a graph's spine */

/* A node's state at a place of its input. Shared and never changed. */
struct hr_mark {
    uint32_t refs;        /* by __atomic */
    uint32_t node, order; /* nodes that records pass later have larger orders */
    struct hr_place input;
    char *state; /* of the sequencer, as hr_op_sequence.save gave it; "" for none */
};

/* Takes over `input` and `state` (may be NULL), also on failure: NULL when out of memory.
 */
struct hr_mark *
hr__mark_create(uint32_t node, uint32_t order, struct hr_place *input, char *state);

/* The place in the source that it leads to. */
const struct hr_place *hr__place_source(const struct hr_place *place);

/* Negative, 0 or positive as a run gets to place `a` before, with or after place `b` of
 * the same epoch. */
int hr__place_compare(const struct hr_place *a, const struct hr_place *b);

/* *to is released first and must not be *from. */
void hr__place_copy(struct hr_place *to, const struct hr_place *from);
/* The same, leaving *from empty. */
void hr__place_move(struct hr_place *to, struct hr_place *from);
void hr__place_clear(struct hr_place *place);

#endif
