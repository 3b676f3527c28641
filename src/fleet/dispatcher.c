/*
 * fleet/dispatcher.c - the dispatcher's process: svc/lease.h on connections.
 *
 * It keeps no file. A client brings its job and its cursor whenever it connects, so a
 * dispatcher that starts again learns all that it needs from those who come back.
 */
#include "fleet/service.h"

#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/str.h"
#include "fleet/job.h"
#include "net/address.h"
#include "svc/lease.h"

#define RANGES_MAX 256u /* leases of a job at a time */
#define LEASE_MAX 4096u /* batches of a lease */
#define TARGET_NS (200 * HR_FLEET_MS)
#define TTL_NS (60000 * HR_FLEET_MS)
#define SERVED_NS (5000 * HR_FLEET_MS)
#define HEDGE_NS (2000 * HR_FLEET_MS)
#define IDLE_NS (60000 * HR_FLEET_MS) /* a job without a client is forgotten */

struct peer {
    char *address;   /* of a worker: where clients reach it; or NULL */
    bool wants_list; /* a client that has not been told the latest workers */
    bool is_client;
};

struct dispatcher {
    struct hr_service base;
    struct hr_dispatcher role;
    struct hr_actions actions;
    struct peer *peers; /* by number */
    uint32_t peers_max;
};

static struct hr_net *net_of(struct dispatcher *d)
{
    return d->base.net;
}

/* ---- workers' addresses ---- */

static void list_changed(struct dispatcher *d)
{
    for (uint32_t i = 1; i <= d->peers_max; i++)
        d->peers[i].wants_list = d->peers[i].is_client;
}

static void send_list(struct dispatcher *d, uint32_t to)
{
    struct hr_frame frame = {.type = HR_FRAME_WORKERS};
    struct hr_str list;

    hr__str_init(&list);
    for (uint32_t i = 1; i <= d->peers_max; i++) {
        const char *address = d->peers[i].address;

        if (address == NULL || list.length + strlen(address) >= HR_FRAME_LIST_MAX)
            continue;
        hr__str_addf(&list, "%s\n", address);
        frame.count++;
    }
    if (hr__str_ok(&list)) {
        hr__fleet_send_text(net_of(d), to, &frame, hr__str_text(&list), list.length);
        d->peers[to].wants_list = false;
    }
    hr__str_finish(&list);
}

/* One at a time, so that a client that does not read gathers none. */
static void send_lists(struct dispatcher *d)
{
    for (uint32_t i = 1; i <= d->peers_max; i++)
        if (d->peers[i].wants_list && hr__net_queued(net_of(d), i) == 0)
            send_list(d, i);
}

/* A worker says where it listens. */
static void
take_address(struct dispatcher *d, uint32_t peer, const char *text, size_t bytes)
{
    struct hr_error error = {0};
    char *address;

    if (d->role.peers[peer].role != HR_FRAME_WORKER || bytes < 2 ||
        bytes > HR_NET_ADDRESS_MAX || memchr(text, '\0', bytes) != NULL ||
        memchr(text, '\n', bytes) != text + bytes - 1) {
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
    hr__free(d->peers[peer].address);
    d->peers[peer].address = address;
    list_changed(d);
    send_lists(d);
}

/* ---- jobs ---- */

static void take_job(struct dispatcher *d, uint32_t peer, const struct hr_frame *frame,
                     const void *text, size_t bytes)
{
    const struct hr_lease_job_options job = {.id = hr__job_id(text, bytes),
                                             .end = frame->position,
                                             .split = 1, /* one consumer owns all */
                                             .window = HR_FLEET_WINDOW,
                                             .world = 1};
    const struct hr_lease_job *known = hr__lease_find_job(&d->role, job.id);
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    if (known == NULL)
        code = hr__lease_add_job(&d->role, &job, &error);
    else if (known->options.end != job.end)
        code = hr__fail(&error, HR_ERR_FORMAT, "the job is known with another end");
    if (code != HR_OK) {
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    d->peers[peer].is_client = true;
    send_list(d, peer);
}

/* ---- events ---- */

static void
on_frame(void *user, uint32_t peer, const struct hr_frame *frame, struct hr_buffer *data)
{
    struct dispatcher *d = user;
    struct hr_error error = {0};

    if (frame->type == HR_FRAME_JOB) {
        take_job(d, peer, frame, hr_buffer_data(data), hr_buffer_bytes(data));
    } else if (frame->type == HR_FRAME_WORKERS) {
        take_address(d, peer, hr_buffer_data(data), hr_buffer_bytes(data));
    } else {
        if (hr__lease_frame(&d->role, peer, frame, hr__now_ns(), &d->actions, &error) !=
            HR_OK)
            hr__fleet_refuse(net_of(d), peer, &error);
        hr__fleet_perform(net_of(d), &d->actions);
        if (d->role.peers[peer].role != 0)
            hr__net_know(net_of(d), peer);
    }
    hr_buffer_unref(data);
}

static void on_lost(void *user, uint32_t peer, const struct hr_error *why)
{
    struct dispatcher *d = user;
    bool listed = d->peers[peer].address != NULL;

    (void)why;
    hr__free(d->peers[peer].address);
    d->peers[peer] = (struct peer){0};
    hr__lease_lost(&d->role, peer, hr__now_ns(), &d->actions);
    hr__fleet_perform(net_of(d), &d->actions);
    if (listed)
        list_changed(d);
}

static void on_tick(void *user)
{
    struct dispatcher *d = user;

    hr__lease_tick(&d->role, hr__now_ns(), &d->actions);
    hr__fleet_perform(net_of(d), &d->actions);
    send_lists(d);
}

static const struct hr_net_hooks hooks = {
    .frame = on_frame, .lost = on_lost, .tick = on_tick};

/* ---- its life ---- */

static void close_dispatcher(struct hr_service *service)
{
    struct dispatcher *d = (struct dispatcher *)service;

    for (uint32_t i = 1; d->peers != NULL && i <= d->peers_max; i++)
        hr__free(d->peers[i].address);
    hr__free(d->peers);
    hr__lease_finish(&d->role);
    hr__actions_finish(&d->actions);
    hr__free(d);
}

static enum hr_err
init(struct dispatcher *d, const struct hr_dispatcher_options *o, struct hr_error *reterr)
{
    const struct hr_lease_options lease = {.peers_max = o->peers_max,
                                           .jobs_max = o->jobs_max,
                                           .ranges_max = RANGES_MAX,
                                           .lease_min = 1,
                                           .lease_max = LEASE_MAX,
                                           .target_ns = TARGET_NS,
                                           .ttl_ns = TTL_NS,
                                           .served_ns = SERVED_NS,
                                           .hedge_ns = HEDGE_NS,
                                           .silent_ns = HR_FLEET_SILENT_NS,
                                           .idle_ns = IDLE_NS};
    const struct hr_net_options net = {.peers_max = o->peers_max,
                                       .queue_max = HR_FLEET_QUEUE_MAX,
                                       .tick_ns = HR_FLEET_TICK_NS,
                                       .stranger_ns = o->hello_ns,
                                       .hooks = &hooks,
                                       .user = d};

    d->base.close = close_dispatcher;
    d->peers_max = o->peers_max;
    d->peers = hr__calloc((size_t)o->peers_max + 1, sizeof *d->peers);
    if (d->peers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__actions_init(&d->actions, reterr));
    HR_TRY(hr__lease_init(&d->role, &lease, reterr));
    HR_TRY(hr__net_open(&net, &d->base.net, reterr));
    return hr__net_listen(d->base.net, o->listen, reterr);
}

enum hr_err hr__dispatcher_open(const struct hr_dispatcher_options *options,
                                struct hr_service **ret_service, struct hr_error *reterr)
{
    struct dispatcher *d = hr__calloc(1, sizeof *d);
    enum hr_err code;

    if (d == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = init(d, options, reterr);
    if (code != HR_OK) {
        hr__net_close(d->base.net);
        close_dispatcher(&d->base);
        return code;
    }
    *ret_service = &d->base;
    return HR_OK;
}
