/*
 * engine/cursor.h - where a record stands, so that a new engine can begin at it: run
 * again from `position` of stage 0 with these ordinals, and leave out what each sequencer
 * would give before it.
 */
#ifndef HR_ENGINE_CURSOR_H
#define HR_ENGINE_CURSOR_H

#include "graph/plan.h"

#define HR_CURSOR_STREAMS 16

struct hr_cursor {
    uint64_t epoch, position;
    uint64_t skip_children[HR_PLAN_STAGES_MAX]; /* children of the first record */
    uint64_t skip_out[HR_PLAN_STAGES_MAX]; /* records behind the stage's stream ops */
    uint64_t ordinals[HR_CURSOR_STREAMS];  /* of all stream ops, stage by stage */
    /* For other worlds. All positions of stage 0 below this one, and so many children of
     * the record there, have gone into batches or were dropped; not so with stream ops.
     */
    uint64_t end_position, end_child;
    uint64_t uneven; /* 1: bad records were skipped, so other ranks stand elsewhere */
};

#endif
