/*
 * api/cache_split.h - what nodes cost where a cache divides a composed group.
 *
 * A decode, a crop and a resize that are composed make only the pixels that the last one
 * needs. A cache between them has those of the first, and the others work on them, which
 * the profile of the group does not show.
 */
#ifndef HR_API_CACHE_SPLIT_H
#define HR_API_CACHE_SPLIT_H

#include "graph/graph.h"
#include "opt/cost.h"

/* Runs some records with the values of a node made right after it, for each node of
 * single records within a group of the graph, which is frozen. ret_facts[node] are those
 * of all nodes then, or NULL: it is in no group, comes after a random draw although
 * `random` is false, or could not be measured. Free each with hr__free(). */
HR_CHECK enum hr_err
hr__cache_split(const struct hr_graph *graph, bool random,
                struct hr_cost_fact **ret_facts, struct hr_error *reterr);

#endif
