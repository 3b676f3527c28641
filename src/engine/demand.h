/*
 * engine/demand.h - limits the threads of a run to those that its demand needs: feeds
 * observations to the controller (opt/control.h) and applies its decisions.
 */
#ifndef HR_ENGINE_DEMAND_H
#define HR_ENGINE_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "headrace/base.h"
#include "opt/control.h"

struct hr_engine;
struct hr_runner;
struct hr_claim;
struct hr_cpu_use;

/* Guarded by the engine's lock. */
struct hr_demand {
    struct hr_control control;
    bool on;                   /* there is a demand, and more than one thread */
    uint64_t busy_ticks;       /* of threads, in completed pieces of work */
    uint64_t watched_ticks;    /* of those, in pieces whose use of cores was measured */
    uint64_t cpu_ns, delay_ns; /* in the measured pieces; as in struct hr_cpu_use */
    double made;            /* records, those of batches that are not complete included */
    uint64_t passed;        /* records of the last stage that its sequencers have seen */
    uint64_t waits_ns;      /* of the consumer, in hr_iter_next */
    uint64_t waits_from_ns; /* since when it waits; 0: it does not */
    uint64_t next_ns;       /* the controller is not asked before */
};

/* Whether a demand is a number of records per second, 0 or HR_DEMAND_CONSUMER. */
HR_CHECK enum hr_err hr__demand_check(double demand, struct hr_error *reterr);

/* Sets options.demand. Under the lock. */
void hr__demand_set(struct hr_engine *engine, double demand);

/* Whether to measure the use of cores of the runner's next piece of work: now and then.
 * Under the lock. */
bool hr__demand_watches(const struct hr_runner *runner);

/* A thread has worked for `ticks`, on this claim (its `stage` is NULL: it completed
 * none). `use` is its use of cores, NULL if that was not measured. Under the lock. */
void hr__demand_note(struct hr_engine *engine, const struct hr_claim *claim,
                     uint64_t ticks, const struct hr_cpu_use *use);

/* The consumer begins or ends to ask for a batch. Under the lock. */
void hr__demand_wait(struct hr_engine *engine, bool waits);

/* Threads that the demand allows. Under the lock. */
int hr__demand_threads(const struct hr_engine *engine);

/* Whether worker processes of the thread should end, since the demand has not needed it
 * for a while. Under the lock. */
bool hr__demand_releases(struct hr_engine *engine, int number);

#endif
