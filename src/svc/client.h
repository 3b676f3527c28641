/*
 * svc/client.h - the client's side of its connections: joining, credit, progress.
 *
 * The cursor (svc/cursor.h) says what is accepted; this says what is sent to whom:
 * HELLO with the cursor to the dispatcher, its generation and credit to the workers,
 * progress and durable cursors back. Everything is repeated by hr__client_tick(), so that
 * a lost message costs time only.
 *
 * What a client holds is bounded by its credit (svc/credit.h): its budget, a frame per
 * worker, and one more.
 */
#ifndef HR_SVC_CLIENT_H
#define HR_SVC_CLIENT_H

#include "svc/credit.h"
#include "svc/cursor.h"

enum hr_client_state {
    HR_CLIENT_APART,    /* no dispatcher, or it has not answered */
    HR_CLIENT_JOINED,   /* has a generation */
    HR_CLIENT_REFUSED,  /* for now (hr__client_is_passing); tries again */
    HR_CLIENT_REPLACED, /* permanently: see `error` */
};

struct hr_client_options {
    uint64_t nonce;     /* random */
    size_t workers_max; /* connections */
    size_t parts;       /* of the budget; 0: workers_max */
    uint64_t beat_ns;   /* between progress messages; retries */
    unsigned kinds;     /* of compression that it takes: bits 1 << enum hr_compression */
    uint32_t weight;    /* against other clients, 1 to HR_FRAME_WEIGHT_MAX */
};

struct hr_client {
    struct hr_client_options options;
    struct hr_cursor *cursor;
    enum hr_client_state state;
    uint32_t generation;
    hr_peer dispatcher;
    uint64_t told_ns, told_cursor; /* progress */
    uint64_t acked;                /* durable position of the epoch */
    struct hr_credit credit;
    struct hr_error error;
};

/* HR_ERR_MEMORY. The cursor is borrowed. Finish it also after failure. */
HR_CHECK enum hr_err
hr__client_init(struct hr_client *client, struct hr_cursor *cursor,
                const struct hr_client_options *options, struct hr_error *reterr);
void hr__client_finish(struct hr_client *client);

/* Whether a refusal with this code is for now only: the same client may try again. */
bool hr__client_is_passing(enum hr_err code);

/* Events. A connection was made to the dispatcher, or to a worker (at most workers_max);
 * lost; brought a message. */
void hr__client_connected(struct hr_client *client, hr_peer peer, enum hr_frame_role role,
                          uint64_t now, struct hr_actions *actions);
void hr__client_lost(struct hr_client *client, hr_peer peer);
void hr__client_frame(struct hr_client *client, hr_peer peer,
                      const struct hr_frame *frame, uint64_t now,
                      struct hr_actions *actions);

/* DATA, with its payload: see hr__cursor_accept(). */
HR_CHECK enum hr_err
hr__client_data(struct hr_client *client, hr_peer peer, const struct hr_frame *frame,
                size_t bytes, void *payload, bool *ret_kept, struct hr_actions *actions,
                struct hr_error *reterr);

/* Positions were taken from the cursor; a checkpoint with this position is durable. */
void hr__client_taken(struct hr_client *client, uint64_t now, struct hr_actions *actions);
void hr__client_saved(struct hr_client *client, uint64_t position,
                      struct hr_actions *actions);
void hr__client_tick(struct hr_client *client, uint64_t now, struct hr_actions *actions);

#endif
