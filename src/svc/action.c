/*
 * svc/action.c - lists of actions.
 */
#include "svc/action.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

enum hr_err hr__actions_init(struct hr_actions *actions, struct hr_error *reterr)
{
    actions->count = 0;
    actions->items = hr__calloc(HR_ACTIONS_MAX, sizeof *actions->items);
    if (actions->items == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__actions_finish(struct hr_actions *actions)
{
    hr__free(actions->items);
    memset(actions, 0, sizeof *actions);
}

static struct hr_action *add(struct hr_actions *actions, enum hr_action_kind kind)
{
    struct hr_action *action = &actions->items[actions->count];

    assert(actions->count < HR_ACTIONS_MAX);
    memset(action, 0, sizeof *action);
    action->kind = kind;
    actions->count++;
    return action;
}

struct hr_frame *
hr__send(struct hr_actions *actions, hr_peer peer, enum hr_frame_type type)
{
    struct hr_action *action = add(actions, HR_ACTION_SEND);

    action->peer = peer;
    action->u.frame.type = type;
    return &action->u.frame;
}

struct hr_row *
hr__journal(struct hr_actions *actions, enum hr_row_kind kind, uint64_t job)
{
    struct hr_row *row = &add(actions, HR_ACTION_JOURNAL)->u.row;

    row->kind = kind;
    row->job = job;
    return row;
}

void hr__close(struct hr_actions *actions, hr_peer peer)
{
    add(actions, HR_ACTION_CLOSE)->peer = peer;
}

struct hr_action_workers *hr__tell(struct hr_actions *actions, hr_peer client)
{
    struct hr_action *action = add(actions, HR_ACTION_TELL);

    action->peer = client;
    return &action->u.workers;
}

void hr__refuse(struct hr_actions *actions, hr_peer peer, enum hr_err code,
                const char *format, ...)
{
    struct hr_frame *frame = hr__send(actions, peer, HR_FRAME_ERROR);
    va_list args;

    frame->u.error.code = code;
    va_start(args, format);
    vsnprintf(frame->u.error.text, sizeof frame->u.error.text, format, args);
    va_end(args);
    hr__close(actions, peer);
}
