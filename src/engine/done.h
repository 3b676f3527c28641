/*
 * engine/done.h - which records of an epoch are done after the position at which a state
 * begins.
 *
 * Ranks that filter, expand or skip stand at different places after the same number of
 * steps. A merged state begins at the first record that is not done and lists the later
 * ones that are, as a set of global positions. How the epoch was split when they were
 * done does not matter: runs of any split can be added. To a new world these records are
 * as if a filter had dropped them.
 *
 * The set is a list of runs, each of `count` positions `step` apart, and of positions
 * whose record is done in part. After hr__done_normalise() runs are sorted by step,
 * remainder and beginning; runs of equal step are disjoint and cannot be joined; and
 * where runs of one step leave no gap, a run of step 1 covers them.
 */
#ifndef HR_ENGINE_DONE_H
#define HR_ENGINE_DONE_H

#include "core/doc.h"
#include "core/str.h"

/* Limit of the numbers in a state, seeds apart: sums of a few of them do not wrap. */
#define HR_STATE_NUMBER_MAX ((uint64_t)1 << 60)
/* Limit of runs, and of positions that are done in part. */
#define HR_DONE_MAX 65536

struct hr_done_run {
    uint64_t step, from, count;
};

struct hr_done_part {
    uint64_t position, children; /* the first `children` of the record are done */
};

struct hr_done {
    struct hr_done_run *runs;
    struct hr_done_part *parts; /* sorted by position */
    size_t run_count, part_count;
};

static inline bool hr__done_is_empty(const struct hr_done *done)
{
    return done->run_count == 0 && done->part_count == 0;
}

void hr__done_finish(struct hr_done *done);

/* Add positions, or children of a record. HR_ERR_LIMIT beyond HR_DONE_MAX or
 * HR_STATE_NUMBER_MAX. Call hr__done_normalise() before any function below. */
HR_CHECK enum hr_err hr__done_add(struct hr_done *done, uint64_t from, uint64_t count,
                                  uint64_t step, struct hr_error *reterr);
HR_CHECK enum hr_err hr__done_add_children(struct hr_done *done, uint64_t position,
                                           uint64_t children, struct hr_error *reterr);
HR_CHECK enum hr_err hr__done_normalise(struct hr_done *done, struct hr_error *reterr);

/* Whether the record at this global position is done; if not, sets *ret_children to the
 * number of its children that are. O(log n) for each distinct step. */
bool hr__done_has(const struct hr_done *done, uint64_t position, uint64_t *ret_children);

/* The first position from `base` on that is not done; or, so that a damaged state ends
 * the search, one after HR_DONE_MAX others that are. */
uint64_t hr__done_first_open(const struct hr_done *done, uint64_t base);

/* Removes all positions below `base`. */
void hr__done_cut(struct hr_done *done, uint64_t base);

bool hr__done_equal(const struct hr_done *a, const struct hr_done *b);

/* `"done":[[from,count],[from,count,step],...],"parts":[[position,children],...]`; leaves
 * out the parts if there are none. */
void hr__done_print(const struct hr_done *done, struct hr_str *out);

/* Reads and normalises the values of both keys (`parts` may be NULL). HR_ERR_FORMAT if
 * they are damaged. */
HR_CHECK enum hr_err hr__done_parse(const struct hr_doc *runs, const struct hr_doc *parts,
                                    struct hr_done *ret_done, struct hr_error *reterr);

#endif
