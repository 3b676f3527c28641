/*
 * tests/svc/sim_a.h - what sim_a.c and sim_strangers.c share of design A.
 */
#ifndef HR_TESTS_SVC_SIM_A_H
#define HR_TESTS_SVC_SIM_A_H

#include "svc/client.h"
#include "svc/lease.h"
#include "svc/serve.h"
#include "tests/svc/sim.h"

#define JOBS_MAX 3u            /* the clients' and those of strangers */
#define GRACE_NS (30 * SIM_MS) /* as of hr__lease_has_place() */

struct trainer {
    struct hr_cursor cursor;
    struct hr_client client;
    uint32_t log[2 * SIM_RECORDS]; /* records as taken */
    uint32_t count;
    /* On disk: replaced in one step. */
    uint32_t saved_count;
    char *saved;
    /* The workers that it uses. */
    bool all, team[SIM_WORKERS];
};

struct a {
    struct hr_dispatcher dispatcher;
    struct hr_worker workers[SIM_WORKERS];
    struct trainer trainers[SIM_CLIENTS];
    uint32_t world;                    /* when the job was made */
    uint32_t history[8 * SIM_RECORDS]; /* what earlier memberships committed */
    uint32_t history_count;
};

static inline struct a *get(struct sim *sim)
{
    return sim->state;
}

static inline struct trainer *trainer_of(struct sim *sim, int proc)
{
    return &get(sim)->trainers[proc - SIM_CLIENT];
}

static inline struct hr_lease_job *job_of(struct sim *sim)
{
    return hr__lease_find_job(&get(sim)->dispatcher, SIM_JOB);
}

static inline void must(struct sim *sim, enum hr_err code, const struct hr_error *error)
{
    if (code != HR_OK)
        sim_fail(sim, "%s", error->message);
}

/* sim_strangers.c: others say HELLO to the dispatcher. A second client of a rank; one
 * that brings a job of its own and is gone. */
void sim_a_intrude(struct sim *sim);
void sim_a_visit(struct sim *sim);

#endif
