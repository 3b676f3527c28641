/*
 * api/transfer_rates.c - see transfer_rates.h. Rates are by the CPU time of both sides,
 * so that other processes disturb them little.
 *
 * The code in the peer copies its input to its output. That copy stands for the one with
 * which a run moves the result to its final place.
 */
#include "api/transfer_rates.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "op/value.h"
#include "proc/proc.h"
#include "proc/serve.h"

#define ROUNDS 9
#define TRIPS 4 /* in a round */
#define WARM 3  /* trips before: memory is mapped and pages are touched */
/* Many small records; and as many bytes in a request as runs send. */
#define SMALL_BYTES 8
#define SMALL_RECORDS 256
#define LARGE_BYTES ((size_t)256 << 10)
#define LARGE_RECORDS 8

/* ---- the peer ---- */

struct peer {
    pthread_t thread;
    int fd; /* -1: not started */
};

static enum hr_err copy(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    struct hr_field_view view;
    void *memory;

    (void)user;
    HR_TRY(hr_code_input(call, 0, &view));
    HR_TRY(hr_code_room(call, 0, view.dtype, view.ndim, view.dims, &memory, reterr));
    memcpy(memory, view.data, view.bytes);
    return HR_OK;
}

static const struct hr_code *find(void *user, const char *name)
{
    static const struct hr_code code = {.identity = "copy", .call = copy};

    (void)user;
    (void)name;
    return &code;
}

static void *serve(void *user)
{
    const struct peer *peer = user;
    struct hr_error error;

    if (hr__proc_serve(peer->fd, find, NULL, &error) != HR_OK)
        return user; /* the other side then sees the end of the socket */
    return NULL;
}

static enum hr_err start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    struct peer *peer = user;
    enum hr_err code;

    if (peer->fd >= 0)
        return hr__fail(reterr, HR_ERR_STATE, "the peer has ended");
    peer->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (peer->fd < 0)
        return hr__fail(reterr, HR_ERR_LIMIT, "no file descriptor: %s", strerror(errno));
    code = hr__thread_start(&peer->thread, "hr-transfer", serve, peer, reterr);
    if (code != HR_OK) {
        close(peer->fd);
        peer->fd = -1;
    }
    *ret_id = 1;
    return code;
}

/* The peer ends when its socket is closed. */
static void kill_peer(void *user, int64_t id)
{
    (void)user;
    (void)id;
}

static void finish(struct peer *peer)
{
    if (peer->fd < 0)
        return;
    pthread_join(peer->thread, NULL);
    close(peer->fd);
}

/* ---- requests ---- */

struct requests {
    struct hr_proc *proc;
    struct hr_proc_record *records;
    size_t count;
};

/* CPU time of both sides, since they began. */
static double spent_ns(const struct requests *r)
{
    struct hr_proc_stats stats;

    hr__proc_stats(r->proc, &stats);
    return (double)(hr__cpu_thread_ns() + stats.cpu_ns);
}

static enum hr_err run(const struct requests *r, int trips)
{
    for (int i = 0; i < trips; i++) {
        HR_TRY(hr__proc_run(r->proc, r->records, r->count, NULL));
        for (size_t k = 0; k < r->count; k++)
            if (r->records[k].code != HR_OK)
                return r->records[k].code;
    }
    return HR_OK;
}

/* CPU time of a record; HR_PROFILE_UNKNOWN if a request failed. */
static double median_ns(const struct requests *r)
{
    double sorted[ROUNDS];

    if (run(r, WARM) != HR_OK)
        return HR_PROFILE_UNKNOWN;
    for (size_t i = 0; i < ROUNDS; i++) {
        double from = spent_ns(r), ns;
        size_t at = i;

        if (run(r, TRIPS) != HR_OK)
            return HR_PROFILE_UNKNOWN;
        ns = (spent_ns(r) - from) / (double)(TRIPS * r->count);
        for (; at > 0 && sorted[at - 1] > ns; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = ns;
    }
    return sorted[ROUNDS / 2];
}

static double measure_with(size_t bytes, size_t count, char *memory,
                           struct hr_proc_record *records, struct hr_value *values)
{
    static const uint16_t in[1] = {0}, out[1] = {1};
    static const struct hr_record_id nobody;
    const struct hr_field field = {.name = "x",
                                   .kind = HR_FIELD_TENSOR,
                                   .dtype = HR_U8,
                                   .ndim = 1,
                                   .dims = {{.size = (int64_t)bytes}}};
    const struct hr_field *fields[1] = {&field};
    const struct hr_proc_step step = {.code = "copy",
                                      .node = "copy",
                                      .kind = HR_OP_MAP,
                                      .input_count = 1,
                                      .output_count = 1,
                                      .inputs = in,
                                      .outputs = out,
                                      .output_fields = fields,
                                      .input_fields = fields};
    const struct hr_proc_program program = {.slot_count = 2,
                                            .input_count = 1,
                                            .input_fields = fields,
                                            .steps = &step,
                                            .step_count = 1,
                                            .result_count = 1,
                                            .results = out,
                                            .result_fields = fields,
                                            .nodes = 1};
    const int64_t dims[1] = {(int64_t)bytes};
    struct peer peer = {.fd = -1};
    const struct hr_code_host host = {.user = &peer, .start = start, .kill = kill_peer};
    struct requests requests = {NULL, records, count};
    double ns = HR_PROFILE_UNKNOWN;

    for (size_t i = 0; i < count; i++) {
        hr__value_set_tensor(&values[i], HR_U8, 1, dims, memory + i * bytes, NULL);
        records[i].id = &nobody;
        records[i].inputs = &values[i];
    }
    if (hr__proc_open(&host, &program, 0, NULL, &requests.proc, NULL) == HR_OK)
        ns = median_ns(&requests);
    hr__proc_close(requests.proc);
    finish(&peer);
    return ns;
}

/* CPU time of a record of this size that goes there and back. */
static double measure(size_t bytes, size_t count)
{
    char *memory = hr__calloc(count, bytes);
    struct hr_proc_record *records = hr__calloc(count, sizeof *records);
    struct hr_value *values = hr__calloc(count, sizeof *values);
    double ns = HR_PROFILE_UNKNOWN;

    if (memory != NULL && records != NULL && values != NULL)
        ns = measure_with(bytes, count, memory, records, values);
    hr__free(memory);
    hr__free(records);
    hr__free(values);
    return ns;
}

void hr__transfer_rates(struct hr_profile_machine *machine)
{
    double large;

    machine->transfer_ns = measure(SMALL_BYTES, SMALL_RECORDS);
    machine->transfer = HR_PROFILE_UNKNOWN;
    if (machine->transfer_ns < 0)
        return;
    large = measure(LARGE_BYTES, LARGE_RECORDS) - machine->transfer_ns;
    if (large > 0)
        machine->transfer = 2 * (double)LARGE_BYTES / large * 1e9;
}
