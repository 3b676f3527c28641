/*
 * svc/lease_tick.c - what the dispatcher does because time has passed.
 *
 * A tick takes bounded time: it looks at some peers and some jobs, and the next tick goes
 * on with the next ones. With few all are looked at each time.
 */
#include "svc/lease_internal.h"

/* ---- leases ---- */

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

static void
review_standing(struct hr_dispatcher *d, const struct hr_lease_seat *seat, uint64_t now)
{
    const struct hr_lease_consumer *consumer = seat->consumer;

    if (consumer->outstanding > 0 && now - consumer->went_on_ns >= d->options.hedge_ns)
        hr__lease_set_standing(d, seat, true);
}

/* A client that is away too long keeps no worker's slots from others. If it comes back,
 * it gets leases from its cursor on. */
static void
end_absent(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, uint64_t now)
{
    uint64_t grace = consumer->taken ? d->options.absent_ns : d->options.absent_ns / 4;

    if (consumer->peer != 0 || d->options.absent_ns == 0)
        consumer->absent_since_ns = 0;
    else if (consumer->absent_since_ns == 0)
        consumer->absent_since_ns = now;
    else if (now - consumer->absent_since_ns >= grace)
        hr__lease_end_all(d, consumer);
}

/* ---- jobs ---- */

static void review_consumers(struct hr_dispatcher *d, struct hr_lease_job *job,
                             uint64_t now, struct hr_actions *actions)
{
    for (uint32_t i = 0; i < job->world; i++) {
        struct hr_lease_consumer *consumer = &job->consumers[i];
        size_t before = consumer->leases.count;

        expire(d, consumer, now);
        end_absent(d, consumer, now);
        review_standing(d, &(struct hr_lease_seat){job, consumer}, now);
        if (consumer->leases.count < before || (d->divided && consumer->lacks))
            hr__lease_queue_consumer(d, job, consumer);
        hr__lease_team_review(d, consumer, now, actions);
    }
}

/* Whether it had no client for too long. */
static bool
is_unwanted(const struct hr_dispatcher *d, struct hr_lease_job *job, uint64_t now)
{
    if (hr__lease_job_has_client(job))
        job->idle_since_ns = 0;
    else if (job->idle_since_ns == 0)
        job->idle_since_ns = now;
    else
        return d->options.idle_ns > 0 && now - job->idle_since_ns >= d->options.idle_ns;
    return false;
}

/* Returns how many jobs were looked at and stay; d->next_job follows them. */
static size_t
review_jobs(struct hr_dispatcher *d, uint64_t now, struct hr_actions *actions)
{
    size_t kept = 0, consumers = 0;

    for (size_t left = d->job_count; left > 0 && consumers < HR_LEASE_TICK_CONSUMERS;
         left--) {
        struct hr_lease_job *job;

        if (d->next_job >= d->job_count)
            d->next_job = 0;
        job = &d->jobs[d->next_job];
        consumers += job->world;
        review_consumers(d, job, now, actions);
        if (is_unwanted(d, job, now)) {
            hr__lease_remove_job(d, d->next_job);
            continue;
        }
        d->next_job++;
        kept++;
    }
    return kept;
}

/* For the jobs before d->next_job. */
static void hedge_jobs(struct hr_dispatcher *d, size_t count, uint64_t now,
                       struct hr_actions *actions)
{
    size_t at = d->next_job;

    for (; count > 0; count--) {
        struct hr_lease_job *job;

        at = at == 0 || at > d->job_count ? d->job_count - 1 : at - 1;
        job = &d->jobs[at];
        for (uint32_t i = 0; i < job->world; i++)
            hr__lease_hedge(d, &(struct hr_lease_seat){job, &job->consumers[i]}, now,
                            actions);
    }
}

/* ---- peers ---- */

static void
close_silent(struct hr_dispatcher *d, uint64_t now, struct hr_actions *actions)
{
    for (size_t i = 0; i < d->options.peers_max && i < HR_LEASE_TICK_PEERS &&
                       hr__actions_left(actions) > HR_ACTIONS_MAX / 2;
         i++) {
        const struct hr_lease_peer *p;

        d->next_peer = d->next_peer < d->options.peers_max ? d->next_peer + 1 : 1;
        p = &d->peers[d->next_peer];
        if (p->role != 0 && now - p->heard_ns >= d->options.silent_ns) {
            hr__close(actions, d->next_peer);
            hr__lease_forget(d, d->next_peer);
        }
    }
}

void hr__lease_tick(struct hr_dispatcher *d, uint64_t now, struct hr_actions *actions)
{
    size_t jobs;

    close_silent(d, now, actions);
    hr__lease_team_balance(d);
    jobs = review_jobs(d, now, actions);
    hr__lease_grant(d, 0, NULL, now, actions);
    hedge_jobs(d, jobs, now, actions);
}
