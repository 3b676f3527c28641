/*
 * svc/bind_grant.c - which split goes to which consumer, made by which worker.
 */
#include "svc/bind_internal.h"
#include "svc/mutant.h"

void hr__bind_end_lease(struct hr_binder *binder, struct hr_bind_split *split)
{
    if (split->worker != 0 && !split->served)
        binder->peers[split->worker].held--;
    split->worker = 0;
    split->served = false;
}

void hr__bind_own(struct hr_binder *binder, uint64_t number, uint32_t rank)
{
    hr__bind_at(binder, number)->owner = rank + 1;
    binder->consumers[rank].bound++;
}

static hr_peer find_worker(const struct hr_binder *binder)
{
    hr_peer best = 0;

    for (size_t i = 1; i <= binder->options.peers_max; i++) {
        const struct hr_bind_peer *p = &binder->peers[i], *b = &binder->peers[best];

        if (p->role == HR_FRAME_WORKER && !p->leaving && p->held < p->slots &&
            (best == 0 || p->doubt < b->doubt ||
             (p->doubt == b->doubt && p->held < b->held)))
            best = (hr_peer)i;
    }
    return best;
}

static void lease(struct hr_binder *binder, uint64_t number, hr_peer worker, uint64_t now,
                  struct hr_actions *actions)
{
    struct hr_bind_split *split = hr__bind_at(binder, number);
    struct hr_frame *frame = hr__send(actions, worker, HR_FRAME_LEASE);
    uint64_t ms = binder->options.ttl_ns / 1000000;

    frame->count = 1;
    frame->generation = binder->consumers[split->owner - 1].generation;
    frame->job = binder->options.job;
    frame->u.lease.rank = split->owner - 1;
    frame->u.lease.ttl_ms = ms == 0 ? 1 : ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    frame->u.lease.ranges[0] = hr__bind_rest(binder, number);
    split->leased = frame->u.lease.ranges[0].until - frame->u.lease.ranges[0].from;
    binder->counts.leases++;
    binder->counts.positions += split->leased;
    split->worker = worker;
    split->deadline_ns = now + binder->options.ttl_ns;
    binder->peers[worker].held++;
}

/* ---- binding ---- */

/* Splits that it has and has not taken. */
static uint32_t waiting(const struct hr_bind_consumer *consumer)
{
    return consumer->bound - consumer->taken;
}

/* The consumer with the fewest splits that were not taken and room for one more. */
static bool find_consumer(const struct hr_binder *binder, uint32_t *ret_rank)
{
    bool found = false;

    for (uint32_t i = 0; i < binder->options.consumers; i++) {
        const struct hr_bind_consumer *c = &binder->consumers[i];

        if (c->peer == 0 || waiting(c) >= binder->options.ahead ||
            c->bound >= HR_FRAME_RANGES_MAX ||
            (found && waiting(c) >= waiting(&binder->consumers[*ret_rank])))
            continue;
        *ret_rank = i;
        found = true;
    }
    return found;
}

static void journal_bind(struct hr_binder *binder, uint32_t rank,
                         struct hr_frame_range range, struct hr_actions *actions)
{
    struct hr_row *row = hr__journal(actions, HR_ROW_BIND, binder->options.job);

    row->rank = rank;
    row->generation = binder->consumers[rank].generation;
    row->count = 1;
    row->ranges[0] = range;
}

static void tell_bound(const struct hr_binder *binder, uint32_t rank,
                       struct hr_frame_range range, struct hr_actions *actions)
{
    const struct hr_bind_consumer *consumer = &binder->consumers[rank];
    struct hr_frame *frame = hr__send(actions, consumer->peer, HR_FRAME_BIND);

    frame->count = 1;
    frame->generation = consumer->generation;
    frame->job = binder->options.job;
    frame->u.lease.rank = rank;
    frame->u.lease.ranges[0] = range;
}

void hr__bind_grant(struct hr_binder *binder, uint64_t now, struct hr_actions *actions)
{
    uint32_t rank = 0;
    bool full = false; /* nobody has room */

    for (uint64_t n = binder->first; n < hr__bind_limit(binder); n++) {
        struct hr_bind_split *split = hr__bind_at(binder, n);
        hr_peer worker;

        if (split->worker != 0 || split->committed == hr__bind_size(binder, n) ||
            (split->owner == 0 ? full : binder->consumers[split->owner - 1].peer == 0))
            continue;
        full = split->owner == 0 && !find_consumer(binder, &rank);
        if (full)
            continue;
        worker = find_worker(binder);
        if (hr__actions_left(actions) < 4 || worker == 0)
            return;
        if (split->owner == 0) {
            hr__bind_own(binder, n, rank);
            if (HR_MUTANT(BIND_AFTER_LEASE))
                lease(binder, n, worker, now, actions);
            else
                journal_bind(binder, rank, hr__bind_rest(binder, n), actions);
            tell_bound(binder, rank, hr__bind_rest(binder, n), actions);
            if (HR_MUTANT(BIND_AFTER_LEASE))
                journal_bind(binder, rank, hr__bind_rest(binder, n), actions);
        }
        if (split->worker == 0)
            lease(binder, n, worker, now, actions);
    }
}
