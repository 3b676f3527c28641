/*
 * svc/lease_internal.h - private interface between lease.c, lease_jobs.c, lease_kin.c,
 * lease_grant.c, lease_team.c and lease_tick.c.
 */
#ifndef HR_SVC_LEASE_INTERNAL_H
#define HR_SVC_LEASE_INTERNAL_H

#include "svc/lease.h"

#include <assert.h>

/* A consumer, and the job that it belongs to. */
struct hr_lease_seat {
    struct hr_lease_job *job;
    struct hr_lease_consumer *consumer;
};

/* ---- lease.c ---- */

/* Ends a lease: its worker and consumer no longer count it. The consumer must be queued
 * again. */
void hr__lease_end(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                   size_t at);
/* Counts a new lease as work of its worker and consumer, until hr__lease_end(). */
void hr__lease_load(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                    const struct hr_lease *lease, uint64_t now);
/* Marks the consumer as standing still or going on. While it stands still its leases take
 * no room of their workers, and only an idle worker gets more of them. */
void hr__lease_set_standing(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                            bool stands);
/* All of them, and the team. */
void hr__lease_end_all(struct hr_dispatcher *d, struct hr_lease_consumer *consumer);
/* The peer is gone; grants nothing. */
void hr__lease_forget(struct hr_dispatcher *d, hr_peer peer);

/* ---- lease_jobs.c ---- */

struct hr_share hr__lease_share(const struct hr_lease_job *job, uint32_t rank);

/* Replaces the consumers of a job by new ones. HR_ERR_MEMORY changes nothing. */
HR_CHECK enum hr_err hr__lease_seat_all(struct hr_dispatcher *d, struct hr_lease_job *job,
                                        uint32_t world, struct hr_error *reterr);

/* Makes a peer a client of the job; the opposite. */
void hr__lease_link(struct hr_dispatcher *d, struct hr_lease_job *job, hr_peer peer);
void hr__lease_unlink(struct hr_dispatcher *d, hr_peer peer);

/* Forgets the job at this index, whose place the last one takes. */
void hr__lease_remove_job(struct hr_dispatcher *d, size_t at);
bool hr__lease_job_has_client(const struct hr_lease_job *job);

/* ---- lease_kin.c ---- */

/* A new job; one that is removed. Neither has clients. HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__lease_kin_join(struct hr_dispatcher *d, struct hr_lease_job *job,
                                        struct hr_error *reterr);
void hr__lease_kin_leave(struct hr_lease_job *job);
/* The job has its first client, or has lost its last one. */
void hr__lease_kin_present(struct hr_lease_job *job, bool present);
/* These positions of the epoch were leased to a worker that makes them. */
void hr__lease_kin_note(struct hr_lease_job *job, struct hr_frame_range range,
                        hr_peer worker);
/* Which worker has the position of the epoch for another job that has a client, and those
 * after it up to *ret_until; 0: none, as far as is known. It may be gone, and its number
 * given to another one. */
hr_peer hr__lease_kin_find(const struct hr_lease_job *job, uint64_t position,
                           uint64_t *ret_until);

/* ---- lease_grant.c ---- */

/* After any change to what the worker has or may have: puts it where it belongs among
 * those that have room, or removes it. */
void hr__lease_queue_worker(struct hr_dispatcher *d, hr_peer peer);

/* After any change to the consumer's connection, cursor or leases. That it lacks leases
 * is found out when its turn comes. */
void hr__lease_queue_consumer(struct hr_dispatcher *d, struct hr_lease_job *job,
                              struct hr_lease_consumer *consumer);
/* The same for a job of which a consumer has changed, or that has moved. */
void hr__lease_queue_job(struct hr_dispatcher *d, const struct hr_lease_job *job);

/* Leases what may be leased: to this worker only (0: to any); with teams for this
 * consumer only (NULL: for any), without them to whose turn it is. Hedges for this
 * consumer. */
void hr__lease_grant(struct hr_dispatcher *d, hr_peer only_worker,
                     const struct hr_lease_seat *only_consumer, uint64_t now,
                     struct hr_actions *actions);

/* Leases the head of the line a second time if it is slow and a worker has nothing else
 * to do. If nobody has it, a worker gets it that has enough, if none other could. */
void hr__lease_hedge(struct hr_dispatcher *d, const struct hr_lease_seat *seat,
                     uint64_t now, struct hr_actions *actions);

/* Of workers with equal positions in work those come first that have nothing for
 * consumers that stand still either. */
static inline uint64_t hr__lease_busy(const struct hr_lease_peer *worker)
{
    return 2 * worker->outstanding + (worker->outstanding == 0 && worker->held > 0);
}

#define HR_LEASE_TURN_SHIFT 44 /* bits of a lease's number */
#define HR_LEASE_TURN_NS 1e6   /* shorter times in work are equal */

/* Nanoseconds per position of the consumer at this worker; NULL: at an average one. */
static inline double
hr__lease_estimate(const struct hr_dispatcher *d, const struct hr_lease_peer *worker,
                   const struct hr_lease_consumer *consumer)
{
    double slowness = worker != NULL && worker->slowness > 0 ? worker->slowness : 1;

    if (consumer->ns_per_position > 0)
        return consumer->ns_per_position * slowness;
    return (double)d->options.target_ns / (double)d->options.lease_min;
}

/* Which consumer gets the next lease: the one whose positions in work take the least time
 * relative to its weight, then the one that has waited longest. Counted in positions, a
 * consumer with slow ones would always have less in work than the others. With equal ones
 * in a fixed order, a run that has nothing in work whenever a worker has room would take
 * every turn. */
static inline uint64_t
hr__lease_turn(const struct hr_dispatcher *d, const struct hr_lease_consumer *consumer)
{
    const uint64_t most = ((uint64_t)1 << (64 - HR_LEASE_TURN_SHIFT)) - 1;
    uint64_t work = consumer->outstanding - consumer->known;
    double ns = (double)work * hr__lease_estimate(d, NULL, consumer);
    double units = ns / HR_LEASE_TURN_NS / consumer->weight;

    assert(consumer->weight > 0);
    units += work > 0; /* those with nothing come first */
    return (units < (double)most ? (uint64_t)units : most) << HR_LEASE_TURN_SHIFT |
           consumer->leased;
}

/* Entries of d->room: the degree of doubt above hr__lease_busy(). So a look at
 * many workers reads little memory. */
#define HR_LEASE_NO_ROOM UINT64_MAX
#define HR_LEASE_DEGREE_SHIFT 62

static inline bool
hr__lease_has_room(const struct hr_dispatcher *d, hr_peer worker, uint64_t most)
{
    uint64_t room = d->room[worker];

    return room != HR_LEASE_NO_ROOM &&
           (room & (((uint64_t)1 << HR_LEASE_DEGREE_SHIFT) - 1)) / 2 < most;
}

/* ---- lease_team.c ---- */

/* HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__lease_team_init(struct hr_dispatcher *d, struct hr_error *reterr);
void hr__lease_team_finish(struct hr_dispatcher *d);

/* A worker that has said HELLO may join teams; one that leaves or is lost leaves them. */
void hr__lease_team_join(struct hr_dispatcher *d, hr_peer worker);
void hr__lease_team_leave(struct hr_dispatcher *d, hr_peer worker);

/* The consumer has no team any more. */
void hr__lease_team_dissolve(struct hr_dispatcher *d, struct hr_lease_consumer *consumer);
/* Fills the team's free places, replaces former workers that are done, and tells the
 * client if that changes what it must know. Nothing if it is not connected. */
void hr__lease_team_review(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                           uint64_t now, struct hr_actions *actions);
/* Moves places from the workers that most teams have to those that the fewest have. */
void hr__lease_team_balance(struct hr_dispatcher *d);

/* Of the team's workers with the least doubt about them the one that has the least in
 * work, less than `most`; 0: none has room. */
hr_peer hr__lease_team_find(const struct hr_dispatcher *d,
                            const struct hr_lease_consumer *consumer, uint64_t most);

#endif
