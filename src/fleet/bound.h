/*
 * fleet/bound.h - jobs of independent consumers in a dispatcher's process: svc/bind.h on
 * its connections, with its journal (journal.h).
 *
 * Such a job is in memory while clients of it are connected, or hold splits that are not
 * taken from them yet; else it is in the journal alone. Each has a binder of its own,
 * which is introduced to the workers and hears of them what the dispatcher's role hears.
 * Where the journal fails, the job is dropped from memory with its clients: they come
 * back, and find it as the journal has it. All jobs are where it is lost.
 */
#ifndef HR_FLEET_BOUND_H
#define HR_FLEET_BOUND_H

#include "fleet/journal.h"
#include "net/tenants.h"
#include "svc/bind.h"

#define HR_BOUND_CONSUMERS 256u /* of a job */

struct hr_dispatcher_process;

struct hr_bound_job {
    struct hr_bound_job *next;
    uint64_t number; /* from 0 on, in order of loading, as the list is */
    struct hr_journal_job about;
    struct hr_binder binder;
    char *names[HR_BOUND_CONSUMERS]; /* of consumers, by rank */
    uint32_t count;
    uint32_t clients;              /* connections that brought it */
    struct hr_bind_counts counted; /* that are in the dispatcher's sums */
    bool lists_due;                /* its clients do not know all of its workers */
};

/* A client brings a job with this head, in which it is one of several consumers; refuses
 * it if that cannot be. */
struct hr_bound_head {
    uint64_t id, end;
    const char *name;
    const struct hr_tenant *tenant; /* or NULL */
};
void hr__bound_take_job(struct hr_dispatcher_process *d, uint32_t peer,
                        const struct hr_bound_head *head);
/* The name of the consumer that it is. */
void hr__bound_take_name(struct hr_dispatcher_process *d, uint32_t peer, const char *text,
                         size_t bytes);
/* Another message of such a client. */
void hr__bound_client(struct hr_dispatcher_process *d, uint32_t peer,
                      const struct hr_frame *frame);
void hr__bound_client_lost(struct hr_dispatcher_process *d, uint32_t peer);

/* Handles a message from a worker that the dispatcher's role knows. Returns true if only
 * one of these jobs was concerned. */
bool hr__bound_worker(struct hr_dispatcher_process *d, uint32_t peer,
                      const struct hr_frame *frame);
/* A worker has an address now. One is gone. */
void hr__bound_worker_came(struct hr_dispatcher_process *d);
void hr__bound_worker_lost(struct hr_dispatcher_process *d, uint32_t peer);

/* Returns the sums of hr__bind_work() over all jobs of several consumers; with a worker,
 * only over jobs of which it has leases. */
struct hr_bind_work hr__bound_work(const struct hr_dispatcher_process *d, uint32_t peer);

void hr__bound_tick(struct hr_dispatcher_process *d, uint64_t now);

/* Jobs of a tenant (NULL: anybody) that are not done. */
uint32_t
hr__bound_count(const struct hr_dispatcher_process *d, const struct hr_tenant *tenant);

/* Takes from a consumer what it has not committed. HR_ERR_NOT_FOUND. */
HR_CHECK enum hr_err hr__bound_evict(struct hr_dispatcher_process *d, const char *job,
                                     const char *consumer, struct hr_error *reterr);

void hr__bound_close(struct hr_dispatcher_process *d);

#endif
