/*
 * opt/cedar_profile.h - cedar's statistics as a profile of a graph, and back.
 */
#ifndef HR_OPT_CEDAR_PROFILE_H
#define HR_OPT_CEDAR_PROFILE_H

#include "graph/profile.h"
#include "headrace/cedar.h"
#include "opt/cedar_file.h"

/*
 * A profile of a frozen graph. ids are the pipes in their written order; without matches
 * they are the graph's nodes. hr__profile_finish() the result.
 */
HR_CHECK enum hr_err
hr__cedar_to_profile(const struct hr_cedar_measures *measures, const int64_t *ids,
                     const struct hr_graph *graph, const struct hr_cedar_match *matches,
                     size_t match_count, struct hr_profile *ret_profile,
                     struct hr_error *reterr);

/* The nodes of the profile as a chain, numbered from the last (0) to the first. */
HR_CHECK enum hr_err
hr__cedar_from_profile(const struct hr_profile *profile,
                       struct hr_cedar_measures *ret_measures, struct hr_error *reterr);

#endif
