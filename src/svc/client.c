/*
 * svc/client.c - the client's events.
 */
#include "svc/client.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "svc/mutant.h"

enum hr_err
hr__client_init(struct hr_client *client, struct hr_cursor *cursor,
                const struct hr_client_options *options, struct hr_error *reterr)
{
    assert(options->weight >= 1 && options->weight <= HR_FRAME_WEIGHT_MAX);
    memset(client, 0, sizeof *client);
    client->options = *options;
    client->cursor = cursor;
    HR_TRY(hr__credit_init(&client->credit, options->workers_max, cursor->options.budget,
                           reterr));
    if (options->parts > 0)
        client->credit.parts = options->parts;
    return HR_OK;
}

void hr__client_finish(struct hr_client *client)
{
    hr__credit_finish(&client->credit);
    memset(client, 0, sizeof *client);
}

static struct hr_credit_use use_of(const struct hr_client *client)
{
    return (struct hr_credit_use){.generation = client->generation,
                                  .held = client->cursor->bytes,
                                  .position = hr__cursor_position(client->cursor)};
}

static void give_credit(struct hr_client *client, struct hr_actions *actions)
{
    const struct hr_credit_use use = use_of(client);

    hr__credit_give(&client->credit, &use, actions);
}

/* ---- telling ---- */

static void hello(struct hr_client *client, hr_peer peer, struct hr_actions *actions)
{
    const struct hr_cursor_options *o = &client->cursor->options;
    struct hr_frame *frame;

    if (hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, peer, HR_FRAME_HELLO);
    frame->position = hr__cursor_position(client->cursor);
    frame->count = client->options.kinds;
    frame->generation = client->generation;
    frame->job = o->job;
    frame->u.hello.nonce = client->options.nonce;
    frame->u.hello.base = o->share.base;
    frame->u.hello.membership = o->membership;
    frame->u.hello.world = o->share.world;
    frame->u.hello.rank = o->share.rank;
    frame->u.hello.role = HR_FRAME_CLIENT;
    frame->u.hello.weight = client->options.weight;
}

static void join(struct hr_client *client, struct hr_credit_worker *worker,
                 struct hr_actions *actions)
{
    if (worker->joined || client->generation == 0)
        return;
    hello(client, worker->peer, actions);
    worker->joined = true;
    worker->welcomed = false;
}

static void progress(struct hr_client *client, uint64_t now, struct hr_actions *actions)
{
    struct hr_frame *frame;

    if (hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, client->dispatcher, HR_FRAME_PROGRESS);
    frame->position = hr__cursor_position(client->cursor);
    frame->generation = client->generation;
    client->told_ns = now;
    client->told_cursor = client->cursor->next;
}

static void acknowledge(struct hr_client *client, struct hr_actions *actions)
{
    struct hr_frame *frame;

    if (client->state != HR_CLIENT_JOINED || client->acked == 0 ||
        hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, client->dispatcher, HR_FRAME_ACK);
    frame->position = client->acked;
    frame->generation = client->generation;
}

/* ---- connections ---- */

void hr__client_connected(struct hr_client *client, hr_peer peer, enum hr_frame_role role,
                          uint64_t now, struct hr_actions *actions)
{
    struct hr_credit_worker *worker;

    if (role != HR_FRAME_WORKER) {
        client->dispatcher = peer;
        client->told_ns = now;
        if (client->state != HR_CLIENT_REPLACED) {
            client->state = HR_CLIENT_APART;
            hello(client, peer, actions);
        }
        return;
    }
    worker = hr__credit_add(&client->credit, peer, actions);
    if (worker == NULL)
        return;
    join(client, worker, actions);
    give_credit(client, actions);
}

void hr__client_lost(struct hr_client *client, hr_peer peer)
{
    hr__credit_remove(&client->credit, peer);
    if (client->dispatcher != peer)
        return;
    client->dispatcher = 0;
    if (client->state == HR_CLIENT_JOINED)
        client->state = HR_CLIENT_APART;
}

/* ---- messages ---- */

static void welcome(struct hr_client *client, const struct hr_frame *frame, uint64_t now,
                    struct hr_actions *actions)
{
    if (frame->u.welcome.nonce != client->options.nonce || frame->generation == 0 ||
        client->state == HR_CLIENT_REPLACED)
        return;
#ifdef HR_SVC_MUTANTS
    if (client->generation == 0 &&
        (HR_MUTANT(ACK_ON_RECEIPT) || HR_MUTANT(RESTART_FROM_ACK)))
        client->cursor->next =
            hr__share_below(&client->cursor->options.share, frame->position);
#endif
    client->state = HR_CLIENT_JOINED;
    if (frame->generation != client->generation)
        for (size_t i = 0; i < client->credit.room; i++)
            client->credit.workers[i].joined = false;
    client->generation = frame->generation;
    for (size_t i = 0; i < client->credit.room; i++)
        if (client->credit.workers[i].peer != 0)
            join(client, &client->credit.workers[i], actions);
    give_credit(client, actions);
    progress(client, now, actions);
    acknowledge(client, actions);
}

/* Another client that is alive, a full dispatcher, a connection that came too early or
 * said nothing for too long. */
bool hr__client_is_passing(enum hr_err code)
{
    return code == HR_ERR_STATE || code == HR_ERR_LIMIT || code == HR_ERR_MEMORY ||
           code == HR_ERR_TIMEOUT;
}

static void refused(struct hr_client *client, const struct hr_frame *frame)
{
    if (hr__client_is_passing(frame->u.error.code)) {
        client->state = HR_CLIENT_REFUSED;
        return;
    }
    client->state = HR_CLIENT_REPLACED;
    hr__fail(&client->error, frame->u.error.code,
             "the dispatcher refuses this client: %s", frame->u.error.text);
}

void hr__client_frame(struct hr_client *client, hr_peer peer,
                      const struct hr_frame *frame, uint64_t now,
                      struct hr_actions *actions)
{
    struct hr_credit_worker *worker = hr__credit_find(&client->credit, peer);

    if (worker != NULL && frame->type == HR_FRAME_WELCOME)
        worker->welcomed = frame->generation == client->generation;
    if (peer != client->dispatcher)
        return;
    if (frame->type == HR_FRAME_WELCOME)
        welcome(client, frame, now, actions);
    if (frame->type == HR_FRAME_ERROR)
        refused(client, frame);
}

enum hr_err
hr__client_data(struct hr_client *client, hr_peer peer, const struct hr_frame *frame,
                size_t bytes, void *payload, bool *ret_kept, struct hr_actions *actions,
                struct hr_error *reterr)
{
    struct hr_credit_worker *worker = hr__credit_find(&client->credit, peer);
    bool granted;

    *ret_kept = false;
    if (worker == NULL)
        return HR_OK;
    granted = worker->received < worker->granted;
    worker->received += bytes;
    worker->silent = false;
    if (frame->generation == client->generation)
        HR_TRY(hr__cursor_accept(client->cursor, frame->position, frame->count, bytes,
                                 granted, payload, ret_kept, reterr));
    give_credit(client, actions);
    return HR_OK;
}

void hr__client_taken(struct hr_client *client, uint64_t now, struct hr_actions *actions)
{
    uint64_t moved = client->cursor->next - client->told_cursor;

    give_credit(client, actions);
    if (client->state == HR_CLIENT_JOINED &&
        (moved > client->cursor->options.window / 8 ||
         (moved > 0 && hr__cursor_is_at_end(client->cursor))))
        progress(client, now, actions);
    if (HR_MUTANT(ACK_ON_RECEIPT))
        hr__client_saved(client, hr__cursor_position(client->cursor), actions);
}

void hr__client_saved(struct hr_client *client, uint64_t position,
                      struct hr_actions *actions)
{
    client->acked = position;
    acknowledge(client, actions);
}

/* Repeats what a worker must know, if it has not answered or sends nothing. */
static void remind(struct hr_client *client, struct hr_credit_worker *worker,
                   struct hr_actions *actions)
{
    const struct hr_credit_use use = use_of(client);

    if (worker->peer == 0)
        return;
    if (!worker->welcomed)
        hello(client, worker->peer, actions);
    if (!hr__cursor_is_at_end(client->cursor))
        hr__credit_remind(worker, &use, actions);
}

void hr__client_tick(struct hr_client *client, uint64_t now, struct hr_actions *actions)
{
    if (client->dispatcher == 0 || client->state == HR_CLIENT_REPLACED ||
        now - client->told_ns < client->options.beat_ns)
        return;
    client->told_ns = now;
    if (client->state != HR_CLIENT_JOINED) {
        hello(client, client->dispatcher, actions);
        return;
    }
    progress(client, now, actions);
    acknowledge(client, actions);
    for (size_t i = 0; i < client->credit.room; i++)
        remind(client, &client->credit.workers[i], actions);
}
