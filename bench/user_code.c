/*
 * user_code.c - make bench B=code: the engine's overhead for user code, per record:
 * 200,000 numbers from a user-code source through a user-code identity into batches of
 * 256, inline, in threads and in worker processes. For comparison, the same with built-in
 * ops, and direct calls of the two functions. CPU time includes that of worker processes.
 *
 * The functions are in C, so the rest is the engine's. Worker processes run this program.
 */
#include "measure.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/code.h"

#define PEER_FD 100
#define EPOCHS 10
#define RECORDS (200000 * EPOCHS)

extern char **environ;

static enum hr_err number(void *user, struct hr_code_call *call, struct hr_error *error)
{
    struct hr_code_record record;
    enum hr_err code;
    void *memory;

    (void)user;
    hr_code_record(call, &record);
    code = hr_code_room(call, 0, HR_I64, 0, NULL, &memory, error);
    if (code == HR_OK)
        memcpy(memory, &record.index, sizeof record.index);
    return code;
}

static enum hr_err same(void *user, struct hr_code_call *call, struct hr_error *error)
{
    struct hr_field_view view;
    enum hr_err code = hr_code_input(call, 0, &view);
    void *memory;

    (void)user;
    if (code == HR_OK)
        code = hr_code_room(call, 0, HR_I64, 0, NULL, &memory, error);
    if (code == HR_OK)
        memcpy(memory, view.data, 8);
    return code;
}

static const struct hr_code pieces[] = {
    {"number", NULL, number, NULL, NULL, NULL},
    {"same",   NULL, same,   NULL, NULL, NULL},
};

static const struct hr_code *find(void *user, const char *name)
{
    (void)user;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(pieces[i].identity, name) == 0)
            return &pieces[i];
    return NULL;
}

static enum hr_err start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    posix_spawn_file_actions_t actions;
    char *args[] = {"code", "--worker", NULL};
    pid_t pid = 0;
    int code;

    (void)user;
    (void)reterr;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, PEER_FD);
    code = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0)
        bench_die("cannot start a worker process");
    *ret_id = pid;
    return HR_OK;
}

static void end(void *user, int64_t id)
{
    (void)user;
    kill((pid_t)id, SIGKILL);
}

/* Of worker processes that have ended. */
static double worker_cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run(struct bench *bench, const char *row, const char *steps,
                const char *variant, int threads)
{
    static const struct hr_code_host host = {NULL, start, end, NULL};
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    struct hr_graph *graph;
    double wall = 0, cpu = 0, workers = worker_cpu_seconds();
    enum hr_err code;
    char text[1024];

    snprintf(text, sizeof text, steps, variant, variant);
    bench_must(hr_graph_parse(text, strlen(text), "code", NULL, 0, &graph, &error),
               &error);
    for (size_t i = 0; i < 2; i++)
        bench_must(hr_graph_code(graph, pieces[i].identity, &pieces[i], &error), &error);
    bench_must(hr_graph_code_host(graph, &host, &error), &error);
    hr_iter_options_init(&options);
    options.variant = threads == 0 ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
    options.threads = threads;
    options.epochs = EPOCHS;
    bench_must(hr_iter_open(graph, &options, &iter, &error), &error);
    while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
        hr_batch_unref(batch);
        if (wall == 0) { /* after the first batch: excludes starting processes */
            wall = bench_now();
            cpu = bench_cpu_seconds();
        }
    }
    if (code != HR_ERR_END)
        bench_must(code, &error);
    wall = bench_now() - wall;
    cpu = bench_cpu_seconds() - cpu;
    hr_iter_close(iter);
    hr_graph_unref(graph);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    cpu += worker_cpu_seconds() - workers;
    bench_add(bench, row, wall * 1e9 / RECORDS, cpu * 1e9 / RECORDS);
}

int main(int argc, char **argv)
{
    static const char own[] = "headrace: 1\npipeline:\n  - source.range: {n: 200000}\n"
                              "  - debug.identity: {}\n  - batch.stack: {size: 256}\n";
    static const char code[] =
        "headrace: 1\npipeline:\n"
        "  - code.source: {code: number, count: 200000, outputs: \"value: int64\", "
        "variant: %s}\n"
        "  - code.map: {code: same, fields: value, outputs: \"value: int64\", variant: "
        "%s}\n"
        "  - batch.stack: {size: 256}\n";
    static struct bench bench;

    if (argc == 2 && strcmp(argv[1], "--worker") == 0)
        return hr_code_serve(PEER_FD, find, NULL, NULL) == HR_OK ? 0 : 1;
    bench_init(&bench, argc, argv, "code",
               "numbers -> identity -> batches of 256, 2,000,000 records, without start",
               "ns/record");
    bench.cpu_heading = "CPU ns";
    for (int i = 0; i < bench.rounds; i++) {
        run(&bench, "own ops, inline", own, "", 0);
        run(&bench, "code, inline", code, "threads", 0);
        run(&bench, "code, 1 thread", code, "threads", 1);
        run(&bench, "code, 2 threads", code, "threads", 2);
        run(&bench, "code, 1 process", code, "processes", 1);
        run(&bench, "code, 2 processes", code, "processes", 2);
    }
    bench_claim_value(&bench, "ns per record, inline, source and map, calls included",
                      bench_median(&bench, "code, inline"), false, 100);
    bench_claim_value(&bench, "ns per record, 1 process, all included",
                      bench_median(&bench, "code, 1 process"), false, 300);
    bench_print(&bench);
    return 0;
}
