/*
 * opt/cedar_graph.h - the order of a plan of cedar for the nodes of a graph.
 */
#ifndef HR_OPT_CEDAR_GRAPH_H
#define HR_OPT_CEDAR_GRAPH_H

#include "graph/graph.h"
#include "headrace/cedar.h"
#include "opt/cedar_file.h"

/*
 * Fills in ret_nodes for hr__graph_permute(), with room for a node of each place, from a
 * frozen graph that is one chain. Without matches the pipes, in their written order, are
 * the nodes. HR_ERR_STATE names two nodes that must not change places: by their traits
 * and hints, or for this strictness.
 */
HR_CHECK enum hr_err
hr__cedar_graph_order(const struct hr_cedar_plan *plan, const char *name,
                      const struct hr_graph *graph, const struct hr_cedar_match *matches,
                      size_t match_count, enum hr_strictness strictness,
                      uint32_t *ret_nodes, struct hr_error *reterr);

#endif
