/*
 * bench/proc_bench.c - the cost of a round trip to a worker process.
 *
 * Standalone, linked with the static library: proc_bench [ROUNDS]. Worker processes run
 * this program. Small: trips of 256 records of one int64 through an identity in C; total
 * ns per record. Large: arrays through one worker process, and through two at once, with
 * the process passing them on or copying; the parent reads every byte of every result.
 * For comparison, memcpy and reading of the same bytes in threads of this process. Every
 * round runs all rows; printed are the median over rounds and the best single trip, which
 * shows the cost without interference.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "op/value.h"
#include "proc/proc.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define PEER_FD 100
#define ROUNDS_MAX 64
#define RECORDS_MAX 1024

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "proc_bench: %s\n", what);
    exit(1);
}

/* ---- the worker process ---- */

static enum hr_err pass(void *user, struct hr_code_call *call, struct hr_error *error)
{
    (void)user;
    return hr_code_pass(call, 0, 0, error);
}

static enum hr_err copy(void *user, struct hr_code_call *call, struct hr_error *error)
{
    struct hr_field_view view;
    enum hr_err code = hr_code_input(call, 0, &view);
    void *memory;

    (void)user;
    if (code == HR_OK)
        code = hr_code_room(call, 0, view.dtype, view.ndim, view.dims, &memory, error);
    if (code == HR_OK)
        memcpy(memory, view.data, view.bytes);
    return code;
}

static const struct hr_code *find(void *user, const char *name)
{
    static const struct hr_code passes = {"pass", NULL, pass, NULL, NULL, NULL};
    static const struct hr_code copies = {"copy", NULL, copy, NULL, NULL, NULL};

    (void)user;
    return strcmp(name, "pass") == 0 ? &passes : &copies;
}

static enum hr_err
start_worker(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    char *argv[] = {(char *)"proc_bench", (char *)"--worker", NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    (void)user;
    (void)reterr;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, PEER_FD);
    if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, envp) != 0)
        fail("cannot start a worker process");
    posix_spawn_file_actions_destroy(&actions);
    *ret_id = pid;
    return HR_OK;
}

static void kill_worker(void *user, int64_t id)
{
    (void)user;
    kill((pid_t)id, SIGKILL);
}

static const struct hr_code_host host = {NULL, start_worker, kill_worker, NULL};

/* ---- a row ---- */

struct row {
    const char *name, *code; /* NULL: in this process */
    size_t bytes, records;   /* per record; per trip */
    int threads;
    double seconds[ROUNDS_MAX]; /* per record */
    double best;                /* single trip, per record */
};

static struct row rows[] = {
    {"int64 x 256, one process",              "copy", 8,       256, 1, {0}, 0},
    {"int64 x 256, two processes",            "copy", 8,       256, 2, {0}, 0},
    {"238 kB x 4, memcpy + read",             NULL,   237568,  4,   2, {0}, 0},
    {"238 kB x 4, passed on, one process",    "pass", 237568,  4,   1, {0}, 0},
    {"238 kB x 4, passed on, two processes",  "pass", 237568,  4,   2, {0}, 0},
    {"238 kB x 4, copied, two processes",     "copy", 237568,  4,   2, {0}, 0},
    {"238 kB x 32, memcpy + read",            NULL,   237568,  32,  2, {0}, 0},
    {"238 kB x 32, passed on, two processes", "pass", 237568,  32,  2, {0}, 0},
    {"238 kB x 32, copied, two processes",    "copy", 237568,  32,  2, {0}, 0},
    {"4 MiB x 4, memcpy + read",              NULL,   4194304, 4,   2, {0}, 0},
    {"4 MiB x 4, passed on, one process",     "pass", 4194304, 4,   1, {0}, 0},
    {"4 MiB x 4, passed on, two processes",   "pass", 4194304, 4,   2, {0}, 0},
    {"4 MiB x 4, copied, two processes",      "copy", 4194304, 4,   2, {0}, 0},
};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))

struct job {
    const struct row *row;
    struct hr_proc *proc;
    struct hr_field in, out;
    const struct hr_field *ins[1], *outs[1];
    struct hr_proc_step step;
    struct hr_proc_program program;
    char *memory, *place; /* the records; target of memcpy for one trip */
    size_t sets;          /* sets of a trip's records in `memory`, used in rotation */
    struct hr_proc_record records[RECORDS_MAX];
    struct hr_value values[RECORDS_MAX];
    uint64_t sum, trips;
    double seconds, best;
};

static const struct hr_record_id nobody;
static const uint16_t slot_in[1] = {0}, slot_out[1] = {1};

static uint64_t read_all(const void *data, size_t bytes)
{
    const uint64_t *words = data;
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes / 8; i++)
        sum ^= words[i];
    return sum;
}

static void point(struct job *job, size_t set)
{
    const struct row *row = job->row;
    int64_t dims[1] = {(int64_t)(row->bytes / 8)};

    for (size_t i = 0; i < row->records; i++) {
        char *at = job->memory + (set * row->records + i) * row->bytes;

        hr__value_set_tensor(&job->values[i], HR_I64, row->bytes == 8 ? 0 : 1, dims, at,
                             NULL);
        job->records[i].id = &nobody;
        job->records[i].inputs = &job->values[i];
    }
}

static void round_trip(struct job *job)
{
    const struct row *row = job->row;
    struct hr_error error = {0};

    if (row->bytes > 8)
        point(job, job->trips % job->sets);
    if (job->proc == NULL) {
        for (size_t i = 0; i < row->records; i++)
            memcpy(job->place + i * row->bytes, job->values[i].data, row->bytes);
        for (size_t i = 0; i < row->records; i++)
            job->sum ^= read_all(job->place + i * row->bytes, row->bytes);
    } else {
        if (hr__proc_run(job->proc, job->records, row->records, &error) != HR_OK)
            fail(error.message);
        for (size_t i = 0; i < row->records; i++)
            job->sum ^= read_all(job->records[i].results[0].data, row->bytes);
    }
    job->trips++;
}

static void *run_job(void *user)
{
    struct job *job = user;
    uint64_t from = hr__now_ns(), last = from, now = from, best = UINT64_MAX;

    job->trips = 0;
    while (now - from < 300000000) {
        round_trip(job);
        now = hr__now_ns();
        best = now - last < best ? now - last : best;
        last = now;
    }
    job->seconds = 1e-9 * (double)(now - from);
    job->best = 1e-9 * (double)best;
    return NULL;
}

static void open_job(struct job *job, const struct row *row)
{
    struct hr_error error = {0};
    size_t bytes = row->bytes * row->records;

    job->row = row;
    job->sets = bytes > 65536 ? ((size_t)64 << 20) / bytes + 1 : 1;
    job->memory = malloc(bytes * job->sets);
    job->place = malloc(bytes);
    if (job->memory == NULL || job->place == NULL)
        fail("out of memory");
    memset(job->memory, 1, bytes * job->sets);
    job->in = (struct hr_field){.name = "in", .kind = HR_FIELD_TENSOR, .dtype = HR_I64};
    job->in.ndim = row->bytes == 8 ? 0 : 1;
    job->in.dims[0].size = (int64_t)(row->bytes / 8);
    job->out = job->in;
    job->ins[0] = &job->in;
    job->outs[0] = &job->out;
    job->step = (struct hr_proc_step){row->code, "n",     0,        HR_OP_MAP, 1,
                                      1,         slot_in, slot_out, job->outs, job->ins};
    job->program = (struct hr_proc_program){2, 1,        job->ins,  &job->step, 1,
                                            1, slot_out, job->outs, NULL,       1};
    point(job, 0);
    if (row->code != NULL &&
        hr__proc_open(&host, &job->program, 0, NULL, &job->proc, &error) != HR_OK)
        fail(error.message);
    for (int i = 0; i < 20; i++)
        round_trip(job);
}

static void close_job(struct job *job)
{
    hr__proc_close(job->proc);
    free(job->memory);
    free(job->place);
}

static double run_row(struct row *row)
{
    static struct job jobs[2];
    pthread_t threads[2];
    double rate = 0;

    memset(jobs, 0, sizeof jobs);
    for (int i = 0; i < row->threads; i++)
        open_job(&jobs[i], row);
    for (int i = 0; i < row->threads; i++)
        if (pthread_create(&threads[i], NULL, run_job, &jobs[i]) != 0)
            fail("cannot start a thread");
    for (int i = 0; i < row->threads; i++) {
        pthread_join(threads[i], NULL);
        rate += (double)(jobs[i].trips * row->records) / jobs[i].seconds;
        if (row->best == 0 || jobs[i].best / (double)row->records < row->best)
            row->best = jobs[i].best / (double)row->records;
        close_job(&jobs[i]);
    }
    while (row->code != NULL && waitpid(-1, NULL, 0) > 0)
        ;
    return 1 / rate;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(int rounds)
{
    printf("%-36s %12s %12s %16s\n", "median of rounds", "ns per record", "GB/s",
           "best trip, ns");
    for (int i = 0; i < ROWS; i++) {
        double median;

        qsort(rows[i].seconds, (size_t)rounds, sizeof(double), by_size);
        median = rows[i].seconds[rounds / 2];
        printf("%-36s %12.1f %12.2f %16.1f\n", rows[i].name, 1e9 * median,
               1e-9 * (double)rows[i].bytes / median, 1e9 * rows[i].best);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;

    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return hr_code_serve(PEER_FD, find, NULL, NULL) == HR_OK ? 0 : 1;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        fail("usage: proc_bench [ROUNDS, 1 to 64]");
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ROWS; i++)
            rows[i].seconds[round] = run_row(&rows[i]);
    report(rounds);
    return 0;
}
