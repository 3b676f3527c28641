/*
 * proc/proc.c - the parent's side: starting a peer, trips, and what happens when it dies.
 *
 * A run is cut into trips: one, unless memory is bounded too tightly or the peer dies.
 * Whatever ends a trip early, the records before the one that was running are done; what
 * they made is copied away, and the next trip begins at that record. A record at which
 * three peers in a row died travels alone the third time and is then bad by itself. Every
 * peer gets memory of its own, so that a dying one cannot write into its successor's.
 *
 * Left out: seeing death within microseconds through a robust futex. End of file comes
 * when the kernel has freed the peer's memory, 0.3 s for one of 4 GiB.
 */
#include "proc/proc_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"

#define POLL_MS 20
#define DEATHS_MAX 3
#define AREA_START 65536
#define RECENT_TRIPS 64 /* after so many that needed less, a peak is given back */

static bool cancelled(const struct hr_proc *proc)
{
    return proc->cancel != NULL && atomic_load(proc->cancel);
}

static enum hr_err fail_cancelled(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_CANCELLED, "cancelled");
}

/* ---- a peer's life ---- */

/* Let the peer go, politely or not. */
static void part(struct hr_proc *proc, bool kill)
{
    if (proc->bell.fd >= 0) {
        if (kill && proc->host->kill != NULL)
            proc->host->kill(proc->host->user, proc->id);
        close(proc->bell.fd);
        proc->bell.fd = -1;
    }
    hr__area_close(&proc->in);
    hr__area_close(&proc->out);
    proc->in_held = proc->out_held = 0;
    proc->busy = false;
}

static enum hr_err
send_hello(struct hr_proc *proc, size_t trip_bytes, struct hr_error *reterr)
{
    struct hr_proc_hello hello = {HR_PROC_MAGIC, HR_PROC_VERSION, trip_bytes};
    int fds[2] = {proc->in.fd, proc->out.fd};
    union {
        char room[CMSG_SPACE(sizeof fds)];
        struct cmsghdr head;
    } control = {{0}};
    struct iovec part = {&hello, sizeof hello};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    ssize_t sent;

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(rights), fds, sizeof fds);
    do
        sent = sendmsg(proc->bell.fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot talk to a worker process");
    return HR_OK; /* a peer that has gone shows when its answer is waited for */
}

/* HR_ERR_END: the peer has gone. */
static enum hr_err receive_ready(struct hr_proc *proc, struct hr_proc_ready *ready)
{
    struct pollfd poller = {.fd = proc->bell.fd, .events = POLLIN};

    for (;;) {
        ssize_t got = recv(proc->bell.fd, ready, sizeof *ready, MSG_DONTWAIT);

        if (got == (ssize_t)sizeof *ready)
            return HR_OK;
        if (got >= 0 || (errno != EAGAIN && errno != EINTR))
            return HR_ERR_END;
        if (cancelled(proc))
            return HR_ERR_CANCELLED;
        poll(&poller, 1, POLL_MS);
    }
}

static enum hr_err
shake_hands(struct hr_proc *proc, size_t trip_bytes, struct hr_error *reterr)
{
    struct hr_proc_ready ready;
    enum hr_err code;

    HR_TRY(send_hello(proc, trip_bytes, reterr));
    code = receive_ready(proc, &ready);
    if (code == HR_ERR_CANCELLED)
        return fail_cancelled(reterr);
    if (code != HR_OK)
        return HR_ERR_END;
    if (ready.magic != HR_PROC_MAGIC || ready.version != HR_PROC_VERSION)
        return hr__fail(reterr, HR_ERR_IO,
                        "the worker process runs another version of headrace");
    if (ready.code == HR_OK)
        return HR_OK;
    code = ready.code >= HR_ERR_INTERNAL && ready.code < 0 ? (enum hr_err)ready.code
                                                           : HR_ERR_IO;
    return hr__fail(reterr, code, "the worker process refused to work: %.*s",
                    (int)strnlen(ready.message, sizeof ready.message), ready.message);
}

static enum hr_err
make_areas(struct hr_proc *proc, const struct hr_str *trip, struct hr_error *reterr)
{
    size_t bytes = HR_PROC_HEAD + trip->length;

    HR_TRY(hr__area_create(&proc->in, bytes > AREA_START ? bytes : AREA_START, reterr));
    HR_TRY(hr__area_create(&proc->out, AREA_START, reterr));
    memcpy(proc->in.base + HR_PROC_HEAD, hr__str_text(trip), trip->length);
    proc->in_held = bytes;
    proc->out_held = HR_PROC_HEAD;
    proc->request = 0;
    return HR_OK;
}

static enum hr_err
start(struct hr_proc *proc, const struct hr_str *trip, struct hr_error *reterr)
{
    int ends[2];
    enum hr_err code;

    HR_TRY(make_areas(proc, trip, reterr));
    errno = EMFILE;
    if (hr__fault(HR_FAULT_OPEN) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot make a socket for a worker process");
    code = proc->host->start(proc->host->user, ends[1], &proc->id, reterr);
    close(ends[1]);
    if (code != HR_OK) {
        close(ends[0]);
        return code;
    }
    proc->bell = (struct hr_bell){.fd = ends[0], .look = true};
    return shake_hands(proc, trip->length, reterr);
}

/* A peer that is ready. One that ends before it is ready gets three tries. */
static enum hr_err begin(struct hr_proc *proc, struct hr_error *reterr)
{
    enum hr_err code = HR_ERR_END;
    struct hr_str trip;

    hr__str_init(&trip);
    hr__proc_trip_write(proc->trip, &trip);
    if (!hr__str_ok(&trip))
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a worker process");
    for (int i = 0; i < DEATHS_MAX && code == HR_ERR_END; i++) {
        code = cancelled(proc) ? fail_cancelled(reterr) : start(proc, &trip, reterr);
        if (code != HR_OK)
            part(proc, true);
    }
    hr__str_finish(&trip);
    if (code == HR_ERR_END)
        code = hr__fail(reterr, HR_ERR_IO,
                        "the worker process ended before it was ready, %d times",
                        DEATHS_MAX);
    return code;
}

static enum hr_err begin_again(struct hr_proc *proc, struct hr_error *reterr)
{
    part(proc, true);
    HR_TRY(begin(proc, reterr));
    proc->stats.replaced++;
    return HR_OK;
}

/* ---- memory ---- */

/* Give back what only a peak needed. Only between trips whose results are no longer
 * shown. */
static void give_back(struct hr_proc *proc)
{
    if (++proc->trips < RECENT_TRIPS)
        return;
    if (proc->in_held > 2 * proc->in_recent) {
        hr__area_trim(&proc->in, proc->in_recent);
        proc->in_held = proc->in_recent;
    }
    if (proc->out_held > 2 * proc->out_recent) {
        hr__area_trim(&proc->out, proc->out_recent);
        proc->out_held = proc->out_recent;
    }
    proc->trips = 0;
    proc->in_recent = proc->out_recent = AREA_START;
}

/* Let `in` have this many bytes and `out` the rest of what is allowed. */
static enum hr_err share_out(struct hr_proc *proc, size_t in_bytes, size_t *ret_out_max,
                             struct hr_error *reterr)
{
    if (in_bytes >= proc->bytes_max)
        return HR_ERR_LIMIT;
    if (in_bytes < proc->in_held && proc->in_held > proc->bytes_max / 2) {
        hr__area_trim(&proc->in, in_bytes);
        proc->in_held = in_bytes;
    }
    HR_TRY(hr__area_reach(&proc->in, in_bytes, true, reterr));
    if (in_bytes > proc->in_held)
        proc->in_held = in_bytes;
    *ret_out_max =
        proc->bytes_max == SIZE_MAX ? SIZE_MAX : proc->bytes_max - proc->in_held;
    if (proc->out_held > *ret_out_max) {
        hr__area_trim(&proc->out, HR_PROC_HEAD);
        proc->out_held = HR_PROC_HEAD;
    }
    if (in_bytes > proc->in_recent)
        proc->in_recent = in_bytes;
    return HR_OK;
}

static void count_out(struct hr_proc *proc, uint64_t used)
{
    size_t bytes = used < proc->out.bytes ? (size_t)used : proc->out.bytes;

    if (bytes > proc->out_held)
        proc->out_held = bytes;
    if (bytes > proc->out_recent)
        proc->out_recent = bytes;
    proc->stats.shared_bytes = proc->in_held + proc->out_held;
}

/* ---- a trip ---- */

enum trip_end {
    TRIP_DONE,
    TRIP_FULL, /* the record behind those done found no room */
    TRIP_DIED, /* at the record behind those done, if `blamed` */
};

struct trip_result {
    enum trip_end end;
    size_t done;
    bool blamed;
    uint32_t step;
    const char *nonsense; /* the peer lives but cannot be believed */
};

/* What a peer that died has left: records complete before the one it was at. */
static void look_back(struct hr_proc *proc, size_t count, struct trip_result *result)
{
    const struct hr_proc_out_head *head = hr__proc_out_head(proc);
    uint64_t running = atomic_load(&head->running);

    *result = (struct trip_result){.end = TRIP_DIED};
    if (running >> 32 != proc->request || (uint32_t)running >= count)
        return;
    if (hr__area_reach_end(&proc->out, NULL) != HR_OK ||
        proc->map.out_end > proc->out.bytes)
        return;
    result->blamed = true;
    result->done = (uint32_t)running;
    result->step = atomic_load(&hr__proc_out_head(proc)->running_step);
}

/* What a peer says in its answer. */
static void hear(struct hr_proc *proc, size_t count, struct trip_result *result)
{
    struct hr_proc_out_head *head = hr__proc_out_head(proc);
    uint64_t used = *(volatile uint64_t *)&head->used;
    uint32_t done = *(volatile uint32_t *)&head->done;
    bool full = *(volatile uint32_t *)&head->full != 0;

    proc->stats.work_ns += *(volatile uint64_t *)&head->work_ns;
    *result = (struct trip_result){.end = full ? TRIP_FULL : TRIP_DONE, .done = done};
    if (done > count || (done < count) != full)
        *result = (struct trip_result){.end = TRIP_DIED, .nonsense = "its own numbers"};
    else if (done > 0 && (used < proc->map.out_end ||
                          hr__area_reach(&proc->out, used, false, NULL) != HR_OK))
        *result = (struct trip_result){.end = TRIP_DIED, .nonsense = "its own numbers"};
    count_out(proc, used);
}

/* Post what lies in `in`, wait, and see how it went. */
static enum hr_err
carry(struct hr_proc *proc, size_t count, size_t in_bytes, size_t out_max,
      struct trip_result *result, struct hr_error *reterr)
{
    struct hr_proc_in_head *in = hr__proc_in_head(proc);
    struct hr_proc_out_head *out = hr__proc_out_head(proc);
    unsigned before = proc->request;
    uint64_t from = hr__now_ns();
    enum hr_bell_verdict verdict;

    in->count = (uint32_t)count;
    in->bytes = in_bytes;
    in->out_max = out_max;
    proc->busy = true;
    hr__bell_ring(&proc->bell, &in->request, ++proc->request, &out->sleeping);
    verdict =
        hr__bell_wait(&proc->bell, &out->response, before, &in->sleeping, proc->cancel);
    proc->stats.wait_ns += hr__now_ns() - from;
    if (verdict == HR_BELL_CANCELLED)
        return fail_cancelled(reterr);
    proc->busy = false;
    if (verdict == HR_BELL_ENDED)
        look_back(proc, count, result);
    else if (atomic_load(&hr__proc_out_head(proc)->response) != proc->request)
        *result = (struct trip_result){.end = TRIP_DIED, .nonsense = "its own numbers"};
    else
        hear(proc, count, result);
    return HR_OK;
}

/* One trip of as many records as may go together. */
static enum hr_err trip(struct hr_proc *proc, struct hr_proc_record *records,
                        size_t count, struct trip_result *result, struct hr_error *reterr)
{
    size_t bytes, out_max, n = hr__proc_fit(proc, records, count, &bytes);
    enum hr_err code = share_out(proc, bytes, &out_max, reterr);

    if (code == HR_ERR_LIMIT) {
        *result = (struct trip_result){.end = TRIP_FULL};
        return HR_OK;
    }
    if (code == HR_OK)
        code = hr__proc_put(proc, records, n, reterr);
    if (code == HR_OK)
        code = carry(proc, n, bytes, out_max, result, reterr);
    if (code == HR_OK && result->done > 0) {
        const char *nonsense;
        size_t taken;

        HR_TRY(hr__proc_take(proc, records, result->done, &taken, &nonsense, reterr));
        if (nonsense != NULL)
            *result = (struct trip_result){
                .end = TRIP_DIED, .done = taken, .blamed = true, .nonsense = nonsense};
    }
    return code;
}

/* ---- a run ---- */

struct run {
    struct hr_proc_record *records;
    size_t count, done;
    size_t at;       /* the record that the last peer died at */
    unsigned deaths; /* at it, in a row */
    unsigned lost;   /* peers in a row that died at no record */
    bool alone;      /* the next trip takes one record */
};

static void bad_record(struct run *run, enum hr_err code, uint32_t step)
{
    struct hr_proc_record *record = &run->records[run->done++];

    record->error.code = code;
    record->code = code;
    record->drop = false;
    record->failed_step = step;
    record->child_count = 0;
    record->results = NULL;
    run->alone = false;
    run->deaths = 0;
}

/* A record that is too large for the memory that it may have. */
static void too_large(struct hr_proc *proc, struct run *run)
{
    struct hr_error *error = &run->records[run->done].error;

    memset(error, 0, sizeof *error);
    hr__fail(error, HR_ERR_LIMIT,
             "a record's inputs and outputs do not fit the %zu bytes of memory that are "
             "shared with a worker process; raise memory_bytes",
             proc->bytes_max);
    bad_record(run, HR_ERR_LIMIT, 0);
}

static void
poisonous(struct hr_proc *proc, struct run *run, const struct trip_result *result)
{
    struct hr_error *error = &run->records[run->done].error;
    uint32_t step = result->step < proc->trip->step_count ? result->step : 0;
    const char *node = proc->trip->step_count > 0 ? proc->trip->steps[step].node : "";

    memset(error, 0, sizeof *error);
    if (result->nonsense != NULL)
        hr__fail(error, HR_ERR_IO,
                 "worker process gave nonsense (%s) for this record, %d times in a row",
                 result->nonsense, DEATHS_MAX);
    else
        hr__fail(error, HR_ERR_IO,
                 "worker process died in the code of node '%s' at this record, %d times "
                 "in a row",
                 node, DEATHS_MAX);
    snprintf(error->node, sizeof error->node, "%s", node);
    bad_record(run, HR_ERR_IO, step);
}

static enum hr_err after_death(struct hr_proc *proc, struct run *run,
                               const struct trip_result *result, struct hr_error *reterr)
{
    if (!result->blamed && result->nonsense == NULL) {
        if (++run->lost == DEATHS_MAX)
            return hr__fail(reterr, HR_ERR_IO,
                            "worker processes die before they begin, %d in a row",
                            DEATHS_MAX);
        return begin_again(proc, reterr);
    }
    run->lost = 0;
    run->deaths = run->done == run->at ? run->deaths + 1 : 1;
    run->at = run->done;
    run->alone = run->deaths == DEATHS_MAX - 1;
    if (run->deaths == DEATHS_MAX)
        poisonous(proc, run, result);
    return begin_again(proc, reterr);
}

static enum hr_err step_on(struct hr_proc *proc, struct run *run, struct hr_error *reterr)
{
    struct hr_proc_record *first = run->records + run->done;
    size_t left = run->count - run->done;
    struct trip_result result = {0};

    if (cancelled(proc))
        return fail_cancelled(reterr);
    HR_TRY(trip(proc, first, run->alone ? 1 : left, &result, reterr));
    run->done += result.done;
    if (result.done > 0 && result.done < left)
        HR_TRY(hr__proc_keep(proc, first, result.done, reterr));
    if (result.end == TRIP_DIED)
        return after_death(proc, run, &result, reterr);
    if (result.end == TRIP_FULL && result.done == 0) {
        if (run->alone || left == 1)
            too_large(proc, run);
        else
            run->alone = true;
    } else {
        run->alone = false;
    }
    return HR_OK;
}

/* Results that were given must not be lost by what comes later; but a run that fails
 * gives none. */
static void forget(struct run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        hr__free(run->records[i].detail);
        run->records[i].detail = NULL;
    }
}

enum hr_err hr__proc_run(struct hr_proc *proc, struct hr_proc_record *records,
                         size_t count, struct hr_error *reterr)
{
    struct run run = {.records = records, .count = count, .at = SIZE_MAX};
    enum hr_err code = HR_OK;

    hr__arena_reset(&proc->arena);
    for (size_t i = 0; i < count; i++)
        records[i].detail = NULL;
    if (proc->busy || proc->bell.fd < 0)
        code = begin_again(proc, reterr);
    else
        give_back(proc);
    while (code == HR_OK && run.done < count)
        code = step_on(proc, &run, reterr);
    if (code != HR_OK)
        forget(&run);
    return code;
}

/* ---- open, close ---- */

static enum hr_err check_trip(const struct hr_proc_trip *trip, struct hr_error *reterr)
{
    bool sound = trip->step_count > 0 && trip->slot_count <= UINT16_MAX;

    for (size_t s = 0; sound && s < trip->step_count; s++)
        sound = trip->steps[s].kind != HR_OP_EXPAND || s + 1 == trip->step_count;
    for (size_t i = 0; sound && i < trip->result_count; i++)
        sound = hr__proc_slot_field(trip, trip->results[i]) != NULL;
    return sound ? HR_OK
                 : hr__fail(reterr, HR_ERR_INTERNAL, "a worker's trip is malformed");
}

enum hr_err
hr__proc_open(const struct hr_code_host *host, const struct hr_proc_trip *trip,
              size_t bytes_max, const atomic_bool *cancel, struct hr_proc **ret_proc,
              struct hr_error *reterr)
{
    struct hr_proc *proc;
    enum hr_err code;

    HR_TRY(check_trip(trip, reterr));
    proc = hr__calloc(1, sizeof *proc);
    if (proc == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a worker process");
    proc->host = host;
    proc->trip = trip;
    proc->bytes_max = bytes_max > 0 ? bytes_max : SIZE_MAX;
    proc->cancel = cancel;
    proc->bell.fd = proc->in.fd = proc->out.fd = -1;
    proc->in_recent = proc->out_recent = AREA_START;
    hr__arena_init(&proc->arena);
    code = hr__proc_map_init(&proc->map, trip);
    if (code != HR_OK)
        hr__fail(reterr, code, "out of memory for a worker process");
    else
        code = begin(proc, reterr);
    if (code != HR_OK) {
        hr__proc_close(proc);
        return code;
    }
    *ret_proc = proc;
    return HR_OK;
}

void hr__proc_close(struct hr_proc *proc)
{
    if (proc == NULL)
        return;
    part(proc, proc->busy);
    hr__proc_map_finish(&proc->map);
    hr__arena_finish(&proc->arena);
    hr__free(proc);
}

void hr__proc_stats(const struct hr_proc *proc, struct hr_proc_stats *ret_stats)
{
    *ret_stats = proc->stats;
}
