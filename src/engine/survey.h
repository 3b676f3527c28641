/*
 * engine/survey.h - one record of a survey: what it needs shows when steps run on it.
 */
#ifndef HR_ENGINE_SURVEY_H
#define HR_ENGINE_SURVEY_H

#include <assert.h>

#include "engine/engine.h"
#include "opt/extent.h"

/* A stage, and the one after it. One thread uses it. */
struct hr_survey {
    const struct hr_plan *plan;
    struct hr_program program;
    bool *cheap;   /* by step: it makes no pixels, and neither do those that it needs */
    bool *missing; /* by slot: no cheap step makes it */
    bool runs;     /* not all steps are cheap */
    size_t *used; /* by slot: 1 + the last step that needs it; SIZE_MAX: it is a result */
    struct hr_thread *thread; /* shared with `next`, like `one` */
    struct hr_record_id *ids; /* per path; the caller sets them for each record */
    struct hr_value *row;
    struct hr_value **fields; /* of one step */
    struct hr_extent *one;
    bool drawn;             /* a part of the record's image was drawn at random */
    bool skips;             /* no step runs that only some records run */
    struct hr_survey *next; /* records reach it as they leave this one; or NULL */
};

/* `thread` is empty and stays until hr__survey_end(), which is called in any case. */
HR_CHECK enum hr_err
hr__survey_begin(struct hr_survey *survey, const struct hr_plan *plan,
                 struct hr_thread *thread, struct hr_error *reterr);
void hr__survey_end(struct hr_survey *survey);

/* Runs the cheap steps on a record and raises `most` to its sizes; what follows a step
 * that would make pixels is inferred. Bad records are for the run to report. Returns
 * whether the record is whole; *ret_bytes is then the size of its values. */
bool hr__survey_look(struct hr_survey *survey, struct hr_extent *most,
                     uint64_t *ret_bytes);

/* The same with all steps that the library runs by itself: up to user code, on through
 * stages that only order records, with some of the children of an expansion. */
void hr__survey_run(struct hr_survey *survey, struct hr_extent *most);

/* Position `i` of `count` evenly spread ones of n. */
static inline uint64_t hr__spread(uint64_t n, uint64_t i, uint64_t count)
{
    assert(i < count && count <= n);
    return n / count * i + n % count * i / count;
}

#endif
