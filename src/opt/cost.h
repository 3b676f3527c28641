/*
 * opt/cost.h - how fast a plan runs, and what limits it, predicted from what nodes cost.
 * Pure.
 *
 * A record's CPU time is the sum over its nodes. The rate is the least of what the cores
 * can compute, what the threads can carry while they also wait, what each part that only
 * one thread does at a time allows, and what sources can read.
 */
#ifndef HR_OPT_COST_H
#define HR_OPT_COST_H

#include "graph/profile.h"

struct hr_reorder; /* opt/reorder.h */

/* What a node costs, per record that enters it. */
struct hr_cost_fact {
    double records; /* that enter it, for each record of the largest source */
    double kept;    /* records that leave it for each that enters */
    double cpu_ns, wait_ns;
    double width; /* half of the 95 % confidence interval of cpu_ns, as a part of it, at
                     most 1; 0: not known */
    double bytes_in, bytes_out;
    double crowd; /* as in hr_cost_machine, of this node; 0: as the machine's */
    /* 0 to 1: part of cpu_ns in which other threads can do the same: run user code, or
     * write into a batch. 0 where nothing is known. */
    double parallel;
    double process_ns; /* of user code in a worker process, transfer included; the same */
    bool variants;     /* of user code: `parallel` was measured */
};

struct hr_cost_machine {
    double cores; /* that threads and worker processes run on; >= 1 */
    double crowd; /* a record's CPU time while all cores are busy, by that while one is;
                     >= 1 */
    double copy;  /* bytes/s that a core copies to or from a worker process; 0: any */
    double transfer_ns; /* CPU time of a record without bytes that goes there and back */
    double disk;        /* bytes/s that sources can read; 0: any */
    uint64_t memory;    /* bytes; 0: any */
    double price;       /* of the machine for an hour; 0: not known */
};

enum hr_cost_limit {
    HR_COST_CORES,    /* all cores compute */
    HR_COST_THREADS,  /* all threads compute or wait */
    HR_COST_SEQUENCE, /* the nodes at the end of a stage see records one at a time */
    HR_COST_CODE,     /* user code queues for one lock, such as an interpreter's */
    HR_COST_DISK,     /* sources read as fast as they can */
    HR_COST_LIMITS
};

struct hr_cost_node {
    double cpu_ns, wait_ns; /* per record that is delivered; copies included */
    double share;           /* of the CPU time of all nodes, 0 to 1 */
};

struct hr_cost {
    double rate;                  /* records delivered per second */
    double cpu_ns;                /* per record that is delivered */
    double rates[HR_COST_LIMITS]; /* if there were no other limit; HUGE_VAL: none */
    enum hr_cost_limit limit;     /* the least of them; cores if threads hardly wait */
    uint32_t node;                /* where the limit is: the node with most of its time */
    uint64_t memory;              /* bytes that the plan takes at most */
    bool fits;                    /* in the machine's memory */
    double price;                 /* of a million records; 0: not known */
    double busy;                  /* cores that compute, on average */
    struct hr_cost_node *nodes;   /* as in the graph */
    char reason[160];             /* what limits it, for people */
};

/* The machine of a profile. */
void hr__cost_machine(const struct hr_profile *profile,
                      struct hr_cost_machine *ret_machine);

/* Facts of all nodes of a frozen graph; `ret_facts` has room for graph->count.
 * HR_ERR_STATE names the first node that the profile lacks. */
HR_CHECK enum hr_err
hr__cost_facts(const struct hr_graph *graph, const struct hr_profile *profile,
               struct hr_cost_fact *ret_facts, struct hr_error *reterr);

/* Facts of `to`, the graph of `facts` in another order (hr__graph_permute by
 * order->nodes), as the order predicts them. */
void hr__cost_reorder(const struct hr_cost_fact *facts, const struct hr_reorder *order,
                      const struct hr_graph *to, struct hr_cost_fact *ret_facts);

/* Predicts a plan of the graph that the facts are of. hr__cost_finish() the result;
 * HR_ERR_MEMORY, or HR_ERR_STATE if no record is delivered. */
HR_CHECK enum hr_err
hr__cost_plan(const struct hr_plan *plan, const struct hr_cost_fact *facts,
              const struct hr_cost_machine *machine, struct hr_cost *ret_cost,
              struct hr_error *reterr);
void hr__cost_finish(struct hr_cost *cost);

/* "the cores", "user code". */
const char *hr__cost_limit_text(enum hr_cost_limit limit);

#endif
