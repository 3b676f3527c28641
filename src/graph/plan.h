/*
 * graph/plan.h - how a graph is to be run: a value that opt makes and engine obeys.
 *
 * A plan cuts the graph into stages. A stage carries a record through its steps without a
 * stop (run to completion) and hands it to the stage's end: an expansion into children,
 * order ops that must see the stream, a batcher. Between stages stands a queue, bounded
 * in bytes. Inside a stage, groups of steps share one piece of work on a deferred value
 * (decode, crop, resize, normalise, store).
 */
#ifndef HR_GRAPH_PLAN_H
#define HR_GRAPH_PLAN_H

#include "graph/graph.h"

#define HR_PLAN_STAGES_MAX 16
#define HR_NO_NODE UINT32_MAX

struct hr_plan_step {
    uint32_t node;
    uint32_t group; /* node that heads the composed work this step belongs to; itself when
                       alone */
    bool force_before; /* deferred inputs are made before the step */
    bool force_after;  /* its deferred results are made at once */
    char reason[160];  /* why it was or was not composed */
};

struct hr_plan_stage {
    struct hr_plan_step *steps;
    size_t step_count;
    uint32_t feed;   /* node whose records come in; HR_NO_NODE for stage 0, which reads
                        sources */
    uint32_t last;   /* node whose records the steps end with: the last step, or feed */
    uint32_t expand; /* node or HR_NO_NODE */
    uint32_t streams[HR_NODE_INPUTS_MAX]; /* ORDER nodes in stream form, in order */
    size_t stream_count;
    uint32_t batch; /* node or HR_NO_NODE */
    bool filters;   /* a step may drop records */
    bool direct;    /* positions of records are known beforehand: results go straight into
                       batch slots */
    char reason[160];
};

struct hr_plan {
    const struct hr_graph *graph; /* borrowed */
    struct hr_plan_stage stages[HR_PLAN_STAGES_MAX];
    size_t stage_count;
    uint32_t
        root;    /* node whose records stage 0 makes: everything up to it is one to one */
    int threads; /* 0: inline */
    bool ordered;
    char threads_reason[96];
};

/* Frees what the plan holds. */
void hr__plan_finish(struct hr_plan *plan);

/* For people, and as JSON. */
void hr__plan_print(const struct hr_plan *plan, struct hr_str *out);
void hr__plan_print_json(const struct hr_plan *plan, struct hr_str *out);

#endif
