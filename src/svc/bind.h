/*
 * svc/bind.h - the dispatcher of independent consumers: first come, first served.
 *
 * Consumers of such a job own no share. Each split is bound to the consumer that has room
 * for it, in order, and its records are served to that one. A consumer commits through
 * the dispatcher: it writes checkpoint n + 1 aside, says COMMIT with what it consumed
 * since checkpoint n, and renames it when the answer is there (svc/claim.h). So the
 * dispatcher knows for each split up to where it is committed, and can take from a
 * consumer that was evicted what it has not committed. An evicted or replaced incarnation
 * is refused by its generation and goes back to its committed checkpoint.
 *
 * A consumer reports how many of its splits it has taken; it has room while the others
 * are fewer than `ahead`. If it has taken everything and gets nothing more before a
 * commit, the binder sends PROGRESS, whose position is the end once all is committed.
 *
 * Journalled, and needed after a crash: BIND before the lease leaves, COMMIT before the
 * answer, GENERATION and EVICT before anything follows from them. Splits that are not
 * committed lie within a window, which bounds memory; a state machine like svc/lease.h.
 */
#ifndef HR_SVC_BIND_H
#define HR_SVC_BIND_H

#include "svc/action.h"

struct hr_bind_options {
    uint64_t job, end, split; /* positions */
    uint32_t consumers;       /* ranks below this, at most HR_BIND_CONSUMERS_MAX */
    uint32_t window;          /* splits, bound or not, beyond the first uncommitted one */
    uint32_t ahead;           /* splits of a consumer that are bound and not yet taken */
    size_t peers_max;
    uint64_t ttl_ns, served_ns, silent_ns; /* as in svc/lease.h; served_ns: until it is
                                              sent again to a client that waits for it */
    uint64_t absent_ns; /* a consumer without a connection is evicted then */
    uint64_t journal;   /* its number, for WELCOME */
};
#define HR_BIND_CONSUMERS_MAX 4096u

struct hr_bind_split {
    uint32_t owner;     /* rank + 1; 0: nobody */
    uint64_t committed; /* positions of it */
    hr_peer worker;     /* 0: not leased */
    uint64_t leased;    /* positions of that lease */
    uint64_t deadline_ns;
    bool served;
};

struct hr_bind_consumer {
    uint32_t generation;
    uint64_t nonce, committed; /* number of the committed checkpoint */
    uint64_t acted_ns;         /* heard, or committed */
    hr_peer peer;
    uint32_t weight;       /* at workers, as its client says */
    uint32_t bound, taken; /* splits; of those, taken to their ends as it says */
};

struct hr_bind_peer {
    uint32_t role, rank, slots, held;
    uint64_t heard_ns;
    uint32_t doubt;    /* leases that expired since it finished one */
    uint64_t finished; /* positions */
    bool leaving;
};

/* Since the binder was made; as in struct hr_lease_counts. */
struct hr_bind_counts {
    uint64_t leases, positions, leases_finished, positions_finished, leases_expired;
    uint64_t positions_taken; /* committed */
};

struct hr_binder {
    struct hr_bind_options options;
    struct hr_bind_counts counts;
    uint64_t splits, first;       /* of the job; the first that is not committed */
    struct hr_bind_split *window; /* ring by number */
    struct hr_bind_consumer *consumers;
    struct hr_bind_peer *peers; /* by number of the connection */
    uint32_t generation;        /* the last one given */
};

/* HR_ERR_ARGUMENT, HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__bind_init(struct hr_binder *binder, const struct hr_bind_options *options,
              struct hr_error *reterr);
void hr__bind_finish(struct hr_binder *binder);

/* Restores a journal, before any event. First: all splits before `first` are committed;
 * then rows in their order. HR_ERR_FORMAT. */
HR_CHECK enum hr_err
hr__bind_restore(struct hr_binder *binder, uint64_t first, struct hr_error *reterr);
HR_CHECK enum hr_err hr__bind_replay(struct hr_binder *binder, const struct hr_row *row,
                                     struct hr_error *reterr);

/* Events. */
void hr__bind_frame(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
                    uint64_t now, struct hr_actions *actions);
void hr__bind_lost(struct hr_binder *binder, hr_peer peer, uint64_t now,
                   struct hr_actions *actions);
void hr__bind_tick(struct hr_binder *binder, uint64_t now, struct hr_actions *actions);

/* Takes from a consumer what it has not committed; its incarnation is refused from now
 * on. Time evicts consumers that are absent; a user may evict others. */
void hr__bind_evict(struct hr_binder *binder, uint32_t rank, uint64_t now,
                    struct hr_actions *actions);

struct hr_bind_work {
    uint64_t committed; /* positions, by all consumers */
    uint64_t leased;    /* positions in leases that are not served */
    uint32_t leases;    /* the number of these leases */
};
/* Returns the progress of the job; `leased` and `leases` count those of `worker` only,
 * 0: of all workers. */
struct hr_bind_work hr__bind_work(const struct hr_binder *binder, hr_peer worker);

static inline bool hr__bind_is_done(const struct hr_binder *binder)
{
    return binder->first == binder->splits;
}

#endif
