/*
 * engine/done.h - which records of an epoch are behind a state although others before
 * them are not.
 *
 * Ranks that filter, expand or skip stand at different places after the same number of
 * steps. A state merged from theirs begins at the place of the hindmost, and remembers
 * how far each of the others had come: one layer per world that was left so. To a new
 * world these records are as if a filter had dropped them, so any number of ranks can
 * share what lies between, and a layer is forgotten once all have passed it.
 */
#ifndef HR_ENGINE_DONE_H
#define HR_ENGINE_DONE_H

#include "core/doc.h"
#include "core/str.h"

/* Of what states tell, seeds apart: sums of a few of them do not wrap. */
#define HR_STATE_NUMBER_MAX ((uint64_t)1 << 60)

/* Rank r of `world` had done its positions below ends[r].positions, counted from global
 * position `base`, and so many children of the record there. */
struct hr_done_end {
    uint64_t positions, children;
};

struct hr_done_layer {
    uint64_t base, world;
    struct hr_done_end *ends;
};

struct hr_done {
    struct hr_done_layer *layers;
    size_t count;
    uint64_t end; /* no global position from here on is done, nor begun */
};

void hr__done_finish(struct hr_done *done);

/* Add a layer; `ends` are copied. */
HR_CHECK enum hr_err hr__done_add(struct hr_done *done, uint64_t base, uint64_t world,
                                  const struct hr_done_end *ends);

/* Is the record at this global position done; else how many of its children are. */
bool hr__done_has(const struct hr_done *done, uint64_t position, uint64_t *ret_children);

/* As a list of lists of numbers, `"done":[[base,world,ends...,children...]]`; layers that
 * end at or before `base` are left out. The children are there only where some are done.
 */
void hr__done_print(const struct hr_done *done, uint64_t base, struct hr_str *out);

/* The reverse, of the value. HR_ERR_FORMAT when it is damaged. */
HR_CHECK enum hr_err hr__done_parse(const struct hr_doc *doc, struct hr_done *ret_done,
                                    struct hr_error *reterr);

#endif
