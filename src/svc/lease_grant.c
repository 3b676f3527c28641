/*
 * svc/lease_grant.c - who gets which positions: the lowest missing ones of the consumer
 * that has the least in work, to the worker that has the least in work.
 *
 * A worker gets leases for twice the target time, in one message, when it has less than
 * the target time left; what the consumer's positions took turns time into positions.
 * Among consumers this is max-min fair in time in work. With teams, a worker that lacks
 * work looks at some of the consumers that it works for, and at the next ones the next
 * time.
 */
#include "svc/lease_internal.h"

#include "svc/mutant.h"

#define USERS 64u /* consumers of a worker that are looked at for a grant */

/* ---- workers ---- */

/* Positions that take the target time if each takes `ns`. */
static uint64_t pace(const struct hr_dispatcher *d, double ns)
{
    const struct hr_lease_options *o = &d->options;
    double fits = (double)o->target_ns / ns;
    uint64_t count = fits < (double)o->lease_max ? (uint64_t)fits : o->lease_max;

    return count > o->lease_min ? count : o->lease_min;
}

/* Positions with which all workers of a consumer share the window. */
static uint64_t portion(const struct hr_dispatcher *d, uint64_t window)
{
    uint64_t count = d->divided && d->worker_count > d->options.team_max
                         ? d->options.team_max
                         : d->worker_count;
    uint64_t most = window / (2 * (count > 0 ? count : 1));

    return most > d->options.lease_min ? most : d->options.lease_min;
}

/* Positions of a consumer that a worker gets, less those for which the time goes that it
 * needs for what it has. */
static uint64_t wants(const struct hr_dispatcher *d, const struct hr_lease_peer *worker,
                      const struct hr_lease_seat *seat)
{
    double ns = hr__lease_estimate(d, worker, seat->consumer);
    uint64_t fits = pace(d, ns), most = portion(d, seat->job->options.window);
    uint64_t enough = 2 * (fits < most ? fits : most);
    uint64_t has = (uint64_t)((double)worker->work_ns / ns);

    return enough > has + d->options.lease_min ? enough - has : d->options.lease_min;
}

static bool can_take(const struct hr_lease_peer *p)
{
    return p->role == HR_FRAME_WORKER && !p->leaving && p->held < p->slots;
}

void hr__lease_queue_worker(struct hr_dispatcher *d, hr_peer peer)
{
    struct hr_lease_peer *p = &d->peers[peer];
    uint64_t busy = hr__lease_busy(p);
    uint32_t degree = p->doubt < HR_LEASE_DOUBTS ? p->doubt : HR_LEASE_DOUBTS - 1;

    if (p->degree != degree) {
        hr__queue_remove(&d->idle[p->degree], peer);
        p->degree = degree;
    }
    if (can_take(p) &&
        (p->outstanding < d->options.lease_min || p->work_ns < d->options.target_ns)) {
        hr__queue_put(&d->idle[degree], peer, busy);
        hr__queue_remove(&d->crowded, peer);
        d->room[peer] = (uint64_t)degree << HR_LEASE_DEGREE_SHIFT | busy;
        return;
    }
    hr__queue_remove(&d->idle[degree], peer);
    d->room[peer] = HR_LEASE_NO_ROOM;
    if (can_take(p))
        hr__queue_put(&d->crowded, peer, p->work_ns);
    else
        hr__queue_remove(&d->crowded, peer);
}

/* Of the consumer's workers with the least doubt about them the one that has the least in
 * work. */
static hr_peer
find_worker(const struct hr_dispatcher *d, hr_peer only, const struct hr_lease_seat *seat)
{
    uint64_t most = portion(d, seat->job->options.window);

    if (only == 0 && d->divided)
        return hr__lease_team_find(d, seat->consumer, most);
    for (size_t i = 0; only == 0 && i < HR_LEASE_DOUBTS; i++) {
        const struct hr_queue_item *first = hr__queue_first(&d->idle[i]);

        if (first != NULL && first->key / 2 < most)
            return first->number;
    }
    return only != 0 && hr__lease_has_room(d, only, most) ? only : 0;
}

/* Of the consumer's workers that have enough the one with the least; 0: none can take
 * more. */
static hr_peer find_crowded(const struct hr_dispatcher *d, hr_peer only,
                            const struct hr_lease_seat *seat)
{
    const struct hr_queue_item *first = hr__queue_first(&d->crowded);
    hr_peer found = 0;

    if (only != 0)
        return can_take(&d->peers[only]) ? only : 0;
    if (!d->divided)
        return first != NULL ? first->number : 0;
    for (size_t i = 0; i < d->options.team_max; i++) {
        const struct hr_lease_tie *tie = &seat->consumer->team[i];

        if (tie->worker != 0 && tie->former == 0 && can_take(&d->peers[tie->worker]) &&
            (found == 0 || d->peers[tie->worker].work_ns < d->peers[found].work_ns))
            found = tie->worker;
    }
    return found;
}

/* ---- consumers ---- */

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

void hr__lease_queue_job(struct hr_dispatcher *d, const struct hr_lease_job *job)
{
    const struct hr_queue_item *first = hr__queue_first(&job->hungry);
    uint32_t number = (uint32_t)(job - d->jobs);

    if (first != NULL)
        hr__queue_put(&d->hungry, number, first->key);
    else
        hr__queue_remove(&d->hungry, number);
}

void hr__lease_queue_consumer(struct hr_dispatcher *d, struct hr_lease_job *job,
                              struct hr_lease_consumer *consumer)
{
    uint32_t rank = (uint32_t)(consumer - job->consumers);

    consumer->lacks = consumer->peer != 0 && !consumer->stands &&
                      consumer->leases.count < consumer->leases.room;
    if (consumer->lacks)
        hr__queue_put(&job->hungry, rank, hr__lease_turn(d, consumer));
    else
        hr__queue_remove(&job->hungry, rank);
    hr__lease_queue_job(d, job);
}

static void unqueue_consumer(struct hr_dispatcher *d, const struct hr_lease_seat *seat)
{
    hr__queue_remove(&seat->job->hungry,
                     (uint32_t)(seat->consumer - seat->job->consumers));
    hr__lease_queue_job(d, seat->job);
}

/* Or can get none now. */
static void lacks_nothing(struct hr_dispatcher *d, const struct hr_lease_seat *seat)
{
    seat->consumer->lacks = false;
    unqueue_consumer(d, seat);
}

/* The consumer that lacks leases and whose turn comes first. Those whose turn has come
 * and that lack none leave the queue until something changes. */
static bool find_consumer(struct hr_dispatcher *d, const struct hr_lease_seat *only,
                          struct hr_lease_seat *ret_seat)
{
    const struct hr_queue_item *first;
    struct hr_frame_range gap;

    if (only != NULL) {
        *ret_seat = *only;
        return !only->consumer->stands && find_gap(only->job, only->consumer, &gap);
    }
    while ((first = hr__queue_first(&d->hungry)) != NULL) {
        struct hr_lease_job *job = &d->jobs[first->number];
        uint32_t rank = hr__queue_first(&job->hungry)->number;

        *ret_seat = (struct hr_lease_seat){job, &job->consumers[rank]};
        if (find_gap(job, ret_seat->consumer, &gap))
            return true;
        lacks_nothing(d, ret_seat);
    }
    return false;
}

/* ---- leases ---- */

enum kind { FIRST, HEDGED, KNOWN_THERE };

static void
add(struct hr_dispatcher *d, const struct hr_lease_seat *seat, hr_peer worker,
    struct hr_frame_range local, enum kind kind, uint64_t now, struct hr_frame *frame)
{
    struct hr_share share =
        hr__lease_share(seat->job, (uint32_t)(seat->consumer - seat->job->consumers));
    struct hr_frame_range *range = &frame->u.lease.ranges[frame->count++];
    uint64_t count = local.until - local.from;

    struct hr_lease lease = {.from = local.from,
                             .until = local.until,
                             .worker = worker,
                             .issued_ns = now,
                             .deadline_ns = now + d->options.ttl_ns,
                             .hedged = kind == HEDGED,
                             .known = kind == KNOWN_THERE};

    lease.work_ns = (uint64_t)((double)count *
                               hr__lease_estimate(d, &d->peers[worker], seat->consumer));
    hr__ranges_add(&seat->consumer->leases, &lease);
    range->from = hr__share_position(&share, local.from);
    range->until = range->from + count;
    seat->consumer->leased = ++d->counts.leases;
    d->counts.leases_hedged += lease.hedged;
    if (!lease.known)
        hr__lease_kin_note(seat->job, *range, worker);
    d->counts.positions += count;
    hr__lease_load(d, seat->consumer, &lease, now);
    d->peers[worker].kept++;
    if (HR_MUTANT(DONE_WHEN_LEASED))
        seat->consumer->cursor = local.until;
}

static struct hr_frame *
start_lease(const struct hr_dispatcher *d, const struct hr_lease_seat *seat,
            hr_peer worker, struct hr_actions *actions)
{
    struct hr_frame *frame = hr__send(actions, worker, HR_FRAME_LEASE);
    uint64_t ms = d->options.ttl_ns / 1000000;

    frame->job = seat->job->options.id;
    frame->generation = seat->consumer->generation;
    frame->u.lease.rank = (uint32_t)(seat->consumer - seat->job->consumers);
    frame->u.lease.ttl_ms = ms == 0 ? 1 : ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    return frame;
}

static bool is_in_team(const struct hr_dispatcher *d,
                       const struct hr_lease_consumer *consumer, hr_peer worker)
{
    for (size_t i = 0; d->divided && i < d->options.team_max; i++)
        if (consumer->team[i].worker == worker && consumer->team[i].former == 0)
            return true;
    return !d->divided;
}

/* Half of a worker's slots are for work. */
static bool can_share(const struct hr_dispatcher *d,
                      const struct hr_lease_consumer *consumer, hr_peer worker)
{
    const struct hr_lease_peer *p = &d->peers[worker];

    return worker != 0 && can_take(p) && p->held < (p->slots + 1) / 2 &&
           is_in_team(d, consumer, worker);
}

/* What to do for a consumer after that. */
enum next {
    LEASE, /* the first gap is anybody's */
    WAIT,  /* there is none; or it is a worker's that has it, and the consumer has enough
              of such leases, or no room for a whole one: until something changes */
    STOP,  /* there is no room for actions */
};

/* Whether the window ends in the gap, and leaves less of it than is leased at a time.
 * What is before the gap is in work then, and moves the window. */
static bool is_cut(const struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                   const struct hr_frame_range *gap)
{
    uint64_t window = seat->job->options.window, cursor = seat->consumer->cursor;

    return gap->from > cursor && gap->until == cursor + window &&
           gap->until - gap->from < portion(d, window);
}

/* Leases what workers make or made for jobs that have the same records, to these workers.
 */
static enum next lease_known(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                             uint64_t now, struct hr_actions *actions)
{
    struct hr_share share =
        hr__lease_share(seat->job, (uint32_t)(seat->consumer - seat->job->consumers));
    struct hr_frame_range gap;

    if (seat->job->kin == NULL)
        return LEASE;
    while (find_gap(seat->job, seat->consumer, &gap)) {
        uint64_t position = hr__share_position(&share, gap.from), until = 0;
        uint64_t run = hr__share_run(&share, gap.from);
        hr_peer worker = hr__lease_kin_find(seat->job, position, &until);

        if (hr__actions_left(actions) == 0)
            return STOP;
        if (!can_share(d, seat->consumer, worker))
            return LEASE;
        if (seat->consumer->known_leases >= d->options.known_max)
            return WAIT;
        run = run < until - position ? run : until - position;
        if (gap.until - gap.from > run)
            gap.until = gap.from + run;
        else if (gap.until - gap.from < run && is_cut(d, seat, &gap))
            return WAIT;
        add(d, seat, worker, gap, KNOWN_THERE, now,
            start_lease(d, seat, worker, actions));
        hr__lease_queue_worker(d, worker);
        hr__lease_queue_consumer(d, seat->job, seat->consumer);
    }
    return WAIT;
}

/* Leases gaps to a worker until it has enough. There is at least one. */
static void fill(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                 hr_peer worker, uint64_t now, struct hr_actions *actions)
{
    struct hr_share share =
        hr__lease_share(seat->job, (uint32_t)(seat->consumer - seat->job->consumers));
    struct hr_lease_peer *w = &d->peers[worker];
    uint64_t rest = wants(d, w, seat);
    struct hr_frame *frame = start_lease(d, seat, worker, actions);
    struct hr_frame_range gap;

    while (frame->count < HR_FRAME_RANGES_MAX && w->held < w->slots && rest > 0 &&
           find_gap(seat->job, seat->consumer, &gap)) {
        uint64_t run = hr__share_run(&share, gap.from);

        run = run < rest ? run : rest;
        if (gap.until - gap.from > run)
            gap.until = gap.from + run;
        rest -= gap.until - gap.from;
        add(d, seat, worker, gap, FIRST, now, frame);
    }
    hr__lease_queue_worker(d, worker);
    hr__lease_queue_consumer(d, seat->job, seat->consumer);
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

/* Of the workers that have leases of this consumer, sent or not, the one that has the
 * least in work, though it may have enough; 0: none can take more. */
static hr_peer
find_busy(const struct hr_dispatcher *d, const struct hr_lease_consumer *consumer)
{
    hr_peer found = 0;

    for (size_t i = 0; i < consumer->leases.count; i++) {
        hr_peer peer = consumer->leases.items[i].worker;
        const struct hr_lease_peer *worker = &d->peers[peer];

        if (peer != 0 && !worker->leaving && worker->held < worker->slots &&
            is_in_team(d, consumer, peer) &&
            (found == 0 || worker->outstanding < d->peers[found].outstanding))
            found = peer;
    }
    return found;
}

/* Leases the first positions that nobody has; there is one. */
static void
lease_some(struct hr_dispatcher *d, const struct hr_lease_seat *seat, hr_peer worker,
           uint64_t most, uint64_t now, struct hr_actions *actions)
{
    struct hr_share share =
        hr__lease_share(seat->job, (uint32_t)(seat->consumer - seat->job->consumers));
    struct hr_frame_range gap;
    uint64_t run;

    if (!find_gap(seat->job, seat->consumer, &gap))
        return;
    run = hr__share_run(&share, gap.from);
    most = most < run ? most : run;
    if (gap.until - gap.from > most)
        gap.until = gap.from + most;
    add(d, seat, worker, gap, FIRST, now, start_lease(d, seat, worker, actions));
    hr__lease_queue_worker(d, worker);
    hr__lease_queue_consumer(d, seat->job, seat->consumer);
}

/* Leases the position at the cursor, which nobody has, to a worker that has enough. What
 * that worker has of this consumer may be waiting for room at the client, which waits for
 * the position: without this until those leases expire. */
static bool lease_head(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                       uint64_t now, struct hr_actions *actions)
{
    hr_peer worker = find_busy(d, seat->consumer);
    struct hr_frame_range gap;

    if (worker == 0 || !find_gap(seat->job, seat->consumer, &gap) ||
        gap.from != seat->consumer->cursor)
        return false;
    lease_some(d, seat, worker, d->options.lease_min, now, actions);
    return true;
}

#define CROWDED_WEIGHT_MAX 8u /* longer leases would make others wait too long */

/* A consumer that has nothing in work does not wait until a worker has room: what workers
 * have may take long, or wait for room at its client. It gets less than others, since
 * there may be many like it, times its weight: between two leases it has none for a
 * moment, and lighter consumers get the whole worker meanwhile. */
static bool lease_crowded(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                          hr_peer only, uint64_t now, struct hr_actions *actions)
{
    hr_peer worker = 0;
    uint64_t count, weight = seat->consumer->weight;

    if (seat->consumer->outstanding == 0)
        worker = find_crowded(d, only, seat);
    if (worker == 0)
        return false;
    weight = weight < CROWDED_WEIGHT_MAX ? weight : CROWDED_WEIGHT_MAX;
    count =
        weight * pace(d, hr__lease_estimate(d, &d->peers[worker], seat->consumer)) / 2;
    lease_some(d, seat, worker,
               count > d->options.lease_min ? count : d->options.lease_min, now, actions);
    return true;
}

/* A consumer that stands still may do so because its positions take long. */
static void lease_to_idle(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                          uint64_t now, struct hr_actions *actions)
{
    hr_peer worker = find_worker(d, 0, seat);
    struct hr_frame_range gap;

    if (worker != 0 && d->peers[worker].held == 0 &&
        find_gap(seat->job, seat->consumer, &gap))
        fill(d, seat, worker, now, actions);
}

void hr__lease_hedge(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                     uint64_t now, struct hr_actions *actions)
{
    struct hr_lease *slow;
    struct hr_frame_range local;
    hr_peer worker;

    if (seat->consumer->peer == 0 ||
        seat->consumer->leases.count == seat->consumer->leases.room ||
        hr__actions_left(actions) == 0)
        return;
    slow = find_slow(d, seat->consumer, now);
    if (slow == NULL) {
        if (!lease_head(d, seat, now, actions) && seat->consumer->stands)
            lease_to_idle(d, seat, now, actions);
        return;
    }
    worker = find_worker(d, 0, seat);
    if (worker == 0 || worker == slow->worker || d->peers[worker].outstanding > 0)
        return;
    slow->hedged = true;
    local = (struct hr_frame_range){seat->consumer->cursor, slow->until};
    add(d, seat, worker, local, HEDGED, now, start_lease(d, seat, worker, actions));
    hr__lease_queue_worker(d, worker);
    hr__lease_queue_consumer(d, seat->job, seat->consumer);
}

/* ---- teams ---- */

/* Of the next consumers that the worker works for, and that may lack leases, the one
 * whose turn comes first. */
static struct hr_lease_consumer *find_user(struct hr_dispatcher *d, hr_peer worker)
{
    struct hr_lease_peer *p = &d->peers[worker];
    struct hr_lease_consumer *best = NULL;

    for (uint32_t i = 0; i < USERS && i < p->users; i++) {
        const struct hr_lease_tie *tie = p->ties;

        p->ties = tie->next;
        if (tie->former == 0 && tie->consumer->lacks &&
            (best == NULL || hr__lease_turn(d, tie->consumer) < hr__lease_turn(d, best)))
            best = tie->consumer;
    }
    return best;
}

/* Leases to a worker what the consumers lack that it works for. */
static void grant_worker(struct hr_dispatcher *d, hr_peer worker, uint64_t now,
                         struct hr_actions *actions)
{
    for (uint32_t i = 0; i < USERS && hr__actions_left(actions) > 0; i++) {
        struct hr_lease_seat seat = {.consumer = find_user(d, worker)};
        struct hr_frame_range gap;
        enum next next;

        if (seat.consumer == NULL)
            return;
        seat.job = hr__lease_find_job(d, seat.consumer->job);
        next = lease_known(d, &seat, now, actions);
        if (next == STOP)
            return;
        if (next == LEASE && find_gap(seat.job, seat.consumer, &gap)) {
            if (!hr__lease_has_room(d, worker, portion(d, seat.job->options.window)))
                return;
            fill(d, &seat, worker, now, actions);
        } else {
            lacks_nothing(d, &seat);
        }
    }
}

/* ---- granting ---- */

void hr__lease_grant(struct hr_dispatcher *d, hr_peer only_worker,
                     const struct hr_lease_seat *only_consumer, uint64_t now,
                     struct hr_actions *actions)
{
    uint32_t skipped = 0;
    struct hr_lease_seat seat;

    if (only_worker != 0 && d->divided) {
        grant_worker(d, only_worker, now, actions);
        return;
    }
    while (hr__actions_left(actions) > 0 && skipped < HR_LEASE_TICK_CONSUMERS &&
           find_consumer(d, d->divided ? only_consumer : NULL, &seat)) {
        enum next next = lease_known(d, &seat, now, actions);
        hr_peer worker;

        if (next == STOP)
            break;
        if (next == WAIT) {
            lacks_nothing(d, &seat);
            if (d->divided && only_consumer != NULL)
                break;
            continue;
        }
        worker = find_worker(d, only_worker, &seat);
        if (worker != 0)
            fill(d, &seat, worker, now, actions);
        else if (lease_crowded(d, &seat, only_worker, now, actions))
            continue;
        else if (!d->divided || only_consumer != NULL)
            break;
        else
            unqueue_consumer(d, &seat); /* until it changes, or a tick looks at it */
        skipped += worker == 0;
    }
    if (only_consumer != NULL)
        hr__lease_hedge(d, only_consumer, now, actions);
}
