/*
 * api/profile_run.h - the run of a graph that a profile is measured in.
 */
#ifndef HR_API_PROFILE_RUN_H
#define HR_API_PROFILE_RUN_H

#include "graph/profile.h"
#include "headrace/profile.h"

/* A profile without nodes, of this machine and library. */
void hr__profile_begin(struct hr_profile *profile, enum hr_variant variant, bool fuse);

/* Fills in an empty profile of a frozen graph. On failure it holds what
 * hr__profile_finish frees. */
HR_CHECK enum hr_err
hr__profile_run(struct hr_graph *graph, const struct hr_profile_options *options,
                struct hr_profile *profile, struct hr_error *reterr);

/* The same for a run since it was opened. */
HR_CHECK enum hr_err
hr__profile_iter(const struct hr_iter *iter, struct hr_profile *profile,
                 struct hr_error *reterr);

#endif
