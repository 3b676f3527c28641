/*
 * fleet/cut.h - where a graph is cut in two: what is before a node is made by the workers
 * of a service, what is after it by the client.
 *
 * The first part must be one to one: then records have numbers, and a worker can make
 * any of them. What follows may be anything. The cut changes no byte, so it is part of
 * no graph and no fingerprint (docs/decisions/0070).
 */
#ifndef HR_FLEET_CUT_H
#define HR_FLEET_CUT_H

#include "graph/graph.h"

struct hr_cut {
    uint32_t node;           /* of the graph: the last one that workers run */
    struct hr_graph *prefix; /* what they run, frozen; the caller owns a reference */
};

/* The node after which the options (`after`, a name or NULL) or the graph (its hint
 * `distribute`) ask for the cut; *ret_node is HR_CUT_FREE if they ask for none.
 * HR_ERR_NOT_FOUND, or HR_ERR_GRAPH for several. */
#define HR_CUT_FREE UINT32_MAX
HR_CHECK enum hr_err hr__cut_asked(const struct hr_graph *graph, const char *after,
                                   uint32_t *ret_node, struct hr_error *reterr);

/* Cuts a frozen graph after this node, or for HR_CUT_FREE where workers get the most.
 * HR_ERR_UNSUPPORTED, which names a node, or why the prefix cannot be frozen. */
HR_CHECK enum hr_err hr__cut_find(const struct hr_graph *graph, uint32_t after,
                                  struct hr_cut *ret_cut, struct hr_error *reterr);

/* Says where a graph was cut, and why workers run no further: a line for people. */
void hr__cut_explain(const struct hr_graph *graph, uint32_t node, bool asked, char *text,
                     size_t room);

#endif
