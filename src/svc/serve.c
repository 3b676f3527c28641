/*
 * svc/serve.c - the worker's events.
 */
#include "svc/serve.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

enum hr_err
hr__serve_init(struct hr_worker *worker, const struct hr_serve_options *options,
               struct hr_error *reterr)
{
    memset(worker, 0, sizeof *worker);
    worker->options = *options;
    worker->clients = hr__calloc(options->peers_max + 1, sizeof *worker->clients);
    worker->leases = hr__calloc(options->leases_max, sizeof *worker->leases);
    if (worker->clients == NULL || worker->leases == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__serve_finish(struct hr_worker *worker)
{
    hr__free(worker->clients);
    hr__free(worker->leases);
    memset(worker, 0, sizeof *worker);
}

/* ---- leases ---- */

static void remove_lease(struct hr_worker *worker, uint32_t at)
{
    worker->lease_count--;
    worker->leases[at] = worker->leases[worker->lease_count];
}

static bool is_for(const struct hr_serve_lease *lease, uint64_t job, uint32_t rank)
{
    return lease->job == job && lease->rank == rank;
}

/* A later incarnation of the client: what was for the earlier ones is dropped. */
static void
drop_older(struct hr_worker *worker, uint64_t job, uint32_t rank, uint32_t generation)
{
    for (uint32_t i = worker->lease_count; i-- > 0;)
        if (is_for(&worker->leases[i], job, rank) &&
            worker->leases[i].generation < generation)
            remove_lease(worker, i);
}

/* The latest connection of the lease's client, or 0: one that the client gave up may not
 * be known to be lost yet. */
static hr_peer
find_client(const struct hr_worker *worker, const struct hr_serve_lease *lease)
{
    hr_peer found = 0;

    for (hr_peer i = 1; i <= worker->top; i++) {
        const struct hr_serve_client *client = &worker->clients[i];

        if (client->joined && is_for(lease, client->job, client->rank) &&
            lease->generation == client->generation &&
            client->order >= worker->clients[found].order)
            found = i;
    }
    return found;
}

/* What nobody is here for gives way first, then the oldest. */
static struct hr_serve_lease *make_room(struct hr_worker *worker)
{
    struct hr_serve_lease *found = NULL;
    bool alone = false;

    if (worker->lease_count < worker->options.leases_max)
        return &worker->leases[worker->lease_count++];
    for (uint32_t i = 0; i < worker->lease_count; i++) {
        struct hr_serve_lease *lease = &worker->leases[i];
        bool is_alone = find_client(worker, lease) == 0;

        if (found == NULL || is_alone > alone ||
            (is_alone == alone && lease->deadline_ns < found->deadline_ns)) {
            found = lease;
            alone = is_alone;
        }
    }
    return found;
}

/* A range that is open already gets a later deadline, and is finished for who leased it
 * last. */
static bool renew(struct hr_worker *worker, const struct hr_serve_lease *lease)
{
    for (uint32_t i = 0; i < worker->lease_count; i++) {
        struct hr_serve_lease *open = &worker->leases[i];

        if (!is_for(open, lease->job, lease->rank) ||
            open->generation != lease->generation || open->from > lease->from ||
            open->until != lease->until || open->at > lease->from)
            continue;
        open->deadline_ns = lease->deadline_ns;
        open->dispatcher = lease->dispatcher;
        return true;
    }
    return false;
}

static void take_lease(struct hr_worker *worker, hr_peer dispatcher,
                       const struct hr_frame *frame, uint64_t now)
{
    drop_older(worker, frame->job, frame->u.lease.rank, frame->generation);
    for (uint32_t i = 0; i < frame->count; i++) {
        struct hr_frame_range range = frame->u.lease.ranges[i];
        struct hr_serve_lease lease = {
            .id = ++worker->last_id,
            .job = frame->job,
            .rank = frame->u.lease.rank,
            .generation = frame->generation,
            .dispatcher = dispatcher,
            .from = range.from,
            .at = range.from,
            .until = range.until,
            .deadline_ns = now + (uint64_t)frame->u.lease.ttl_ms * 1000000};

        if (!renew(worker, &lease))
            *make_room(worker) = lease;
    }
}

static void
finish_lease(struct hr_worker *worker, uint32_t at, struct hr_actions *actions)
{
    const struct hr_serve_lease lease = worker->leases[at];
    uint64_t ns = lease.frames_ns > lease.run_ns ? lease.frames_ns : lease.run_ns;
    struct hr_frame *frame;

    remove_lease(worker, at);
    if (lease.dispatcher == 0 || hr__actions_left(actions) == 0)
        return; /* the lease expires there */
    frame = hr__send(actions, lease.dispatcher, HR_FRAME_FINISHED);
    frame->generation = lease.generation;
    frame->count = 1;
    frame->job = lease.job;
    frame->u.lease.rank = lease.rank;
    frame->u.lease.work_us = (uint32_t)(ns / 1000 < UINT32_MAX ? ns / 1000 : UINT32_MAX);
    frame->u.lease.ranges[0] = (struct hr_frame_range){lease.from, lease.until};
}

/* ---- clients ---- */

static void forget_client(struct hr_worker *worker, hr_peer peer)
{
    memset(&worker->clients[peer], 0, sizeof worker->clients[peer]);
    while (worker->top > 0 && !worker->clients[worker->top].joined)
        worker->top--;
}

/* A client says GOODBYE. Its leases end, unless it has another connection. */
static void leave(struct hr_worker *worker, hr_peer peer)
{
    const struct hr_serve_client client = worker->clients[peer];

    forget_client(worker, peer);
    for (uint32_t i = worker->lease_count; client.joined && i-- > 0;)
        if (is_for(&worker->leases[i], client.job, client.rank) &&
            worker->leases[i].generation == client.generation &&
            find_client(worker, &worker->leases[i]) == 0)
            remove_lease(worker, i);
}

static void take_client(struct hr_worker *worker, hr_peer peer,
                        const struct hr_frame *frame, struct hr_actions *actions)
{
    struct hr_serve_client *client = &worker->clients[peer];
    struct hr_frame *answer;

    if (frame->generation == 0) {
        hr__refuse(actions, peer, HR_ERR_STATE, "join the dispatcher first");
        return;
    }
    for (hr_peer i = 1; i <= worker->top; i++) {
        const struct hr_serve_client *other = &worker->clients[i];

        if (other->joined && other->job == frame->job &&
            other->rank == frame->u.hello.rank && other->generation > frame->generation) {
            hr__refuse(actions, peer, HR_ERR_CANCELLED,
                       "another client has taken over rank %u; this one must stop",
                       frame->u.hello.rank);
            return;
        }
    }
    drop_older(worker, frame->job, frame->u.hello.rank, frame->generation);
    if (client->joined && client->generation == frame->generation)
        return; /* said again */
    client->joined = true;
    worker->top = peer > worker->top ? peer : worker->top;
    client->order = ++worker->last_order;
    client->job = frame->job;
    client->rank = frame->u.hello.rank;
    client->weight = frame->u.hello.weight;
    client->spent_ns = client->left_ns = worker->virtual_ns;
    client->wants = false;
    client->generation = frame->generation;
    client->cursor = frame->position;
    answer = hr__send(actions, peer, HR_FRAME_WELCOME);
    answer->generation = frame->generation;
    answer->job = frame->job;
    answer->u.welcome.nonce = frame->u.hello.nonce;
}

static void
take_credit(struct hr_worker *worker, hr_peer peer, const struct hr_frame *frame)
{
    struct hr_serve_client *client = &worker->clients[peer];

    if (!client->joined || client->generation != frame->generation)
        return;
    if (frame->u.credit.total > client->total)
        client->total = frame->u.credit.total;
    if (frame->position > client->cursor)
        client->cursor = frame->position;
}

/* ---- events ---- */

bool hr__serve_is_dispatcher(const struct hr_worker *worker, hr_peer peer)
{
    for (size_t i = 0; i < HR_SERVE_DISPATCHERS; i++)
        if (peer != 0 && worker->dispatchers[i] == peer)
            return true;
    return false;
}

void hr__serve_connected(struct hr_worker *worker, hr_peer dispatcher, uint64_t now,
                         struct hr_actions *actions)
{
    struct hr_frame *frame = hr__send(actions, dispatcher, HR_FRAME_HELLO);
    size_t at = 0;

    while (worker->dispatchers[at] != 0) {
        at++;
        assert(at < HR_SERVE_DISPATCHERS);
    }
    worker->dispatchers[at] = dispatcher;
    worker->told_ns = now;
    frame->count = worker->options.leases_max;
    frame->u.hello.nonce = worker->options.nonce;
    frame->u.hello.role = HR_FRAME_WORKER;
}

void hr__serve_lost(struct hr_worker *worker, hr_peer peer)
{
    forget_client(worker, peer);
    for (size_t i = 0; i < HR_SERVE_DISPATCHERS; i++)
        if (worker->dispatchers[i] == peer)
            worker->dispatchers[i] = 0;
    for (uint32_t i = 0; i < worker->lease_count; i++)
        if (worker->leases[i].dispatcher == peer)
            worker->leases[i].dispatcher = 0; /* the number may be another's soon */
}

void hr__serve_frame(struct hr_worker *worker, hr_peer peer, const struct hr_frame *frame,
                     uint64_t now, struct hr_actions *actions)
{
    if (hr__serve_is_dispatcher(worker, peer)) {
        if (frame->type == HR_FRAME_LEASE)
            take_lease(worker, peer, frame, now);
        return;
    }
    if (frame->type == HR_FRAME_HELLO && frame->u.hello.role == HR_FRAME_CLIENT)
        take_client(worker, peer, frame, actions);
    else if (frame->type == HR_FRAME_CREDIT)
        take_credit(worker, peer, frame);
    else if (frame->type == HR_FRAME_GOODBYE)
        leave(worker, peer);
    else
        hr__refuse(actions, peer, HR_ERR_STATE, "a %s frame is not expected here",
                   hr__frame_name(frame->type));
}

void hr__serve_tick(struct hr_worker *worker, uint64_t now, struct hr_actions *actions)
{
    for (uint32_t i = worker->lease_count; i-- > 0;)
        if (worker->leases[i].deadline_ns <= now)
            remove_lease(worker, i);
    if (now - worker->told_ns < worker->options.beat_ns)
        return;
    for (size_t i = 0; i < HR_SERVE_DISPATCHERS; i++)
        if (worker->dispatchers[i] != 0)
            hr__send(actions, worker->dispatchers[i], HR_FRAME_PROGRESS);
    worker->told_ns = now;
}

/* ---- sending ---- */

bool hr__serve_is_done(const struct hr_worker *worker)
{
    for (uint32_t i = 0; i < worker->lease_count; i++)
        if (worker->leases[i].open > 0 || find_client(worker, &worker->leases[i]) != 0)
            return false;
    return true;
}

/* Whether lease `a` of client `p` comes before `b` of client `q`. */
static bool comes_first(const struct hr_worker *worker, const struct hr_serve_lease *a,
                        hr_peer p, const struct hr_serve_lease *b, hr_peer q)
{
    if (p == q)
        return a->at < b->at;
    if (worker->turn_ns < worker->options.turn_ns &&
        (p == worker->last || q == worker->last))
        return p == worker->last;
    return worker->clients[p].spent_ns < worker->clients[q].spent_ns;
}

/* Positions that the client has taken are not made; a lease may end so. Returns the
 * client, or 0 if nothing of the lease can be sent now. */
static hr_peer look_at(struct hr_worker *worker, struct hr_serve_lease *lease)
{
    hr_peer peer = find_client(worker, lease);
    const struct hr_serve_client *client = &worker->clients[peer];

    if (peer == 0)
        return 0;
    if (lease->at < client->cursor)
        lease->at = client->cursor < lease->until ? client->cursor : lease->until;
    if (lease->at == lease->until || client->full || client->waiting || client->making)
        return 0;
    if (client->sent >= client->total &&
        (client->sent > client->total || lease->at > client->cursor))
        return 0; /* no credit; or the frame at the cursor is on its way */
    return peer;
}

/* Marks a client that wants a frame. It does not catch up on what others got while it
 * wanted none: until then it would have the whole worker. */
static void see(struct hr_worker *worker, hr_peer peer)
{
    struct hr_serve_client *client = &worker->clients[peer];

    if (!client->wants)
        client->spent_ns += worker->virtual_ns - client->left_ns;
    client->wants = client->seen = true;
}

/* After each lease was looked at. */
static void end_look(struct hr_worker *worker)
{
    worker->wants_weight = 0;
    for (hr_peer peer = 1; peer <= worker->top; peer++) {
        struct hr_serve_client *client = &worker->clients[peer];

        if (client->wants && !client->seen && !client->making) {
            client->wants = false;
            client->left_ns = worker->virtual_ns;
        }
        worker->wants_weight += client->wants ? client->weight : 0;
        client->seen = false;
    }
}

static void begin_turn(struct hr_worker *worker, hr_peer peer)
{
    if (peer != worker->last || worker->turn_ns >= worker->options.turn_ns)
        worker->turn_ns = 0;
    worker->last = peer;
}

bool hr__serve_next(struct hr_worker *worker, struct hr_serve_task *ret_task,
                    struct hr_actions *actions)
{
    struct hr_serve_lease *best = NULL;
    hr_peer to = 0;
    uint64_t count, most = worker->options.frame_positions;

    for (uint32_t i = worker->lease_count; i-- > 0;) {
        struct hr_serve_lease *lease = &worker->leases[i];
        hr_peer peer = look_at(worker, lease);

        if (peer != 0)
            see(worker, peer);
        if (peer == 0 && lease->at == lease->until && lease->open == 0) {
            finish_lease(worker, i, actions);
            if (best == &worker->leases[worker->lease_count])
                best = lease; /* it was moved here */
        } else if (peer != 0 &&
                   (best == NULL || comes_first(worker, lease, peer, best, to))) {
            best = lease;
            to = peer;
        }
    }
    end_look(worker);
    if (best == NULL)
        return false;
    if (worker->clients[to].frame_positions > 0)
        most = worker->clients[to].frame_positions;
    count = best->until - best->at;
    count = count < most ? count : most;
    *ret_task = (struct hr_serve_task){.lease = best->id,
                                       .job = best->job,
                                       .rank = best->rank,
                                       .generation = best->generation,
                                       .position = best->at,
                                       .until = best->until,
                                       .count = (uint32_t)count,
                                       .client = to,
                                       .order = worker->clients[to].order};
    begin_turn(worker, to);
    worker->clients[to].making = true;
    best->at += count;
    best->open++;
    return true;
}

void hr__serve_shorten(struct hr_worker *worker, struct hr_serve_task *task,
                       uint32_t count)
{
    assert(count < task->count);
    task->count = count;
    worker->turn_ns = worker->options.turn_ns;
    for (uint32_t i = 0; i < worker->lease_count; i++) {
        struct hr_serve_lease *lease = &worker->leases[i];

        if (lease->id == task->lease && lease->at > task->position + count)
            lease->at = task->position + count;
    }
}

void hr__serve_sent(struct hr_worker *worker, const struct hr_serve_task *task,
                    size_t bytes, struct hr_serve_took took, struct hr_actions *actions)
{
    struct hr_serve_client *client = &worker->clients[task->client];

    if (client->joined && client->order == task->order) {
        client->making = false;
        client->sent += bytes;
        assert(client->wants && worker->wants_weight > 0);
        client->spent_ns += took.work_ns / client->weight;
        worker->virtual_ns += took.work_ns / worker->wants_weight;
        worker->turn_ns += task->client == worker->last ? took.ns : 0;
    }
    for (uint32_t i = 0; i < worker->lease_count; i++) {
        struct hr_serve_lease *lease = &worker->leases[i];

        if (lease->id != task->lease)
            continue;
        lease->open--;
        lease->frames_ns += took.ns;
        lease->run_ns += took.run_ns;
        if (lease->at == lease->until && lease->open == 0)
            finish_lease(worker, i, actions);
        return;
    }
}
