/*
 * svc/svc_test_util.h - events and actions of roles, for their tests.
 */
#ifndef HR_SVC_TEST_UTIL_H
#define HR_SVC_TEST_UTIL_H

#include "svc/action.h"
#include "tests/support/check.h"

#define MS 1000000u

static struct hr_actions actions;

/* Empties the list of actions; call it before each event. */
static inline struct hr_actions *fresh(void)
{
    if (actions.items == NULL)
        CHECK_OK(hr__actions_init(&actions, NULL));
    actions.count = 0;
    return &actions;
}

/* The nth message (from 0 on) of a type that was sent to a peer, or NULL. */
static inline const struct hr_frame *
sent(hr_peer peer, enum hr_frame_type type, size_t nth)
{
    for (size_t i = 0; i < actions.count; i++)
        if (actions.items[i].kind == HR_ACTION_SEND && actions.items[i].peer == peer &&
            actions.items[i].u.frame.type == type && nth-- == 0)
            return &actions.items[i].u.frame;
    return NULL;
}

/* The place of an action in the list, or -1. */
static inline int place_of(enum hr_action_kind kind, hr_peer peer)
{
    for (size_t i = 0; i < actions.count; i++)
        if (actions.items[i].kind == kind && actions.items[i].peer == peer)
            return (int)i;
    return -1;
}

static inline void check_refused(hr_peer peer, enum hr_err code, const char *part)
{
    const struct hr_frame *frame = sent(peer, HR_FRAME_ERROR, 0);

    CHECK(frame != NULL);
    CHECK_EQ_INT(frame->u.error.code, code);
    CHECK_HAS(frame->u.error.text, part);
    CHECK(place_of(HR_ACTION_CLOSE, peer) > place_of(HR_ACTION_SEND, peer));
}

static inline struct hr_frame
client_hello(uint64_t job, uint32_t world, uint32_t rank, uint64_t nonce)
{
    struct hr_frame frame = {HR_FRAME_HELLO, .job = job};

    frame.u.hello.nonce = nonce;
    frame.u.hello.world = world;
    frame.u.hello.rank = rank;
    frame.u.hello.role = HR_FRAME_CLIENT;
    frame.u.hello.weight = 1;
    return frame;
}

static inline struct hr_frame worker_hello(uint32_t slots, uint64_t nonce)
{
    struct hr_frame frame = {HR_FRAME_HELLO, .count = slots};

    frame.u.hello.nonce = nonce;
    frame.u.hello.role = HR_FRAME_WORKER;
    return frame;
}

#endif
