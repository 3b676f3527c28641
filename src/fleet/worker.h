/*
 * fleet/worker.h - private interface between worker.c (events) and maker.c (batches).
 */
#ifndef HR_FLEET_WORKER_H
#define HR_FLEET_WORKER_H

#include "engine/engine.h"
#include "engine/outputs.h"
#include "fleet/loan.h"
#include "fleet/service.h"
#include "svc/serve.h"

/* A client's job. The text comes from the client; the maker opens it. */
struct hr_worker_job {
    struct hr_worker_job *next;
    uint64_t id;
    char *text;
    size_t bytes;
    uint32_t peers; /* connections that brought it */
    uint32_t holds; /* by the maker */
    /* The maker's: */
    bool opened;
    struct hr_graph *graph;
    struct hr_outputs outputs;
    struct hr_pool *pool;  /* of its batches */
    struct hr_error error; /* why it cannot be opened */
    uint32_t frame_positions;
};

struct hr_worker_peer {
    struct hr_worker_job *job; /* of a client, or NULL */
    uint64_t serial;           /* of the connection that has the number now */
    struct hr_lender lender;   /* of a client on this host */
};

/* A run of neighbouring batches that is being made: one lease, usually. The maker's. */
struct hr_worker_range {
    struct hr_worker_job *job; /* NULL: free */
    uint64_t next, until, used;
    struct hr_engine *engine;
};
#define HR_WORKER_RANGES 8u

struct hr_worker_process {
    struct hr_service base;
    struct hr_worker role;
    struct hr_actions actions;
    char *dispatcher, *address;
    uint32_t peers_max;
    int threads;
    uint32_t link; /* the connection to the dispatcher, made or not; 0: none */
    uint64_t retry_ns;
    /* Draining: leases are finished until drain_until_ns, then connections closed until
     * leave_until_ns; 0: not begun. */
    uint64_t drain_ns, drain_until_ns, leave_until_ns;
    uint64_t serial;
    struct hr_worker_peer *peers; /* by number */
    struct hr_worker_job *jobs;
    /* The maker. */
    pthread_t thread;
    pthread_cond_t work;
    bool stopping; /* by __atomic */
    struct hr_pool *pool;
    struct hr_worker_range ranges[HR_WORKER_RANGES];
    uint64_t clock; /* dates the use of ranges */
};

/* Under the lock: drops a hold or a connection's claim of a job; frees it when it was the
 * last and the maker holds it no longer. */
void hr__worker_job_release(struct hr_worker_process *w, struct hr_worker_job *job);

/* The maker's thread. */
void *hr__worker_make(void *user);

#endif
