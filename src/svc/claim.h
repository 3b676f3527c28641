/*
 * svc/claim.h - a consumer among independent ones (svc/bind.h): what it was given, and
 * its two-step commit.
 *
 * BIND says which ranges are this consumer's; of each it accepts records in order from
 * where it stands. A checkpoint is committed in three steps, so that trainer and
 * dispatcher agree after any crash on which one counts: the trainer writes checkpoint
 * n + 1 aside, durable, with its own state; COMMIT tells the dispatcher, which journals
 * it; on the answer the trainer renames it. When it starts again it may have checkpoint n
 * and, aside, n + 1: WELCOME tells which of them counts (hr__claims_resolve).
 *
 * It is idle when it has taken all that it was given and the dispatcher has no more for
 * it for now; then it must commit what it has taken, for others may wait for that. All is
 * done when everything is committed.
 *
 * A consumer that was evicted or replaced is refused for good: its process starts again
 * from its committed checkpoint, with a new nonce. A state machine like svc/client.h.
 */
#ifndef HR_SVC_CLAIM_H
#define HR_SVC_CLAIM_H

#include "svc/credit.h"

enum hr_claims_state {
    HR_CLAIMS_APART,    /* no dispatcher, or it has not answered */
    HR_CLAIMS_JOINED,   /* has a generation */
    HR_CLAIMS_REFUSED,  /* the rank is held by another that is alive; tries again */
    HR_CLAIMS_REPLACED, /* start again from the committed checkpoint: see `error` */
};

struct hr_claims_options {
    uint64_t job, end, nonce; /* end: positions of the job */
    uint32_t rank;            /* as far as it is known: WELCOME has it */
    size_t workers_max, pieces_max;
    size_t parts;    /* of the budget; 0: workers_max */
    uint64_t budget; /* bytes held and on their way */
    uint64_t beat_ns;
    unsigned kinds;  /* of compression that it takes: bits 1 << enum hr_compression */
    uint32_t weight; /* as in struct hr_client_options */
};

struct hr_claim {
    uint64_t committed, pending, taken, received, until; /* positions, ascending */
};

/* Records that were received and not taken. */
struct hr_claim_piece {
    uint64_t position;
    uint32_t count, skip; /* positions of the frame before them */
    size_t bytes;
    void *payload;
    bool last; /* of the frame: the payload is the taker's */
};

/* Workers may be faster than the dispatcher: frames of ranges that it has not told yet
 * are kept for a second. */
#define HR_CLAIMS_EARLY 64u

struct hr_claims {
    struct hr_claims_options options;
    enum hr_claims_state state;
    uint32_t generation;
    uint64_t journal;   /* number of the one that has its checkpoints; 0: not known */
    uint64_t committed; /* number of the checkpoint that counts */
    bool resolved;      /* that is known */
    uint64_t pending;   /* number of the checkpoint in COMMIT, or 0 */
    bool idle, done;
    hr_peer dispatcher;
    uint64_t told_ns, bytes;
    struct hr_claim claims[HR_FRAME_RANGES_MAX]; /* ascending */
    uint32_t count;
    struct hr_claim_piece *pieces; /* ring, in order of receipt */
    size_t first, piece_count;
    struct hr_claim_piece early[HR_CLAIMS_EARLY];
    uint64_t early_ns[HR_CLAIMS_EARLY]; /* of the last beat before each came */
    uint32_t early_count;
    struct hr_credit credit;
    struct hr_error error;
};

/* HR_ERR_MEMORY. Finish it also after failure, and after dropping all pieces. */
HR_CHECK enum hr_err
hr__claims_init(struct hr_claims *claims, const struct hr_claims_options *options,
                struct hr_error *reterr);
void hr__claims_finish(struct hr_claims *claims);
/* The payload of a piece that is held, which is forgotten; NULL: none is. */
void *hr__claims_drop(struct hr_claims *claims);

/* Events, as in svc/client.h. */
void hr__claims_connected(struct hr_claims *claims, hr_peer peer, enum hr_frame_role role,
                          uint64_t now, struct hr_actions *actions);
void hr__claims_lost(struct hr_claims *claims, hr_peer peer);
void hr__claims_tick(struct hr_claims *claims, uint64_t now, struct hr_actions *actions);
/* After a tick, until NULL: the payload of an early frame that nobody waits for. */
void *hr__claims_expired(struct hr_claims *claims, uint64_t now);

/* What the trainer must do after a message, before the next event. */
enum hr_claims_do {
    HR_CLAIMS_NOTHING,
    HR_CLAIMS_KEEP,   /* what lies aside does not count: remove it */
    HR_CLAIMS_RENAME, /* what lies aside counts */
    HR_CLAIMS_STOP,   /* start again; see `error` */
};
enum hr_claims_do
hr__claims_frame(struct hr_claims *claims, hr_peer peer, const struct hr_frame *frame,
                 struct hr_actions *actions);

/* DATA. If *ret_kept the payload belongs to the claims until it was taken. */
void hr__claims_data(struct hr_claims *claims, hr_peer peer, const struct hr_frame *frame,
                     size_t bytes, void *payload, bool *ret_kept,
                     struct hr_actions *actions);

/* Which of the trainer's checkpoints counts, by their numbers (0: none), once `resolved`:
 * KEEP, RENAME; NOTHING if there is only the one in place, and it counts; STOP if neither
 * does. */
enum hr_claims_do
hr__claims_resolve(struct hr_claims *claims, uint64_t saved, uint64_t aside);

/* The records to take next, at most `most`. The payload is lent until the last ones of
 * its frame are taken. */
bool hr__claims_take(struct hr_claims *claims, uint32_t most,
                     struct hr_claim_piece *ret_piece, struct hr_actions *actions);

/* Positions that were taken and are in no commit. */
uint64_t hr__claims_uncommitted(const struct hr_claims *claims);
/* Whether nothing comes before they are committed. */
static inline bool hr__claims_is_due(const struct hr_claims *claims)
{
    return claims->idle && claims->pending == 0 && hr__claims_uncommitted(claims) > 0;
}

/* The trainer has written the next checkpoint aside. Not while one is pending. */
void hr__claims_commit(struct hr_claims *claims, struct hr_actions *actions);

#endif
