/*
 * api/lock_probe.c - see lock_probe.h.
 */
#include "api/lock_probe.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "core/rng.h"
#include "core/thread.h"
#include "engine/runner.h"
#include "op/code_table.h"

/* Between two moments, on average: what is disturbed is disturbed for some 20 us. */
#define PAUSE_NS 1000000.0
#define PAUSE_MAX_NS 10000000.0
#define BACK_NS 50000u /* of work, after which a thread has its lock back */

/* Sleeps for a time that no period of the pipeline goes with. */
static void pause_random(struct hr_rng *rng)
{
    double ns = -log(1 - hr__rng_double(rng)) * PAUSE_NS;
    struct timespec time = {.tv_nsec = (long)fmin(ns, PAUSE_MAX_NS)};

    nanosleep(&time, NULL);
}

/* The node whose code the engine's thread is in, or HR_NO_NODE. */
static uint32_t node_at(const struct hr_engine *engine)
{
    uint32_t node =
        atomic_load_explicit(&engine->runners[0].code_node, memory_order_relaxed);

    return node > 0 ? node - 1 : HR_NO_NODE;
}

static const struct hr_code *code_of(const struct hr_engine *engine, uint32_t node)
{
    return hr__node_code(&engine->graph->nodes[node])->code;
}

/* CPU time of the engine's thread. */
static uint64_t worked_ns(const struct hr_engine *engine)
{
    return hr__cpu_other_thread_ns(engine->runners[0].handle);
}

static void note(struct hr_lock_probe *probe, uint32_t node, bool waited)
{
    atomic_fetch_add_explicit(&probe->nodes[node].tries, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&probe->nodes[node].waits, waited, memory_order_relaxed);
}

/* A lock that was held was so at the beginning, one that was free at the end: the node is
 * that of this moment. The thread whose lock was taken needs it back before the next
 * time: else that would find it free. */
static void try_lock(struct hr_lock_probe *probe)
{
    uint32_t node = node_at(probe->engine);
    const struct hr_code *code;
    uint64_t switches;
    void *token;

    if (node == HR_NO_NODE || worked_ns(probe->engine) < probe->next_ns)
        return;
    code = code_of(probe->engine, node);
    if (code->enter == NULL)
        return;
    switches = hr__cpu_switches();
    token = code->enter(code->user);
    switches = hr__cpu_switches() - switches;
    if (switches == 0)
        node = node_at(probe->engine);
    code->leave(code->user, token);
    probe->next_ns = worked_ns(probe->engine) + BACK_NS;
    if (node != HR_NO_NODE)
        note(probe, node, switches > 0);
}

static void *run(void *user)
{
    struct hr_lock_probe *probe = user;
    struct hr_rng rng;

    hr__rng_init(&rng, 0, 0, 0);
    while (!atomic_load(&probe->stop)) {
        pause_random(&rng);
        try_lock(probe);
    }
    return NULL;
}

enum hr_err hr__lock_probe_begin(struct hr_lock_probe *probe, struct hr_engine *engine,
                                 struct hr_lock_seen *nodes, struct hr_error *reterr)
{
    enum hr_err code;

    memset(probe, 0, sizeof *probe);
    probe->engine = engine;
    probe->nodes = nodes;
    code = hr__thread_start(&probe->thread, "hr-probe", run, probe, reterr);
    probe->started = code == HR_OK;
    return code;
}

void hr__lock_probe_end(struct hr_lock_probe *probe)
{
    if (!probe->started)
        return;
    atomic_store(&probe->stop, true);
    pthread_join(probe->thread, NULL);
    probe->started = false;
}

double hr__lock_held(const struct hr_lock_seen *seen, double *ret_width)
{
    double n = atomic_load_explicit(&seen->tries, memory_order_relaxed);
    double waits = atomic_load_explicit(&seen->waits, memory_order_relaxed);
    double part = n > 0 ? fmin(waits / n, 1) : 0; /* both are read while they grow */

    /* As with one more moment of either kind: no moment of one kind is not certainty. */
    *ret_width =
        n > 0 ? 1.96 * sqrt((waits + 1) / (n + 2) * (1 - fmin(waits, n) / (n + 2)) / n)
              : 1;
    return part;
}
