/*
 * engine/done.h - the records of an epoch that were done ahead of others, as a saved
 * state lists them.
 *
 * Ranks that filter, expand or skip records reach different places in the same number of
 * steps. A merged state starts at the slowest rank and records how far each of the others
 * had come, in one layer per former world. The new world treats those records as dropped,
 * so any number of ranks can divide what remains, and a layer is removed once every rank
 * has passed it.
 */
#ifndef HR_ENGINE_DONE_H
#define HR_ENGINE_DONE_H

#include "core/doc.h"
#include "core/str.h"

/* Limit of every number in a state except seeds: sums of a few do not wrap. */
#define HR_STATE_NUMBER_MAX ((uint64_t)1 << 60)

/* Rank r of `world` had done its positions below ends[r].positions, counted from global
 * position `base`, and ends[r].children children of the record there. */
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
    uint64_t end; /* no global position from here on was begun */
};

void hr__done_finish(struct hr_done *done);

/* Adds a layer; copies `ends`. */
HR_CHECK enum hr_err hr__done_add(struct hr_done *done, uint64_t base, uint64_t world,
                                  const struct hr_done_end *ends);

/* Whether the record at this global position is done; if not, *ret_children of its
 * children are. */
bool hr__done_has(const struct hr_done *done, uint64_t position, uint64_t *ret_children);

/* Prints a list of lists of numbers, `"done":[[base,world,ends...,children...]]`, without
 * the layers that end at or before `base`. Children are printed only if some are done. */
void hr__done_print(const struct hr_done *done, uint64_t base, struct hr_str *out);

/* The reverse. HR_ERR_FORMAT if the value is damaged. */
HR_CHECK enum hr_err hr__done_parse(const struct hr_doc *doc, struct hr_done *ret_done,
                                    struct hr_error *reterr);

#endif
