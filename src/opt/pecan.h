/*
 * opt/pecan.h - nodes of a graph as Pecan's rule sees them. Pure.
 */
#ifndef HR_OPT_PECAN_H
#define HR_OPT_PECAN_H

#include "graph/profile.h"
#include "opt/order.h"

/*
 * What hr__order_pecan() reads of a node of a frozen graph, which reads one other node
 * (Graur et al., USENIX ATC 2024, section 5). Its inflation is that of whole records,
 * filters included. It is fixed if it makes numbers of bytes or bytes of numbers (a
 * decode, a tokenizer), or gives a field another rank.
 */
void hr__pecan_step(const struct hr_graph *graph, const struct hr_graph_node *node,
                    const struct hr_profile_node *measured,
                    struct hr_pecan_step *ret_step);

#endif
