/*
 * tests/svc/sim_a.c - design A: the client's cursor is the authority.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "tests/svc/sim_a.h"

/* ---- checkpoints ---- */

static struct hr_cursor_options cursor_options(const struct sim *sim)
{
    return (struct hr_cursor_options){
        .window = sim->shape.window, .budget = sim->shape.budget, .pieces = 16};
}

/* Opens a cursor at a checkpoint as this rank; a merged one is divided anew. */
static void open_cursor(struct sim *sim, struct trainer *t, const char *text, int rank)
{
    struct hr_cursor_options options = cursor_options(sim);
    struct hr_cursor_saved saved = {0};
    struct hr_error error = {0};

    must(sim, hr__cursor_parse(text, &options, &saved, &error), &error);
    options.share.world = sim->shape.clients;
    options.share.rank = (uint32_t)rank;
    must(sim, hr__cursor_init(&t->cursor, &options, &error), &error);
    hr__cursor_resume(&t->cursor, &saved);
}

static void close_cursor(struct trainer *t)
{
    while (hr__cursor_drop(&t->cursor) != NULL)
        ; /* payloads are the arena's */
    hr__cursor_finish(&t->cursor);
}

static void save(struct sim *sim, struct trainer *t)
{
    struct hr_error error = {0};
    struct hr_str text;

    hr__str_init(&text);
    must(sim, hr__cursor_save(&t->cursor, &text, &error), &error);
    hr__free(t->saved);
    t->saved = hr__str_take(&text);
    t->saved_count = t->count;
}

/* The first checkpoint of each rank, from the text of one of rank 0. */
static void divide(struct sim *sim, const char *text)
{
    for (uint32_t i = 0; i < sim->shape.clients; i++) {
        struct trainer *t = &get(sim)->trainers[i];

        t->count = 0;
        open_cursor(sim, t, text, (int)i);
        save(sim, t);
        close_cursor(t);
    }
}

static void draw(struct sim *sim)
{
    char text[256];
    struct a *a;

    if (sim->state == NULL)
        sim->state = hr__malloc(sizeof *a);
    a = sim->state;
    if (a == NULL)
        abort();
    memset(a, 0, sizeof *a);
    a->world = sim->shape.clients;
    snprintf(text, sizeof text,
             "{\"headrace_cursor\":1,\"job\":\"%016x\",\"membership\":0,\"world\":1,"
             "\"rank\":0,\"base\":0,\"end\":%llu,\"split\":%u,\"position\":0,"
             "\"ordered\":%s}",
             SIM_JOB, (unsigned long long)sim->shape.end, sim->shape.split,
             sim->shape.ordered ? "true" : "false");
    divide(sim, text);
}

/* ---- processes ---- */

/* The clients' job, and what the journal says of it. False if there is no place. */
static bool add_job(struct sim *sim)
{
    const struct hr_lease_job_options job = {.id = SIM_JOB,
                                             .end = sim->shape.end,
                                             .split = sim->shape.split,
                                             .window = sim->shape.window,
                                             .world = get(sim)->world,
                                             .kin = 1};
    struct hr_dispatcher *d = &get(sim)->dispatcher;
    struct hr_error error = {0};

    if (d->job_count == JOBS_MAX && !hr__lease_make_place(d, sim->now, GRACE_NS))
        return false;
    must(sim, hr__lease_add_job(d, &job, &error), &error);
    for (uint32_t i = 0; i < sim->row_count; i++)
        if (sim->rows[i].job == SIM_JOB)
            must(sim, hr__lease_replay(d, &sim->rows[i], &error), &error);
    return true;
}

static void start_dispatcher(struct sim *sim)
{
    const struct hr_lease_options options = {.peers_max = SIM_CONNS,
                                             .jobs_max = JOBS_MAX,
                                             .team_max = sim->shape.team,
                                             .ranges_max = 16,
                                             .known_max = 1 + sim_below(sim, 8),
                                             .lease_min = sim->shape.split,
                                             .lease_max = 64,
                                             .target_ns = 10 * SIM_MS,
                                             .ttl_ns = 120 * SIM_MS,
                                             .served_ns = 60 * SIM_MS,
                                             .hedge_ns = 40 * SIM_MS,
                                             .silent_ns = sim_silent_ns(sim),
                                             .absent_ns = 20 * SIM_MS};
    struct hr_error error = {0};

    must(sim, hr__lease_init(&get(sim)->dispatcher, &options, &error), &error);
    add_job(sim);
}

static void start_client(struct sim *sim, int proc)
{
    const struct hr_client_options options = {.nonce = hr__rng_u64(&sim->rng) | 1,
                                              .workers_max = sim->shape.workers,
                                              .beat_ns = 20 * SIM_MS,
                                              .weight = 1 + (uint32_t)proc % 3};
    struct trainer *t = trainer_of(sim, proc);
    struct hr_error error = {0};

    open_cursor(sim, t, t->saved, proc - SIM_CLIENT);
    t->count = t->saved_count;
    t->all = false;
    memset(t->team, 0, sizeof t->team);
    must(sim, hr__client_init(&t->client, &t->cursor, &options, &error), &error);
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
        must(sim, hr__serve_init(&get(sim)->workers[proc - SIM_WORKER], &options, &error),
             &error);
    else
        start_client(sim, proc);
}

static void stop(struct sim *sim, int proc)
{
    if (proc == SIM_DISPATCHER) {
        hr__lease_finish(&get(sim)->dispatcher);
    } else if (sim_is_worker(proc)) {
        hr__serve_finish(&get(sim)->workers[proc - SIM_WORKER]);
    } else {
        close_cursor(trainer_of(sim, proc));
        hr__client_finish(&trainer_of(sim, proc)->client);
    }
}

/* ---- teams ---- */

static bool uses(struct sim *sim, int client, int worker)
{
    const struct trainer *t = trainer_of(sim, client);

    return t->all || t->team[worker - SIM_WORKER];
}

/* The payload has a byte for each worker: its process. */
static void tell(struct sim *sim, hr_peer client, const struct hr_action_workers *workers)
{
    struct hr_frame frame = {.type = HR_FRAME_WORKERS};
    char procs[HR_ACTION_WORKERS_MAX];

    for (uint32_t i = 0; i < workers->count; i++) {
        const struct sim_conn *conn = &sim->conns[workers->peers[i]];

        if (conn->used && sim_is_worker(conn->side[0]))
            procs[frame.count++] = (char)conn->side[0];
    }
    sim_send_data(sim, SIM_DISPATCHER, client, &frame, procs, frame.count);
}

/* The dispatcher's list. Other connections are closed, some of them later. */
static void take_team(struct sim *sim, int proc, const char *procs, uint32_t count)
{
    struct trainer *t = trainer_of(sim, proc);

    t->all = false;
    memset(t->team, 0, sizeof t->team);
    for (uint32_t i = 0; i < count; i++)
        t->team[procs[i] - SIM_WORKER] = true;
    if (count > sim->shape.team)
        sim_fail(sim, "client %d gets %u workers", proc - SIM_CLIENT, count);
    for (int i = SIM_WORKER; i < SIM_CLIENT; i++)
        if (!t->team[i - SIM_WORKER] && sim->link[proc][i] != 0 && sim_below(sim, 2) == 0)
            sim_cut(sim, sim->link[proc][i]);
}

/* Leases go to the consumer's team only. */
static void check_leases(struct sim *sim)
{
    const struct hr_dispatcher *d = &get(sim)->dispatcher;

    for (size_t i = 0; d->divided && i < sim->actions.count; i++) {
        const struct hr_action *action = &sim->actions.items[i];
        const struct hr_lease_consumer *consumer;
        bool found = false;

        if (action->kind != HR_ACTION_SEND || action->u.frame.type != HR_FRAME_LEASE ||
            action->u.frame.job != SIM_JOB)
            continue;
        consumer = &job_of(sim)->consumers[action->u.frame.u.lease.rank];
        for (uint32_t k = 0; k < sim->shape.team; k++)
            found = found || (consumer->team[k].worker == action->peer &&
                              consumer->team[k].former == 0);
        if (!found)
            sim_fail(sim, "rank %u has no worker %u, which gets a lease of it",
                     action->u.frame.u.lease.rank, action->peer);
    }
}

/* ---- events ---- */

static void connected(struct sim *sim, int proc, hr_peer peer, int other)
{
    if (sim_is_client(proc) && other == SIM_DISPATCHER)
        trainer_of(sim, proc)->all |= !get(sim)->dispatcher.divided;
    if (sim_is_worker(proc))
        hr__serve_connected(&get(sim)->workers[proc - SIM_WORKER], peer, sim->now,
                            &sim->actions);
    else
        hr__client_connected(&trainer_of(sim, proc)->client, peer,
                             sim_is_worker(other) ? HR_FRAME_WORKER : 0, sim->now,
                             &sim->actions);
}

static void lost(struct sim *sim, int proc, hr_peer peer)
{
    if (proc == SIM_DISPATCHER)
        hr__lease_lost(&get(sim)->dispatcher, peer, sim->now, &sim->actions);
    else if (sim_is_worker(proc))
        hr__serve_lost(&get(sim)->workers[proc - SIM_WORKER], peer);
    else
        hr__client_lost(&trainer_of(sim, proc)->client, peer);
}

static void data(struct sim *sim, int proc, hr_peer peer, const struct hr_frame *frame,
                 const char *payload, size_t bytes)
{
    struct trainer *t = trainer_of(sim, proc);
    struct hr_error error = {0};
    bool kept;

    must(sim,
         hr__client_data(&t->client, peer, frame, bytes, (void *)payload, &kept,
                         &sim->actions, &error),
         &error);
    /* The rest of a frame per worker, and the frame at the position. */
    if (t->cursor.bytes > t->cursor.options.budget + SIM_PAYLOAD *
                                                         sim->shape.frame_positions *
                                                         (sim->shape.workers + 1))
        sim_fail(sim, "client %d holds %zu bytes", proc - SIM_CLIENT, t->cursor.bytes);
}

/* A client brings its job when it says HELLO. */
static void to_dispatcher(struct sim *sim, hr_peer peer, const struct hr_frame *frame)
{
    struct hr_dispatcher *d = &get(sim)->dispatcher;
    struct hr_error error = {0};

    if (frame->type == HR_FRAME_HELLO && frame->u.hello.role == HR_FRAME_CLIENT &&
        job_of(sim) == NULL && !add_job(sim))
        hr__refuse(&sim->actions, peer, HR_ERR_LIMIT, "there is no place");
    else
        must(sim, hr__lease_frame(d, peer, frame, sim->now, &sim->actions, &error),
             &error);
}

static void frame(struct sim *sim, int proc, hr_peer peer, const struct hr_frame *frame,
                  const char *payload, size_t bytes)
{
    if (proc == SIM_DISPATCHER)
        to_dispatcher(sim, peer, frame);
    else if (frame->type == HR_FRAME_WORKERS && sim->link[proc][SIM_DISPATCHER] != peer)
        return; /* of an older connection */
    else if (frame->type == HR_FRAME_WORKERS)
        take_team(sim, proc, payload, frame->count);
    else if (sim_is_worker(proc))
        hr__serve_frame(&get(sim)->workers[proc - SIM_WORKER], peer, frame, sim->now,
                        &sim->actions);
    else if (frame->type == HR_FRAME_DATA)
        data(sim, proc, peer, frame, payload, bytes);
    else
        hr__client_frame(&trainer_of(sim, proc)->client, peer, frame, sim->now,
                         &sim->actions);
    if (proc == SIM_DISPATCHER)
        check_leases(sim);
}

static void tick(struct sim *sim, int proc)
{
    if (proc == SIM_DISPATCHER)
        get(sim)->dispatcher.options.silent_ns = sim_silent_ns(sim);
    if (proc == SIM_DISPATCHER)
        hr__lease_tick(&get(sim)->dispatcher, sim->now, &sim->actions);
    if (proc == SIM_DISPATCHER)
        check_leases(sim);
    else if (sim_is_worker(proc))
        hr__serve_tick(&get(sim)->workers[proc - SIM_WORKER], sim->now, &sim->actions);
    else if (trainer_of(sim, proc)->client.state == HR_CLIENT_REPLACED)
        sim_crash(sim, proc); /* whoever started it starts it again */
    else
        hr__client_tick(&trainer_of(sim, proc)->client, sim->now, &sim->actions);
}

/* ---- work ---- */

/* The record at a position. */
static uint64_t record_at(const struct sim *sim, int proc, uint64_t position)
{
    uint64_t split = sim->shape.split, first = position - position % split;
    uint64_t count = sim->shape.end - first;

    if (!HR_MUTANT(OTHER_ORDER_IN_SPLIT))
        return position;
    count = count < split ? count : split;
    return first + (position - first + (uint64_t)proc) % count;
}

static bool make_frame(struct sim *sim, int proc)
{
    struct hr_worker *worker = &get(sim)->workers[proc - SIM_WORKER];
    struct hr_frame frame = {.type = HR_FRAME_DATA};
    struct hr_serve_task task;
    uint64_t records[8];
    size_t bytes, limit;

    if (!hr__serve_next(worker, &task, &sim->actions))
        return false;
    frame.position = task.position;
    frame.count = task.count;
    frame.generation = task.generation;
    for (uint32_t i = 0; i < task.count; i++)
        records[i] = record_at(sim, proc, task.position + i);
    bytes = SIM_PAYLOAD * task.count;
    sim_send_data(sim, proc, task.client, &frame, records, bytes);
    hr__serve_sent(worker, &task, bytes, (struct hr_serve_took){bytes, bytes},
                   &sim->actions);
    limit =
        sim->shape.budget + SIM_PAYLOAD * sim->shape.frame_positions * sim->shape.workers;
    if (sim_bytes_to(sim, sim->conns[task.client].side[0]) > limit)
        sim_fail(sim, "more than %zu bytes are on their way to a client", limit);
    return true;
}

static void take(struct sim *sim, struct trainer *t, const struct hr_taken *taken)
{
    for (uint32_t i = 0; i < taken->count; i++) {
        uint64_t record;

        memcpy(&record, (const char *)taken->payload + SIM_PAYLOAD * (taken->skip + i),
               sizeof record);
        if (t->count == sizeof t->log / sizeof t->log[0]) {
            sim_fail(sim, "records come again and again");
            return;
        }
        t->log[t->count++] = (uint32_t)record;
    }
}

static bool train(struct sim *sim, int proc)
{
    struct trainer *t = trainer_of(sim, proc);
    struct hr_taken taken;

    if (t->count != t->saved_count &&
        (sim_below(sim, 4) == 0 || hr__cursor_is_at_end(&t->cursor))) {
        save(sim, t);
        sim_trace(sim, "C%d saves %s", proc - SIM_CLIENT, t->saved);
        if (!HR_MUTANT(ACK_ON_RECEIPT))
            hr__client_saved(&t->client, hr__cursor_position(&t->cursor), &sim->actions);
        return true;
    }
    if (!hr__cursor_take(&t->cursor, 1 + sim_below(sim, 4), &taken)) {
        if (!hr__cursor_is_at_end(&t->cursor) || t->client.acked >= sim->shape.end ||
            HR_MUTANT(ACK_ON_RECEIPT))
            return false;
        save(sim, t); /* it owned nothing, or another took it */
        hr__client_saved(&t->client, hr__cursor_position(&t->cursor), &sim->actions);
        return true;
    }
    sim_trace(sim, "C%d takes %llu, %u", proc - SIM_CLIENT,
              (unsigned long long)taken.position, taken.count);
    take(sim, t, &taken);
    hr__client_taken(&t->client, sim->now, &sim->actions);
    return true;
}

static bool work(struct sim *sim, int proc)
{
    if (proc == SIM_DISPATCHER)
        return false;
    return sim_is_worker(proc) ? make_frame(sim, proc) : train(sim, proc);
}

/* ---- membership ---- */

/* All clients die; another number of them resumes from their merged checkpoints. */
static void resize(struct sim *sim)
{
    const char *texts[SIM_CLIENTS];
    struct hr_error error = {0};
    struct a *a = get(sim);
    struct hr_str merged;

    if (HR_MUTANT(ACK_ON_RECEIPT) || HR_MUTANT(RESTART_FROM_ACK))
        return; /* the dispatcher's cursors know no membership */
    hr__str_init(&merged);
    for (uint32_t i = 0; i < sim->shape.clients; i++) {
        struct trainer *t = &a->trainers[i];

        sim_crash(sim, SIM_CLIENT + (int)i);
        texts[i] = t->saved;
        memcpy(&a->history[a->history_count], t->log, t->saved_count * sizeof t->log[0]);
        a->history_count += t->saved_count;
    }
    must(sim, hr__cursor_merge(texts, sim->shape.clients, &merged, &error), &error);
    sim_trace(sim, "merged: %s", hr__str_text(&merged));
    sim->shape.clients = 1 + sim_below(sim, SIM_CLIENTS);
    divide(sim, hr__str_text(&merged));
    hr__str_finish(&merged);
    for (uint32_t i = 0; i < sim->shape.clients; i++)
        sim->procs[SIM_CLIENT + i].back_at_ns = sim->now;
}

/* The dispatcher takes a peer for lost that is not. */
static void forget(struct sim *sim)
{
    hr_peer peer = 1 + sim_below(sim, SIM_CONNS);

    if (!sim->procs[SIM_DISPATCHER].alive)
        return;
    switch (sim_below(sim, 6)) {
    case 0:
        sim_a_intrude(sim);
        return;
    case 1:
    case 2:
        sim_a_visit(sim);
        return;
    }
    if (get(sim)->dispatcher.peers[peer].role == 0)
        return;
    sim_trace(sim, "D forgets peer %u", peer);
    hr__lease_lost(&get(sim)->dispatcher, peer, sim->now, &sim->actions);
    sim_perform(sim, SIM_DISPATCHER);
}

/* ---- the end ---- */

static bool is_done(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->shape.clients; i++) {
        const struct trainer *t = &get(sim)->trainers[i];

        if (!sim->procs[SIM_CLIENT + i].alive || t->count != t->saved_count ||
            !hr__cursor_is_at_end(&t->cursor))
            return false;
    }
    return sim->procs[SIM_DISPATCHER].alive && job_of(sim) != NULL &&
           hr__lease_job_is_done(job_of(sim)) &&
           hr__lease_has_place(&get(sim)->dispatcher, sim->now, GRACE_NS);
}

static void check_log(struct sim *sim, const uint32_t *log, uint32_t count, uint8_t *seen)
{
    for (uint32_t i = 0; i < count; i++) {
        if (log[i] >= sim->shape.end)
            sim_fail(sim, "a record %u does not exist", log[i]);
        else if (seen[log[i]]++ > 0)
            sim_fail(sim, "record %u is repeated", log[i]);
    }
}

static void finish(struct sim *sim)
{
    uint8_t seen[SIM_RECORDS] = {0};
    struct a *a = get(sim);

    for (int i = 0; i < SIM_CLIENTS; i++) {
        struct trainer *t = &a->trainers[i];

        if (sim->failure == NULL && i < (int)sim->shape.clients) {
            check_log(sim, t->log, t->saved_count, seen);
            for (uint32_t k = 1; sim->shape.ordered && k < t->saved_count; k++)
                if (t->log[k] <= t->log[k - 1])
                    sim_fail(sim, "record %u comes after %u", t->log[k], t->log[k - 1]);
        }
        hr__free(t->saved);
        t->saved = NULL;
    }
    if (sim->failure != NULL)
        return;
    check_log(sim, a->history, a->history_count, seen);
    for (uint64_t i = 0; i < sim->shape.end; i++)
        if (seen[i] == 0)
            sim_fail(sim, "record %llu is lost", (unsigned long long)i);
}

const struct sim_design sim_a = {.name = "A",
                                 .draw = draw,
                                 .start = start,
                                 .stop = stop,
                                 .uses = uses,
                                 .tell = tell,
                                 .connected = connected,
                                 .lost = lost,
                                 .frame = frame,
                                 .tick = tick,
                                 .work = work,
                                 .resize = resize,
                                 .forget = forget,
                                 .is_done = is_done,
                                 .finish = finish};
