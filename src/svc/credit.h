/*
 * svc/credit.h - how many bytes each worker may send to a client.
 *
 * Bytes are granted as long as those held plus those granted and not yet received are
 * below the budget. A worker may exceed its grant by the rest of a frame that it began
 * within it, or by one frame at the client's position, which is named with each grant, so
 * that buffers which later positions fill cannot stop the first one. Each worker has at
 * most its part of the budget, connected or not, so that none can use up what another one
 * needs: what was granted to an idle worker does not come back. Grants are totals since
 * the connection began: a lost or repeated one does no harm.
 */
#ifndef HR_SVC_CREDIT_H
#define HR_SVC_CREDIT_H

#include "svc/action.h"

struct hr_credit_worker {
    hr_peer peer;  /* 0: none */
    bool joined;   /* it was told the generation */
    bool welcomed; /* and has answered */
    bool silent;   /* nothing came since hr__credit_remind() */
    uint64_t granted, received, told;
    uint64_t told_position;
};

struct hr_credit {
    struct hr_credit_worker *workers;
    size_t room;
    size_t parts; /* of the budget: `room`, if nobody says otherwise */
    uint64_t budget;
};

/* What a client holds now, and the position that it waits for. */
struct hr_credit_use {
    uint32_t generation;
    uint64_t held, position;
};

/* HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err hr__credit_init(struct hr_credit *credit, size_t workers,
                                     uint64_t budget, struct hr_error *reterr);
void hr__credit_finish(struct hr_credit *credit);

/* A new connection; NULL, and it is closed, if there are too many. */
struct hr_credit_worker *
hr__credit_add(struct hr_credit *credit, hr_peer peer, struct hr_actions *actions);
/* Does nothing if the peer is no worker. */
void hr__credit_remove(struct hr_credit *credit, hr_peer peer);
/* NULL if the peer is no worker. */
struct hr_credit_worker *hr__credit_find(struct hr_credit *credit, hr_peer peer);

/* Grants what the budget allows, and tells those for whom it is worth a message. */
void hr__credit_give(struct hr_credit *credit, const struct hr_credit_use *use,
                     struct hr_actions *actions);
/* Tells a worker again if nothing came from it since the last call. */
void hr__credit_remind(struct hr_credit_worker *worker, const struct hr_credit_use *use,
                       struct hr_actions *actions);

#endif
