/*
 * svc/lease_team.c - which workers a consumer uses, when there are more than a client
 * connects to.
 *
 * A team keeps its workers until they leave. A free place goes to a worker that has
 * leases of the consumer already, else to one on the client's host, else to the one that
 * the fewest teams have. When a worker is in at least two teams more than another one, it
 * gives places to that one, so that all are used if the teams have places for all. The
 * client keeps its connection to a worker that was replaced until it has received what
 * that one makes: the new one takes the place then. So nothing is lost by a change.
 *
 * A review of a team looks at its places and leases, and balancing is bounded: the work
 * does not depend on the numbers of workers and consumers. The loss of a worker looks at
 * the teams that it is in.
 */
#include <string.h>

#include "core/alloc.h"
#include "svc/lease_internal.h"

#define MOVES 16u  /* places that a tick moves */
#define LOOKS 128u /* workers of a host, ties of a worker that are looked at */
#define SAMPLE 8u  /* workers of a host that are compared for a move */

enum hr_err hr__lease_team_init(struct hr_dispatcher *d, struct hr_error *reterr)
{
    uint32_t room = (uint32_t)d->options.peers_max + 1;

    d->hosts = hr__calloc(room, sizeof *d->hosts);
    d->room = hr__calloc(room, sizeof *d->room);
    if (d->hosts == NULL || d->room == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    memset(d->room, 0xff, room * sizeof *d->room);
    HR_TRY(hr__queue_init(&d->unused, room, reterr));
    return hr__queue_init(&d->busy, room, reterr);
}

void hr__lease_team_finish(struct hr_dispatcher *d)
{
    hr__queue_finish(&d->unused);
    hr__queue_finish(&d->busy);
    hr__free(d->hosts);
    hr__free(d->room);
}

/* ---- workers ---- */

static void queue(struct hr_dispatcher *d, hr_peer worker)
{
    const struct hr_lease_peer *p = &d->peers[worker];

    if (p->role == HR_FRAME_WORKER && !p->leaving) {
        hr__queue_put(&d->unused, worker, p->users);
        hr__queue_put(&d->busy, worker, UINT64_MAX - p->users);
    } else {
        hr__queue_remove(&d->unused, worker);
        hr__queue_remove(&d->busy, worker);
    }
}

static bool may_join(const struct hr_dispatcher *d, hr_peer worker)
{
    return worker != 0 && d->unused.places[worker] != 0;
}

static hr_peer *bucket_of(const struct hr_dispatcher *d, uint64_t host)
{
    return &d->hosts[host % (d->options.peers_max + 1)];
}

void hr__lease_set_host(struct hr_dispatcher *d, hr_peer peer, uint64_t host)
{
    if (d->peers[peer].role == 0)
        d->peers[peer].host = host;
}

void hr__lease_team_join(struct hr_dispatcher *d, hr_peer worker)
{
    struct hr_lease_peer *p = &d->peers[worker];
    hr_peer *bucket = bucket_of(d, p->host);
    const size_t most = d->options.team_max;

    queue(d, worker);
    if (p->host != 0) {
        hr_peer next = *bucket != 0 ? *bucket : worker;

        p->beside = next;
        p->beside_of = next != worker ? d->peers[next].beside_of : worker;
        d->peers[p->beside_of].beside = d->peers[next].beside_of = worker;
        *bucket = worker;
    }
    d->divided = d->divided || (most > 0 && d->worker_count - d->leaving_count > most);
}

static void leave_host(struct hr_dispatcher *d, hr_peer worker)
{
    struct hr_lease_peer *p = &d->peers[worker];
    hr_peer *bucket = bucket_of(d, p->host);

    if (p->host == 0)
        return;
    d->peers[p->beside].beside_of = p->beside_of;
    d->peers[p->beside_of].beside = p->beside;
    if (*bucket == worker)
        *bucket = p->beside != worker ? p->beside : 0;
    p->beside = p->beside_of = 0;
    p->host = 0;
}

/* The next worker in turn of those of which the hosts have the same bucket; 0: none. */
static hr_peer next_beside(const struct hr_dispatcher *d, uint64_t host)
{
    hr_peer *bucket = bucket_of(d, host), worker = *bucket;

    if (worker != 0)
        *bucket = d->peers[worker].beside;
    return worker;
}

/* ---- ties ---- */

static bool has(const struct hr_dispatcher *d, const struct hr_lease_consumer *consumer,
                hr_peer worker)
{
    for (size_t i = 0; i < d->options.team_max; i++)
        if (consumer->team[i].worker == worker)
            return true;
    return false;
}

static void set_former(struct hr_lease_tie *tie, hr_peer former)
{
    tie->consumer->replaced += (former != 0) - (tie->former != 0);
    tie->former = former;
}

/* The worker takes this place, which is free. */
static void tie_to(struct hr_dispatcher *d, struct hr_lease_tie *tie, hr_peer worker)
{
    struct hr_lease_peer *p = &d->peers[worker];
    struct hr_lease_consumer *consumer = tie->consumer;

    for (size_t i = 0; consumer->replaced > 0 && i < d->options.team_max; i++)
        if (consumer->team[i].former == worker) /* it is back */
            set_former(&consumer->team[i], 0);
    tie->worker = worker;
    tie->next = tie->previous = tie;
    if (p->ties != NULL) {
        tie->next = p->ties;
        tie->previous = p->ties->previous;
        tie->next->previous = tie->previous->next = tie;
    }
    p->ties = tie;
    p->users++;
    consumer->tied++;
    consumer->told = consumer->told && tie->former != 0;
    queue(d, worker);
}

static void untie(struct hr_dispatcher *d, struct hr_lease_tie *tie)
{
    struct hr_lease_peer *p = &d->peers[tie->worker];

    tie->next->previous = tie->previous;
    tie->previous->next = tie->next;
    if (p->ties == tie)
        p->ties = tie->next != tie ? tie->next : NULL;
    p->users--;
    queue(d, tie->worker);
    tie->worker = 0;
    tie->next = tie->previous = NULL;
    tie->consumer->tied--;
}

void hr__lease_team_leave(struct hr_dispatcher *d, hr_peer worker)
{
    struct hr_lease_peer *p = &d->peers[worker];

    while (p->ties != NULL) {
        struct hr_lease_tie *tie = p->ties;

        untie(d, tie);
        if (tie->former == 0)
            set_former(tie, worker);
    }
    queue(d, worker);
    leave_host(d, worker);
}

void hr__lease_team_dissolve(struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    for (size_t i = 0; i < d->options.team_max && consumer->tied + consumer->replaced > 0;
         i++) {
        if (consumer->team[i].worker != 0)
            untie(d, &consumer->team[i]);
        set_former(&consumer->team[i], 0);
    }
    consumer->told = false;
}

/* ---- filling ---- */

static struct hr_lease_tie *
free_place(const struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    struct hr_lease_tie *place = NULL;

    for (size_t i = 0; i < d->options.team_max; i++) {
        struct hr_lease_tie *tie = &consumer->team[i];

        if (tie->worker == 0 && (place == NULL || tie->former == 0))
            place = tie;
    }
    return place;
}

static bool
is_full(const struct hr_dispatcher *d, const struct hr_lease_consumer *consumer)
{
    return consumer->tied == d->options.team_max || consumer->tied >= d->unused.count;
}

static void
add(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, hr_peer worker)
{
    if (!is_full(d, consumer) && may_join(d, worker) && !has(d, consumer, worker))
        tie_to(d, free_place(d, consumer), worker);
}

static void add_holders(struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    for (size_t i = 0; i < consumer->leases.count && !is_full(d, consumer); i++)
        add(d, consumer, consumer->leases.items[i].worker);
}

/* In turns, so that the workers of a host come into about as many teams. */
static void add_near(struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    uint64_t host = d->peers[consumer->peer].host;
    hr_peer worker;

    for (uint32_t i = 0; host != 0 && i < LOOKS && !is_full(d, consumer); i++)
        if ((worker = next_beside(d, host)) != 0 && d->peers[worker].host == host)
            add(d, consumer, worker);
}

/* Those that the team has already are taken from the queue meanwhile. */
static void add_unused(struct hr_dispatcher *d, struct hr_lease_consumer *consumer)
{
    const struct hr_queue_item *first;
    hr_peer aside[HR_LEASE_TEAM_MAX];
    uint32_t count = 0, full;

    full = d->unused.count < d->options.team_max ? d->unused.count
                                                 : (uint32_t)d->options.team_max;
    while (consumer->tied < full && (first = hr__queue_first(&d->unused)) != NULL) {
        hr_peer worker = first->number;

        if (!has(d, consumer, worker))
            tie_to(d, free_place(d, consumer), worker);
        hr__queue_remove(&d->unused, worker);
        aside[count++] = worker;
    }
    for (uint32_t i = 0; i < count; i++)
        queue(d, aside[i]);
}

/* ---- what the client knows ---- */

/* Whether something may still come from the worker. What was sent `served_ns` ago is at
 * the client, or was lost. */
static bool
is_expected(const struct hr_lease_consumer *consumer, hr_peer worker, uint64_t now)
{
    for (size_t i = 0; i < consumer->leases.count; i++) {
        const struct hr_lease *lease = &consumer->leases.items[i];

        if (lease->worker == worker && (!lease->served || lease->deadline_ns > now))
            return true;
    }
    return false;
}

/* Former workers leave when nothing more comes from them. */
static void
settle(struct hr_dispatcher *d, struct hr_lease_consumer *consumer, uint64_t now)
{
    for (size_t i = 0; i < d->options.team_max && consumer->replaced > 0; i++) {
        struct hr_lease_tie *tie = &consumer->team[i];

        if (tie->former == 0 || is_expected(consumer, tie->former, now))
            continue;
        set_former(tie, 0);
        consumer->told = false;
        hr__lease_queue_consumer(d, hr__lease_find_job(d, consumer->job), consumer);
    }
}

static void tell(const struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                 struct hr_actions *actions)
{
    struct hr_action_workers *workers;

    if (consumer->told || hr__actions_left(actions) <= HR_ACTIONS_MAX / 4)
        return;
    consumer->told = true;
    workers = hr__tell(actions, consumer->peer);
    for (size_t i = 0; i < d->options.team_max; i++) {
        const struct hr_lease_tie *tie = &consumer->team[i];

        if (tie->worker != 0 || tie->former != 0)
            workers->peers[workers->count++] =
                tie->former != 0 ? tie->former : tie->worker;
    }
}

void hr__lease_tell_users(struct hr_dispatcher *d, hr_peer worker)
{
    struct hr_lease_tie *first = d->peers[worker].ties, *tie = first;

    if (first == NULL)
        return;
    do {
        tie->consumer->told = false;
        tie = tie->next;
    } while (tie != first);
}

void hr__lease_team_review(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                           uint64_t now, struct hr_actions *actions)
{
    if (!d->divided || consumer->peer == 0)
        return;
    settle(d, consumer, now);
    if (!is_full(d, consumer)) {
        add_holders(d, consumer);
        add_near(d, consumer);
        add_unused(d, consumer);
        hr__lease_queue_consumer(d, hr__lease_find_job(d, consumer->job), consumer);
    }
    tell(d, consumer, actions);
}

/* ---- balance ---- */

/* Of some workers on this host, others each time, the one that the fewest teams have. */
static hr_peer find_near(const struct hr_dispatcher *d, uint64_t host)
{
    hr_peer worker, best = 0;

    for (uint32_t i = 0; host != 0 && i < SAMPLE; i++)
        if ((worker = next_beside(d, host)) != 0 && d->peers[worker].host == host &&
            (best == 0 || d->peers[worker].users < d->peers[best].users))
            best = worker;
    return best;
}

/* A quarter of a team may be on its way out. */
static bool
may_move(const struct hr_dispatcher *d, const struct hr_lease_tie *tie, hr_peer to)
{
    const struct hr_lease_consumer *consumer = tie->consumer;

    return to != 0 && d->peers[tie->worker].users >= d->peers[to].users + 2 &&
           consumer->peer != 0 && consumer->replaced <= d->options.team_max / 4 &&
           tie->former == 0 && !has(d, consumer, to);
}

/* A client gives up a worker on its own host only for one that is there, too, or that
 * nobody uses. */
static bool move_place(struct hr_dispatcher *d, hr_peer from, hr_peer unused)
{
    uint64_t host = d->peers[from].host;
    hr_peer near = d->peers[unused].users > 0 ? find_near(d, host) : unused;

    for (uint32_t i = 0; i < LOOKS && i < d->peers[from].users; i++) {
        struct hr_lease_tie *tie = d->peers[from].ties;
        bool local = host != 0 && d->peers[tie->consumer->peer].host == host;
        hr_peer to = local ? near : unused;

        d->peers[from].ties = tie->next;
        if (!may_move(d, tie, to))
            continue;
        untie(d, tie);
        set_former(tie, from);
        tie_to(d, tie, to);
        return true;
    }
    return false;
}

void hr__lease_team_balance(struct hr_dispatcher *d)
{
    for (uint32_t i = 0; d->divided && i < MOVES && d->unused.count > 0; i++) {
        hr_peer to = hr__queue_first(&d->unused)->number;
        hr_peer from = hr__queue_first(&d->busy)->number;

        if (d->peers[from].users < d->peers[to].users + 2 || !move_place(d, from, to))
            return;
    }
}

/* ---- granting ---- */

hr_peer hr__lease_team_find(const struct hr_dispatcher *d,
                            const struct hr_lease_consumer *consumer, uint64_t most)
{
    uint64_t least = HR_LEASE_NO_ROOM;
    hr_peer best = 0;

    for (size_t i = 0; consumer->tied > 0 && i < d->options.team_max; i++) {
        const struct hr_lease_tie *tie = &consumer->team[i];
        uint64_t room = d->room[tie->worker];

        if (room > least || (room == least && tie->worker > best) || tie->former != 0 ||
            !hr__lease_has_room(d, tie->worker, most))
            continue;
        best = tie->worker;
        least = room;
    }
    return best;
}
