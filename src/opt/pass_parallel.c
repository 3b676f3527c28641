/*
 * opt/pass_parallel.c - how many threads, where each step runs, and how much work a
 * thread takes at a time.
 */
#include "opt/opt.h"

#include <stdio.h>

/* Work that is worth a visit to the engine's lock. */
#define CHUNK_NS 50000u
#define CHUNK_RECORDS 4096
/* The same where an interpreter is entered for it; a thread prepares the records of all
 * calls beforehand, so they are bounded in bytes too. */
#define CODE_CHUNK_NS 1000000u
#define CODE_CHUNK_BYTES ((uint64_t)4 << 20)
/* And where a process is visited: it sleeps between two requests, and on a machine that
 * has other work it may not be rescheduled for a long time. Channels have this much room.
 */
#define REQUEST_NS 30000000u
#define REQUEST_BYTES ((uint64_t)2 << 20)
/* Records that take longer gain nothing by waiting, prepared, for a worker process. */
#define OVERLAP_NS 50000000u
/* help_ns, wake_ns: below this, making a batch is cheaper than waking a thread. */
#define WAKE_NS 300000u

static enum hr_plan_variant
variant_of(const struct hr_plan *plan, const struct hr_opt_settings *settings,
           const bool *remote, uint32_t node)
{
    const struct hr_graph_node *n = &plan->graph->nodes[node];
    const struct hr_code_use *use = hr__node_code(n);
    bool wanted = settings->processes != NULL && settings->processes[node];

    if (remote[node])
        return HR_PLAN_REMOTE;
    if (use == NULL && wanted && hr__op_is_portable(n->op))
        return HR_PLAN_PROCESSES;
    if (use != NULL && use->variant != HR_CODE_INLINE &&
        ((wanted && use->code->stays == NULL) || use->variant == HR_CODE_PROCESSES))
        return HR_PLAN_PROCESSES;
    return plan->threads == 0 || (use != NULL && use->variant == HR_CODE_INLINE)
               ? HR_PLAN_INLINE
               : HR_PLAN_THREADS;
}

static void divide_work(struct hr_plan *plan, struct hr_plan_stage *stage,
                        const struct hr_opt_settings *settings, const bool *remote)
{
    bool code = false, requests = false;

    for (size_t i = 0; i < stage->step_count; i++) {
        struct hr_plan_step *step = &stage->steps[i];

        step->variant = variant_of(plan, settings, remote, step->node);
        if (step->variant == HR_PLAN_PROCESSES &&
            plan->graph->nodes[step->node].op->code != NULL)
            snprintf(step->reason, sizeof step->reason,
                     "your code, in worker processes: many records in one request");
        /* Many records at a time are taken from a worker's, as for an interpreter. */
        code = code || plan->graph->nodes[step->node].op->code != NULL ||
               step->variant == HR_PLAN_REMOTE;
        requests = requests || step->variant == HR_PLAN_PROCESSES;
    }
    if (stage->expand != HR_NO_NODE) {
        stage->expand_variant = variant_of(plan, settings, remote, stage->expand);
        code = code || plan->graph->nodes[stage->expand].op->code != NULL;
        requests = requests || stage->expand_variant == HR_PLAN_PROCESSES;
    }
    stage->parallelism = plan->threads > 0 ? plan->threads : 1;
    stage->chunk_ns = code || requests ? CODE_CHUNK_NS : CHUNK_NS;
    stage->chunk_records = requests ? HR_PLAN_REQUEST_RECORDS_MAX : CHUNK_RECORDS;
    stage->chunk_bytes = requests ? REQUEST_BYTES : code ? CODE_CHUNK_BYTES : 0;
    stage->request_ns = requests ? REQUEST_NS : 0;
    stage->overlap_ns = requests ? OVERLAP_NS : 0;
    if (requests || plan->remote != HR_NO_NODE)
        plan->help_ns = 0; /* the consumer's thread would need a process of its own, or
                              wait for a worker */
}

void hr__pass_parallel(struct hr_plan *plan, const struct hr_opt_settings *settings)
{
    bool remote[HR_GRAPH_NODES_MAX] = {false};

    plan->ordered = settings->ordered;
    if (plan->remote != HR_NO_NODE)
        hr__graph_before(plan->graph, plan->remote, remote);
    if (settings->threads < 0) {
        plan->threads = 0;
        snprintf(plan->threads_reason, sizeof plan->threads_reason,
                 "inline: all work in the caller's thread, as asked");
    } else if (settings->threads > 0) {
        plan->threads = settings->threads;
        snprintf(plan->threads_reason, sizeof plan->threads_reason, "as asked");
    } else {
        plan->threads = settings->cpus;
        snprintf(plan->threads_reason, sizeof plan->threads_reason,
                 "the CPUs that this process may use");
    }
    plan->help_ns = plan->wake_ns = plan->threads > 0 ? WAKE_NS : 0;
    for (size_t i = 0; i < plan->stage_count; i++)
        divide_work(plan, &plan->stages[i], settings, remote);
}
