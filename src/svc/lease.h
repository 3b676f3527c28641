/*
 * svc/lease.h - the dispatcher: leases what clients lack to workers.
 *
 * A consumer owns a share of a job's epoch (svc/share.h). The dispatcher leases its
 * positions beyond the cursor, lowest first and within a window, to workers; it leases
 * them again when a lease expires, its worker is lost, or the head of the line is slow,
 * also while the first holder still works: clients drop what they have. What it believes
 * about a consumer is forgotten when the consumer says HELLO again with a new nonce.
 * Journalled are memberships, generations and, lazily, acknowledged cursors: nothing per
 * lease. docs/service.md has the protocol.
 *
 * A client connects to `team_max` workers at most. With no more workers than that every
 * consumer uses all of them. Once there are more, the dispatcher is divided: each
 * consumer has a team of workers (lease_team.c), which alone get its leases, and its
 * client is sent the list of them (HR_ACTION_TELL).
 *
 * Jobs that have the same records (`kin`) get those positions from the workers that made
 * them for another of these jobs, which keep them for that (lease_kin.c).
 *
 * A pure state machine (svc/action.h); times are nanoseconds of any monotonic clock. All
 * tables have a fixed size, so after setup only a new job and a change of membership
 * allocate.
 */
#ifndef HR_SVC_LEASE_H
#define HR_SVC_LEASE_H

#include "svc/action.h"
#include "svc/queue.h"
#include "svc/ranges.h"
#include "svc/share.h"

#define HR_LEASE_WORLD_MAX 4096u
/* What a tick looks at. With more, all are looked at in turn, over several ticks. */
#define HR_LEASE_TICK_PEERS 1024u
#define HR_LEASE_TICK_CONSUMERS 256u
#define HR_LEASE_DOUBTS 4u /* degrees of doubt about a worker; the last one is open */
#define HR_LEASE_TEAM_MAX HR_ACTION_WORKERS_MAX

struct hr_lease_options {
    size_t peers_max, jobs_max;
    size_t team_max;    /* workers of a consumer; 0: all */
    size_t ranges_max;  /* leases of one consumer */
    uint32_t known_max; /* of those, at workers that have them for a job of its kin */
    uint64_t lease_min, lease_max; /* positions of a lease */
    uint64_t target_ns;            /* time that a worker should take for one */
    uint64_t ttl_ns;               /* a lease expires */
    uint64_t served_ns;            /* after it was sent, until it is leased again */
    uint64_t hedge_ns;             /* the head of the line is slow */
    uint64_t silent_ns;            /* a peer that is not heard is taken for lost */
    /* A client that is away has no leases after this; after a quarter of it, if it has
     * taken nothing. 0: never. */
    uint64_t absent_ns;
    uint64_t idle_ns; /* a job without a client is forgotten; 0: never */
};

struct hr_lease_job_options {
    uint64_t id, end, split, window; /* positions */
    uint32_t world;
    uint64_t kin; /* jobs of the same one have the same records; 0: no other job has */
};

/* Who made what for jobs that have the same records, lately: lease_kin.c. */
struct hr_lease_kin;

struct hr_lease_consumer;

/* A place in a consumer's team. */
struct hr_lease_tie {
    struct hr_lease_consumer *consumer;
    hr_peer worker; /* 0: none */
    hr_peer former; /* the client uses this one until it is done; 0: none */
    struct hr_lease_tie *next, *previous; /* of the worker's, a ring */
};

struct hr_lease_consumer {
    uint64_t job;
    uint32_t generation;
    uint32_t weight; /* against other consumers, as its client says; 1 before one came */
    uint64_t nonce;  /* of the incarnation that has this generation */
    hr_peer peer;    /* 0: not connected */
    uint64_t absent_since_ns; /* as the ticks see it; 0: connected */
    uint64_t cursor;          /* local */
    uint64_t moved_ns;
    uint64_t went_on_ns; /* it got work, its cursor moved, or more was sent than before */
    uint64_t sent;       /* local: no lease beyond it was sent */
    uint64_t acked;      /* of the epoch */
    uint64_t outstanding; /* positions that are leased and not served */
    uint64_t leased;      /* the number of its latest lease; 0: it had none */
    uint64_t known;       /* positions of that which are no work */
    uint32_t known_leases;
    double ns_per_position; /* that a worker takes for it; 0: unknown */
    struct hr_ranges leases;
    bool lacks; /* it may lack leases; it is not queued if its team has no room */
    /* Its team: `team_max` places, of which `tied` have a worker and `replaced` a former
     * one. */
    struct hr_lease_tie *team;
    uint32_t tied, replaced;
    bool told;  /* its client knows the team */
    bool left;  /* its client said GOODBYE, and no other one came since */
    bool taken; /* a client of it has taken something */
    /* It has leases, but for `hedge_ns` its cursor has not moved and nothing new was
     * sent: the client takes no more, or its positions take long. */
    bool stands;
};

struct hr_lease_job {
    struct hr_lease_job_options options;
    uint64_t base;
    uint32_t membership, world;
    uint32_t generation; /* the last one given */
    struct hr_lease_consumer *consumers;
    struct hr_queue hungry;   /* ranks that may lack leases, by hr__lease_turn() */
    uint64_t idle_since_ns;   /* no client was connected; 0: one is */
    struct hr_lease_kin *kin; /* NULL: no other job has its records */
    hr_peer clients;          /* the first connection that was given this job, or 0 */
};

struct hr_lease_index {
    uint64_t id;
    size_t job;
};

struct hr_lease_peer {
    uint32_t role; /* enum hr_frame_role; 0: has not said HELLO */
    uint64_t heard_ns;
    size_t job;             /* of a client */
    hr_peer next, previous; /* clients of this job */
    uint32_t rank, generation;
    uint32_t slots, held; /* of a worker: ranges that it takes, has */
    /* Of those, but of consumers that stand still: positions, the time that they take. */
    uint64_t outstanding, work_ns;
    uint32_t kept;          /* leases in consumers' tables, those it has sent included */
    uint32_t doubt;         /* leases that expired since it finished one */
    uint32_t degree;        /* the queue that it is in */
    double ns_per_position; /* of whatever runs; 0: unknown */
    double slowness;        /* against other workers at the same runs; 0: unknown */
    uint64_t finished_ns;
    uint64_t finished; /* positions, since it connected */
    bool leaving;  /* gets no more leases; what it has sent stays sent when it is gone */
    uint64_t host; /* where it runs; 0: unknown */
    hr_peer beside, beside_of; /* a ring of workers with hosts of the same bucket */
    uint32_t users;            /* ties, of a worker */
    struct hr_lease_tie *ties; /* one of them; the next one to be looked at */
};

/* Since the dispatcher began. Positions count once per lease. */
struct hr_lease_counts {
    uint64_t leases, positions;                   /* given out */
    uint64_t leases_finished, positions_finished; /* that their worker says it sent */
    uint64_t leases_expired, leases_hedged;
    uint64_t positions_taken; /* that clients' cursors passed */
};

struct hr_dispatcher {
    struct hr_lease_options options;
    struct hr_lease_counts counts;
    struct hr_lease_peer *peers; /* by number */
    struct hr_lease_job *jobs;
    struct hr_lease_index *index; /* of jobs, by id */
    size_t job_count, worker_count, client_count;
    size_t leaving_count; /* of the workers */
    uint64_t outstanding; /* positions that are leased and not served */
    uint64_t changes;     /* times that a job was done or forgotten */
    /* Workers that have room for a lease, by degree of doubt and positions outstanding;
     * jobs that may lack leases, by the turn of the consumer that comes first. */
    struct hr_queue idle[HR_LEASE_DOUBTS], hungry;
    /* Workers that have enough and could take more, by time in work. */
    struct hr_queue crowded;
    bool divided; /* there are teams: there were more workers than a team has */
    /* Workers that may join a team, by the number of teams that they are in: the fewest
     * first, the most first. */
    struct hr_queue unused, busy;
    hr_peer *hosts;    /* buckets by host: a worker, or 0 */
    uint64_t *room;    /* by worker: HR_LEASE_NO_ROOM, or its degree and outstanding */
    size_t next_job;   /* that a tick looks at */
    hr_peer next_peer; /* the same, from 0 on */
};

/* HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__lease_init(struct hr_dispatcher *d, const struct hr_lease_options *options,
               struct hr_error *reterr);
void hr__lease_finish(struct hr_dispatcher *d);

/* HR_ERR_ARGUMENT, HR_ERR_LIMIT, HR_ERR_MEMORY. A job of which no client is connected is
 * forgotten `idle_ns` after the tick that sees it; clients know what a job was. */
HR_CHECK enum hr_err
hr__lease_add_job(struct hr_dispatcher *d, const struct hr_lease_job_options *options,
                  struct hr_error *reterr);

/* Whether a new job finds a place: a free one, or that of a job that has no client and
 * need not wait for one. At once if all its clients said GOODBYE; `grace_ns` after it was
 * without one, by what ticks saw, if none has taken anything: a client says HELLO right
 * after it brings its job, and one whose connection broke comes back soon. What a client
 * of any other job loses with its place is worth `idle_ns`. */
bool hr__lease_has_place(const struct hr_dispatcher *d, uint64_t now, uint64_t grace_ns);
/* Removes such a job, the one that is due longest. False if there is none. */
bool hr__lease_make_place(struct hr_dispatcher *d, uint64_t now, uint64_t grace_ns);

/* Repeats a journalled row, before any event; the jobs have been added. */
HR_CHECK enum hr_err hr__lease_replay(struct hr_dispatcher *d, const struct hr_row *row,
                                      struct hr_error *reterr);

/* Events. HR_ERR_MEMORY changes nothing but that the frame was not answered. */
HR_CHECK enum hr_err
hr__lease_frame(struct hr_dispatcher *d, hr_peer peer, const struct hr_frame *frame,
                uint64_t now, struct hr_actions *actions, struct hr_error *reterr);
void hr__lease_lost(struct hr_dispatcher *d, hr_peer peer, uint64_t now,
                    struct hr_actions *actions);
void hr__lease_tick(struct hr_dispatcher *d, uint64_t now, struct hr_actions *actions);

/* No more leases for this worker. False if the peer is none. */
bool hr__lease_drain(struct hr_dispatcher *d, hr_peer peer);

/* Where a peer runs, before its first frame: any number but 0 that its host alone has. A
 * team prefers workers on its client's host. */
void hr__lease_set_host(struct hr_dispatcher *d, hr_peer peer, uint64_t host);
/* The worker has a new address: the clients that use it get a new list. */
void hr__lease_tell_users(struct hr_dispatcher *d, hr_peer worker);

/* NULL if there is none. */
struct hr_lease_job *hr__lease_find_job(const struct hr_dispatcher *d, uint64_t id);

/* Whether all consumers have acknowledged the end. */
bool hr__lease_job_is_done(const struct hr_lease_job *job);
/* That, or all its clients have said GOODBYE. */
bool hr__lease_job_is_over(const struct hr_lease_job *job);

#endif
