/*
 * fleet/dispatcher.c - the dispatcher's process: svc/lease.h on connections.
 *
 * It keeps no file. A client brings its job and its cursor whenever it connects, so a
 * dispatcher that starts again learns all that it needs from those who come back. Jobs of
 * several independent consumers are bound.c's, which keeps a journal.
 */
#include "fleet/dispatcher.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "core/str.h"
#include "svc/compression.h"

#define RANGES_MAX 256u  /* leases of a job at a time */
#define KNOWN_MAX 16u    /* of those, leases of what a worker keeps */
#define LEASE_MAX 16384u /* batches of a lease */
#define TARGET_NS (200 * HR_FLEET_MS)
#define TTL_NS (60000 * HR_FLEET_MS)
#define SERVED_NS (5000 * HR_FLEET_MS)
#define HEDGE_NS (2000 * HR_FLEET_MS)
#define ABSENT_NS (1000 * HR_FLEET_MS)
#define LISTS_BYTES ((size_t)1 << 20) /* of lists of workers, sent at each tick */
#define REFUSED_LOGGED 10u            /* connections in REFUSED_NS */
#define REFUSED_NS (10000 * HR_FLEET_MS)
#define IDLE_NS (60000 * HR_FLEET_MS) /* a job without a client is forgotten */

static struct hr_net *net_of(struct hr_dispatcher_process *d)
{
    return d->base.net;
}

/* ---- workers' addresses ---- */

static void list_changed(struct hr_dispatcher_process *d)
{
    hr_buffer_unref(d->list);
    d->list = NULL;
    d->list_number++;
    d->lists_due = true;
}

/* Once for all clients. Without memory it stays NULL, and is tried again. */
static void make_list(struct hr_dispatcher_process *d)
{
    struct hr_str list;

    hr__str_init(&list);
    d->list_count = 0;
    for (uint32_t i = 1; i <= d->peers_max; i++) {
        const char *address = d->peers[i].address;

        if (address == NULL || list.length + strlen(address) >= HR_FRAME_LIST_MAX)
            continue;
        hr__str_add(&list, address);
        hr__str_add(&list, "\n");
        d->list_count++;
    }
    if (hr__str_ok(&list))
        d->list = hr_buffer_create(list.length);
    if (d->list != NULL && list.length > 0)
        memcpy(hr_buffer_data(d->list), hr__str_text(&list), list.length);
    hr__str_finish(&list);
}

static void send_list(struct hr_dispatcher_process *d, uint32_t to)
{
    struct hr_frame frame = {.type = HR_FRAME_WORKERS};

    if (d->list == NULL)
        make_list(d);
    if (d->list == NULL) {
        d->lists_due = true;
        return;
    }
    d->peers[to].list_number = d->list_number;
    frame.count = d->list_count;
    hr__net_send_body(
        net_of(d), to, &frame,
        &(struct hr_net_part){hr_buffer_data(d->list), hr_buffer_bytes(d->list), d->list},
        1);
    HR_KILL_POINT("list.sent");
}

void hr__dispatcher_send_workers(struct hr_dispatcher_process *d, uint32_t to,
                                 const struct hr_action_workers *workers)
{
    struct hr_frame frame = {.type = HR_FRAME_WORKERS};
    struct hr_str list;

    hr__str_init(&list);
    for (uint32_t i = 0; i < workers->count; i++) {
        const char *address = d->peers[workers->peers[i]].address;

        if (address == NULL) /* not known yet, or gone: another list will follow */
            continue;
        hr__str_add(&list, address);
        hr__str_add(&list, "\n");
        frame.count++;
    }
    if (hr__str_ok(&list))
        hr__fleet_send_text(net_of(d), to, &frame, hr__str_text(&list), list.length);
    else
        hr__net_drop(net_of(d), to);
    hr__str_finish(&list);
}

/* What the role has noted, and nobody was told. */
static void pass_kill_point(enum hr_frame_type type)
{
    if (type == HR_FRAME_HELLO)
        HR_KILL_POINT("hello.taken");
    if (type == HR_FRAME_FINISHED)
        HR_KILL_POINT("finished.taken");
    if (type == HR_FRAME_PROGRESS)
        HR_KILL_POINT("cursor.moved");
    if (type == HR_FRAME_ACK)
        HR_KILL_POINT("ack.taken");
    if (type == HR_FRAME_GOODBYE)
        HR_KILL_POINT("goodbye.taken");
}

static void perform(struct hr_dispatcher_process *d)
{
    for (size_t i = 0; i < d->actions.count; i++)
        if (d->actions.items[i].kind == HR_ACTION_TELL)
            hr__dispatcher_send_workers(d, d->actions.items[i].peer,
                                        &d->actions.items[i].u.workers);
    hr__fleet_perform(net_of(d), &d->actions);
}

/* While all clients use all workers: after a change, and until all clients know it. Of
 * many lists a tick sends a part. One list at a time, so that a client that does not read
 * gathers none. */
static void send_lists(struct hr_dispatcher_process *d)
{
    bool due = d->lists_due && !d->role.divided;
    size_t bytes = 0;

    d->lists_due = false;
    for (uint32_t i = 0; due && i < d->peers_max; i++) {
        uint32_t peer = d->next_list % d->peers_max + 1;
        const struct hr_dispatcher_peer *p = &d->peers[peer];
        bool wanted = p->is_client && p->list_number != d->list_number;

        if (wanted && bytes >= LISTS_BYTES) {
            d->lists_due = true;
            return;
        }
        d->next_list = peer;
        if (wanted && hr__net_queued(net_of(d), peer) > 0) {
            d->lists_due = true;
        } else if (wanted) {
            send_list(d, peer);
            bytes += d->list != NULL ? hr_buffer_bytes(d->list) : 0;
        }
    }
}

static void set_address(struct hr_dispatcher_process *d, uint32_t peer, char *address)
{
    struct hr_dispatcher_peer *p = &d->peers[peer];

    d->worker_count += (address != NULL) - (p->address != NULL);
    hr__free(p->address);
    p->address = address;
    list_changed(d);
}

/* A worker says where it listens. The next tick tells clients, of many workers at once.
 */
static void take_address(struct hr_dispatcher_process *d, uint32_t peer, const char *text,
                         size_t bytes)
{
    struct hr_error error = {0};
    char *address;

    if (d->role.peers[peer].role != HR_FRAME_WORKER || bytes < 2 ||
        bytes > HR_NET_ADDRESS_MAX || text[bytes - 1] != '\n' ||
        !hr__frame_is_plain(text, bytes - 1)) {
        hr__fail(&error, HR_ERR_FORMAT,
                 "a WORKERS frame must be the line of a worker that has said HELLO");
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    address = hr__strndup(text, bytes - 1);
    if (address == NULL) {
        hr__net_drop(net_of(d), peer);
        return;
    }
    set_address(d, peer, address);
    hr__lease_tell_users(&d->role, peer);
    hr__bound_worker_came(d);
}

enum hr_err hr__dispatcher_drain(struct hr_dispatcher_process *d, const char *address,
                                 struct hr_error *reterr)
{
    const struct hr_frame goodbye = {.type = HR_FRAME_GOODBYE};

    for (uint32_t i = 1; i <= d->peers_max; i++)
        if (d->peers[i].address != NULL && strcmp(d->peers[i].address, address) == 0 &&
            hr__lease_drain(&d->role, i)) {
            hr__net_send(net_of(d), i, &goodbye);
            return HR_OK;
        }
    return hr__fail(reterr, HR_ERR_NOT_FOUND, "no worker listens at %s", address);
}

/* ---- compression ---- */

const char *hr__dispatcher_kinds(uint32_t kinds, char to[HR_KINDS_TEXT])
{
    int length = 0;

    for (uint32_t kind = 0; kind < HR_COMPRESSION_KINDS; kind++)
        if (kinds & HR_COMPRESSION_BIT(kind))
            length += snprintf(to + length, HR_KINDS_TEXT - (size_t)length, "%s%s",
                               length > 0 ? ", " : "",
                               hr__compression_name((enum hr_compression)kind));
    if (length == 0)
        snprintf(to, HR_KINDS_TEXT, "none");
    return to;
}

static void
set_kinds(struct hr_dispatcher_process *d, struct hr_dispatcher_peer *p, uint32_t kinds)
{
    const uint32_t none = HR_COMPRESSION_BIT(HR_COMPRESSION_NONE);

    d->compressing += (kinds > none) - (p->kinds > none);
    p->kinds = kinds;
}

/* A worker says what compression and sharing do. Its numbers only grow. */
static void
take_traffic(struct hr_dispatcher_process *d, uint32_t peer, const struct hr_frame *frame)
{
    struct hr_dispatcher_peer *p = &d->peers[peer];
    uint64_t made = frame->u.traffic.made, sent = frame->u.traffic.sent;
    char text[HR_KINDS_TEXT];
    struct hr_error error = {0};

    if (p->address == NULL || made < p->made || sent < p->sent ||
        frame->position < p->shared) {
        hr__fail(&error, HR_ERR_FORMAT, "a TRAFFIC frame is not expected here");
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    d->made += made - p->made;
    d->sent += sent - p->sent;
    d->shared += frame->position - p->shared;
    p->shared = frame->position;
    p->made = made;
    p->sent = sent;
    if (p->kinds != frame->count && frame->count != 0)
        hr__events_add(d->events, "worker_compression", "worker", p->address,
                       "compression", hr__dispatcher_kinds(frame->count, text), NULL);
    set_kinds(d, p, frame->count != 0 ? frame->count : p->kinds);
}

/* ---- jobs ---- */

static enum hr_err
add_job(struct hr_dispatcher_process *d, const struct hr_lease_job_options *options,
        const char *name, const struct hr_tenant *tenant, struct hr_error *reterr)
{
    struct hr_dispatcher_job *job = hr__calloc(1, sizeof *job);
    enum hr_err code;

    if (job == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__lease_add_job(&d->role, options, reterr);
    if (code != HR_OK) {
        hr__free(job);
        return code;
    }
    job->id = options->id;
    job->number = ++d->job_number;
    job->tenant = tenant;
    memcpy(job->name, name, strlen(name) + 1);
    *(d->last_job != NULL ? &d->last_job->next : &d->jobs) = job;
    d->last_job = job;
    hr__events_add(d->events, "job_added", "job", name, tenant != NULL ? "tenant" : NULL,
                   tenant != NULL ? tenant->name : NULL, NULL);
    HR_KILL_POINT("job.added");
    return HR_OK;
}

/* Its head, and a number that jobs have in common which read the same batches. */
static enum hr_err read_head(const void *text, size_t bytes, struct hr_job_head *ret_head,
                             uint64_t *ret_kin, struct hr_error *reterr)
{
    struct hr_str kin;
    enum hr_err code;

    hr__str_init(&kin);
    code = hr__job_head(text, bytes, ret_head, &kin, reterr);
    if (code == HR_OK)
        *ret_kin = hr__job_id(hr__str_text(&kin), kin.length);
    hr__str_finish(&kin);
    return code;
}

/* Logs jobs that ended, and forgets those that the role has forgotten. */
static void review_jobs(struct hr_dispatcher_process *d)
{
    struct hr_dispatcher_job **at = &d->jobs;

    if (d->changes == d->role.changes)
        return;
    d->changes = d->role.changes;
    d->last_job = NULL;
    while (*at != NULL) {
        struct hr_dispatcher_job *job = *at;
        const struct hr_lease_job *known = hr__lease_find_job(&d->role, job->id);

        if (known != NULL && !job->done && hr__lease_job_is_done(known)) {
            job->done = true;
            hr__events_add(d->events, "job_done", "job", job->name, NULL);
        }
        if (known != NULL) {
            d->last_job = job;
            at = &job->next;
            continue;
        }
        hr__events_add(d->events, "job_forgotten", "job", job->name, NULL);
        *at = job->next;
        hr__free(job);
    }
}

/* Whether the tenant may have this job: one that it has, or another one beside those. */
static enum hr_err check_tenant(const struct hr_dispatcher_process *d, uint64_t id,
                                const struct hr_tenant *tenant, struct hr_error *reterr)
{
    uint32_t runs = 0;

    for (const struct hr_dispatcher_job *job = d->jobs; job != NULL; job = job->next) {
        const struct hr_lease_job *known;

        if (job->id == id && job->tenant != tenant)
            return hr__fail(reterr, HR_ERR_DENIED, "the run is another tenant's");
        if (job->id == id)
            return HR_OK;
        if (tenant == NULL || job->tenant != tenant)
            continue;
        known = hr__lease_find_job(&d->role, job->id);
        runs += known != NULL && !hr__lease_job_is_over(known);
    }
    if (tenant == NULL || tenant->runs_max == 0)
        return HR_OK;
    runs += hr__bound_count(d, tenant);
    if (runs < tenant->runs_max)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_LIMIT,
                    "tenant %s has as many runs as it may have at a time (%u)",
                    tenant->name, runs);
}

static void take_job(struct hr_dispatcher_process *d, uint32_t peer,
                     const struct hr_frame *frame, const void *text, size_t bytes)
{
    struct hr_lease_job_options job = {.id = hr__job_id(text, bytes),
                                       .end = frame->position,
                                       .split = 1, /* one consumer owns all */
                                       .window = HR_FLEET_WINDOW,
                                       .world = 1};
    const struct hr_lease_job *known = hr__lease_find_job(&d->role, job.id);
    struct hr_error error = {0};
    const struct hr_tenant *tenant = hr__net_tenant(net_of(d), peer);
    struct hr_job_head head;
    enum hr_err code = read_head(text, bytes, &head, &job.kin, &error);
    const char *name = head.name;
    bool allowed;

    if (code == HR_OK && d->peers[peer].is_client)
        code = hr__fail(&error, HR_ERR_FORMAT,
                        "a connection brings one job, and HELLO follows it");
    if (code != HR_OK) {
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    if (head.consumers) {
        hr__bound_take_job(d, peer,
                           &(struct hr_bound_head){job.id, job.end, name, tenant});
        return;
    }
    code = check_tenant(d, job.id, tenant, &error);
    allowed = code == HR_OK;
    if (allowed && known == NULL)
        code = add_job(d, &job, name, tenant, &error);
    else if (allowed && known->options.end != job.end)
        code = hr__fail(&error, HR_ERR_FORMAT, "the job is known with another end");
    if (allowed && code == HR_ERR_LIMIT &&
        hr__lease_make_place(&d->role, hr__now_ns(), HR_JOB_GRACE_NS)) {
        review_jobs(d);
        code = add_job(d, &job, name, tenant, &error);
    }
    if (code != HR_OK) {
        d->jobs_refused += code == HR_ERR_LIMIT;
        hr__events_add(d->events, "job_refused", "job", name, "why", error.message, NULL);
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    d->peers[peer].is_client = true;
    memcpy(d->peers[peer].job, name, sizeof head.name);
    if (!d->role.divided)
        send_list(d, peer);
}

/* ---- events ---- */

/* After a frame: is the peer known now, does it leave? */
static void review_peer(struct hr_dispatcher_process *d, uint32_t peer)
{
    struct hr_dispatcher_peer *p = &d->peers[peer];
    const struct hr_lease_peer *role = &d->role.peers[peer];
    bool worker = role->role == HR_FRAME_WORKER;

    if (role->role == 0)
        return;
    if (!p->known && (!worker || p->address != NULL)) {
        p->known = true;
        hr__events_add(d->events, worker ? "worker_joined" : "client_joined",
                       worker ? "worker" : "job", worker ? p->address : p->job, NULL);
    }
    if (worker && role->leaving && !p->draining && p->address != NULL) {
        p->draining = true;
        hr__events_add(d->events, "worker_draining", "worker", p->address, NULL);
    }
    hr__net_know(net_of(d), peer);
}

/* Tenants have runs of their own, and no workers. */
static bool may_join(const struct hr_dispatcher_process *d, uint32_t peer,
                     const struct hr_frame *hello, struct hr_error *reterr)
{
    const struct hr_tenant *tenant = hr__net_tenant(d->base.net, peer);

    if (tenant == NULL)
        return true;
    if (hello->u.hello.role == HR_FRAME_CLIENT)
        return hr__fleet_check_weight(tenant, hello, reterr) == HR_OK &&
               check_tenant(d, hello->job, tenant, reterr) == HR_OK;
    hr__fail(reterr, HR_ERR_DENIED,
             "this is the token of tenant %s; workers need the service's own",
             tenant->name);
    return false;
}

/* What the role takes. */
static void
take_message(struct hr_dispatcher_process *d, uint32_t peer, const struct hr_frame *frame)
{
    struct hr_error error = {0};

    if (frame->type == HR_FRAME_HELLO && !may_join(d, peer, frame, &error)) {
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    if (frame->type == HR_FRAME_HELLO)
        hr__lease_set_host(&d->role, peer, hr__net_host(net_of(d), peer));
    if (hr__lease_frame(&d->role, peer, frame, hr__now_ns(), &d->actions, &error) !=
        HR_OK)
        hr__fleet_refuse(net_of(d), peer, &error);
    pass_kill_point(frame->type);
    perform(d);
}

static void
on_frame(void *user, uint32_t peer, const struct hr_frame *frame, struct hr_buffer *data)
{
    struct hr_dispatcher_process *d = user;

    if (frame->type == HR_FRAME_JOB) {
        take_job(d, peer, frame, hr_buffer_data(data), hr_buffer_bytes(data));
    } else if (frame->type == HR_FRAME_WORKERS) {
        take_address(d, peer, hr_buffer_data(data), hr_buffer_bytes(data));
    } else if (frame->type == HR_FRAME_TRAFFIC) {
        take_traffic(d, peer, frame);
    } else if (frame->type == HR_FRAME_CONSUMER) {
        hr__bound_take_name(d, peer, hr_buffer_data(data), hr_buffer_bytes(data));
    } else if (d->peers[peer].bound != NULL) {
        hr__bound_client(d, peer, frame);
    } else if (!hr__bound_worker(d, peer, frame)) {
        take_message(d, peer, frame);
    }
    if (frame->type == HR_FRAME_GOODBYE)
        d->peers[peer].goodbye = true;
    if (frame->type == HR_FRAME_ACK)
        review_jobs(d);
    review_peer(d, peer);
    hr_buffer_unref(data);
}

/* Strangers connect as often as they like: the log names some, and counts the others. */
static void log_refused(struct hr_dispatcher_process *d, const char *why)
{
    if (d->refused++ == 0)
        d->refused_ns = hr__now_ns();
    if (d->refused <= REFUSED_LOGGED)
        hr__events_add(d->events, "connection_refused", "why", why, NULL);
}

static void log_refused_others(struct hr_dispatcher_process *d)
{
    char text[64];

    if (d->refused == 0 || hr__now_ns() - d->refused_ns < REFUSED_NS)
        return;
    snprintf(text, sizeof text, "%u others within 10 s", d->refused - REFUSED_LOGGED);
    if (d->refused > REFUSED_LOGGED)
        hr__events_add(d->events, "connection_refused", "why", text, NULL);
    d->refused = 0;
}

static void
log_lost(struct hr_dispatcher_process *d, uint32_t peer, const struct hr_error *why)
{
    const struct hr_dispatcher_peer *p = &d->peers[peer];
    const char *text = p->goodbye ? "it said goodbye" : why->message;

    if (!p->known)
        log_refused(d, text);
    else if (p->address != NULL)
        hr__events_add(d->events, "worker_left", "worker", p->address, "why", text, NULL);
    else
        hr__events_add(d->events, "client_left", "job", p->job, "why", text, NULL);
}

static void on_lost(void *user, uint32_t peer, const struct hr_error *why)
{
    struct hr_dispatcher_process *d = user;

    log_lost(d, peer, why);
    if (d->peers[peer].bound != NULL)
        hr__bound_client_lost(d, peer);
    set_kinds(d, &d->peers[peer], 0);
    if (d->peers[peer].address != NULL)
        set_address(d, peer, NULL);
    d->peers[peer] = (struct hr_dispatcher_peer){0};
    hr__lease_lost(&d->role, peer, hr__now_ns(), &d->actions);
    HR_KILL_POINT("peer.lost");
    perform(d);
    hr__bound_worker_lost(d, peer);
}

static void on_tick(void *user)
{
    struct hr_dispatcher_process *d = user;

    hr__lease_tick(&d->role, hr__now_ns(), &d->actions);
    perform(d);
    hr__bound_tick(d, hr__now_ns());
    send_lists(d);
    review_jobs(d);
    log_refused_others(d);
}

static const struct hr_net_hooks hooks = {
    .frame = on_frame, .lost = on_lost, .tick = on_tick};

/* ---- its life ---- */

static enum hr_err begin(struct hr_service *service, struct hr_error *reterr)
{
    struct hr_dispatcher_process *d = (struct hr_dispatcher_process *)service;

    return d->control != NULL ? hr__http_start(d->control, reterr) : HR_OK;
}

static void end(struct hr_service *service)
{
    hr__http_stop(((struct hr_dispatcher_process *)service)->control);
}

static void close_dispatcher(struct hr_service *service)
{
    struct hr_dispatcher_process *d = (struct hr_dispatcher_process *)service;

    for (uint32_t i = 1; d->peers != NULL && i <= d->peers_max; i++)
        hr__free(d->peers[i].address);
    hr__free(d->peers);
    while (d->jobs != NULL) {
        struct hr_dispatcher_job *job = d->jobs;

        d->jobs = job->next;
        hr__free(job);
    }
    hr_buffer_unref(d->list);
    hr__http_close(d->control);
    hr__events_add(d->events, "dispatcher_stopped", NULL);
    hr__events_close(d->events);
    hr__bound_close(d);
    hr__lease_finish(&d->role);
    hr__actions_finish(&d->actions);
    hr__free(d);
}

static enum hr_err
open_control(struct hr_dispatcher_process *d, const struct hr_dispatcher_options *o,
             const struct hr_token *token, bool has_tls, struct hr_error *reterr)
{
    static const char *const open[] = {"/healthz", "/readyz", NULL};
    const struct hr_http_options http = {.listen = o->control,
                                         .token = *token,
                                         .open = open,
                                         .answer = hr__control_answer,
                                         .user = d};

    if (o->control == NULL)
        return HR_OK;
    HR_TRY(hr__token_check_listen(token, o->control, o->insecure, reterr));
    HR_TRY(hr__fleet_check_control(o->control, has_tls, o->insecure, reterr));
    HR_TRY(hr__http_open(d->base.net, &http, &d->control, reterr));
    d->base.control = hr__http_address(d->control);
    return HR_OK;
}

static enum hr_err init(struct hr_dispatcher_process *d,
                        const struct hr_dispatcher_options *o, struct hr_error *reterr)
{
    const struct hr_lease_options lease = {.peers_max = o->peers_max,
                                           .jobs_max = o->jobs_max,
                                           .team_max = o->workers_per_run,
                                           .ranges_max = RANGES_MAX,
                                           .known_max = KNOWN_MAX,
                                           .lease_min = 1,
                                           .lease_max = LEASE_MAX,
                                           .target_ns = TARGET_NS,
                                           .ttl_ns = TTL_NS,
                                           .served_ns = SERVED_NS,
                                           .hedge_ns = HEDGE_NS,
                                           .silent_ns = HR_FLEET_SILENT_NS,
                                           .absent_ns = ABSENT_NS,
                                           .idle_ns = IDLE_NS};
    struct hr_net_options net = {.peers_max = o->peers_max,
                                 .queue_max = HR_FLEET_QUEUE_MAX,
                                 .tick_ns = HR_FLEET_TICK_NS,
                                 .stranger_ns = o->hello_ns,
                                 .hooks = &hooks,
                                 .user = d};
    const struct hr_fleet_door door = {
        .listen = o->listen,
        .token_file = o->token_file,
        .tenants_file = o->tenants_file,
        .tls = {.cert = o->tls_cert, .key = o->tls_key, .client_ca = o->tls_client_ca},
        .tls_uses = HR_TLS_LISTENS,
        .insecure = o->insecure
    };

    d->base.begin = begin;
    d->base.end = end;
    d->base.close = close_dispatcher;
    d->peers_max = o->peers_max;
    d->jobs_max = o->jobs_max;
    d->started_ns = hr__now_ns();
    d->evict_ns = o->evict_ns;
    d->journal_s = o->journal_ns / 1000000000u;
    d->list_number = 1;
    d->peers = hr__calloc((size_t)o->peers_max + 1, sizeof *d->peers);
    if (d->peers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__actions_init(&d->actions, reterr));
    HR_TRY(hr__lease_init(&d->role, &lease, reterr));
    if (o->journal != NULL)
        HR_TRY(hr__journal_open(o->journal, o->journal_power, &d->journal, reterr));
    HR_TRY(hr__fleet_open(&door, &net, &d->base.net, reterr));
    HR_TRY(open_control(d, o, &net.token, net.tls != NULL, reterr));
    if (o->events_file != NULL)
        HR_TRY(hr__events_open(o->events_file, &d->events, reterr));
    hr__events_add(d->events, "dispatcher_started", "address",
                   hr__net_address(d->base.net), NULL);
    return HR_OK;
}

enum hr_err hr__dispatcher_open(const struct hr_dispatcher_options *options,
                                struct hr_service **ret_service, struct hr_error *reterr)
{
    struct hr_dispatcher_process *d = hr__calloc(1, sizeof *d);
    enum hr_err code;

    if (d == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = init(d, options, reterr);
    if (code != HR_OK) {
        struct hr_net *made = d->base.net;

        close_dispatcher(&d->base);
        hr__net_close(made);
        return code;
    }
    *ret_service = &d->base;
    return HR_OK;
}
