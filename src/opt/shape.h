/*
 * opt/shape.h - which part of a graph is a function of the record's number, and what can
 * end a stage.
 */
#ifndef HR_OPT_SHAPE_H
#define HR_OPT_SHAPE_H

#include "graph/plan.h"

/*
 * A graph's tail is a spine: from the output back along single inputs. After the first
 * node that drops, makes or joins records the graph must be that spine; up to there (the
 * root), where nodes run by number, it may be any DAG.
 */
struct hr_shape {
    uint32_t root;
    uint32_t spine[HR_GRAPH_NODES_MAX]; /* from the root's successor to the output */
    size_t spine_count;
};

void hr__shape_find(const struct hr_graph *graph, struct hr_shape *ret_shape);

/* An ORDER node that is a function of the position: no step, no stream op. */
bool hr__node_is_index_order(const struct hr_graph *graph, uint32_t node);

/* The node that makes this node's records: ORDER nodes of the first kind pass them on. */
uint32_t hr__node_records(const struct hr_graph *graph, uint32_t node);

/* May `node`, which is in the spine, still join the stage, given what its end holds? */
bool hr__stage_fits(const struct hr_graph *graph, const struct hr_plan_stage *stage,
                    uint32_t node);

/* Sets what follows from plan->root and the nodes of the stages: feed, last, filters,
 * describes, direct. */
void hr__plan_settle(struct hr_plan *plan);

/* Whether it ends where nothing in the graph ends it: a cut. */
bool hr__stage_is_cut(const struct hr_plan *plan, size_t at);

#endif
