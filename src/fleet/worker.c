/*
 * fleet/worker.c - the worker's process: svc/serve.h on connections.
 *
 * The loop's thread handles messages; the maker (maker.c) makes the batches that the role
 * wants sent. The worker keeps nothing: jobs come with their clients and go with them.
 */
#include "fleet/worker.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "fleet/job.h"
#include "net/address.h"
#include "svc/client.h"

#define LEASES_MAX 256u /* ranges that it takes at a time */
/* So that a short lease is sent in one turn: with many clients an engine would be opened
 * for each frame. */
#define TURN_NS (100 * HR_FLEET_MS)

static struct hr_net *net_of(struct hr_worker_process *w)
{
    return w->base.net;
}

/* Carries out what the role wants, and lets the maker look again. */
static void perform(struct hr_worker_process *w)
{
    hr__fleet_perform(net_of(w), &w->actions);
    pthread_cond_signal(&w->work);
}

_Static_assert(HR_FLEET_DISPATCHERS <= HR_SERVE_DISPATCHERS, "the role takes them");

/* The dispatcher at the other end, or NULL. */
static struct hr_worker_dispatcher *find_link(struct hr_worker_process *w, uint32_t peer)
{
    for (size_t i = 0; i < w->dispatchers.count; i++)
        if (peer != 0 && w->links[i].peer == peer)
            return &w->links[i];
    return NULL;
}

void hr__worker_tell(struct hr_worker_process *w, const struct hr_frame *frame)
{
    for (size_t i = 0; i < HR_SERVE_DISPATCHERS; i++)
        if (w->role.dispatchers[i] != 0)
            hr__net_send(net_of(w), w->role.dispatchers[i], frame);
}

/* ---- jobs ---- */

static struct hr_worker_job *
find_job(const struct hr_worker_process *w, const struct hr_str *kin)
{
    for (struct hr_worker_job *job = w->jobs; job != NULL; job = job->next)
        if (job->kin.length == kin->length &&
            memcmp(hr__str_text(&job->kin), hr__str_text(kin), kin->length) == 0)
            return job;
    return NULL;
}

/* Takes over *kin if it succeeds. */
static struct hr_worker_job *
add_job(struct hr_worker_process *w, struct hr_str *kin, const void *text, size_t bytes)
{
    struct hr_worker_job *job = hr__calloc(1, sizeof *job);

    if (job == NULL)
        return NULL;
    job->bytes = bytes;
    job->text = hr__malloc(bytes + 1);
    if (job->text == NULL) {
        hr__free(job);
        return NULL;
    }
    memcpy(job->text, text, bytes);
    job->text[bytes] = '\0';
    job->kin = *kin;
    hr__str_init(kin);
    job->frame_positions = 1;
    job->next = w->jobs;
    w->jobs = job;
    return job;
}

void hr__worker_job_release(struct hr_worker_process *w, struct hr_worker_job *job)
{
    struct hr_worker_job **at = &w->jobs;

    if (job->peers > 0 || job->holds > 0)
        return;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    hr__shelf_finish(&job->shelf, &w->keep);
    hr__graph_unref(job->graph);
    hr__graph_unref(job->packed);
    hr_pool_unref(job->pool);
    hr__str_finish(&job->kin);
    hr__free(job->text);
    hr__free(job);
}

static void
take_job(struct hr_worker_process *w, uint32_t peer, const void *text, size_t bytes)
{
    struct hr_worker_peer *p = &w->peers[peer];
    struct hr_worker_job *job = NULL;
    struct hr_error error = {0};
    struct hr_job_head head;
    struct hr_str kin;

    hr__str_init(&kin);
    if (p->job != NULL || find_link(w, peer) != NULL) {
        hr__fail(&error, HR_ERR_STATE, "a JOB frame is not expected here");
    } else if (hr__job_head(text, bytes, &head, &kin, &error) == HR_OK) {
        job = find_job(w, &kin);
        if (job == NULL)
            job = add_job(w, &kin, text, bytes);
        if (job == NULL)
            hr__fail(&error, HR_ERR_MEMORY, "no memory for the job");
        else
            job->consumers = head.consumers;
    }
    hr__str_finish(&kin);
    if (job == NULL) {
        hr__fleet_refuse(net_of(w), peer, &error);
        return;
    }
    job->peers++;
    p->job = job;
    p->job_id = hr__job_id(text, bytes);
    p->follower = HR_SHELF_NOBODY;
    HR_KILL_POINT("job.taken");
}

/* ---- kept batches ---- */

/* After a frame of a client: what it needs of its job's batches. */
static void review_follower(struct hr_worker_process *w, uint32_t peer)
{
    struct hr_worker_peer *p = &w->peers[peer];
    const struct hr_serve_client *client = &w->role.clients[peer];

    if (p->job == NULL || p->job->consumers || (!p->follows && !client->joined))
        return;
    if (p->follows && client->joined) {
        hr__shelf_move(&p->job->shelf, p->follower, client->cursor);
        return;
    }
    p->follows = client->joined;
    if (!client->joined) {
        hr__shelf_leave(&p->job->shelf, &w->keep, p->follower);
        return;
    }
    p->follower = hr__shelf_join(&p->job->shelf, &w->keep, client->cursor);
    for (struct hr_worker_job *job = w->jobs; job != NULL; job = job->next)
        hr__shelf_trim(&job->shelf, &w->keep);
}

/* ---- events ---- */

/* What the role has noted, and nobody was told. */
static void pass_kill_point(enum hr_frame_type type)
{
    if (type == HR_FRAME_HELLO)
        HR_KILL_POINT("client.taken");
    if (type == HR_FRAME_CREDIT)
        HR_KILL_POINT("credit.taken");
    if (type == HR_FRAME_LEASE)
        HR_KILL_POINT("lease.taken");
    if (type == HR_FRAME_RELEASE)
        HR_KILL_POINT("loan.returned");
}

static void on_accepted(void *user, uint32_t peer)
{
    struct hr_worker_process *w = user;

    w->peers[peer] = (struct hr_worker_peer){.serial = ++w->serial};
}

#define NOTICE_NS (10000 * HR_FLEET_MS) /* between two reasons why it is not reached */

/* Tells each reason once. `why` empty: the dispatcher is reached. */
static void
notice(struct hr_worker_process *w, struct hr_worker_dispatcher *link, const char *why)
{
    const char *address = w->dispatchers.items[link - w->links];
    char text[sizeof link->lost + 300];
    uint64_t now = hr__now_ns();

    if (w->notice == NULL || strncmp(link->lost, why, sizeof link->lost - 1) == 0 ||
        (why[0] != '\0' && link->lost[0] != '\0' && now - link->told_ns < NOTICE_NS))
        return;
    link->told_ns = now;
    snprintf(link->lost, sizeof link->lost, "%s", why);
    if (why[0] != '\0')
        snprintf(text, sizeof text, "waits for the dispatcher at %.200s: %s", address,
                 link->lost);
    else
        snprintf(text, sizeof text, "is connected to the dispatcher at %.200s", address);
    w->notice(w->notice_user, text);
}

static void on_connected(void *user, uint32_t peer)
{
    struct hr_worker_process *w = user;
    struct hr_worker_dispatcher *link = find_link(w, peer);
    struct hr_frame frame = {.type = HR_FRAME_WORKERS, .count = 1};
    struct hr_str line;

    if (link != NULL)
        notice(w, link, "");
    w->told_kinds = 0; /* this dispatcher knows nothing */
    w->told_made = 0;
    w->told_shared = 0;

    hr__serve_connected(&w->role, peer, hr__now_ns(), &w->actions);
    perform(w);
    hr__str_init(&line);
    hr__str_addf(&line, "%s\n", w->address);
    if (hr__str_ok(&line))
        hr__fleet_send_text(net_of(w), peer, &frame, hr__str_text(&line), line.length);
    else
        hr__net_drop(net_of(w), peer);
    hr__str_finish(&line);
}

/* A client must bring its job before it joins, join that one, and weigh no more than it
 * may. */
static bool
may_join(struct hr_worker_process *w, uint32_t peer, const struct hr_frame *frame)
{
    const struct hr_worker_job *job = w->peers[peer].job;
    struct hr_error error = {0};

    if (find_link(w, peer) != NULL || frame->type != HR_FRAME_HELLO)
        return true;
    if (job == NULL || w->peers[peer].job_id != frame->job)
        hr__fail(&error, HR_ERR_STATE, "a JOB frame must come before HELLO");
    else if (hr__fleet_check_weight(hr__net_tenant(net_of(w), peer), frame, &error) ==
             HR_OK)
        return true;
    hr__fleet_refuse(net_of(w), peer, &error);
    return false;
}

/* ---- leaving ---- */

#define LEAVE_NS (2000 * HR_FLEET_MS) /* longer than connections linger */

static bool has_sent_all(const struct hr_worker_process *w)
{
    if (!hr__serve_is_done(&w->role))
        return false;
    for (uint32_t i = 1; i <= w->peers_max; i++)
        if (hr__net_queued(w->base.net, i) > 0)
            return false;
    return true;
}

static void leave(struct hr_worker_process *w, uint64_t now)
{
    w->leave_until_ns = now + LEAVE_NS;
    hr__net_stop_listening(net_of(w));
    for (uint32_t i = 1; i <= w->peers_max; i++)
        hr__net_drop(net_of(w), i);
    HR_KILL_POINT("drain.ended");
}

/* Begins to drain, and ends when everything was sent and all connections are closed. */
static void drain(struct hr_worker_process *w)
{
    const struct hr_frame goodbye = {.type = HR_FRAME_GOODBYE};
    struct hr_net_counts counts;
    uint64_t now = hr__now_ns();

    if (w->drain_until_ns == 0) {
        w->drain_until_ns = now + w->drain_ns;
        hr__worker_tell(w, &goodbye);
        HR_KILL_POINT("drain.begun");
    }
    if (w->leave_until_ns == 0 && (has_sent_all(w) || now >= w->drain_until_ns))
        leave(w, now);
    if (w->leave_until_ns == 0)
        return;
    hr__net_counts(net_of(w), &counts);
    if (counts.open == 0 || now >= w->leave_until_ns)
        hr__net_stop(net_of(w));
}

static bool is_draining(const struct hr_worker_process *w)
{
    return __atomic_load_n(&w->base.drains, __ATOMIC_ACQUIRE);
}

static void on_woken(void *user)
{
    struct hr_worker_process *w = user;

    if (is_draining(w))
        drain(w);
}

/* A dispatcher that will never take this worker ends it: its error is that of the run. */
static void give_up(struct hr_worker_process *w, const struct hr_worker_dispatcher *link,
                    enum hr_err code, const char *what, const char *why)
{
    if (w->base.error.code == HR_OK)
        hr__fail(&w->base.error, code, "the dispatcher at %s %s: %s",
                 w->dispatchers.items[link - w->links], what, why);
    hr__net_stop(net_of(w));
}

static void
take_refusal(struct hr_worker_process *w, uint32_t peer, const struct hr_frame *frame)
{
    const struct hr_worker_dispatcher *link = find_link(w, peer);

    if (link != NULL && !hr__client_is_passing(frame->u.error.code))
        give_up(w, link, frame->u.error.code, "refuses this worker", frame->u.error.text);
}

static void
on_frame(void *user, uint32_t peer, const struct hr_frame *frame, struct hr_buffer *data)
{
    struct hr_worker_process *w = user;

    if (frame->type == HR_FRAME_JOB)
        take_job(w, peer, hr_buffer_data(data), hr_buffer_bytes(data));
    else if (frame->type == HR_FRAME_ERROR)
        take_refusal(w, peer, frame);
    else if (frame->type == HR_FRAME_GOODBYE && find_link(w, peer) != NULL)
        __atomic_store_n(&w->base.drains, true, __ATOMIC_RELEASE);
    else if (frame->type == HR_FRAME_RELEASE)
        hr__lend_release(&w->peers[peer].lender, frame->position);
    else if (may_join(w, peer, frame)) {
        if (frame->type == HR_FRAME_HELLO)
            hr__squeeze_client(w, peer, frame->count);
        hr__serve_frame(&w->role, peer, frame, hr__now_ns(), &w->actions);
        review_follower(w, peer);
    }
    if (w->role.clients[peer].joined)
        hr__net_know(net_of(w), peer);
    pass_kill_point(frame->type);
    perform(w);
    hr_buffer_unref(data);
    if (is_draining(w))
        drain(w);
}

static void on_lost(void *user, uint32_t peer, const struct hr_error *why)
{
    struct hr_worker_process *w = user;
    struct hr_worker_job *job = w->peers[peer].job;
    struct hr_worker_dispatcher *link = find_link(w, peer);

    hr__lend_finish(&w->peers[peer].lender);
    hr__serve_lost(&w->role, peer);
    review_follower(w, peer);
    if (link != NULL) {
        link->peer = 0;
        link->retry_ns = hr__now_ns() + HR_FLEET_RETRY_NS;
        if (!is_draining(w))
            notice(w, link, why->message);
        if (why->code == HR_ERR_DENIED || why->code == HR_ERR_UNSUPPORTED)
            give_up(w, link, why->code, "and this worker cannot talk", why->message);
    }
    w->peers[peer] = (struct hr_worker_peer){0};
    if (job != NULL) {
        job->peers--;
        hr__worker_job_release(w, job);
        HR_KILL_POINT("client.lost");
    }
    perform(w);
}

static void on_sent(void *user, uint32_t peer)
{
    struct hr_worker_process *w = user;

    w->role.clients[peer].full = false;
    pthread_cond_signal(&w->work);
}

static void dial(struct hr_worker_process *w, uint64_t now)
{
    struct hr_error error = {0};

    for (size_t i = 0; i < w->dispatchers.count; i++) {
        struct hr_worker_dispatcher *link = &w->links[i];

        if (link->peer != 0 || now < link->retry_ns)
            continue;
        link->retry_ns = now + HR_FLEET_RETRY_NS;
        if (hr__net_connect(net_of(w), w->dispatchers.items[i], &link->peer, &error) ==
            HR_OK)
            continue;
        link->peer = 0; /* tried again */
        notice(w, link, error.message);
    }
}

static void on_tick(void *user)
{
    struct hr_worker_process *w = user;
    uint64_t now = hr__now_ns();

    if (!is_draining(w))
        dial(w, now);
    hr__serve_tick(&w->role, now, &w->actions);
    perform(w);
    hr__squeeze_tell(w, now);
    if (is_draining(w))
        drain(w);
}

static const struct hr_net_hooks hooks = {.accepted = on_accepted,
                                          .connected = on_connected,
                                          .frame = on_frame,
                                          .lost = on_lost,
                                          .sent = on_sent,
                                          .tick = on_tick,
                                          .woken = on_woken};

/* ---- its life ---- */

static enum hr_err begin(struct hr_service *service, struct hr_error *reterr)
{
    struct hr_worker_process *w = (struct hr_worker_process *)service;

    return hr__thread_start(&w->thread, "hr-maker", hr__worker_make, w, reterr);
}

static void end(struct hr_service *service)
{
    struct hr_worker_process *w = (struct hr_worker_process *)service;

    __atomic_store_n(&w->stopping, true, __ATOMIC_RELEASE);
    hr__net_lock(net_of(w));
    pthread_cond_signal(&w->work);
    hr__net_unlock(net_of(w));
    pthread_join(w->thread, NULL);
}

static void close_worker(struct hr_service *service)
{
    struct hr_worker_process *w = (struct hr_worker_process *)service;

    for (uint32_t i = 1; w->peers != NULL && i <= w->peers_max; i++)
        hr__lend_finish(&w->peers[i].lender);
    while (w->jobs != NULL) {
        w->jobs->peers = 0;
        hr__worker_job_release(w, w->jobs);
    }
    hr__serve_finish(&w->role);
    hr__actions_finish(&w->actions);
    hr_pool_unref(w->pool);
    hr__free(w->peers);
    hr__fleet_list_finish(&w->dispatchers);
    hr__free(w->address);
    pthread_cond_destroy(&w->work);
    hr__free(w);
}

/* Where clients reach it. */
static enum hr_err
set_address(struct hr_worker_process *w, const char *given, struct hr_error *reterr)
{
    const char *own = hr__net_address(net_of(w));

    if (given == NULL &&
        (strncmp(own, "0.0.0.0:", 8) == 0 || strncmp(own, "[::]:", 5) == 0))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a worker that listens on all interfaces (%s) must say under "
                        "which address clients reach it",
                        own);
    if (given != NULL)
        HR_TRY(hr__address_check(given, reterr));
    w->address = hr__strdup(given != NULL ? given : own);
    return w->address != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err init(struct hr_worker_process *w, const struct hr_worker_options *o,
                        struct hr_error *reterr)
{
    struct hr_serve_options serve = {.peers_max = o->peers_max,
                                     .leases_max = LEASES_MAX,
                                     .frame_positions = 1,
                                     .turn_ns = TURN_NS,
                                     .beat_ns = HR_FLEET_BEAT_NS};
    struct hr_net_options net = {.peers_max = o->peers_max,
                                 .queue_max = HR_FLEET_QUEUE_MAX,
                                 .tick_ns = HR_FLEET_TICK_NS,
                                 .stranger_ns = o->hello_ns,
                                 .hooks = &hooks,
                                 .user = w};
    const struct hr_fleet_door door = {
        .listen = o->listen,
        .token_file = o->token_file,
        .tenants_file = o->tenants_file,
        .tls = {.cert = o->tls_cert,
                .key = o->tls_key,
                .ca = o->tls_ca,
                .client_ca = o->tls_client_ca,
                .name = o->tls_name},
        .tls_uses = HR_TLS_LISTENS | HR_TLS_CONNECTS,
        .insecure = o->insecure
    };

    hr__cond_init(&w->work);
    w->base.close = close_worker;
    w->base.begin = begin;
    w->base.end = end;
    w->peers_max = o->peers_max;
    w->drain_ns = o->drain_ns;
    w->base.can_drain = true;
    w->threads = o->threads;
    w->notice = o->notice;
    w->notice_user = o->user;
    w->keep.most = (size_t)o->keep_bytes;
    w->peers = hr__calloc((size_t)o->peers_max + 1, sizeof *w->peers);
    w->pool = hr_pool_create(0);
    if (w->peers == NULL || w->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__fleet_list(o->dispatcher, &w->dispatchers, reterr));
    HR_TRY(hr__squeeze_open(w, o->compress, reterr));
    HR_TRY(hr__fleet_nonce(&serve.nonce, reterr));
    HR_TRY(hr__actions_init(&w->actions, reterr));
    HR_TRY(hr__serve_init(&w->role, &serve, reterr));
    HR_TRY(hr__fleet_open(&door, &net, &w->base.net, reterr));
    HR_TRY(set_address(w, o->address, reterr));
    if (!o->tcp_only)
        (void)!hr__net_listen_local(w->base.net, w->address, NULL); /* else TCP */
    return HR_OK;
}

enum hr_err hr__worker_open(const struct hr_worker_options *options,
                            struct hr_service **ret_service, struct hr_error *reterr)
{
    struct hr_worker_process *w = hr__calloc(1, sizeof *w);
    enum hr_err code;

    if (w == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = init(w, options, reterr);
    if (code != HR_OK) {
        hr__net_close(w->base.net);
        close_worker(&w->base);
        return code;
    }
    *ret_service = &w->base;
    return HR_OK;
}
