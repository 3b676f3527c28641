/*
 * api/profile_saved.h - the folder of saved profiles.
 */
#ifndef HR_API_PROFILE_SAVED_H
#define HR_API_PROFILE_SAVED_H

#include "graph/profile.h"

/* Saves nodes of a frozen graph, as hr_profile_save(). */
HR_CHECK enum hr_err
hr__profile_save(const struct hr_profile *profile, const struct hr_graph *graph,
                 const char *folder, struct hr_error *reterr);

/* Adds the saved nodes of a frozen graph to a profile whose nodes are missing but whose
 * machine, library, variant and composition are set. On failure it holds what
 * hr__profile_finish() frees. */
HR_CHECK enum hr_err
hr__profile_load(struct hr_profile *profile, const struct hr_graph *graph,
                 const char *folder, struct hr_error *reterr);

#endif
