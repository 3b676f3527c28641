/*
 * tests/svc/sim_b.c - design B: independent consumers, first come, first served, that
 * commit through the dispatcher.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "svc/bind.h"
#include "svc/claim.h"
#include "svc/serve.h"
#include "tests/svc/sim.h"

struct checkpoint {
    uint64_t id; /* 0: none */
    uint32_t count;
};

struct trainer {
    struct hr_claims claims;
    uint32_t log[2 * SIM_RECORDS]; /* records as taken */
    uint32_t count;
    bool settled; /* it knows which of its checkpoints counts */
    bool lazy;    /* commits only when it must */
    /* On disk: each replaced in one step. */
    struct checkpoint saved, aside;
};

struct b {
    struct hr_binder binder;
    struct hr_worker workers[SIM_WORKERS];
    struct trainer trainers[SIM_CLIENTS];
};

static struct b *get(struct sim *sim)
{
    return sim->state;
}

static struct trainer *trainer_of(struct sim *sim, int proc)
{
    return &get(sim)->trainers[proc - SIM_CLIENT];
}

static struct hr_worker *worker_of(struct sim *sim, int proc)
{
    return &get(sim)->workers[proc - SIM_WORKER];
}

static void must(struct sim *sim, enum hr_err code, const struct hr_error *error)
{
    if (code != HR_OK)
        sim_fail(sim, "%s", error->message);
}

/* What this design needs of TCP: messages of a connection keep their order, and are not
 * lost while it lives. Its journal must not lose rows. */
static void draw(struct sim *sim)
{
    if (sim->state == NULL)
        sim->state = hr__malloc(sizeof(struct b));
    if (sim->state == NULL)
        abort();
    memset(sim->state, 0, sizeof(struct b));
    sim->shape.any_order = false;
    sim->shape.lose = 0;
    sim->shape.resize = 0;
    sim->shape.budget += SIM_PAYLOAD;
}

/* ---- processes ---- */

static void start_dispatcher(struct sim *sim)
{
    const struct hr_bind_options options = {
        .job = SIM_JOB,
        .end = sim->shape.end,
        .split = sim->shape.split,
        .consumers = sim->shape.clients,
        .window = 1 + (uint32_t)(sim->shape.window % 8),
        .ahead = 1 + (uint32_t)(sim->shape.window % 3),
        .peers_max = SIM_CONNS,
        .ttl_ns = 120 * SIM_MS,
        .served_ns = 60 * SIM_MS,
        .silent_ns = sim_silent_ns(sim),
        .absent_ns = sim_silent_ns(sim),
    };
    struct hr_binder *binder = &get(sim)->binder;
    struct hr_error error = {0};

    must(sim, hr__bind_init(binder, &options, &error), &error);
    for (uint32_t i = 0; i < sim->row_count; i++)
        if (hr__bind_replay(binder, &sim->rows[i], &error) != HR_OK &&
            !HR_MUTANT(JOURNAL_TAIL_LOST) && !HR_MUTANT(BIND_AFTER_LEASE))
            sim_fail(sim, "%s", error.message);
}

static void start_client(struct sim *sim, int proc)
{
    struct trainer *t = trainer_of(sim, proc);
    const struct hr_claims_options options = {.job = SIM_JOB,
                                              .end = sim->shape.end,
                                              .nonce = hr__rng_u64(&sim->rng) | 1,
                                              .rank = (uint32_t)(proc - SIM_CLIENT),
                                              .workers_max = sim->shape.workers,
                                              .pieces_max = 16,
                                              .budget = sim->shape.budget,
                                              .beat_ns = 20 * SIM_MS,
                                              .weight = 1 + (uint32_t)proc % 3};
    struct hr_error error = {0};

    t->count = t->saved.count;
    t->settled = false;
    t->lazy = sim_below(sim, 2) == 0;
    must(sim, hr__claims_init(&t->claims, &options, &error), &error);
}

static void start(struct sim *sim, int proc)
{
    const struct hr_serve_options options = {.nonce = hr__rng_u64(&sim->rng) | 1,
                                             .peers_max = SIM_CONNS,
                                             .leases_max = 8,
                                             .frame_positions =
                                                 sim->shape.frame_positions,
                                             .beat_ns = 20 * SIM_MS};
    struct hr_error error = {0};

    if (proc == SIM_DISPATCHER)
        start_dispatcher(sim);
    else if (sim_is_worker(proc))
        must(sim, hr__serve_init(worker_of(sim, proc), &options, &error), &error);
    else
        start_client(sim, proc);
}

static void stop(struct sim *sim, int proc)
{
    if (proc == SIM_DISPATCHER) {
        hr__bind_finish(&get(sim)->binder);
    } else if (sim_is_worker(proc)) {
        hr__serve_finish(worker_of(sim, proc));
    } else {
        struct hr_claims *claims = &trainer_of(sim, proc)->claims;

        while (hr__claims_drop(claims) != NULL)
            ; /* payloads are the arena's */
        hr__claims_finish(claims);
    }
}

/* ---- events ---- */

static void connected(struct sim *sim, int proc, hr_peer peer, int other)
{
    if (sim_is_worker(proc))
        hr__serve_connected(worker_of(sim, proc), peer, sim->now, &sim->actions);
    else
        hr__claims_connected(&trainer_of(sim, proc)->claims, peer,
                             sim_is_worker(other) ? HR_FRAME_WORKER : 0, sim->now,
                             &sim->actions);
}

static void lost(struct sim *sim, int proc, hr_peer peer)
{
    if (proc == SIM_DISPATCHER)
        hr__bind_lost(&get(sim)->binder, peer, sim->now, &sim->actions);
    else if (sim_is_worker(proc))
        hr__serve_lost(worker_of(sim, proc), peer);
    else
        hr__claims_lost(&trainer_of(sim, proc)->claims, peer);
}

static void act(struct sim *sim, int proc, enum hr_claims_do what)
{
    struct trainer *t = trainer_of(sim, proc);

    switch (what) {
    case HR_CLAIMS_NOTHING:
        return;
    case HR_CLAIMS_KEEP:
        sim_trace(sim, "C%d drops checkpoint %llu", proc - SIM_CLIENT,
                  (unsigned long long)t->aside.id);
        t->aside = (struct checkpoint){0};
        return;
    case HR_CLAIMS_RENAME:
        if (HR_MUTANT(CHECKPOINT_FIRST))
            return;
        sim_trace(sim, "C%d renames checkpoint %llu", proc - SIM_CLIENT,
                  (unsigned long long)t->aside.id);
        t->saved = t->aside;
        t->aside = (struct checkpoint){0};
        if (t->count < t->saved.count)
            t->count = t->saved.count;
        return;
    case HR_CLAIMS_STOP:
        sim_trace(sim, "C%d: %s", proc - SIM_CLIENT, t->claims.error.message);
        if (t->claims.error.code == HR_ERR_STATE)
            sim_fail(sim, "%s", t->claims.error.message);
        sim_crash(sim, proc);
        return;
    }
}

/* What the dispatcher knows, and the trainer did not. */
static void review(struct sim *sim, int proc)
{
    struct trainer *t = trainer_of(sim, proc);

    if (t->claims.resolved && !t->settled) {
        t->settled = true;
        act(sim, proc, hr__claims_resolve(&t->claims, t->saved.id, t->aside.id));
    }
    if (t->claims.done && sim->procs[SIM_DISPATCHER].alive &&
        !hr__bind_is_done(&get(sim)->binder))
        sim_fail(sim, "client %d sees an end that is none", proc - SIM_CLIENT);
}

static void data(struct sim *sim, int proc, hr_peer peer, const struct hr_frame *frame,
                 const char *payload, size_t bytes)
{
    struct hr_claims *claims = &trainer_of(sim, proc)->claims;
    bool kept;

    hr__claims_data(claims, peer, frame, bytes, (void *)payload, &kept, &sim->actions);
    /* The rest of a frame per worker, and the frame at position 0. */
    if (claims->bytes > sim->shape.budget + SIM_PAYLOAD * sim->shape.frame_positions *
                                                (sim->shape.workers + 1))
        sim_fail(sim, "client %d holds %zu bytes", proc - SIM_CLIENT,
                 (size_t)claims->bytes);
}

static void frame(struct sim *sim, int proc, hr_peer peer, const struct hr_frame *frame,
                  const char *payload, size_t bytes)
{
    if (proc == SIM_DISPATCHER)
        hr__bind_frame(&get(sim)->binder, peer, frame, sim->now, &sim->actions);
    else if (sim_is_worker(proc))
        hr__serve_frame(worker_of(sim, proc), peer, frame, sim->now, &sim->actions);
    else if (frame->type == HR_FRAME_DATA)
        data(sim, proc, peer, frame, payload, bytes);
    else {
        act(sim, proc,
            hr__claims_frame(&trainer_of(sim, proc)->claims, peer, frame, &sim->actions));
        if (sim->procs[proc].alive)
            review(sim, proc);
    }
}

static void tick(struct sim *sim, int proc)
{
    if (proc == SIM_DISPATCHER)
        get(sim)->binder.options.silent_ns = get(sim)->binder.options.absent_ns =
            sim_silent_ns(sim);
    if (proc == SIM_DISPATCHER)
        hr__bind_tick(&get(sim)->binder, sim->now, &sim->actions);
    else if (sim_is_worker(proc))
        hr__serve_tick(worker_of(sim, proc), sim->now, &sim->actions);
    else {
        struct hr_claims *claims = &trainer_of(sim, proc)->claims;

        hr__claims_tick(claims, sim->now, &sim->actions);
        while (hr__claims_expired(claims, sim->now) != NULL)
            ;
    }
}

/* ---- work ---- */

static bool make_frame(struct sim *sim, int proc)
{
    struct hr_frame frame = {.type = HR_FRAME_DATA};
    struct hr_serve_task task;
    uint64_t records[8];
    size_t bytes;

    if (!hr__serve_next(worker_of(sim, proc), &task, &sim->actions))
        return false;
    frame.position = task.position;
    frame.count = task.count;
    frame.generation = task.generation;
    for (uint32_t i = 0; i < task.count; i++)
        records[i] = task.position + i;
    bytes = SIM_PAYLOAD * task.count;
    sim_send_data(sim, proc, task.client, &frame, records, bytes);
    hr__serve_sent(worker_of(sim, proc), &task, bytes,
                   (struct hr_serve_took){bytes, bytes}, &sim->actions);
    return true;
}

static void write_aside(struct sim *sim, int proc)
{
    struct trainer *t = trainer_of(sim, proc);

    t->aside = (struct checkpoint){t->claims.committed + 1, t->count};
    sim_trace(sim, "C%d writes checkpoint %llu with %u records aside", proc - SIM_CLIENT,
              (unsigned long long)t->aside.id, t->count);
    if (HR_MUTANT(CHECKPOINT_FIRST))
        t->saved = t->aside;
    hr__claims_commit(&t->claims, &sim->actions);
}

static bool train(struct sim *sim, int proc)
{
    struct trainer *t = trainer_of(sim, proc);
    struct hr_claim_piece piece;

    if (t->settled && t->claims.pending == 0 && t->count > t->saved.count &&
        (t->lazy ? hr__claims_is_due(&t->claims)
                 : sim_below(sim, 4) == 0 || t->claims.piece_count == 0)) {
        write_aside(sim, proc);
        return true;
    }
    if (!t->settled ||
        !hr__claims_take(&t->claims, 1 + sim_below(sim, 3), &piece, &sim->actions))
        return false;
    sim_trace(sim, "C%d takes %llu, %u", proc - SIM_CLIENT,
              (unsigned long long)piece.position, piece.count);
    for (uint32_t i = 0; i < piece.count; i++) {
        uint64_t record;

        memcpy(&record, (char *)piece.payload + SIM_PAYLOAD * (piece.skip + i),
               sizeof record);
        if (t->count == sizeof t->log / sizeof t->log[0]) {
            sim_fail(sim, "records come again and again");
            return true;
        }
        t->log[t->count++] = (uint32_t)record;
    }
    return true;
}

static bool work(struct sim *sim, int proc)
{
    if (proc == SIM_DISPATCHER)
        return false;
    return sim_is_worker(proc) ? make_frame(sim, proc) : train(sim, proc);
}

/* A consumer that may be alive is evicted. */
static void forget(struct sim *sim)
{
    uint32_t rank = sim_below(sim, sim->shape.clients);

    if (!sim->procs[SIM_DISPATCHER].alive)
        return;
    sim_trace(sim, "D evicts rank %u", rank);
    hr__bind_evict(&get(sim)->binder, rank, sim->now, &sim->actions);
    sim_perform(sim, SIM_DISPATCHER);
}

/* ---- the end ---- */

static bool is_done(struct sim *sim)
{
    if (!sim->procs[SIM_DISPATCHER].alive || !hr__bind_is_done(&get(sim)->binder))
        return false;
    for (uint32_t i = 0; i < sim->shape.clients; i++) {
        const struct trainer *t = &get(sim)->trainers[i];

        if (!sim->procs[SIM_CLIENT + i].alive || !t->settled || !t->claims.done ||
            (t->aside.id != 0 && !HR_MUTANT(CHECKPOINT_FIRST)))
            return false;
    }
    return true;
}

static void finish(struct sim *sim)
{
    uint8_t seen[SIM_RECORDS] = {0};

    for (uint32_t c = 0; sim->failure == NULL && c < sim->shape.clients; c++) {
        const struct trainer *t = &get(sim)->trainers[c];

        for (uint32_t i = 0; i < t->saved.count; i++) {
            if (t->log[i] >= sim->shape.end)
                sim_fail(sim, "a record %u does not exist", t->log[i]);
            else if (seen[t->log[i]]++ > 0)
                sim_fail(sim, "record %u is repeated", t->log[i]);
        }
    }
    for (uint64_t i = 0; sim->failure == NULL && i < sim->shape.end; i++)
        if (seen[i] == 0)
            sim_fail(sim, "record %llu is lost", (unsigned long long)i);
}

const struct sim_design sim_b = {.name = "B",
                                 .draw = draw,
                                 .start = start,
                                 .stop = stop,
                                 .connected = connected,
                                 .lost = lost,
                                 .frame = frame,
                                 .tick = tick,
                                 .work = work,
                                 .forget = forget,
                                 .is_done = is_done,
                                 .finish = finish};
