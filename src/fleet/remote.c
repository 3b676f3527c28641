/*
 * fleet/remote.c - the client's process side: svc/client.h on connections.
 *
 * The loop's thread handles messages and fills the cursor; the consumer's thread takes
 * from it and reads batches in place, without the lock.
 */
#include "fleet/remote.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "core/thread.h"
#include "engine/batch.h"
#include "engine/outputs.h"
#include "fleet/compressed.h"
#include "fleet/fleet.h"
#include "fleet/job.h"
#include "fleet/parcel.h"
#include "fleet/remote_internal.h"

#define PEERS_MAX (HR_REMOTE_WORKERS + 1)
#define WAKE_NS (100 * HR_FLEET_MS) /* a waiting consumer looks */

/* ---- events, in the loop's thread, under the lock ---- */

void hr__remote_perform(struct hr_remote *r)
{
    hr__fleet_perform(r->net, &r->actions);
}

void hr__remote_fail(struct hr_remote *r, const struct hr_error *error)
{
    if (r->error.code == HR_OK)
        r->error = *error;
    pthread_cond_signal(&r->ready);
}

static void on_connected(void *user, uint32_t peer)
{
    struct hr_remote *r = user;
    const struct hr_frame frame = {.type = HR_FRAME_JOB, .position = r->outputs.end};

    hr__fleet_send_text(r->net, peer, &frame, hr__str_text(&r->job), r->job.length);
    if (r->consumer != NULL)
        hr__consumer_connected(r, peer);
    else
        hr__client_connected(&r->client, peer,
                             peer == r->dispatcher ? 0 : HR_FRAME_WORKER, hr__now_ns(),
                             &r->actions);
    hr__remote_perform(r);
}

static void on_lost(void *user, uint32_t peer, const struct hr_error *why)
{
    struct hr_remote *r = user;
    struct hr_roster_worker *worker = hr__roster_find(&r->roster, peer);
    uint64_t now = hr__now_ns(), retry = now + HR_FLEET_RETRY_NS;

    if (r->consumer != NULL)
        hr__consumer_lost(r, peer);
    else
        hr__client_lost(&r->client, peer);
    if (why->code != HR_ERR_CANCELLED && r->told_by != peer)
        r->last = *why;
    if ((why->code == HR_ERR_DENIED ||
         (why->code == HR_ERR_UNSUPPORTED && peer == r->dispatcher)) &&
        r->told_by != peer)
        hr__remote_fail(r, why);
    if (r->told_by == peer)
        r->told_by = 0;
    if (worker != NULL) {
        hr__borrow_finish(&worker->borrower);
        worker->peer = 0;
        worker->retry_ns = retry;
    }
    if (peer == r->dispatcher) {
        r->dispatcher = 0;
        r->at = (r->at + 1) % r->addresses.count;
        r->retry_ns = r->full ? now + HR_FLEET_FULL_NS : retry;
        r->full = false;
    }
}

static void take_error(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame)
{
    struct hr_error error = {0};

    hr__fail(&error, frame->u.error.code, "%s", frame->u.error.text);
    r->last = error;
    r->told_by = peer;
    if (peer == r->dispatcher && error.code == HR_ERR_LIMIT) {
        r->full = true;
        r->patient_ns = hr__now_ns();
    }
    if (hr__roster_find(&r->roster, peer) != NULL && !hr__client_is_passing(error.code))
        hr__remote_fail(r, &error);
}

/* Whether the role keeps it. */
static enum hr_err
keep_parcel(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame,
            size_t bytes, struct hr_parcel *parcel, bool *ret_kept,
            struct hr_error *reterr)
{
    if (r->consumer == NULL)
        return hr__client_data(&r->client, peer, frame, bytes, parcel, ret_kept,
                               &r->actions, reterr);
    *ret_kept = hr__consumer_data(r, peer, frame, bytes, parcel);
    return HR_OK;
}

/* A frame of batches; `far`: as of hr__parcel_open(). */
static void take_parcel(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame,
                        struct hr_buffer *data, const struct hr_borrowed *borrowed)
{
    size_t bytes = hr_buffer_bytes(data) + borrowed->far_bytes;
    struct hr_parcel *parcel = NULL;
    struct hr_error error = {0};
    bool kept = false;

    HR_KILL_POINT("frame.came");
    if (hr__parcel_open(data, frame->count, borrowed->far, borrowed->far_count, &parcel,
                        &error) != HR_OK ||
        keep_parcel(r, peer, frame, bytes, parcel, &kept, &error) != HR_OK) {
        r->last = error;
        hr__fleet_refuse(r->net, peer, &error);
    }
    if (kept)
        HR_KILL_POINT("frame.kept");
    else
        hr__parcel_close(parcel);
    pthread_cond_signal(&r->ready);
}

static void take_segment(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame)
{
    int fd = frame->u.segment.bytes > 0 ? hr__net_take_fd(r->net, peer) : -1;
    struct hr_roster_worker *worker = hr__roster_find(&r->roster, peer);
    struct hr_error error = {0};

    if (worker == NULL) {
        if (fd >= 0)
            close(fd);
    } else if (hr__borrow_segment(&worker->borrower, frame->count, frame->u.segment.bytes,
                                  fd, &error) != HR_OK) {
        r->last = error;
        hr__fleet_refuse(r->net, peer, &error);
    }
}

static void take_shared(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame,
                        struct hr_buffer *data)
{
    struct hr_roster_worker *worker = hr__roster_find(&r->roster, peer);
    struct hr_borrowed borrowed;
    struct hr_error error = {0};

    if (worker == NULL)
        return;
    if (hr__borrow(&worker->borrower, r->desk, data, &borrowed, &error) != HR_OK) {
        r->last = error;
        hr__fleet_refuse(r->net, peer, &error);
        return;
    }
    take_parcel(r, peer, frame, borrowed.buffer, &borrowed);
    hr_buffer_unref(borrowed.buffer);
}

/* Memory whose last batch is gone goes back to its worker. */
static void return_loans(struct hr_remote *r)
{
    struct hr_frame frame = {.type = HR_FRAME_RELEASE};
    uint64_t connection;

    while (hr__desk_take(r->desk, &connection, &frame.position)) {
        HR_KILL_POINT("loan.ended");
        for (size_t i = 0; i < HR_ROSTER_MAX; i++) {
            const struct hr_roster_worker *worker = &r->roster.workers[i];

            if (worker->peer != 0 && worker->borrower.connection == connection)
                hr__net_send(r->net, worker->peer, &frame);
        }
    }
}

static void on_woken(void *user)
{
    return_loans(user);
}

/* Decompressing takes long, so the consumer gets the lock meanwhile. */
static void take_compressed(struct hr_remote *r, uint32_t peer,
                            const struct hr_frame *frame, const struct hr_buffer *data)
{
    const struct hr_borrowed none = {0};
    struct hr_frame plain = *frame;
    struct hr_buffer *parcel = NULL;
    struct hr_error error = {0};
    enum hr_err code;

    hr__net_unlock(r->net);
    code = hr__compressed_read(data, HR_FRAME_DATA_MAX, r->pool, &parcel, &error);
    hr__net_lock(r->net);
    if (code != HR_OK) {
        r->last = error;
        hr__fleet_refuse(r->net, peer, &error);
        return;
    }
    plain.type = HR_FRAME_DATA;
    take_parcel(r, peer, &plain, parcel, &none);
    hr_buffer_unref(parcel);
}

/* Frames with batches; false for others. */
static bool take_batches(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame,
                         struct hr_buffer *data)
{
    const struct hr_borrowed none = {0};

    if (frame->type == HR_FRAME_DATA)
        take_parcel(r, peer, frame, data, &none);
    else if (frame->type == HR_FRAME_COMPRESSED)
        take_compressed(r, peer, frame, data);
    else if (frame->type == HR_FRAME_SEGMENT)
        take_segment(r, peer, frame);
    else if (frame->type == HR_FRAME_SHARED)
        take_shared(r, peer, frame, data);
    else
        return false;
    hr_buffer_unref(data);
    hr__remote_perform(r);
    return true;
}

/* ---- connecting ---- */

static uint32_t
dial(struct hr_remote *r, const char *address, uint64_t *retry_ns, uint64_t now)
{
    struct hr_error error = {0};
    uint32_t peer = 0;

    if (now < *retry_ns)
        return 0;
    *retry_ns = now + HR_FLEET_RETRY_NS;
    if (hr__net_connect(r->net, address, &peer, &error) == HR_OK)
        return peer;
    r->last = error;
    return 0;
}

/* The next one if this one cannot be reached. */
static void dial_dispatcher(struct hr_remote *r, uint64_t now)
{
    if (now < r->retry_ns)
        return;
    r->dispatcher = dial(r, r->addresses.items[r->at], &r->retry_ns, now);
    if (r->dispatcher == 0)
        r->at = (r->at + 1) % r->addresses.count;
}

/* On this host if it is there. */
static void
dial_worker(struct hr_remote *r, struct hr_roster_worker *worker, uint64_t now)
{
    if (now < worker->retry_ns)
        return;
    if (hr__net_connect_local(r->net, worker->address, &worker->peer, NULL) != HR_OK)
        worker->peer = dial(r, worker->address, &worker->retry_ns, now);
    worker->borrower.connection = ++r->last_connection;
}

static void dial_workers(struct hr_remote *r, uint64_t now)
{
    if (r->dispatcher != 0)
        hr__roster_expire(&r->roster, now, &r->actions);
    hr__remote_perform(r);
    for (size_t i = 0; i < HR_ROSTER_MAX; i++) {
        struct hr_roster_worker *worker = &r->roster.workers[i];

        if (worker->listed && worker->peer == 0)
            dial_worker(r, worker, now);
    }
}

static bool has_joined(const struct hr_remote *r)
{
    if (r->consumer != NULL)
        return hr__consumer_has_joined(r->consumer);
    return r->client.state == HR_CLIENT_JOINED;
}

static const struct hr_credit *credit_of(const struct hr_remote *r)
{
    return r->consumer != NULL ? hr__consumer_credit(r->consumer) : &r->client.credit;
}

static void take_control(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame)
{
    if (r->consumer != NULL) {
        hr__consumer_frame(r, peer, frame);
        return;
    }
    hr__client_frame(&r->client, peer, frame, hr__now_ns(), &r->actions);
    if (r->client.state == HR_CLIENT_REPLACED)
        hr__remote_fail(r, &r->client.error);
}

static void
on_frame(void *user, uint32_t peer, const struct hr_frame *frame, struct hr_buffer *data)
{
    struct hr_remote *r = user;

    if (take_batches(r, peer, frame, data))
        return;
    if (frame->type == HR_FRAME_WORKERS && peer == r->dispatcher) {
        hr__roster_take(&r->roster, hr_buffer_data(data), hr_buffer_bytes(data),
                        hr__now_ns(), &r->actions);
        HR_KILL_POINT("workers.listed");
    }
    hr__remote_perform(r);
    if (frame->type == HR_FRAME_ERROR)
        take_error(r, peer, frame);
    take_control(r, peer, frame);
    if (frame->type == HR_FRAME_WELCOME && peer == r->dispatcher)
        HR_KILL_POINT("client.welcomed");
    hr__remote_perform(r);
    r->joined = r->joined || has_joined(r);
    if (r->joined)
        dial_workers(r, hr__now_ns());
    hr_buffer_unref(data);
}

static void check_join(struct hr_remote *r, uint64_t now)
{
    struct hr_error error = r->last;

    if (r->joined || now - r->patient_ns < HR_REMOTE_JOIN_NS)
        return;
    if (error.code == HR_OK)
        hr__fail(&error, HR_ERR_TIMEOUT, "the dispatcher at %s does not answer",
                 r->address);
    hr__remote_fail(r, &error);
}

static void on_tick(void *user)
{
    struct hr_remote *r = user;
    uint64_t now = hr__now_ns();

    if (r->error.code != HR_OK)
        return;
    if (r->dispatcher == 0)
        dial_dispatcher(r, now);
    if (r->joined)
        dial_workers(r, now);
    if (r->consumer != NULL)
        hr__consumer_tick(r, now);
    else
        hr__client_tick(&r->client, now, &r->actions);
    hr__remote_perform(r);
    check_join(r, now);
}

static const struct hr_net_hooks hooks = {.connected = on_connected,
                                          .frame = on_frame,
                                          .lost = on_lost,
                                          .tick = on_tick,
                                          .woken = on_woken};

static void *loop(void *user)
{
    hr__net_run(((struct hr_remote *)user)->net);
    return NULL;
}

/* ---- opening ---- */

/* Tells apart runs that are equal otherwise: two trainers may run one graph. */
static enum hr_err describe(struct hr_remote *r, const struct hr_iter_options *options,
                            struct hr_error *reterr)
{
    uint64_t nonce;
    char name[24];

    HR_TRY(hr__fleet_nonce(&nonce, reterr));
    snprintf(name, sizeof name, "%016llx", (unsigned long long)nonce);
    return hr__job_print(r->graph, options,
                         options->service_job != NULL ? options->service_job : name,
                         r->outputs.bare, &r->job, reterr);
}

static enum hr_err open_cursor(struct hr_remote *r, const struct hr_iter_options *options,
                               struct hr_error *reterr)
{
    const struct hr_cursor_options cursor = {
        .job = hr__job_id(hr__str_text(&r->job), r->job.length),
        .share = {.end = r->outputs.end, .split = 1, .world = 1},
        .window = HR_FLEET_WINDOW,
        .budget = options->memory_bytes > 0 ? options->memory_bytes : HR_REMOTE_BUDGET,
        .pieces = HR_REMOTE_PIECES,
        .ordered = true
    };
    struct hr_cursor_saved saved = {.position = r->start_number};

    if (options->state != NULL) {
        HR_TRY(hr__outputs_resume(&r->outputs, options->state, &saved.position, reterr));
        r->state = hr__strdup(options->state);
        if (r->state == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    r->number = r->start_number = saved.position;
    HR_TRY(hr__cursor_init(&r->cursor, &cursor, reterr));
    hr__cursor_resume(&r->cursor, &saved);
    return HR_OK;
}

static void wake(void *user)
{
    hr__net_wake(user);
}

/* Begins to connect to the first dispatcher that has an address. */
static enum hr_err connect_first(struct hr_remote *r, struct hr_error *reterr)
{
    enum hr_err code = HR_ERR_ARGUMENT;

    for (r->at = 0; code != HR_OK && r->at < r->addresses.count; r->at++)
        code = hr__net_connect(r->net, r->addresses.items[r->at], &r->dispatcher, reterr);
    r->at--;
    return code;
}

static enum hr_err take_weight(struct hr_remote *r, const struct hr_iter_options *options,
                               struct hr_error *reterr)
{
    if (options->service_weight < 0 || options->service_weight > HR_FRAME_WEIGHT_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "options.service_weight is 1 to %u, not %lld",
                        HR_FRAME_WEIGHT_MAX, (long long)options->service_weight);
    r->weight = options->service_weight > 0 ? (uint32_t)options->service_weight : 1;
    return HR_OK;
}

static enum hr_err init(struct hr_remote *r, const struct hr_iter_options *options,
                        bool bare, struct hr_error *reterr)
{
    struct hr_client_options client = {.workers_max = HR_REMOTE_WORKERS,
                                       .parts = HR_FLEET_TEAM_MAX,
                                       .beat_ns = HR_FLEET_BEAT_NS};
    struct hr_net_options net = {.peers_max = PEERS_MAX,
                                 .payload_max = HR_FRAME_DATA_MAX,
                                 .queue_max = HR_FLEET_QUEUE_MAX,
                                 .tick_ns = HR_FLEET_TICK_NS,
                                 .hooks = &hooks,
                                 .user = r};
    const struct hr_tls_files tls = {.cert = options->service_tls_cert,
                                     .key = options->service_tls_key,
                                     .ca = options->service_tls_ca,
                                     .name = options->service_tls_name};

    HR_TRY(take_weight(r, options, reterr));
    client.weight = r->weight;
    client.kinds = hr__compression_set(options->service_compress);
    if (client.kinds == 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "options.service_compress is auto, none, lz4 or zstd, not "
                        "'%.40s'",
                        options->service_compress);
    client.kinds &= hr__compressed_reads();
    if (client.kinds == 0)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "this process cannot read %s: its library is missing (headrace "
                        "doctor)",
                        options->service_compress);
    r->pool = hr_pool_create(0);
    if (r->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr_graph_freeze(r->graph, reterr));
    HR_TRY(hr__outputs_init(&r->outputs, r->graph, options, reterr));
    r->outputs.bare = bare;
    HR_TRY(describe(r, options, reterr));
    HR_TRY(hr__consumer_open(r, options, client.kinds, reterr));
    if (r->consumer == NULL)
        HR_TRY(open_cursor(r, options, reterr));
    HR_TRY(hr__fleet_nonce(&client.nonce, reterr));
    if (r->consumer == NULL)
        HR_TRY(hr__client_init(&r->client, &r->cursor, &client, reterr));
    HR_TRY(hr__actions_init(&r->actions, reterr));
    r->address = hr__strdup(options->service);
    if (r->address == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__fleet_list(r->address, &r->addresses, reterr));
    HR_TRY(hr__token_load(options->service_token_file, &net.token, reterr));
    HR_TRY(hr__tls_open(&tls, HR_TLS_CONNECTS, &net.tls, reterr));
    HR_TRY(hr__net_open(&net, &r->net, reterr));
    r->desk = hr__desk_create(wake, r->net);
    if (r->desk == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    r->outputs.options.state = r->outputs.options.service = NULL; /* the caller's */
    r->outputs.options.service_job = r->outputs.options.service_token_file = NULL;
    r->outputs.options.service_tls_ca = r->outputs.options.service_tls_name = NULL;
    r->outputs.options.service_tls_cert = r->outputs.options.service_tls_key = NULL;
    r->outputs.options.service_compress = r->outputs.options.service_consumer = NULL;
    HR_TRY(connect_first(r, reterr));
    return hr__thread_start(&r->thread, "hr-client", loop, r, reterr);
}

static void finish(struct hr_remote *r)
{
    hr__roster_finish(&r->roster);
    hr__consumer_close(r->consumer);
    for (;;) {
        struct hr_parcel *held = hr__cursor_drop(&r->cursor);

        if (held == NULL)
            break;
        hr__parcel_close(held);
    }
    hr__parcel_close(r->parcel);
    hr__desk_close(r->desk);
    hr__net_close(r->net);
    hr_pool_unref(r->pool);
    hr__client_finish(&r->client);
    hr__cursor_finish(&r->cursor);
    hr__actions_finish(&r->actions);
    hr__str_finish(&r->job);
    hr__fleet_list_finish(&r->addresses);
    hr__free(r->address);
    hr__free(r->state);
    pthread_cond_destroy(&r->ready);
    hr__graph_unref(r->graph);
    hr__free(r);
}

static enum hr_err
open_at(struct hr_graph *graph, const struct hr_iter_options *options, bool bare,
        uint64_t number, struct hr_remote **ret_remote, struct hr_error *reterr)
{
    struct hr_remote *r = hr__calloc(1, sizeof *r);
    enum hr_err code;

    if (r == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__graph_ref(graph);
    r->graph = graph;
    r->start_number = number;
    r->open_ns = r->patient_ns = hr__now_ns();
    hr__cond_init(&r->ready);
    hr__str_init(&r->job);
    code = init(r, options, bare, reterr);
    if (code != HR_OK) {
        finish(r);
        return code;
    }
    *ret_remote = r;
    return HR_OK;
}

enum hr_err hr__remote_open(struct hr_graph *graph, const struct hr_iter_options *options,
                            struct hr_remote **ret_remote, struct hr_error *reterr)
{
    return open_at(graph, options, false, 0, ret_remote, reterr);
}

enum hr_err
hr__remote_open_records(struct hr_graph *graph, const struct hr_iter_options *options,
                        uint64_t position, struct hr_remote **ret_remote,
                        struct hr_error *reterr)
{
    assert(options->state == NULL);
    return open_at(graph, options, true, position, ret_remote, reterr);
}

/* Says that nobody needs to wait for it. */
static void leave(struct hr_remote *r)
{
    const struct hr_frame goodbye = {.type = HR_FRAME_GOODBYE};

    for (uint32_t i = 1; i <= PEERS_MAX; i++)
        hr__net_send(r->net, i, &goodbye);
}

void hr__remote_close(struct hr_remote *r)
{
    if (r == NULL)
        return;
    hr__net_lock(r->net);
    leave(r);
    HR_KILL_POINT("goodbye.said");
    hr__net_unlock(r->net);
    hr__net_stop(r->net);
    pthread_join(r->thread, NULL);
    finish(r);
}

/* ---- taking ---- */

void hr__remote_wait(struct hr_remote *r, uint64_t until_ns)
{
    uint64_t now = hr__now_ns(), soon = now + WAKE_NS; /* a cancel cannot signal */

    hr__cond_wait(&r->ready, hr__net_mutex(r->net), until_ns < soon ? until_ns : soon);
    r->wait_ns += hr__now_ns() - now;
}

static size_t workers_connected(const struct hr_remote *r)
{
    size_t count = 0;

    for (size_t i = 0; i < credit_of(r)->room; i++)
        count += credit_of(r)->workers[i].welcomed;
    return count;
}

enum hr_err hr__remote_time_out(const struct hr_remote *r, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_TIMEOUT,
                    "no batch came from the service at %s within %.1f s; workers "
                    "connected: %zu; last trouble: %s",
                    r->address, (double)r->outputs.options.timeout_ns * 1e-9,
                    workers_connected(r),
                    r->last.message[0] != '\0' ? r->last.message : "none");
}

/* Under the lock: the next frame, or why there is none. HR_OK without one when the time
 * is over. */
static enum hr_err take(struct hr_remote *r, uint64_t until_ns, struct hr_error *reterr)
{
    uint64_t limit = r->outputs.options.timeout_ns, now = hr__now_ns();
    uint64_t give_up;

    if (r->waiting_ns == 0)
        r->waiting_ns = now;
    give_up = limit > 0 && limit < UINT64_MAX - now ? r->waiting_ns + limit : UINT64_MAX;
    while (r->broken || !hr__cursor_take(&r->cursor, UINT32_MAX, &r->taken)) {
        now = hr__now_ns();
        if (atomic_load(&r->cancelled))
            return hr__fail(reterr, HR_ERR_CANCELLED, "the run was cancelled");
        if (!r->broken && hr__cursor_is_at_end(&r->cursor))
            return HR_ERR_END;
        if (r->error.code != HR_OK) {
            if (reterr != NULL)
                *reterr = r->error;
            return r->error.code;
        }
        if (now >= give_up)
            return hr__remote_time_out(r, reterr);
        if (now >= until_ns)
            return HR_OK;
        hr__remote_wait(r, until_ns < give_up ? until_ns : give_up);
    }
    r->waiting_ns = 0;
    assert(r->taken.last);
    r->parcel = r->taken.payload;
    HR_KILL_POINT("batch.taken");
    hr__client_taken(&r->client, now, &r->actions);
    hr__remote_perform(r);
    HR_KILL_POINT("batch.told");
    return HR_OK;
}

/* The end was delivered: a dispatcher may forget the job. */
static void acknowledge(struct hr_remote *r)
{
    if (r->ended)
        return;
    r->ended = true;
    hr__client_saved(&r->client, r->outputs.end, &r->actions);
    hr__remote_perform(r);
    HR_KILL_POINT("end.told");
}

/* The next batch of the frame that was taken. */
static enum hr_err
read_batch(struct hr_remote *r, struct hr_batch **ret_batch, struct hr_error *reterr)
{
    uint64_t position = r->taken.position, within;
    struct hr_batch *batch;

    HR_TRY(hr__parcel_get(r->parcel, r->taken.skip,
                          (int64_t)hr__outputs_records(&r->outputs, position), &batch,
                          reterr));
    batch->epoch = (int64_t)hr__outputs_epoch(&r->outputs, position, &within);
    r->number = position + 1;
    r->bytes += batch->bytes;
    if (r->first_batch_ns == 0)
        r->first_batch_ns = hr__now_ns();
    *ret_batch = batch;
    r->taken.position++;
    r->taken.skip++;
    if (--r->taken.count == 0) {
        hr__parcel_close(r->parcel);
        r->parcel = NULL;
    }
    return HR_OK;
}

/* It stays failed. */
static void break_off(struct hr_remote *r, struct hr_error *error)
{
    hr__parcel_close(r->parcel);
    r->parcel = NULL;
    hr__net_lock(r->net);
    r->broken = true;
    r->error.code = HR_OK; /* this comes first in the order of batches */
    hr__remote_fail(r, error);
    *error = r->error;
    hr__net_unlock(r->net);
}

enum hr_err hr__remote_next(struct hr_remote *r, uint64_t until_ns,
                            struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    *ret_batch = NULL;
    if (r->consumer != NULL)
        return hr__consumer_next(r, until_ns, ret_batch, reterr);
    if (r->parcel != NULL && atomic_load(&r->cancelled))
        code = hr__fail(&error, HR_ERR_CANCELLED, "the run was cancelled");
    if (r->parcel == NULL) {
        hr__net_lock(r->net);
        code = take(r, until_ns, &error);
        if (code == HR_ERR_END)
            acknowledge(r);
        hr__net_unlock(r->net);
    }
    if (code == HR_OK && r->parcel != NULL) {
        code = read_batch(r, ret_batch, &error);
        if (code != HR_OK)
            break_off(r, &error);
    }
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}

enum hr_err hr__remote_pull(struct hr_remote *r, uint64_t until_ns,
                            struct hr_pulled *ret_pulled, struct hr_error *reterr)
{
    enum hr_err code;

    *ret_pulled = (struct hr_pulled){0};
    hr__net_lock(r->net);
    code = take(r, until_ns, reterr);
    if (code == HR_ERR_END || hr__cursor_is_at_end(&r->cursor))
        acknowledge(r);
    hr__net_unlock(r->net);
    if (code == HR_OK && r->parcel != NULL) {
        *ret_pulled = (struct hr_pulled){r->parcel, r->taken.position, r->taken.count,
                                         r->taken.skip};
        r->parcel = NULL;
    }
    return code;
}

const struct hr_outputs *hr__remote_outputs(const struct hr_remote *r)
{
    return &r->outputs;
}

void hr__remote_cancel(struct hr_remote *r)
{
    atomic_store(&r->cancelled, true);
}

enum hr_err
hr__remote_save(struct hr_remote *r, struct hr_str *out, struct hr_error *reterr)
{
    if (r->consumer != NULL)
        return hr__consumer_save(r, out, reterr);
    if (r->state == NULL || r->number != r->start_number)
        return hr__outputs_state(&r->outputs, r->number, out, reterr);
    hr__str_add(out, r->state); /* with a smaller limit it may be beyond the end */
    return hr__str_ok(out) ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* What has to happen before batches come; "" if they only have to be made. */
static void describe_wait(const struct hr_remote *r, char *to, size_t room)
{
    bool joined = has_joined(r);
    const char *why = r->last.message;

    if (joined && workers_connected(r) > 0)
        return;
    if (why[0] == '\0')
        why = joined ? "none is connected" : "no answer yet";
    snprintf(to, room, "for %s %.100s: %.240s",
             joined ? "a worker of the dispatcher at" : "the dispatcher at", r->address,
             why);
}

void hr__remote_waits(struct hr_remote *r, struct hr_iter_stats *ret)
{
    hr__net_lock(r->net);
    if (!r->ended && r->cursor.piece_count == 0)
        describe_wait(r, ret->waits_for, sizeof ret->waits_for);
    hr__net_unlock(r->net);
}

void hr__remote_stats(struct hr_remote *r, struct hr_iter_stats *ret)
{
    const struct hr_outputs *o = &r->outputs;
    uint64_t within = 0, at = r->number > r->start_number ? r->number - 1 : r->number;

    memset(ret, 0, sizeof *ret);
    if (r->consumer != NULL) {
        hr__consumer_stats(r, ret);
        return;
    }
    ret->records =
        hr__outputs_before(o, r->number) - hr__outputs_before(o, r->start_number);
    ret->batches = r->number - r->start_number;
    ret->bytes = r->bytes;
    ret->seconds = (double)(hr__now_ns() - r->open_ns) * 1e-9;
    ret->wait_seconds = (double)r->wait_ns * 1e-9;
    if (r->first_batch_ns > 0)
        ret->first_batch_seconds = (double)(r->first_batch_ns - r->open_ns) * 1e-9;
    ret->epoch_records = (int64_t)o->records;
    if (o->batches > 0) {
        ret->epoch = (int64_t)hr__outputs_epoch(o, at, &within);
        ret->epoch_done = (int64_t)(hr__outputs_before(o, r->number) -
                                    hr__outputs_before(o, at - within));
    }
    hr__net_lock(r->net);
    ret->memory_bytes = r->cursor.bytes;
    ret->batches_ready = r->cursor.piece_count;
    hr__net_unlock(r->net);
    hr__remote_waits(r, ret);
}
