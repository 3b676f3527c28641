/*
 * proc/serve.c - the loop of a worker process.
 *
 * One thread: wait for a request, do its records in order, answer; then the next one,
 * which may lie ready in the other channel. Before each record its number goes to shared
 * memory, so that the parent knows which one killed the process. It ends when the parent
 * closes the socket. It changes no signal and no limit: that is left to the
 * caller.
 */
#include "proc/serve.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "op/thread.h"
#include "proc/serve_internal.h"

/* ---- hello ---- */

#define FDS (2 * HR_PROC_CHANNELS)

static void close_all(const int fds[FDS])
{
    for (int i = 0; i < FDS; i++)
        close(fds[i]);
}

/* Returns HR_ERR_END if the parent has ended. The caller owns the descriptors. */
static enum hr_err receive_hello(int fd, struct hr_proc_hello *hello, int ret_fds[FDS],
                                 struct hr_error *reterr)
{
    union {
        char room[CMSG_SPACE(FDS * sizeof(int))];
        struct cmsghdr head;
    } control;
    struct iovec part = {hello, sizeof *hello};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *rights;
    ssize_t got;

    do
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno == ECONNRESET))
        return HR_ERR_END;
    if (got < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot talk to the process that started this one");
    rights = CMSG_FIRSTHDR(&message);
    if (rights == NULL || rights->cmsg_type != SCM_RIGHTS ||
        rights->cmsg_len != CMSG_LEN(FDS * sizeof(int)))
        return hr__fail(reterr, HR_ERR_FORMAT, "the first message brings no memory");
    memcpy(ret_fds, CMSG_DATA(rights), FDS * sizeof(int));
    if (got != (ssize_t)sizeof *hello || hello->magic != HR_PROC_MAGIC ||
        hello->version != HR_PROC_VERSION) {
        close_all(ret_fds);
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the worker process runs another version of headrace than the "
                        "one that started it");
    }
    return HR_OK;
}

static enum hr_err say_ready(int fd, enum hr_err code, const struct hr_error *error)
{
    struct hr_proc_ready ready = {.magic = HR_PROC_MAGIC, .version = HR_PROC_VERSION};
    ssize_t sent;

    ready.code = code;
    if (code != HR_OK)
        snprintf(ready.message, sizeof ready.message, "%.*s",
                 (int)sizeof ready.message - 1, error->message);
    do
        sent = send(fd, &ready, sizeof ready, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof ready ? HR_OK : HR_ERR_END;
}

/* Takes the descriptors over. */
static enum hr_err
adopt_shm(struct hr_server *server, const int fds[FDS], struct hr_error *reterr)
{
    enum hr_err code = HR_OK;

    for (int i = 0; i < FDS; i++) {
        struct hr_shm *shm = i % 2 == 0 ? &server->ins[i / 2] : &server->outs[i / 2];

        if (code == HR_OK)
            code = hr__shm_adopt(shm, fds[i], i % 2 == 1, reterr);
        else
            close(fds[i]);
    }
    return code;
}

static enum hr_err adopt(struct hr_server *server, const int fds[FDS],
                         size_t program_bytes, struct hr_error *reterr)
{
    HR_TRY(adopt_shm(server, fds, reterr));
    if (program_bytes > server->ins[0].bytes - HR_PROC_HEAD)
        return hr__fail(reterr, HR_ERR_FORMAT, "the request is malformed");
    HR_TRY(hr__proc_program_read(server->ins[0].base + HR_PROC_HEAD, program_bytes,
                                 &server->lasting, &server->program, reterr));
    return hr__serve_prepare(server, reterr);
}

/* ---- user code ---- */

static void
find_codes(struct hr_server *server,
           const struct hr_code *(*find)(void *user, const char *name), void *user)
{
    for (size_t s = 0; s < server->program.step_count; s++) {
        struct hr_serve_step *step = &server->steps[s];
        size_t before = 0;

        if (step->step->code == NULL)
            continue;
        while (server->program.steps[before].code == NULL ||
               strcmp(server->program.steps[before].code, step->step->code) != 0)
            before++;
        step->code =
            before < s ? server->steps[before].code : find(user, step->step->code);
        step->enters = step->code != NULL && step->code->enter != NULL;
        for (size_t i = 0; i < s && step->enters; i++)
            step->enters = server->steps[i].code == NULL ||
                           server->steps[i].code->enter != step->code->enter ||
                           server->steps[i].code->user != step->code->user;
    }
}

static void enter(struct hr_server *server)
{
    for (size_t s = 0; s < server->program.step_count; s++)
        if (server->steps[s].enters)
            server->steps[s].token =
                server->steps[s].code->enter(server->steps[s].code->user);
}

static void leave(struct hr_server *server)
{
    for (size_t s = server->program.step_count; s-- > 0;)
        if (server->steps[s].enters && server->steps[s].code->leave != NULL)
            server->steps[s].code->leave(server->steps[s].code->user,
                                         server->steps[s].token);
}

/* ---- requests ---- */

/* Records of this length and longer are all timed. Of shorter ones so few, chosen at
 * random, that timing them takes about 1 % of the time. */
#define ALL_NS 10000.0
#define RARE_MAX 1000
/* From here on by the CPU clock, which takes 200 ns. */
#define CLOCK_NS 20000.0

static double record_ns(const struct hr_server *server)
{
    return server->worked_records > 0
               ? (double)server->worked_ns / (double)server->worked_records
               : CLOCK_NS + 1;
}

/* What the record has cost is known: it stands for `weight` of them. */
static void add_charges(struct hr_server *server, double weight, bool clock)
{
    for (uint32_t i = 0; i < server->program.nodes; i++) {
        struct hr_charge *charge = &server->charges[i];
        double ns = clock ? (double)charge->cpu_ns : hr__ticks_to_ns(charge->ticks);

        if (charge->ticks == 0)
            continue;
        server->spent[i] += weight * ns;
        hr__fit_add(&server->costs[i], weight, 0, ns);
        *charge = (struct hr_charge){0};
    }
}

/* One of how many records is timed, if a record takes this long. */
static uint32_t rarity(double ns)
{
    double rare = ALL_NS / ns;

    return rare < 1 ? 1 : rare > RARE_MAX ? RARE_MAX : (uint32_t)rare;
}

/* How records of a request are timed. */
struct timing {
    uint32_t rare, most; /* one of `rare`: those for which the dice show at most `most` */
    bool clock;
};

static inline void run_record(struct hr_server *server, const struct timing *timing)
{
    server->dice = server->dice * 1664525u + 1013904223u;
    if (server->dice > timing->most) {
        if (!hr__serve_record(server))
            server->full = true;
        return;
    }
    hr__thread_timing_begin(&server->thread, server->charges,
                            server->program.steps[0].number, timing->clock);
    if (!hr__serve_record(server))
        server->full = true;
    hr__thread_timing_end(&server->thread);
    add_charges(server, timing->rare, timing->clock);
}

/* Records from the first on, until all are done, one finds no room, or one says that the
 * run is over. */
static void run_records(struct hr_server *server, uint64_t request)
{
    double ns = record_ns(server);
    const struct timing timing = {rarity(ns), UINT32_MAX / rarity(ns), ns > CLOCK_NS};

    enter(server);
    for (server->at = 0; server->at < server->count; server->at++) {
        struct hr_proc_out_head *head = hr__serve_head(server);

        atomic_store_explicit(&head->running_step, 0, memory_order_relaxed);
        atomic_store_explicit(&head->running, request << 32 | server->at,
                              memory_order_release);
        run_record(server, &timing);
        if (server->full)
            break;
        if (server->stopped) {
            server->at++;
            server->full = server->at < server->count;
            break;
        }
    }
    leave(server);
}

/* The time of the request over its nodes, as all records timed so far divide it. */
static void divide_time(struct hr_server *server, uint64_t work_ns)
{
    struct hr_proc_time *times =
        (struct hr_proc_time *)(server->out->base + server->map.times);
    uint32_t nodes = server->program.nodes;
    double sum = 0;

    server->worked_ns += work_ns;
    server->worked_records += server->at;
    for (uint32_t i = 0; i < nodes; i++)
        sum += server->spent[i];
    for (uint32_t i = 0; i < nodes; i++) {
        times[i].wall_ns =
            sum > 0 ? (uint64_t)((double)work_ns * server->spent[i] / sum) : 0;
        times[i].cost = server->costs[i];
    }
    if (sum == 0)
        times[server->program.steps[0].number].wall_ns = work_ns;
    memset(server->costs, 0, nodes * sizeof *server->costs);
}

static void answer(struct hr_server *server, unsigned request, uint32_t done,
                   uint64_t work_ns, uint64_t cpu_ns)
{
    struct hr_proc_out_head *out = (struct hr_proc_out_head *)server->out->base;
    struct hr_proc_in_head *first = (struct hr_proc_in_head *)server->ins[0].base;

    assert(done <= server->count && server->out_at >= server->map.results.end);
    out->done = done;
    out->full = server->full;
    out->used = server->out_at;
    out->work_ns = work_ns;
    out->cpu_ns = cpu_ns;
    hr__event_signal(&server->event, &hr__serve_head(server)->response, request,
                     &first->sleeping);
}

static enum hr_err
run_request(struct hr_server *server, unsigned request, struct hr_error *reterr)
{
    struct hr_proc_in_head *in = (struct hr_proc_in_head *)server->in->base;
    uint64_t from = hr__now_ns(), cpu_ns;
    size_t in_bytes = in->bytes, id_bytes = in->id_bytes;

    server->count = in->count;
    server->out_max = in->out_max < SIZE_MAX / 2 ? (size_t)in->out_max : SIZE_MAX / 2;
    server->full = server->stopped = false;
    server->at = 0;
    HR_TRY(hr__shm_map(server->in, in_bytes, false, reterr));
    if (server->count > HR_PROC_COUNT_MAX || id_bytes > HR_WIRE_ID_BYTES_MAX)
        return hr__fail(reterr, HR_ERR_FORMAT, "a request is malformed");
    hr__proc_map_lay(&server->map, server->count, id_bytes);
    if (in_bytes < server->map.inputs.end)
        return hr__fail(reterr, HR_ERR_FORMAT, "a request is malformed");
    server->out_at = server->map.results.end;
    if (server->map.results.end > server->out_max)
        server->full = true;
    else
        HR_TRY(hr__shm_map(server->out, server->map.results.end, true, reterr));
    hr__serve_begin(server);
    if (!server->full) {
        run_records(server, request);
        divide_time(server, hr__now_ns() - from);
    }
    hr__shm_unmap_old(server->in);
    hr__shm_unmap_old(server->out);
    cpu_ns = hr__cpu_thread_ns();
    answer(server, request, server->at, hr__now_ns() - from, cpu_ns - server->cpu_ns);
    server->cpu_ns = cpu_ns;
    return HR_OK;
}

static enum hr_err serve(struct hr_server *server, struct hr_error *reterr)
{
    server->cpu_ns = hr__cpu_thread_ns(); /* starting the process is no request's */
    for (unsigned done = 0;; done++) {
        struct hr_proc_in_head *in = (struct hr_proc_in_head *)server->ins[0].base;
        uint32_t channel;

        if (hr__event_wait(&server->event, &in->request, done,
                           &hr__serve_head(server)->sleeping, NULL) == HR_EVENT_ENDED)
            return HR_OK;
        channel = in->channels[(done + 1) % HR_PROC_CHANNELS];
        if (channel >= HR_PROC_CHANNELS)
            return hr__fail(reterr, HR_ERR_FORMAT, "a request is malformed");
        server->in = &server->ins[channel];
        server->out = &server->outs[channel];
        HR_TRY(run_request(server, done + 1, reterr));
    }
}

static void server_finish(struct hr_server *server)
{
    for (size_t s = 0; server->steps != NULL && s < server->program.step_count; s++)
        if (server->steps[s].op != NULL)
            hr__serve_op_close(&server->steps[s]);
    hr__thread_objects_destroy(&server->thread);
    hr__proc_map_finish(&server->map);
    hr__free(server->children);
    hr__arena_finish(&server->thread.arena);
    hr_pool_unref(server->thread.pool);
    hr__arena_finish(&server->lasting);
    for (int i = 0; i < HR_PROC_CHANNELS; i++) {
        hr__shm_close(&server->ins[i]);
        hr__shm_close(&server->outs[i]);
    }
}

enum hr_err
hr__proc_serve(int fd, const struct hr_code *(*find)(void *user, const char *name),
               void *user, struct hr_error *reterr)
{
    struct hr_server server = {
        .event = {.fd = fd, .look = true}
    };
    struct hr_proc_hello hello = {0};
    struct hr_error own = {0}, *error = reterr != NULL ? reterr : &own;
    enum hr_err code;
    int fds[FDS];

    for (int i = 0; i < HR_PROC_CHANNELS; i++)
        server.ins[i].fd = server.outs[i].fd = -1;
    code = receive_hello(fd, &hello, fds, error);
    if (code == HR_ERR_END)
        return HR_OK;
    server.replaced = (uint32_t)hello.replaced;
    hr__arena_init(&server.lasting);
    hr__arena_init(&server.thread.arena);
    server.thread.pool = hr_pool_create(0);
    if (code == HR_OK && server.thread.pool == NULL)
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory in a worker process");
    if (code == HR_OK)
        code = adopt(&server, fds, hello.program_bytes, error);
    if (code == HR_OK)
        find_codes(&server, find, user);
    if (say_ready(fd, code, error) == HR_OK && code == HR_OK)
        code = serve(&server, error);
    server_finish(&server);
    return code;
}
