/*
 * api/lock_probe.h - how much of the time of user code other threads cannot run user code
 * in, because its host has one lock for all calls, such as an interpreter's.
 *
 * A thread takes the lock around nothing, at random moments. If it had to wait, the lock
 * was held. That a call had to wait is known from the voluntary context switches of the
 * thread, not from the clock, so other programs on the machine do not matter.
 */
#ifndef HR_API_LOCK_PROBE_H
#define HR_API_LOCK_PROBE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"

/* What was seen of a node. */
struct hr_lock_seen {
    atomic_uint tries; /* moments at which a thread was in its code */
    atomic_uint waits; /* of those, in which the lock was held */
};

struct hr_lock_probe {
    struct hr_lock_seen *nodes; /* per node of the graph */

    /* Private. */
    struct hr_engine *engine;
    uint64_t next_ns; /* CPU time of the engine's thread, before which it is left alone */
    pthread_t thread;
    atomic_bool stop;
    bool started;
};

/* Starts to look at an engine whose plan has one thread. `nodes` has room for all nodes
 * of the graph and is zero. hr__lock_probe_end() before the engine closes; it is fine if
 * this failed. */
HR_CHECK enum hr_err
hr__lock_probe_begin(struct hr_lock_probe *probe, struct hr_engine *engine,
                     struct hr_lock_seen *nodes, struct hr_error *reterr);
void hr__lock_probe_end(struct hr_lock_probe *probe);

/* The part of the time of a node's calls in which the lock was held, and half of its 95 %
 * confidence interval, which is 1 if nothing was seen. */
double hr__lock_held(const struct hr_lock_seen *seen, double *ret_width);

#endif
