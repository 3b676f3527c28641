/*
 * heartbeats.c - make bench B=heartbeats: one dispatcher with 10,000 workers and 1,000
 * runs that say every 100 ms that they are there.
 *
 * This process imitates all of them over TCP: each worker joins and says where it
 * listens, each run brings a job of its own and has taken all of it, so nothing is
 * leased. Then the dispatcher's CPU time is measured over some seconds, while another
 * thread asks its control port, and its memory. Columns: cores; milliseconds of a call.
 */
#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fleet/job.h"
#include "wire/frame.h"

#define WORKERS 10000
#define RUNS 1000
#define PEERS (WORKERS + RUNS)
#define FILES (PEERS + 500)
#define BEAT_S 0.1
#define SLICES 100 /* a beat is sent in as many parts, each to its share of the peers */
#define SECONDS 5.0
#define CALLS_MAX 4096
#define POSITIONS 1000

static int peers[PEERS];
static long beats;
static uint64_t jobs[RUNS];

/* ---- the dispatcher ---- */

struct dispatcher {
    pid_t pid;
    char address[64], control[64];
};

static void read_address(FILE *out, char *to, size_t room)
{
    char line[256], *at;

    if (fgets(line, sizeof line, out) == NULL ||
        (at = strstr(line, "127.0.0.1:")) == NULL)
        bench_die("headrace dispatcher does not start; build it first");
    snprintf(to, room, "%.*s", (int)strcspn(at, "\n/ "), at);
}

static void start(struct dispatcher *d)
{
    char program[4096];
    int ends[2];
    FILE *out;

    bench_path(program, sizeof program, "../headrace");
    if (pipe(ends) != 0 || (d->pid = fork()) < 0)
        bench_die("cannot start a process");
    if (d->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "dispatcher", "--listen", "127.0.0.1:0", "--peers",
              "11100", "--jobs", "1100", "--control", "127.0.0.1:0", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    out = fdopen(ends[0], "r");
    if (out == NULL)
        bench_die("out of memory");
    read_address(out, d->address, sizeof d->address);
    read_address(out, d->control, sizeof d->control);
    fclose(out);
}

static double resident_of(pid_t pid)
{
    unsigned long long size = 0, resident = 0;
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%llu %llu", &size, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

/* ---- connections ---- */

static int dial(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char *colon = strrchr(address, ':');
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        bench_die("cannot connect to %s: %s", address, strerror(errno));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void say(int fd, const void *bytes, size_t count)
{
    if (send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count)
        bench_die("the dispatcher takes nothing: %s", strerror(errno));
}

static void say_frame(int fd, const struct hr_frame *frame)
{
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];

    say(fd, bytes, hr__frame_write(frame, bytes));
}

static void say_body(int fd, const struct hr_frame *frame, const char *text)
{
    size_t length = strlen(text);
    char bytes[HR_FRAME_HEAD + 512 + HR_FRAME_TAIL];
    uint64_t sum;

    sum = hr__frame_write_body(frame, length, bytes);
    sum = hr__frame_sum(sum, text, length);
    memcpy(bytes + HR_FRAME_HEAD, text, length);
    memcpy(bytes + HR_FRAME_HEAD + length, &sum, HR_FRAME_TAIL);
    say(fd, bytes, HR_FRAME_HEAD + length + HR_FRAME_TAIL);
}

/* What the dispatcher says is not needed. */
static void ignore(int fd)
{
    static char bytes[1 << 18];
    ssize_t got;

    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        continue;
    if (got == 0)
        bench_die("the dispatcher has closed a connection");
}

static void join_worker(int at, int fd)
{
    const struct hr_frame address = {.type = HR_FRAME_WORKERS, .count = 1};
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .count = 64};
    char text[64];

    hello.u.hello.nonce = (uint64_t)at + 1;
    hello.u.hello.role = HR_FRAME_WORKER;
    say_frame(fd, &hello);
    snprintf(text, sizeof text, "10.0.%d.%d:7070\n", at / 200, at % 200 + 1);
    say_body(fd, &address, text);
}

static void join_run(int at, int fd)
{
    const struct hr_frame job = {.type = HR_FRAME_JOB, .position = POSITIONS};
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .position = POSITIONS};
    char text[256];

    snprintf(text, sizeof text, "{\"headrace_job\": 2, \"name\": \"run-%d\"}", at);
    say_body(fd, &job, text);
    hello.job = jobs[at] = hr__job_id(text, strlen(text));
    hello.u.hello.nonce = (uint64_t)at + 1;
    hello.u.hello.world = 1;
    hello.u.hello.role = HR_FRAME_CLIENT;
    say_frame(fd, &hello);
}

static void beat(int at)
{
    struct hr_frame frame = {.type = HR_FRAME_PROGRESS};

    if (at >= WORKERS) {
        frame.position = POSITIONS;
        frame.generation = 1;
    }
    ignore(peers[at]);
    say_frame(peers[at], &frame);
    beats++;
}

/* All beat for a while. */
static void beat_for(double seconds)
{
    double begin = bench_now();

    for (long slice = 0; bench_now() - begin < seconds; slice++) {
        double due = begin + (double)slice * BEAT_S / SLICES, wait = due - bench_now();

        if (wait > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)(wait * 1e9)}, NULL);
        for (int at = (int)(slice % SLICES); at < PEERS; at += SLICES)
            beat(at);
    }
}

/* ---- the control port ---- */

struct caller {
    const char *address;
    bool stopped; /* by __atomic */
    double calls[CALLS_MAX];
    int count;
};

/* Seconds for a call. */
static double call(const char *address, const char *path)
{
    double begin = bench_now();
    char bytes[16384];
    int fd = dial(address);

    snprintf(bytes, sizeof bytes,
             "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    say(fd, bytes, strlen(bytes));
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        continue;
    close(fd);
    return bench_now() - begin;
}

static void *call_all(void *user)
{
    struct caller *caller = user;

    while (!__atomic_load_n(&caller->stopped, __ATOMIC_ACQUIRE) &&
           caller->count < CALLS_MAX) {
        caller->calls[caller->count] =
            call(caller->address, caller->count % 2 == 0 ? "/healthz" : "/metrics");
        caller->count++;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* ---- rounds ---- */

static void connect_all(const struct dispatcher *d)
{
    for (int at = 0; at < PEERS; at++) {
        peers[at] = dial(d->address);
        if (at < WORKERS)
            join_worker(at, peers[at]);
        else
            join_run(at - WORKERS, peers[at]);
        for (int other = 0; at % 500 == 0 && other < at; other++)
            beat(other);
    }
}

static void run_round(struct bench *bench)
{
    static struct caller caller;
    struct dispatcher d;
    pthread_t thread;
    double cpu, begin, joining;

    start(&d);
    begin = bench_now();
    connect_all(&d);
    beat_for(1);
    joining = bench_now() - begin;
    caller = (struct caller){.address = d.control};
    if (pthread_create(&thread, NULL, call_all, &caller) != 0)
        bench_die("cannot start a thread");
    cpu = bench_cpu_of(d.pid);
    beats = 0;
    begin = bench_now();
    beat_for(SECONDS);
    bench_add(bench, "dispatcher, cores",
              (bench_cpu_of(d.pid) - cpu) / (bench_now() - begin), -1);
    bench_add(bench, "beats per second, thousands",
              1e-3 * (double)beats / (bench_now() - begin), -1);
    __atomic_store_n(&caller.stopped, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    qsort(caller.calls, (size_t)caller.count, sizeof caller.calls[0], compare);
    bench_add(bench, "control calls, median, ms", 1e3 * caller.calls[caller.count / 2],
              -1);
    bench_add(bench, "control calls, p99, ms",
              1e3 * caller.calls[caller.count * 99 / 100], -1);
    bench_add(bench, "memory, MB", resident_of(d.pid) * 1e-6, -1);
    bench_add(bench, "joining, s", joining, -1);
    for (int at = 0; at < PEERS; at++)
        close(peers[at]);
    kill(d.pid, SIGKILL);
    waitpid(d.pid, NULL, 0);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct rlimit limit;

    bench_init(&bench, argc, argv, "heartbeats",
               "a dispatcher with 10,000 workers and 1,000 runs, a beat each 100 ms", "");
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < FILES)
        bench_die("this benchmark needs %d open files (ulimit -Hn)", FILES);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_die("cannot raise the limit of open files");
    for (int i = 0; i < bench.rounds; i++)
        run_round(&bench);
    bench_claim_value(&bench, "cores of the dispatcher",
                      bench_median(&bench, "dispatcher, cores"), false, 1);
    bench_claim_value(&bench, "p99 of control calls, ms",
                      bench_median(&bench, "control calls, p99, ms"), false, 50);
    bench_print(&bench);
    return 0;
}
