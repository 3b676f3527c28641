/*
 * svc/lease_grant.c - who gets which positions: the lowest missing ones of the consumer
 * that has the least in work, to the worker that has the least in work.
 *
 * A worker gets leases for twice the target time, in one message, when it has less than
 * the target time left; its measured speed turns time into positions. Among consumers
 * this is max-min fair in positions in work.
 */
#include "svc/lease_internal.h"

#include "svc/mutant.h"

/* Positions that take a worker the target time; not more than lets all workers share the
 * window. */
static uint64_t
length(const struct hr_dispatcher *d, const struct hr_lease_peer *worker, uint64_t window)
{
    const struct hr_lease_options *o = &d->options;
    uint64_t most = window / (2 * (d->worker_count > 0 ? d->worker_count : 1));
    uint64_t count = o->lease_min;

    if (worker->ns_per_position > 0) {
        double fits = (double)o->target_ns / worker->ns_per_position;

        count = fits < (double)o->lease_max ? (uint64_t)fits : o->lease_max;
    }
    count = count < most ? count : most;
    return count > o->lease_min ? count : o->lease_min;
}

static bool
find_gap(const struct hr_lease_job *job, const struct hr_lease_consumer *consumer,
         struct hr_frame_range *ret_gap)
{
    struct hr_share share = hr__lease_share(job, (uint32_t)(consumer - job->consumers));
    uint64_t size = hr__share_size(&share),
             limit = consumer->cursor + job->options.window;

    return consumer->peer != 0 && consumer->leases.count < consumer->leases.room &&
           hr__ranges_gap(&consumer->leases, consumer->cursor,
                          limit < size ? limit : size, ret_gap);
}

/* A consumer, and the job that it belongs to. */
struct seat {
    struct hr_lease_job *job;
    struct hr_lease_consumer *consumer;
};

static bool belongs(const struct hr_lease_job *job, const struct hr_lease_consumer *c)
{
    return c >= job->consumers && c < job->consumers + job->world;
}

static bool find_consumer(struct hr_dispatcher *d, struct hr_lease_consumer *only,
                          struct seat *ret_seat)
{
    struct hr_frame_range gap;
    bool found = false;

    for (size_t j = 0; j < d->job_count; j++) {
        struct hr_lease_job *job = &d->jobs[j];

        if (only != NULL && !belongs(job, only))
            continue;
        for (uint32_t r = 0; r < job->world; r++) {
            struct hr_lease_consumer *c = &job->consumers[r];

            if ((only != NULL && c != only) || !find_gap(job, c, &gap) ||
                (found && c->outstanding >= ret_seat->consumer->outstanding))
                continue;
            *ret_seat = (struct seat){job, c};
            found = true;
        }
    }
    return found;
}

static bool is_better(const struct hr_lease_peer *a, const struct hr_lease_peer *b)
{
    return a->doubt != b->doubt ? a->doubt < b->doubt : a->outstanding < b->outstanding;
}

static hr_peer find_worker(const struct hr_dispatcher *d, hr_peer only, uint64_t window)
{
    size_t from = only != 0 ? only : 1, until = only != 0 ? only : d->options.peers_max;
    hr_peer best = 0;

    for (size_t i = from; i <= until; i++) {
        const struct hr_lease_peer *p = &d->peers[i];

        if (p->role == HR_FRAME_WORKER && !p->leaving && p->held < p->slots &&
            p->outstanding < length(d, p, window) &&
            (best == 0 || is_better(p, &d->peers[best])))
            best = (hr_peer)i;
    }
    return best;
}

static void
add(struct hr_dispatcher *d, const struct seat *seat, hr_peer worker,
    struct hr_frame_range local, bool hedged, uint64_t now, struct hr_frame *frame)
{
    struct hr_share share =
        hr__lease_share(seat->job, (uint32_t)(seat->consumer - seat->job->consumers));
    struct hr_frame_range *range = &frame->u.lease.ranges[frame->count++];
    uint64_t count = local.until - local.from;

    hr__ranges_add(&seat->consumer->leases,
                   &(struct hr_lease){.from = local.from,
                                      .until = local.until,
                                      .worker = worker,
                                      .issued_ns = now,
                                      .deadline_ns = now + d->options.ttl_ns,
                                      .hedged = hedged});
    range->from = hr__share_position(&share, local.from);
    range->until = range->from + count;
    d->counts.leases++;
    d->counts.leases_hedged += hedged;
    d->counts.positions += count;
    seat->consumer->outstanding += count;
    d->peers[worker].outstanding += count;
    d->peers[worker].held++;
    if (HR_MUTANT(DONE_WHEN_LEASED))
        seat->consumer->cursor = local.until;
}

static struct hr_frame *
start_lease(const struct hr_dispatcher *d, const struct seat *seat, hr_peer worker,
            struct hr_actions *actions)
{
    struct hr_frame *frame = hr__send(actions, worker, HR_FRAME_LEASE);
    uint64_t ms = d->options.ttl_ns / 1000000;

    frame->job = seat->job->options.id;
    frame->generation = seat->consumer->generation;
    frame->u.lease.rank = (uint32_t)(seat->consumer - seat->job->consumers);
    frame->u.lease.ttl_ms = ms == 0 ? 1 : ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    return frame;
}

/* Leases gaps to a worker until it has enough. There is at least one. */
static void fill(struct hr_dispatcher *d, const struct seat *seat, hr_peer worker,
                 uint64_t now, struct hr_actions *actions)
{
    struct hr_share share =
        hr__lease_share(seat->job, (uint32_t)(seat->consumer - seat->job->consumers));
    struct hr_lease_peer *w = &d->peers[worker];
    uint64_t enough = 2 * length(d, w, seat->job->options.window);
    struct hr_frame *frame = start_lease(d, seat, worker, actions);
    struct hr_frame_range gap;

    while (frame->count < HR_FRAME_RANGES_MAX && w->held < w->slots &&
           w->outstanding < enough && find_gap(seat->job, seat->consumer, &gap)) {
        uint64_t run = hr__share_run(&share, gap.from), rest = enough - w->outstanding;

        run = run < rest ? run : rest;
        if (gap.until - gap.from > run)
            gap.until = gap.from + run;
        add(d, seat, worker, gap, false, now, frame);
    }
}

/* The lease at the head of the line, if it is so slow that another worker should try. */
static struct hr_lease *find_slow(const struct hr_dispatcher *d,
                                  const struct hr_lease_consumer *consumer, uint64_t now)
{
    for (size_t i = 0; i < consumer->leases.count; i++) {
        struct hr_lease *lease = &consumer->leases.items[i];

        if (lease->from > consumer->cursor)
            break;
        if (!lease->served && !lease->hedged && lease->until > consumer->cursor &&
            now - lease->issued_ns >= d->options.hedge_ns)
            return lease;
    }
    return NULL;
}

static void hedge(struct hr_dispatcher *d, const struct seat *seat, uint64_t now,
                  struct hr_actions *actions)
{
    struct hr_lease *slow = find_slow(d, seat->consumer, now);
    struct hr_frame_range local;
    hr_peer worker;

    if (slow == NULL || seat->consumer->peer == 0 ||
        seat->consumer->leases.count == seat->consumer->leases.room ||
        hr__actions_left(actions) == 0)
        return;
    worker = find_worker(d, 0, seat->job->options.window);
    if (worker == 0 || worker == slow->worker || d->peers[worker].outstanding > 0)
        return;
    slow->hedged = true;
    local = (struct hr_frame_range){seat->consumer->cursor, slow->until};
    add(d, seat, worker, local, true, now, start_lease(d, seat, worker, actions));
}

void hr__lease_grant(struct hr_dispatcher *d, hr_peer only_worker,
                     struct hr_lease_consumer *only_consumer, uint64_t now,
                     struct hr_actions *actions)
{
    struct seat seat;

    while (hr__actions_left(actions) > 0 && find_consumer(d, only_consumer, &seat)) {
        hr_peer worker = find_worker(d, only_worker, seat.job->options.window);

        if (worker == 0)
            return;
        fill(d, &seat, worker, now, actions);
    }
    for (size_t j = 0; j < d->job_count; j++)
        for (uint32_t r = 0; r < d->jobs[j].world; r++) {
            struct hr_lease_consumer *c = &d->jobs[j].consumers[r];

            if (only_consumer == NULL || c == only_consumer)
                hedge(d, &(struct seat){&d->jobs[j], c}, now, actions);
        }
}
