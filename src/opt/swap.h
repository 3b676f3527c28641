/*
 * opt/swap.h - whether two nodes may change places. Pure: traits, bound fields and hints
 * decide, no op is known by name.
 */
#ifndef HR_OPT_SWAP_H
#define HR_OPT_SWAP_H

#include "graph/graph.h"

struct hr_swap {
    bool allowed;
    enum hr_strictness needs; /* allowed: how far records may differ at most */
    char reason[160];         /* a clause: "no field of one is made by the other" */
};

/* `second` follows `first` in a chain of nodes that each read the one before alone; the
 * graph is frozen. Swapped as neighbours, the records have the same fields in the same
 * order, and the random draws that they had: draws belong to nodes. Records that fail do
 * so at either node. Nodes become neighbours by swaps with those between them. */
void hr__swap(const struct hr_graph *graph, uint32_t first, uint32_t second,
              struct hr_swap *ret_swap);

#endif
