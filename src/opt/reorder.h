/*
 * opt/reorder.h - the order of a graph's nodes that a profile says is cheapest. Pure.
 *
 * A graph is divided into chains: nodes that each read the one before alone. Within a
 * chain, nodes move as hr__swap() and the strictness allow. What they cost elsewhere
 * follows from the profile, by the bytes of the chain's main field: the one that takes
 * most of the time.
 */
#ifndef HR_OPT_REORDER_H
#define HR_OPT_REORDER_H

#include "graph/profile.h"
#include "headrace/optimize.h"
#include "opt/order.h"

struct hr_reorder_settings {
    enum hr_rule rule;
    enum hr_strictness strictness; /* that swaps may need at most */
};

/* With rule headrace, an order that changes values is taken only if all nodes take at
 * most this part of the CPU time that the cheapest order takes without: what gains less
 * is within the errors of costs. */
#define HR_REORDER_WORTH 0.98

struct hr_reorder {
    uint32_t *nodes;       /* for hr__graph_permute(): place i holds nodes[i] */
    double *node_ns;       /* per node: CPU time of a record that enters it, in the new
                              order; -1: not of a chain */
    size_t moved;          /* nodes that stand elsewhere than written */
    double written_ns, ns; /* CPU time for each record of the source, of the nodes of
                              chains, as measured and as predicted */
    double expected;       /* CPU time of all nodes in the new order by that as written */
    bool best; /* no order that is legal by `needs` is cheaper, by these numbers */
    enum hr_strictness needs; /* that the order was looked for with: with rule headrace as
                                 strict as possible, with others what was asked for */
};

/*
 * Finds an order of a frozen graph. `profile` must hold all nodes of its chains:
 * HR_ERR_STATE names the first that it lacks. Swaps are judged in pairs, so the permuted
 * graph may still fail to freeze or give another schema where the strictness is relaxed;
 * the caller freezes it. hr__reorder_finish() the result.
 */
HR_CHECK enum hr_err
hr__reorder(const struct hr_graph *graph, const struct hr_profile *profile,
            const struct hr_reorder_settings *settings, struct hr_reorder *ret_reorder,
            struct hr_error *reterr);
void hr__reorder_finish(struct hr_reorder *reorder);

#endif
