/*
 * svc/lease.c - the dispatcher's events: who is who, cursors, leases that end.
 *
 * lease_jobs.c keeps the jobs, lease_team.c says who works for whom, lease_grant.c gives
 * leases out, lease_tick.c looks at the time.
 */
#include "svc/lease.h"

#include <assert.h>
#include <string.h>

#include "svc/lease_internal.h"
#include "svc/mutant.h"

#define SLOWNESS_MAX 16.0 /* of a worker, and its inverse */

/* ---- positions in work ---- */

void hr__lease_load(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                    const struct hr_lease *lease, uint64_t now)
{
    struct hr_lease_peer *worker = &d->peers[lease->worker];
    uint64_t positions = lease->until - lease->from;

    if (consumer->outstanding == 0)
        consumer->went_on_ns = now;
    consumer->outstanding += positions;
    d->outstanding += positions;
    worker->held++;
    consumer->known += lease->known ? positions : 0;
    consumer->known_leases += lease->known;
    if (consumer->stands || lease->known)
        return;
    worker->outstanding += positions;
    worker->work_ns += lease->work_ns;
}

void hr__lease_set_standing(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                            bool stands)
{
    struct hr_lease_consumer *consumer = seat->consumer;

    if (consumer->stands == stands)
        return;
    consumer->stands = stands;
    for (size_t i = 0; i < consumer->leases.count; i++) {
        const struct hr_lease *lease = &consumer->leases.items[i];
        uint64_t positions = lease->until - lease->from;
        struct hr_lease_peer *worker = &d->peers[lease->worker];

        if (lease->served || lease->known)
            continue;
        worker->outstanding += stands ? -positions : positions;
        worker->work_ns += stands ? -lease->work_ns : lease->work_ns;
        hr__lease_queue_worker(d, lease->worker);
    }
    hr__lease_queue_consumer(d, seat->job, consumer);
}

static void go_on(struct hr_dispatcher *d, const struct hr_lease_seat *seat, uint64_t now)
{
    seat->consumer->went_on_ns = now;
    hr__lease_set_standing(d, seat, false);
}

/* ---- leases end ---- */

static void unload(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                   const struct hr_lease *lease)
{
    struct hr_lease_peer *worker = &d->peers[lease->worker];
    uint64_t positions = lease->until - lease->from;

    assert(!lease->served && consumer->outstanding >= positions && worker->held > 0);
    consumer->outstanding -= positions;
    d->outstanding -= positions;
    worker->held--;
    consumer->known -= lease->known ? positions : 0;
    consumer->known_leases -= lease->known;
    if (!consumer->stands && !lease->known) {
        worker->outstanding -= positions;
        worker->work_ns -= lease->work_ns;
    }
    if (consumer->outstanding == 0)
        consumer->stands = false;
}

void hr__lease_end(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, size_t at)
{
    const struct hr_lease *lease = &consumer->leases.items[at];

    if (!lease->served) {
        unload(d, consumer, lease);
        hr__lease_queue_worker(d, lease->worker);
    }
    if (lease->worker != 0)
        d->peers[lease->worker].kept--;
    hr__ranges_remove(&consumer->leases, at);
}

void hr__lease_end_all(struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    while (consumer->leases.count > 0)
        hr__lease_end(d, consumer, consumer->leases.count - 1);
    hr__lease_team_dissolve(d, consumer);
}

/* The worker has sent it, or the client has it already. */
static void count_finished(struct hr_dispatcher *d, const struct hr_lease *lease)
{
    uint64_t positions = lease->until - lease->from;

    d->counts.leases_finished++;
    d->counts.positions_finished += positions;
    d->peers[lease->worker].finished += positions;
}

static void move_cursor(struct hr_dispatcher *d, struct hr_lease_job *job,
                        struct hr_lease_consumer *consumer, uint64_t cursor, uint64_t now)
{
    size_t i = 0, count = consumer->leases.count;
    bool moved = cursor > consumer->cursor;

    if (cursor > consumer->cursor) {
        consumer->cursor = cursor;
        consumer->moved_ns = now;
        go_on(d, &(struct hr_lease_seat){job, consumer}, now);
    }
    while (i < consumer->leases.count) {
        if (consumer->leases.items[i].until > consumer->cursor) {
            i++;
            continue;
        }
        if (!consumer->leases.items[i].served)
            count_finished(d, &consumer->leases.items[i]);
        hr__lease_end(d, consumer, i);
    }
    if (moved || consumer->leases.count < count)
        hr__lease_queue_consumer(d, job, consumer);
}

bool hr__lease_drain(struct hr_dispatcher *d, hr_peer peer)
{
    if (peer == 0 || peer > d->options.peers_max ||
        d->peers[peer].role != HR_FRAME_WORKER)
        return false;
    d->leaving_count += !d->peers[peer].leaving;
    d->peers[peer].leaving = true;
    hr__lease_queue_worker(d, peer);
    hr__lease_team_leave(d, peer);
    return true;
}

/* What a worker that left in good order has sent is at the client: if not, it expires. */
static void lose_leases(struct hr_dispatcher *d, struct hr_lease_job *job,
                        struct hr_lease_consumer *consumer, hr_peer peer)
{
    struct hr_lease_peer *worker = &d->peers[peer];
    uint32_t before = worker->kept;

    for (size_t i = consumer->leases.count; i-- > 0;) {
        struct hr_lease *lease = &consumer->leases.items[i];

        if (lease->worker != peer)
            continue;
        if (worker->leaving && lease->served) {
            lease->worker = 0;
            worker->kept--;
        } else {
            hr__lease_end(d, consumer, i);
        }
    }
    if (worker->kept < before)
        hr__lease_queue_consumer(d, job, consumer);
}

static void lose_worker(struct hr_dispatcher *d, hr_peer peer)
{
    for (size_t j = 0; j < d->job_count && d->peers[peer].kept > 0; j++)
        for (uint32_t r = 0; r < d->jobs[j].world; r++)
            lose_leases(d, &d->jobs[j], &d->jobs[j].consumers[r], peer);
    (void)hr__lease_drain(d, peer); /* it leaves the queues */
    d->leaving_count--;
    d->worker_count--;
}

static void lose_client(struct hr_dispatcher *d, hr_peer peer)
{
    const struct hr_lease_peer *p = &d->peers[peer];
    struct hr_lease_job *job = &d->jobs[p->job];

    if (p->rank < job->world && job->consumers[p->rank].peer == peer) {
        job->consumers[p->rank].peer = 0;
        hr__lease_queue_consumer(d, job, &job->consumers[p->rank]);
    }
    hr__lease_unlink(d, peer);
}

void hr__lease_forget(struct hr_dispatcher *d, hr_peer peer)
{
    struct hr_lease_peer *p = &d->peers[peer];

    if (p->role == HR_FRAME_WORKER)
        lose_worker(d, peer);
    if (p->role == HR_FRAME_CLIENT)
        lose_client(d, peer);
    memset(p, 0, sizeof *p);
}

void hr__lease_lost(struct hr_dispatcher *d, hr_peer peer, uint64_t now,
                    struct hr_actions *actions)
{
    bool worker = d->peers[peer].role == HR_FRAME_WORKER;

    hr__lease_forget(d, peer);
    if (worker)
        hr__lease_grant(d, 0, NULL, now, actions);
}

/* ---- HELLO ---- */

static void
hello_worker(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
             uint64_t now, struct hr_actions *actions)
{
    struct hr_lease_peer *p = &d->peers[peer];
    struct hr_frame *answer;

    if (p->role == 0) {
        p->role = HR_FRAME_WORKER;
        p->slots = frame->count;
        d->worker_count++;
        hr__lease_queue_worker(d, peer);
        hr__lease_team_join(d, peer);
    }
    answer = hr__send(actions, peer, HR_FRAME_WELCOME);
    answer->u.welcome.nonce = frame->u.hello.nonce;
    hr__lease_grant(d, peer, NULL, now, actions);
}

/* A new membership: other consumers, from a base that they read from merged checkpoints.
 */
static enum hr_err change_membership(struct hr_dispatcher *d, struct hr_lease_job *job,
                                     const struct hr_frame *frame,
                                     struct hr_actions *actions, struct hr_error *reterr)
{
    struct hr_row *row;

    HR_TRY(hr__lease_seat_all(d, job, frame->u.hello.world, reterr));
    job->membership = frame->u.hello.membership;
    job->base = frame->u.hello.base;
    row = hr__journal(actions, HR_ROW_MEMBERSHIP, job->options.id);
    row->number = job->membership;
    row->world = job->world;
    row->position = job->base;
    return HR_OK;
}

static bool membership_is_wrong(const struct hr_lease_job *job, hr_peer peer,
                                const struct hr_frame *frame, struct hr_actions *actions)
{
    if (frame->u.hello.membership < job->membership)
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "the job has gone on with %u consumers; start from a merged "
                   "checkpoint",
                   job->world);
    else if (frame->u.hello.world > HR_LEASE_WORLD_MAX ||
             frame->u.hello.base > job->options.end)
        hr__refuse(actions, peer, HR_ERR_LIMIT,
                   "at most %u consumers, and a base within the epoch, are allowed",
                   HR_LEASE_WORLD_MAX);
    else if (frame->u.hello.membership == job->membership &&
             (frame->u.hello.world != job->world || frame->u.hello.base != job->base))
        hr__refuse(actions, peer, HR_ERR_ARGUMENT,
                   "the job has %u consumers from position %llu on; raise the "
                   "membership to change that",
                   job->world, (unsigned long long)job->base);
    else
        return false;
    return true;
}

static bool is_alive(const struct hr_dispatcher *d,
                     const struct hr_lease_consumer *consumer, uint64_t now)
{
    return consumer->peer != 0 &&
           now - d->peers[consumer->peer].heard_ns < d->options.silent_ns;
}

/* Whether this incarnation may be the consumer; refuses it if not. */
static bool admit(const struct hr_dispatcher *d, const struct hr_lease_job *job,
                  const struct hr_lease_consumer *consumer, hr_peer peer,
                  const struct hr_frame *frame, uint64_t now, struct hr_actions *actions)
{
    if (frame->u.hello.nonce == consumer->nonce ||
        frame->generation > consumer->generation)
        return true;
    if (frame->generation != 0) {
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "another client has taken over rank %u; this one must stop",
                   frame->u.hello.rank);
        return false;
    }
    if (consumer->peer != peer && is_alive(d, consumer, now)) {
        hr__refuse(actions, peer, HR_ERR_STATE,
                   "rank %u of job %016llx is held by a client that is alive; stop it, "
                   "or wait until it is silent",
                   frame->u.hello.rank, (unsigned long long)job->options.id);
        return false;
    }
    return true;
}

static void take_over(struct hr_dispatcher *d, struct hr_lease_job *job,
                      struct hr_lease_consumer *consumer, const struct hr_frame *frame,
                      struct hr_actions *actions)
{
    struct hr_row *row;

    if (frame->generation > job->generation)
        job->generation = frame->generation - 1; /* the journal lost some */
    consumer->generation = ++job->generation;
    consumer->nonce = frame->u.hello.nonce;
    hr__lease_end_all(d, consumer);
    if (!HR_MUTANT(DONE_WHEN_LEASED) && !HR_MUTANT(DONE_WHEN_FINISHED))
        consumer->cursor = 0;
    consumer->sent = 0;
    row = hr__journal(actions, HR_ROW_GENERATION, job->options.id);
    row->rank = frame->u.hello.rank;
    row->generation = consumer->generation;
    row->number = consumer->nonce;
}

static void seat(struct hr_dispatcher *d, struct hr_lease_job *job,
                 struct hr_lease_consumer *consumer, hr_peer peer,
                 const struct hr_frame *frame, uint64_t now)
{
    struct hr_share share = hr__lease_share(job, frame->u.hello.rank);
    struct hr_lease_peer *p = &d->peers[peer];

    if (p->role == 0)
        hr__lease_link(d, job, peer);
    p->rank = frame->u.hello.rank;
    p->generation = consumer->generation;
    consumer->peer = peer;
    consumer->weight = frame->u.hello.weight;
    consumer->told = false;
    consumer->left = false;
    job->idle_since_ns = 0;
    consumer->moved_ns = now;
    consumer->went_on_ns = now;
    move_cursor(d, job, consumer, hr__share_below(&share, frame->position), now);
    hr__lease_queue_consumer(d, job, consumer);
}

/* Whether the connection already serves another consumer. */
static bool is_another(const struct hr_dispatcher *d, const struct hr_lease_job *job,
                       hr_peer peer, const struct hr_frame *frame)
{
    const struct hr_lease_peer *p = &d->peers[peer];

    return p->role == HR_FRAME_CLIENT &&
           (&d->jobs[p->job] != job || p->rank != frame->u.hello.rank);
}

static enum hr_err
hello_client(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
             uint64_t now, struct hr_actions *actions, struct hr_error *reterr)
{
    struct hr_lease_job *job = hr__lease_find_job(d, frame->job);
    struct hr_lease_consumer *consumer;
    struct hr_frame *answer;

    if (job == NULL) {
        hr__refuse(actions, peer, HR_ERR_NOT_FOUND, "there is no job %016llx",
                   (unsigned long long)frame->job);
        return HR_OK;
    }
    if (is_another(d, job, peer, frame)) {
        hr__refuse(actions, peer, HR_ERR_STATE,
                   "one connection serves one consumer; open another one");
        return HR_OK;
    }
    if (membership_is_wrong(job, peer, frame, actions))
        return HR_OK;
    if (frame->u.hello.membership > job->membership)
        HR_TRY(change_membership(d, job, frame, actions, reterr));
    consumer = &job->consumers[frame->u.hello.rank];
    if (!admit(d, job, consumer, peer, frame, now, actions))
        return HR_OK;
    if (frame->u.hello.nonce != consumer->nonce)
        take_over(d, job, consumer, frame, actions);
    seat(d, job, consumer, peer, frame, now);
    answer = hr__send(actions, peer, HR_FRAME_WELCOME);
    answer->position = consumer->acked;
    answer->generation = consumer->generation;
    answer->job = frame->job;
    answer->u.welcome.nonce = frame->u.hello.nonce;
    answer->u.welcome.window = job->options.window;
    hr__lease_team_review(d, consumer, now, actions);
    hr__lease_grant(d, 0, &(struct hr_lease_seat){job, consumer}, now, actions);
    return HR_OK;
}

/* ---- other frames ---- */

/* What a worker says of ranges that it has sent. */
struct hr_lease_work {
    uint32_t us; /* 0: nothing */
    uint64_t positions;
};

/* A measured value moves by a quarter. */
static void follow(double *value, double measured)
{
    *value += *value > 0 ? (measured - *value) / 4 : measured - *value;
}

/* What positions take: of a worker whatever it runs, of a consumer at a worker like the
 * average. What the worker says is its work for `positions`; else it is the time since
 * the lease, in which it may have worked for others. Of the time in which a consumer
 * stood still only `most` counts: it may have been the client's. */
static void learn(struct hr_lease_peer *worker, struct hr_lease_consumer *consumer,
                  const struct hr_lease *lease, const struct hr_lease_work *work,
                  uint64_t most, uint64_t now)
{
    uint64_t since =
        worker->finished_ns > lease->issued_ns ? worker->finished_ns : lease->issued_ns;
    uint64_t took = now - since < most ? now - since : most;
    double ns = work->us > 0 ? (double)work->us * 1e3 / (double)work->positions
                             : (double)took / (double)(lease->until - lease->from);
    double slowness = worker->slowness > 0 ? worker->slowness : 1;

    follow(&worker->ns_per_position, ns);
    follow(&consumer->ns_per_position, ns / slowness);
    if (consumer->ns_per_position <= 0)
        return;
    slowness = ns / consumer->ns_per_position;
    follow(&worker->slowness, slowness < 1.0 / SLOWNESS_MAX ? 1.0 / SLOWNESS_MAX
                              : slowness > SLOWNESS_MAX     ? SLOWNESS_MAX
                                                            : slowness);
}

/* Whether more was sent than before: what is sent again, because the client may lack it,
 * is no sign that it takes anything. *ret_worked: some of it was work. */
static bool serve(struct hr_dispatcher *d, const struct hr_lease_seat *seat, hr_peer peer,
                  uint64_t from, uint64_t until, const struct hr_lease_work *work,
                  uint64_t now, bool *ret_worked)
{
    struct hr_lease_peer *worker = &d->peers[peer];
    struct hr_lease_consumer *consumer = seat->consumer;
    uint64_t most = consumer->stands ? d->options.hedge_ns : UINT64_MAX;
    uint64_t before = consumer->sent;

    for (size_t i = 0; i < consumer->leases.count; i++) {
        struct hr_lease *lease = &consumer->leases.items[i];

        if (lease->worker != peer || lease->served || lease->from < from ||
            lease->until > until)
            continue;
        if (!lease->known) {
            learn(worker, consumer, lease, work, most, now);
            *ret_worked = true;
        }
        count_finished(d, lease);
        worker->doubt = 0;
        unload(d, consumer, lease);
        lease->served = true;
        lease->deadline_ns = now + d->options.served_ns;
        if (lease->until > consumer->sent)
            consumer->sent = lease->until;
    }
    if (HR_MUTANT(DONE_WHEN_FINISHED))
        move_cursor(d, seat->job, consumer, until, now);
    return consumer->sent > before;
}

static void finished(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
                     uint64_t now, struct hr_actions *actions)
{
    struct hr_lease_seat seat = {.job = hr__lease_find_job(d, frame->job)};
    struct hr_lease_work work = {.us = frame->u.lease.work_us};
    struct hr_share share;
    bool more = false, worked = false;

    if (seat.job == NULL || frame->u.lease.rank >= seat.job->world)
        return;
    seat.consumer = &seat.job->consumers[frame->u.lease.rank];
    if (frame->generation != seat.consumer->generation)
        return;
    share = hr__lease_share(seat.job, frame->u.lease.rank);
    for (uint32_t i = 0; i < frame->count; i++)
        work.positions += hr__share_below(&share, frame->u.lease.ranges[i].until) -
                          hr__share_below(&share, frame->u.lease.ranges[i].from);
    for (uint32_t i = 0; i < frame->count; i++)
        more |= serve(
            d, &seat, peer, hr__share_below(&share, frame->u.lease.ranges[i].from),
            hr__share_below(&share, frame->u.lease.ranges[i].until), &work, now, &worked);
    if (worked)
        d->peers[peer].finished_ns = now;
    if (more)
        go_on(d, &seat, now);
    hr__lease_queue_worker(d, peer);
    hr__lease_queue_consumer(d, seat.job, seat.consumer);
    hr__lease_grant(d, peer, NULL, now, actions);
}

static void acknowledge(struct hr_dispatcher *d, const struct hr_lease_job *job,
                        struct hr_lease_consumer *consumer, uint32_t rank,
                        uint64_t position, struct hr_actions *actions)
{
    struct hr_row *row;

    if (position <= consumer->acked)
        return;
    consumer->acked = position;
    d->changes += position >= job->options.end;
    row = hr__journal(actions, HR_ROW_ACK, job->options.id);
    row->lazy = true;
    row->rank = rank;
    row->position = position;
}

static void
from_client(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
            uint64_t now, struct hr_actions *actions)
{
    const struct hr_lease_peer *p = &d->peers[peer];
    struct hr_lease_job *job = &d->jobs[p->job];
    struct hr_lease_consumer *consumer;
    struct hr_share share;

    uint32_t generation = /* GOODBYE bears none */
        frame->type == HR_FRAME_GOODBYE ? p->generation : frame->generation;

    if (p->rank >= job->world || generation == 0 ||
        job->consumers[p->rank].generation != generation) {
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "another client has taken over rank %u; this one must stop", p->rank);
        return;
    }
    consumer = &job->consumers[p->rank];
    if (consumer->peer != peer) { /* a HELLO on an older connection came later */
        consumer->peer = peer;
        consumer->told = false;
        consumer->left = false;
        hr__lease_queue_consumer(d, job, consumer);
    }
    share = hr__lease_share(job, p->rank);
    if (frame->type == HR_FRAME_ACK)
        acknowledge(d, job, consumer, p->rank, frame->position, actions);
    if (frame->type == HR_FRAME_PROGRESS) {
        uint64_t before = consumer->cursor;

        move_cursor(d, job, consumer, hr__share_below(&share, frame->position), now);
        d->counts.positions_taken += consumer->cursor - before;
        consumer->taken = consumer->taken || consumer->cursor > before;
        hr__lease_grant(d, 0, &(struct hr_lease_seat){job, consumer}, now, actions);
    }
    if (frame->type == HR_FRAME_GOODBYE) {
        consumer->peer = 0;
        consumer->left = true;
        hr__lease_end_all(d, consumer);
        hr__lease_queue_consumer(d, job, consumer);
    }
}

enum hr_err
hr__lease_frame(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
                uint64_t now, struct hr_actions *actions, struct hr_error *reterr)
{
    struct hr_lease_peer *p = &d->peers[peer];

    assert(peer > 0 && peer <= d->options.peers_max && actions->count == 0);
    p->heard_ns = now;
    if (frame->type == HR_FRAME_HELLO && frame->u.hello.role == HR_FRAME_CLIENT &&
        p->role != HR_FRAME_WORKER)
        return hello_client(d, peer, frame, now, actions, reterr);
    if (frame->type == HR_FRAME_HELLO && frame->u.hello.role == HR_FRAME_WORKER &&
        p->role != HR_FRAME_CLIENT)
        hello_worker(d, peer, frame, now, actions);
    else if (p->role == HR_FRAME_CLIENT &&
             (frame->type == HR_FRAME_PROGRESS || frame->type == HR_FRAME_ACK ||
              frame->type == HR_FRAME_GOODBYE))
        from_client(d, peer, frame, now, actions);
    else if (p->role == HR_FRAME_WORKER && frame->type == HR_FRAME_FINISHED)
        finished(d, peer, frame, now, actions);
    else if (p->role == HR_FRAME_WORKER && frame->type == HR_FRAME_GOODBYE)
        (void)hr__lease_drain(d, peer);
    else if (p->role != HR_FRAME_WORKER || frame->type != HR_FRAME_PROGRESS)
        hr__refuse(actions, peer, HR_ERR_STATE, "a %s frame is not expected here",
                   hr__frame_name(frame->type));
    return HR_OK;
}
