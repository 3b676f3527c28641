/*
 * fleet/dispatcher.h - private interface between dispatcher.c (frames), control.c (HTTP)
 * and events.c (the log) of a dispatcher's process.
 */
#ifndef HR_FLEET_DISPATCHER_H
#define HR_FLEET_DISPATCHER_H

#include "fleet/bound.h"
#include "fleet/events.h"
#include "fleet/job.h"
#include "fleet/service.h"
#include "net/http.h"
#include "svc/lease.h"

#define HR_KINDS_TEXT 24 /* bytes */
/* A job of which no client has taken anything gives its place to another one after this
 * time without a client. */
#define HR_JOB_GRACE_NS (1000 * HR_FLEET_MS)

struct hr_dispatcher_peer {
    char *address;        /* of a worker: where clients reach it; or NULL */
    uint64_t list_number; /* of the list that a client has; 0: none */
    bool is_client;
    bool known;                    /* its HELLO was accepted */
    bool goodbye;                  /* it said so: its end is no failure */
    bool draining;                 /* the log says so */
    uint32_t kinds;                /* of compression, of a worker (TRAFFIC) */
    uint64_t made, sent;           /* bytes: of batches; as the worker sent them */
    uint64_t finished;             /* positions of jobs of several consumers */
    uint64_t shared;               /* positions that it had made for another client */
    char job[HR_JOB_NAME_MAX + 1]; /* of a client */
    /* Of a client that is one of several consumers (bound.h); else NULL. */
    struct hr_bound_job *bound;
    bool named; /* it has said which: */
    uint32_t rank;
};

/* What the role does not know of a job. In order of the jobs' coming. */
struct hr_dispatcher_job {
    struct hr_dispatcher_job *next;
    uint64_t id, number;            /* counts jobs from 1 on */
    const struct hr_tenant *tenant; /* hr__net_tenant() of who brought it */
    bool done;                      /* the log says so */
    char name[HR_JOB_NAME_MAX + 1];
};

struct hr_dispatcher_process {
    struct hr_service base;
    struct hr_dispatcher role;
    struct hr_actions actions;
    struct hr_dispatcher_peer *peers; /* by number */
    struct hr_dispatcher_job *jobs, *last_job;
    uint64_t job_number; /* of the last one that came */
    uint64_t changes;    /* of the role, as its jobs were last looked at */
    uint32_t peers_max, jobs_max;
    uint64_t started_ns, jobs_refused;
    uint64_t made, sent, shared;        /* of all workers so far, as above */
    uint32_t worker_count, compressing; /* that have an address; that compress */
    struct hr_buffer *list; /* of workers, as clients get it; NULL: it changed */
    uint32_t list_count;
    uint64_t list_number;          /* counts changes */
    bool lists_due;                /* some client does not have the latest one */
    uint32_t next_list;            /* the peer before the one that a tick begins with */
    struct hr_http *control;       /* or NULL */
    struct hr_events *events;      /* or NULL */
    struct hr_journal *journal;    /* or NULL */
    struct hr_bound_job *bound;    /* jobs of several consumers, in memory */
    uint64_t bound_number;         /* counts those that were loaded */
    struct hr_lease_counts counts; /* of these jobs */
    uint64_t evict_ns;             /* a consumer without a connection is evicted then */
    uint64_t journal_s;            /* an unused job leaves the journal after so long */
    uint64_t expired_ns;           /* when that was looked at; 0: not yet */
    uint64_t journal_failed_ns;    /* when the log last said so; 0: never */
    uint64_t refused_ns;           /* when `refused` began to count */
    uint32_t refused;              /* refused connections since then */
};

/* Tells the worker at this address to drain. HR_ERR_NOT_FOUND. */
HR_CHECK enum hr_err hr__dispatcher_drain(struct hr_dispatcher_process *d,
                                          const char *address, struct hr_error *reterr);

/* Sends a client the list of these workers. */
void hr__dispatcher_send_workers(struct hr_dispatcher_process *d, uint32_t to,
                                 const struct hr_action_workers *workers);

/* Kinds of compression as a text, such as "none" or "zstd, lz4". Returns `to`. */
const char *hr__dispatcher_kinds(uint32_t kinds, char to[HR_KINDS_TEXT]);

/* control.c: an hr_http_fn. */
void hr__control_answer(void *user, const struct hr_http_request *request,
                        struct hr_http_answer *answer);

#endif
