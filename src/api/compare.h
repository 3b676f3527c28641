/*
 * api/compare.h - whether two graphs give the same records.
 */
#ifndef HR_API_COMPARE_H
#define HR_API_COMPARE_H

#include "headrace/optimize.h"
#include "opt/trial.h"

struct hr_comparison {
    int64_t records;
    double difference;   /* as in struct hr_optimize_result */
    double ns[2];        /* CPU time for each record, of either graph: medians */
    double ratio;        /* of the second by the first in a round: the median */
    enum hr_trial trial; /* whether the second is as fast as it has to be */
    char wrong[256];     /* how they differ in more than levels; "": they do not */
};

/* Runs both frozen graphs over the same records, then times them in turns. Records that
 * differ are no error; with `levels`, values are compared, else only fields and shapes.
 * `expected` is the time of the second by that of the first, as predicted, and `most`
 * what it may be. */
HR_CHECK enum hr_err
hr__compare(struct hr_graph *const graphs[2], const struct hr_optimize_options *options,
            bool levels, double expected, double most,
            struct hr_comparison *ret_comparison, struct hr_error *reterr);

#endif
