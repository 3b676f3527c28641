/*
 * tests/svc/sim_strangers.c - design A: others who say HELLO to the dispatcher.
 *
 * They speak on the connection SIM_CONNS while the network does not use it.
 */
#include "tests/svc/sim_a.h"

#define STRANGERS 0x100u /* their jobs */

/* Another process says that it is a rank, and dies. It must be refused while the rank's
 * client is heard; else it replaces it. */
void sim_a_intrude(struct sim *sim)
{
    struct hr_dispatcher *d = &get(sim)->dispatcher;
    uint32_t rank = sim_below(sim, sim->shape.clients);
    const struct hr_lease_job *job = job_of(sim);
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .job = SIM_JOB};
    struct hr_error error = {0};
    bool refused = false, heard;
    hr_peer peer;

    if (sim->conns[SIM_CONNS].used || job == NULL || rank >= job->world)
        return;
    peer = job->consumers[rank].peer;
    heard = peer != 0 && sim->now - d->peers[peer].heard_ns < d->options.silent_ns;
    hello.u.hello.nonce = hr__rng_u64(&sim->rng);
    hello.u.hello.base = job->base;
    hello.u.hello.membership = job->membership;
    hello.u.hello.world = job->world;
    hello.u.hello.rank = rank;
    hello.u.hello.role = HR_FRAME_CLIENT;
    hello.u.hello.weight = 1;
    sim_trace(sim, "an intruder says that it is rank %u", rank);
    must(sim, hr__lease_frame(d, SIM_CONNS, &hello, sim->now, &sim->actions, &error),
         &error);
    for (size_t i = 0; i < sim->actions.count; i++)
        refused = refused || (sim->actions.items[i].kind == HR_ACTION_SEND &&
                              sim->actions.items[i].u.frame.type == HR_FRAME_ERROR);
    if (refused != heard)
        sim_fail(sim, "rank %u is %s, and another client of it is %s", rank,
                 heard ? "alive" : "silent", refused ? "refused" : "accepted");
    sim_perform(sim, SIM_DISPATCHER);
    if (sim->procs[SIM_DISPATCHER].alive)
        hr__lease_lost(d, SIM_CONNS, sim->now, &sim->actions);
    sim_perform(sim, SIM_DISPATCHER);
}

/* A stranger brings a job, says HELLO and is gone, in good order or not. Another one may
 * have brought this job before. */
void sim_a_visit(struct sim *sim)
{
    const uint64_t id = STRANGERS + sim_below(sim, 4);
    const struct hr_lease_job_options job = {
        .id = id, .end = 40, .split = 2, .window = 20, .world = 1, .kin = id % 2};
    struct hr_dispatcher *d = &get(sim)->dispatcher;
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .job = job.id};
    struct hr_error error = {0};

    if (sim->conns[SIM_CONNS].used)
        return;
    if (hr__lease_find_job(d, job.id) == NULL) {
        if (d->job_count == JOBS_MAX && !hr__lease_make_place(d, sim->now, GRACE_NS))
            return;
        must(sim, hr__lease_add_job(d, &job, &error), &error);
    }
    sim_trace(sim, "a stranger brings job %x", (unsigned)job.id);
    hello.u.hello.nonce = hr__rng_u64(&sim->rng);
    hello.u.hello.world = 1;
    hello.u.hello.role = HR_FRAME_CLIENT;
    hello.u.hello.weight = 1;
    must(sim, hr__lease_frame(d, SIM_CONNS, &hello, sim->now, &sim->actions, &error),
         &error);
    sim_perform(sim, SIM_DISPATCHER);
    if (sim->procs[SIM_DISPATCHER].alive && sim_below(sim, 2) == 0) {
        const struct hr_frame goodbye = {.type = HR_FRAME_GOODBYE};

        must(sim,
             hr__lease_frame(d, SIM_CONNS, &goodbye, sim->now, &sim->actions, &error),
             &error);
        sim_perform(sim, SIM_DISPATCHER);
    }
    if (sim->procs[SIM_DISPATCHER].alive)
        hr__lease_lost(d, SIM_CONNS, sim->now, &sim->actions);
    sim_perform(sim, SIM_DISPATCHER);
}
