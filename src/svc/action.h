/*
 * svc/action.h - what a role wants done.
 *
 * Roles (dispatcher, worker, client) are state machines: an event goes in, actions come
 * out, and nothing else happens: no socket, clock, thread or file. The caller carries the
 * actions out in order: a journal row must be durable before a later message leaves. A
 * crash between two actions is one of the cases that the simulation covers.
 */
#ifndef HR_SVC_ACTION_H
#define HR_SVC_ACTION_H

#include "wire/frame.h"

/* A connection as its owner numbers it, from 1 on; 0 is none. A number is used again only
 * after the role was told that the connection is lost. */
typedef uint32_t hr_peer;

/* What must survive the dispatcher. */
enum hr_row_kind {
    HR_ROW_MEMBERSHIP, /* number, world, position: the base */
    HR_ROW_GENERATION, /* rank, generation, number: nonce */
    HR_ROW_ACK,        /* rank, position; lazy */
    HR_ROW_BIND,       /* rank, generation, ranges */
    HR_ROW_COMMIT,     /* rank, generation, number: checkpoint, ranges */
    HR_ROW_EVICT,      /* rank, generation: its uncommitted ranges are unbound */
};

struct hr_row {
    enum hr_row_kind kind;
    bool lazy; /* may be lost in a power cut: costs work, never data */
    uint64_t job, number, position;
    uint32_t rank, world, generation;
    uint32_t count;
    struct hr_frame_range ranges[HR_FRAME_RANGES_MAX];
};

enum hr_action_kind {
    HR_ACTION_SEND,
    HR_ACTION_JOURNAL,
    HR_ACTION_CLOSE, /* after what was sent before */
    HR_ACTION_TELL,  /* a client which workers to use: a WORKERS frame */
};

#define HR_ACTION_WORKERS_MAX 64u
struct hr_action_workers {
    uint32_t count;
    hr_peer peers[HR_ACTION_WORKERS_MAX]; /* their connections to the dispatcher */
};

struct hr_action {
    enum hr_action_kind kind;
    hr_peer peer;
    union {
        struct hr_frame frame;
        struct hr_row row;
        struct hr_action_workers workers;
    } u;
};

/* Empty before each event. A role that has more to do than there is room for does the
 * rest with the next event. */
#define HR_ACTIONS_MAX 64u
struct hr_actions {
    struct hr_action *items;
    size_t count;
};

/* HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__actions_init(struct hr_actions *actions, struct hr_error *reterr);
void hr__actions_finish(struct hr_actions *actions);

static inline size_t hr__actions_left(const struct hr_actions *actions)
{
    return HR_ACTIONS_MAX - actions->count;
}

/* Append one, zero but for what is given; there must be room. */
struct hr_frame *
hr__send(struct hr_actions *actions, hr_peer peer, enum hr_frame_type type);
struct hr_row *
hr__journal(struct hr_actions *actions, enum hr_row_kind kind, uint64_t job);
void hr__close(struct hr_actions *actions, hr_peer peer);
struct hr_action_workers *hr__tell(struct hr_actions *actions, hr_peer client);

/* Sends an ERROR (printf format) and closes. */
void hr__refuse(struct hr_actions *actions, hr_peer peer, enum hr_err code,
                const char *format, ...) HR_PRINTF(4, 5);

#endif
