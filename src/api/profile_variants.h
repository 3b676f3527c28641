/*
 * api/profile_variants.h - what user code costs in threads and in worker processes.
 */
#ifndef HR_API_PROFILE_VARIANTS_H
#define HR_API_PROFILE_VARIANTS_H

#include "graph/profile.h"
#include "headrace/profile.h"

/*
 * Completes a profile that was measured inline: `serial` and `process_ns` of the nodes of
 * user code that may run there, and the machine's rates of transfer. Runs the graph for
 * some seconds if there are such nodes. What cannot be measured stays unknown: code that
 * fails in worker processes, batches that take too long. `records` is what progress has
 * reported so far. Fails if `options` cancels or memory is out.
 */
HR_CHECK enum hr_err
hr__profile_variants(struct hr_graph *graph, const struct hr_profile_options *options,
                     uint64_t records, struct hr_profile *profile,
                     struct hr_error *reterr);

#endif
