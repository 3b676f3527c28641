/*
 * svc/lease.c - the dispatcher's events: who is who, cursors, leases that end.
 *
 * lease_grant.c gives leases out.
 */
#include "svc/lease.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "svc/lease_internal.h"
#include "svc/mutant.h"

/* ---- setup ---- */

enum hr_err
hr__lease_init(struct hr_dispatcher *d, const struct hr_lease_options *options,
               struct hr_error *reterr)
{
    memset(d, 0, sizeof *d);
    d->options = *options;
    d->peers = hr__calloc(options->peers_max + 1, sizeof *d->peers);
    d->jobs = hr__calloc(options->jobs_max + 1, sizeof *d->jobs);
    if (d->peers == NULL || d->jobs == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static void free_consumers(struct hr_lease_consumer *consumers, uint32_t world)
{
    for (uint32_t i = 0; consumers != NULL && i < world; i++)
        hr__ranges_finish(&consumers[i].leases);
    hr__free(consumers);
}

void hr__lease_finish(struct hr_dispatcher *d)
{
    for (size_t i = 0; i < d->job_count; i++)
        free_consumers(d->jobs[i].consumers, d->jobs[i].world);
    hr__free(d->jobs);
    hr__free(d->peers);
    memset(d, 0, sizeof *d);
}

static enum hr_err
new_consumers(const struct hr_dispatcher *d, uint32_t world,
              struct hr_lease_consumer **ret_consumers, struct hr_error *reterr)
{
    struct hr_lease_consumer *consumers = hr__calloc(world, sizeof *consumers);

    if (consumers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < world; i++) {
        enum hr_err code =
            hr__ranges_init(&consumers[i].leases, d->options.ranges_max, reterr);

        if (code != HR_OK) {
            free_consumers(consumers, world);
            return code;
        }
    }
    *ret_consumers = consumers;
    return HR_OK;
}

struct hr_lease_job *hr__lease_find_job(const struct hr_dispatcher *d, uint64_t id)
{
    for (size_t i = 0; i < d->job_count; i++)
        if (d->jobs[i].options.id == id)
            return &d->jobs[i];
    return NULL;
}

enum hr_err
hr__lease_add_job(struct hr_dispatcher *d, const struct hr_lease_job_options *options,
                  struct hr_error *reterr)
{
    struct hr_lease_job *job = &d->jobs[d->job_count];

    if (options->split == 0 || options->window == 0 || options->world == 0 ||
        options->world > HR_LEASE_WORLD_MAX || options->end > HR_FRAME_POSITION_MAX ||
        hr__lease_find_job(d, options->id) != NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "job %016llx: it exists, or its split, window or number of "
                        "consumers is out of range",
                        (unsigned long long)options->id);
    if (d->job_count == d->options.jobs_max)
        return hr__fail(reterr, HR_ERR_LIMIT, "the dispatcher already has %zu jobs",
                        d->job_count);
    memset(job, 0, sizeof *job);
    job->options = *options;
    job->world = options->world;
    HR_TRY(new_consumers(d, job->world, &job->consumers, reterr));
    d->job_count++;
    return HR_OK;
}

bool hr__lease_job_is_done(const struct hr_lease_job *job)
{
    for (uint32_t i = 0; i < job->world; i++)
        if (job->consumers[i].acked < job->options.end)
            return false;
    return true;
}

/* ---- leases end ---- */

void hr__lease_end(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, size_t at)
{
    const struct hr_lease *lease = &consumer->leases.items[at];

    if (!lease->served) {
        struct hr_lease_peer *worker = &d->peers[lease->worker];

        consumer->outstanding -= lease->until - lease->from;
        worker->outstanding -= lease->until - lease->from;
        worker->held--;
    }
    hr__ranges_remove(&consumer->leases, at);
}

static void end_all(struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    while (consumer->leases.count > 0)
        hr__lease_end(d, consumer, consumer->leases.count - 1);
}

/* The worker has sent it, or the client has it already. */
static void count_finished(struct hr_dispatcher *d, const struct hr_lease *lease)
{
    uint64_t positions = lease->until - lease->from;

    d->counts.leases_finished++;
    d->counts.positions_finished += positions;
    d->peers[lease->worker].finished += positions;
}

static void move_cursor(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                        uint64_t cursor, uint64_t now)
{
    size_t i = 0;

    if (cursor > consumer->cursor) {
        consumer->cursor = cursor;
        consumer->moved_ns = now;
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
}

bool hr__lease_drain(struct hr_dispatcher *d, hr_peer peer)
{
    if (peer == 0 || peer > d->options.peers_max ||
        d->peers[peer].role != HR_FRAME_WORKER)
        return false;
    d->peers[peer].leaving = true;
    return true;
}

/* What a worker that left in good order has sent is at the client: if not, it expires. */
static void lose_worker(struct hr_dispatcher *d, hr_peer peer)
{
    bool sent = d->peers[peer].leaving;

    for (size_t j = 0; j < d->job_count; j++)
        for (uint32_t r = 0; r < d->jobs[j].world; r++) {
            struct hr_lease_consumer *consumer = &d->jobs[j].consumers[r];

            for (size_t i = consumer->leases.count; i-- > 0;)
                if (consumer->leases.items[i].worker == peer) {
                    if (sent && consumer->leases.items[i].served)
                        consumer->leases.items[i].worker = 0;
                    else
                        hr__lease_end(d, consumer, i);
                }
        }
}

static void forget(struct hr_dispatcher *d, hr_peer peer)
{
    struct hr_lease_peer *p = &d->peers[peer];

    if (p->role == HR_FRAME_WORKER) {
        lose_worker(d, peer);
        d->worker_count--;
    }
    if (p->role == HR_FRAME_CLIENT && p->rank < d->jobs[p->job].world &&
        d->jobs[p->job].consumers[p->rank].peer == peer)
        d->jobs[p->job].consumers[p->rank].peer = 0;
    memset(p, 0, sizeof *p);
}

void hr__lease_lost(struct hr_dispatcher *d, hr_peer peer, uint64_t now,
                    struct hr_actions *actions)
{
    bool worker = d->peers[peer].role == HR_FRAME_WORKER;

    forget(d, peer);
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
    struct hr_lease_consumer *consumers;
    struct hr_row *row;

    HR_TRY(new_consumers(d, frame->u.hello.world, &consumers, reterr));
    for (uint32_t i = 0; i < job->world; i++)
        end_all(d, &job->consumers[i]);
    free_consumers(job->consumers, job->world);
    job->consumers = consumers;
    job->membership = frame->u.hello.membership;
    job->world = frame->u.hello.world;
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
    end_all(d, consumer);
    if (!HR_MUTANT(DONE_WHEN_LEASED) && !HR_MUTANT(DONE_WHEN_FINISHED))
        consumer->cursor = 0;
    row = hr__journal(actions, HR_ROW_GENERATION, job->options.id);
    row->rank = frame->u.hello.rank;
    row->generation = consumer->generation;
    row->number = consumer->nonce;
}

struct hr_share hr__lease_share(const struct hr_lease_job *job, uint32_t rank)
{
    return (struct hr_share){.base = job->base,
                             .end = job->options.end,
                             .split = job->options.split,
                             .world = job->world,
                             .rank = rank};
}

static void seat(struct hr_dispatcher *d, struct hr_lease_job *job,
                 struct hr_lease_consumer *consumer, hr_peer peer,
                 const struct hr_frame *frame, uint64_t now)
{
    struct hr_share share = hr__lease_share(job, frame->u.hello.rank);
    struct hr_lease_peer *p = &d->peers[peer];

    p->role = HR_FRAME_CLIENT;
    p->job = (size_t)(job - d->jobs);
    p->rank = frame->u.hello.rank;
    p->generation = consumer->generation;
    consumer->peer = peer;
    consumer->moved_ns = now;
    move_cursor(d, consumer, hr__share_below(&share, frame->position), now);
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
    hr__lease_grant(d, 0, consumer, now, actions);
    return HR_OK;
}

/* ---- other frames ---- */

/* Its measured time per position moves by a quarter. */
static void
learn(struct hr_lease_peer *worker, const struct hr_lease *lease, uint64_t now)
{
    uint64_t since =
        worker->finished_ns > lease->issued_ns ? worker->finished_ns : lease->issued_ns;
    double ns = (double)(now - since) / (double)(lease->until - lease->from);

    worker->ns_per_position += worker->ns_per_position > 0
                                   ? (ns - worker->ns_per_position) / 4
                                   : ns - worker->ns_per_position;
}

static void serve(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                  hr_peer peer, uint64_t from, uint64_t until, uint64_t now)
{
    struct hr_lease_peer *worker = &d->peers[peer];

    for (size_t i = 0; i < consumer->leases.count; i++) {
        struct hr_lease *lease = &consumer->leases.items[i];

        if (lease->worker != peer || lease->served || lease->from < from ||
            lease->until > until)
            continue;
        learn(worker, lease, now);
        count_finished(d, lease);
        worker->doubt = 0;
        worker->held--;
        worker->outstanding -= lease->until - lease->from;
        consumer->outstanding -= lease->until - lease->from;
        lease->served = true;
        lease->deadline_ns = now + d->options.served_ns;
    }
    if (HR_MUTANT(DONE_WHEN_FINISHED))
        move_cursor(d, consumer, until, now);
}

static void finished(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
                     uint64_t now, struct hr_actions *actions)
{
    struct hr_lease_job *job = hr__lease_find_job(d, frame->job);
    struct hr_lease_consumer *consumer;
    struct hr_share share;

    if (job == NULL || frame->u.lease.rank >= job->world)
        return;
    consumer = &job->consumers[frame->u.lease.rank];
    if (frame->generation != consumer->generation)
        return;
    share = hr__lease_share(job, frame->u.lease.rank);
    for (uint32_t i = 0; i < frame->count; i++)
        serve(d, consumer, peer, hr__share_below(&share, frame->u.lease.ranges[i].from),
              hr__share_below(&share, frame->u.lease.ranges[i].until), now);
    d->peers[peer].finished_ns = now;
    hr__lease_grant(d, peer, NULL, now, actions);
}

static void
acknowledge(const struct hr_lease_job *job, struct hr_lease_consumer *consumer,
            uint32_t rank, uint64_t position, struct hr_actions *actions)
{
    struct hr_row *row;

    if (position <= consumer->acked)
        return;
    consumer->acked = position;
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
    consumer->peer = peer; /* a HELLO on an older connection may have come later */
    share = hr__lease_share(job, p->rank);
    if (frame->type == HR_FRAME_ACK)
        acknowledge(job, consumer, p->rank, frame->position, actions);
    if (frame->type == HR_FRAME_PROGRESS) {
        uint64_t before = consumer->cursor;

        move_cursor(d, consumer, hr__share_below(&share, frame->position), now);
        d->counts.positions_taken += consumer->cursor - before;
        hr__lease_grant(d, 0, consumer, now, actions);
    }
    if (frame->type == HR_FRAME_GOODBYE) {
        consumer->peer = 0;
        end_all(d, consumer);
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
        p->leaving = true;
    else if (p->role != HR_FRAME_WORKER || frame->type != HR_FRAME_PROGRESS)
        hr__refuse(actions, peer, HR_ERR_STATE, "a %s frame is not expected here",
                   hr__frame_name(frame->type));
    return HR_OK;
}

/* ---- time ---- */

/* What was sent is leased again only if the client waits for it: before, it may well lie
 * in the client's buffer. */
static bool
is_expired(const struct hr_dispatcher *d, const struct hr_lease_consumer *consumer,
           const struct hr_lease *lease, uint64_t now)
{
    if (lease->deadline_ns > now)
        return false;
    return !lease->served || (lease->from <= consumer->cursor &&
                              now - consumer->moved_ns >= d->options.served_ns);
}

static void
expire(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, uint64_t now)
{
    for (size_t i = consumer->leases.count; i-- > 0;) {
        const struct hr_lease *lease = &consumer->leases.items[i];

        if (!is_expired(d, consumer, lease, now))
            continue;
        if (!lease->served)
            d->peers[lease->worker].doubt++;
        d->counts.leases_expired++;
        hr__lease_end(d, consumer, i);
    }
}

/* A client that is away too long keeps no worker's slots from others. If it comes back,
 * it gets leases from its cursor on. */
static void
end_absent(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, uint64_t now)
{
    if (consumer->peer != 0 || d->options.absent_ns == 0)
        consumer->absent_since_ns = 0;
    else if (consumer->absent_since_ns == 0)
        consumer->absent_since_ns = now;
    else if (now - consumer->absent_since_ns >= d->options.absent_ns)
        end_all(d, consumer);
}

/* ---- jobs that nobody wants ---- */

static bool has_client(const struct hr_lease_job *job)
{
    for (uint32_t i = 0; i < job->world; i++)
        if (job->consumers[i].peer != 0)
            return true;
    return false;
}

/* The last job takes its place. */
static void remove_job(struct hr_dispatcher *d, size_t at)
{
    struct hr_lease_job *job = &d->jobs[at];

    for (uint32_t i = 0; i < job->world; i++)
        end_all(d, &job->consumers[i]);
    free_consumers(job->consumers, job->world);
    d->job_count--;
    *job = d->jobs[d->job_count];
    for (size_t i = 1; i <= d->options.peers_max; i++) {
        struct hr_lease_peer *p = &d->peers[i];

        if (p->role == HR_FRAME_CLIENT && p->job == at) /* it has said GOODBYE */
            p->role = 0;
        else if (p->role == HR_FRAME_CLIENT && p->job == d->job_count)
            p->job = at;
    }
}

static void forget_idle(struct hr_dispatcher *d, uint64_t now)
{
    for (size_t j = d->job_count; d->options.idle_ns > 0 && j-- > 0;) {
        struct hr_lease_job *job = &d->jobs[j];

        if (has_client(job))
            job->idle_since_ns = 0;
        else if (job->idle_since_ns == 0)
            job->idle_since_ns = now;
        else if (now - job->idle_since_ns >= d->options.idle_ns)
            remove_job(d, j);
    }
}

void hr__lease_tick(struct hr_dispatcher *d, uint64_t now, struct hr_actions *actions)
{
    for (size_t i = 1; i <= d->options.peers_max; i++) {
        if (d->peers[i].role != 0 && hr__actions_left(actions) > HR_ACTIONS_MAX / 2 &&
            now - d->peers[i].heard_ns >= d->options.silent_ns) {
            hr__close(actions, (hr_peer)i);
            forget(d, (hr_peer)i);
        }
    }
    for (size_t j = 0; j < d->job_count; j++)
        for (uint32_t r = 0; r < d->jobs[j].world; r++) {
            expire(d, &d->jobs[j].consumers[r], now);
            end_absent(d, &d->jobs[j].consumers[r], now);
        }
    forget_idle(d, now);
    hr__lease_grant(d, 0, NULL, now, actions);
}

/* ---- the journal ---- */

enum hr_err hr__lease_replay(struct hr_dispatcher *d, const struct hr_row *row,
                             struct hr_error *reterr)
{
    struct hr_lease_job *job = hr__lease_find_job(d, row->job);
    struct hr_lease_consumer *consumers;

    if (job == NULL)
        return hr__fail(reterr, HR_ERR_NOT_FOUND,
                        "the journal names job %016llx, which "
                        "does not exist",
                        (unsigned long long)row->job);
    if (row->kind == HR_ROW_MEMBERSHIP) {
        HR_TRY(new_consumers(d, row->world, &consumers, reterr));
        free_consumers(job->consumers, job->world);
        job->consumers = consumers;
        job->membership = (uint32_t)row->number;
        job->world = row->world;
        job->base = row->position;
        return HR_OK;
    }
    if (row->rank >= job->world ||
        (row->kind != HR_ROW_GENERATION && row->kind != HR_ROW_ACK))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the journal of job %016llx has a row that does not fit",
                        (unsigned long long)row->job);
    if (row->kind == HR_ROW_ACK) {
        job->consumers[row->rank].acked = row->position;
        return HR_OK;
    }
    job->consumers[row->rank].generation = row->generation;
    job->consumers[row->rank].nonce = row->number;
    if (row->generation > job->generation)
        job->generation = row->generation;
    return HR_OK;
}
