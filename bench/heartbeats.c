/*
 * heartbeats.c - make bench B=heartbeats: one dispatcher with up to 10,000 workers and
 * 1,000 runs that say every 100 ms that they are there.
 *
 * This process imitates all of them over TCP: each worker joins and says where it
 * listens, each run brings a job of its own and has taken all of it, so nothing is
 * leased. Then the dispatcher's CPU time is measured over some seconds, while another
 * thread asks its control port, and its memory. Last, the runs begin at position 0, and
 * workers say, instead of beats, that they have sent what they were leased, about 10,000
 * times per second.
 *
 * CPU per beat and per lease at 100, 1,000 and 10,000 workers shows how the work grows
 * with their number. $HEADRACE_OTHER, the command of another build, is measured in turns
 * with this one.
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
#include "net/intake.h"

#define WORKERS 10000
#define RUNS 1000 /* a tenth of the workers, also where these are fewer */
#define PEERS (WORKERS + RUNS)
#define FILES (PEERS + 500)
#define BEAT_S 0.1
#define SLICES 100  /* a beat is sent in as many parts, each to its share of the peers */
#define SECONDS 6.0 /* more than half of what the longest tick is kept for */
#define CALLS_MAX 4096
#define POSITIONS 1000000000
#define AHEAD 8192   /* more than positions that are leased beyond a run's cursor */
#define ANSWERS 1000 /* workers that answer every 100 ms; more do so less often */
#define KEPT 16

/* Leases that a worker has to answer. */
struct pile {
    struct hr_intake intake;
    struct hr_frame leases[KEPT];
    size_t count;
};

static int workers, runs; /* of the current size */
static int peers[PEERS];  /* workers first */
static long beats, leases;
static uint64_t jobs[RUNS], cursors[RUNS];
static bool sent[RUNS][AHEAD]; /* by position */
static struct pile piles[WORKERS];
static struct hr_pool *pool;
static bool leasing;

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

static void start(struct dispatcher *d, const char *program)
{
    int ends[2];
    FILE *out;

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

/* What the dispatcher says to a run is not needed. */
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

static void hello_run(int at, int fd, uint64_t incarnation, uint64_t cursor)
{
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .position = cursor};

    hello.job = jobs[at];
    hello.u.hello.nonce = incarnation;
    hello.u.hello.world = 1;
    hello.u.hello.role = HR_FRAME_CLIENT;
    cursors[at] = cursor;
    say_frame(fd, &hello);
}

static void join_run(int at, int fd)
{
    const struct hr_frame job = {.type = HR_FRAME_JOB, .position = POSITIONS};
    char text[256];

    snprintf(text, sizeof text, "{\"headrace_job\": 2, \"name\": \"run-%d\"}", at);
    say_body(fd, &job, text);
    jobs[at] = hr__job_id(text, strlen(text));
    hello_run(at, fd, 1, POSITIONS);
}

/* ---- leases ---- */

static int run_of(uint64_t job)
{
    for (int i = 0; i < runs; i++)
        if (jobs[i] == job)
            return i;
    bench_die("a lease of an unknown job");
}

static void take_lease(struct pile *pile, const struct hr_frame *frame)
{
    if (frame->type != HR_FRAME_LEASE)
        return;
    if (pile->count == KEPT)
        bench_die("a worker has too many leases");
    pile->leases[pile->count] = *frame;
    pile->leases[pile->count].type = HR_FRAME_FINISHED;
    pile->leases[pile->count++].u.lease.ttl_ms = 0;
    leases++;
}

static void read_leases(int fd, struct pile *pile)
{
    static char bytes[1 << 16];
    ssize_t got;

    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        for (size_t at = 0, used; at < (size_t)got; at += used) {
            struct hr_buffer *data = NULL;
            struct hr_error error = {0};
            struct hr_frame frame;
            bool complete;

            bench_must(hr__intake_add(&pile->intake, bytes + at, (size_t)got - at, &used,
                                      &complete, &frame, &data, &error),
                       &error);
            if (complete)
                take_lease(pile, &frame);
            hr_buffer_unref(data);
        }
    if (got == 0)
        bench_die("the dispatcher has closed a connection");
}

/* The run has the positions of this lease. */
static void arrive(const struct hr_frame *lease)
{
    int run = lease->generation == 2 ? run_of(lease->job) : -1;

    for (uint32_t i = 0; run >= 0 && i < lease->count; i++)
        for (uint64_t at = lease->u.lease.ranges[i].from;
             at < lease->u.lease.ranges[i].until; at++)
            sent[run][at % AHEAD] = sent[run][at % AHEAD] || at >= cursors[run];
}

static void answer_leases(int fd, struct pile *pile)
{
    for (size_t i = 0; i < pile->count; i++) {
        arrive(&pile->leases[i]);
        say_frame(fd, &pile->leases[i]);
    }
    pile->count = 0;
}

/* The runs begin again at position 0. */
static void begin_leasing(void)
{
    leasing = true;
    memset(sent, 0, sizeof sent);
    for (int i = 0; i < runs; i++)
        hello_run(i, peers[workers + i], 2, 0);
}

/* ---- beats ---- */

static void beat_run(int run, int fd)
{
    struct hr_frame frame = {.type = HR_FRAME_PROGRESS};

    ignore(fd);
    for (; sent[run][cursors[run] % AHEAD]; cursors[run]++)
        sent[run][cursors[run] % AHEAD] = false;
    frame.position = cursors[run];
    frame.generation = leasing ? 2 : 1;
    say_frame(fd, &frame);
}

static void beat(int at)
{
    const struct hr_frame frame = {.type = HR_FRAME_PROGRESS};

    beats++;
    if (at >= workers) {
        beat_run(at - workers, peers[at]);
        return;
    }
    read_leases(peers[at], &piles[at]);
    if (leasing)
        answer_leases(peers[at], &piles[at]);
    else
        say_frame(peers[at], &frame);
}

/* All beat for a while. */
static void beat_for(double seconds)
{
    const double every = leasing && workers > ANSWERS ? (double)workers / ANSWERS : 1;
    double begin = bench_now();

    for (long slice = 0; bench_now() - begin < seconds; slice++) {
        double due = begin + (double)slice * every * BEAT_S / SLICES,
               wait = due - bench_now();

        if (wait > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)(wait * 1e9)}, NULL);
        for (int at = (int)(slice % SLICES); at < workers + runs; at += SLICES)
            beat(at);
    }
}

/* ---- the control port ---- */

/* Control calls. The last one lists all workers and runs, a megabyte or more, and has no
 * claim. */
static const char *const paths[] = {"/healthz",
                                    "/metrics",
                                    "/v1/status?limit=100",
                                    "/v1/workers?limit=100",
                                    "/v1/jobs?limit=100",
                                    "/v1/status?limit=1000000"};

#define PATHS ((int)(sizeof paths / sizeof paths[0]))
#define ALL (PATHS - 1)

struct caller {
    const char *address;
    bool stopped; /* by __atomic */
    double calls[PATHS][CALLS_MAX];
    int count[PATHS];
};

/* Seconds for a call. The answer, if it is wanted, is cut where there is no room. */
static double call(const char *address, const char *path, char *ret_text, size_t room)
{
    double begin = bench_now();
    char bytes[16384];
    int fd = dial(address);
    ssize_t got;

    snprintf(bytes, sizeof bytes,
             "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    say(fd, bytes, strlen(bytes));
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        size_t more = room > (size_t)got ? (size_t)got : room > 0 ? room - 1 : 0;

        if (ret_text == NULL)
            continue;
        memcpy(ret_text, bytes, more);
        ret_text[more] = '\0';
        ret_text += more;
        room -= more;
    }
    close(fd);
    return bench_now() - begin;
}

/* ms; 0 if the build does not say. */
static double longest_tick(const char *address)
{
    static const char name[] = "\nheadrace_tick_cpu_seconds_max ";
    static char text[65536];
    const char *at;

    call(address, "/metrics", text, sizeof text);
    at = strstr(text, name);
    return at != NULL ? 1e3 * strtod(at + strlen(name), NULL) : 0;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

/* Seconds for a call. */
static double timed_call(const char *address, int path)
{
    static char text[16 << 20];
    double seconds = call(address, paths[path], text, sizeof text);

    if (path == ALL && (count_of(text, "\"silent_seconds\":") != workers ||
                        count_of(text, "\"generation\":") != runs))
        bench_die("not all workers and runs are listed");
    return seconds;
}

/* Calls each path in turn. */
static void *call_all(void *user)
{
    struct caller *caller = user;

    for (int at = 0; !__atomic_load_n(&caller->stopped, __ATOMIC_ACQUIRE); at++) {
        int path = at % PATHS;

        if (caller->count[path] == CALLS_MAX)
            break;
        caller->calls[path][caller->count[path]++] = timed_call(caller->address, path);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void add_calls(struct bench *bench, const char *path, double *calls, int count)
{
    char row[64];

    qsort(calls, (size_t)count, sizeof *calls, compare);
    snprintf(row, sizeof row, "%s, median, ms", path);
    bench_add(bench, row, count > 0 ? 1e3 * calls[count / 2] : 0, -1);
    snprintf(row, sizeof row, "%s, p99, ms", path);
    bench_add(bench, row, count > 0 ? 1e3 * calls[count * 99 / 100] : 0, -1);
}

/* ---- rounds ---- */

static void connect_all(const struct dispatcher *d)
{
    leasing = false;
    for (int at = 0; at < workers + runs; at++) {
        peers[at] = dial(d->address);
        if (at < workers) {
            join_worker(at, peers[at]);
            piles[at].count = 0;
            hr__intake_init(&piles[at].intake, pool, 0);
        } else {
            join_run(at - workers, peers[at]);
        }
        for (int other = 0; at % 500 == 0 && other < at; other++)
            beat(other);
    }
}

static void disconnect_all(const struct dispatcher *d)
{
    for (int at = 0; at < workers + runs; at++)
        close(peers[at]);
    for (int at = 0; at < workers; at++)
        hr__intake_finish(&piles[at].intake);
    kill(d->pid, SIGKILL);
    waitpid(d->pid, NULL, 0);
}

/* While its control port is asked. */
static void measure_calls(struct bench *bench, const struct dispatcher *d)
{
    static struct caller caller;
    pthread_t thread;
    double cpu, begin;

    caller = (struct caller){.address = d->control};
    if (pthread_create(&thread, NULL, call_all, &caller) != 0)
        bench_die("cannot start a thread");
    cpu = bench_cpu_of(d->pid);
    beats = 0;
    begin = bench_now();
    beat_for(SECONDS);
    bench_add(bench, "dispatcher, cores",
              (bench_cpu_of(d->pid) - cpu) / (bench_now() - begin), -1);
    bench_add(bench, "beats per second, thousands",
              1e-3 * (double)beats / (bench_now() - begin), -1);
    __atomic_store_n(&caller.stopped, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    for (int path = 0; path < PATHS; path++)
        add_calls(bench, paths[path], caller.calls[path], caller.count[path]);
    bench_add(bench, "longest tick, ms of CPU", longest_tick(d->control), -1);
    bench_add(bench, "memory, MB", resident_of(d->pid) * 1e-6, -1);
}

/* Seconds of CPU per beat. */
static double measure_beats(const struct dispatcher *d)
{
    double cpu = bench_cpu_of(d->pid);

    beats = 0;
    beat_for(SECONDS / 2);
    return (bench_cpu_of(d->pid) - cpu) / (double)beats;
}

/* The same per lease; there are ten times as many as beats of runs. */
static double measure_leases(const struct dispatcher *d)
{
    double cpu;

    begin_leasing();
    beat_for(1);
    cpu = bench_cpu_of(d->pid);
    leases = 0;
    beat_for(SECONDS / 2);
    cpu = bench_cpu_of(d->pid) - cpu;
    if (leases < 10)
        bench_die("nothing is leased");
    return cpu / (double)leases;
}

#define SIZES 3 /* 100, 1,000 and 10,000 workers */

struct build {
    char program[4096];
    const char *groups[3];
    double beat[SIZES], lease[SIZES]; /* us of CPU, this round */
};

static int size_of(int i)
{
    return i == 0 ? WORKERS / 100 : 10 * size_of(i - 1);
}

static void run_size(struct bench *bench, struct build *build, int i)
{
    double begin;
    struct dispatcher d;

    workers = size_of(i);
    runs = workers / 10;
    start(&d, build->program);
    begin = bench_now();
    connect_all(&d);
    beat_for(1);
    begin = bench_now() - begin;
    build->beat[i] = 1e6 * measure_beats(&d);
    if (workers == WORKERS) {
        bench_group(bench, build->groups[2]);
        measure_calls(bench, &d);
        bench_add(bench, "joining, s", begin, -1);
    }
    build->lease[i] = 1e6 * measure_leases(&d);
    disconnect_all(&d);
}

static void add_sizes(struct bench *bench, const struct build *build)
{
    for (int group = 0; group < 2; group++) {
        bench_group(bench, build->groups[group]);
        for (int i = 0; i < SIZES; i++) {
            char row[32];

            snprintf(row, sizeof row, "%d workers", size_of(i));
            bench_add(bench, row, group == 0 ? build->beat[i] : build->lease[i], -1);
        }
    }
}

static void claim_p99(struct bench *bench, const char *path)
{
    char row[64], claim[64];

    snprintf(row, sizeof row, "%s, p99, ms", path);
    snprintf(claim, sizeof claim, "p99 of %s, ms", path);
    bench_claim_value(bench, claim, bench_median(bench, row), false, 50);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    static struct build builds[2] = {
        {.groups = {"CPU per beat, us", "CPU per lease, us", "10,000 workers"}},
        {.groups = {"the other build: CPU per beat, us",
                    "the other build: CPU per lease, us",
                    "the other build: 10,000 workers"}},
    };
    const char *other = getenv("HEADRACE_OTHER");
    const int count = other != NULL ? 2 : 1;
    struct rlimit limit;

    bench_init(&bench, argc, argv, "heartbeats",
               "a dispatcher with 10,000 workers and 1,000 runs, a beat each 100 ms", "");
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < FILES)
        bench_die("this benchmark needs %d open files (ulimit -Hn)", FILES);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        bench_die("cannot raise the limit of open files");
    pool = hr_pool_create(0);
    if (pool == NULL)
        bench_die("out of memory");
    bench_path(builds[0].program, sizeof builds[0].program, "../headrace");
    snprintf(builds[1].program, sizeof builds[1].program, "%s",
             other != NULL ? other : "");
    for (int round = 0; round < bench.rounds; round++) {
        for (int i = 0; i < SIZES; i++)
            for (int build = 0; build < count; build++)
                run_size(&bench, &builds[build], i);
        for (int build = 0; build < count; build++)
            add_sizes(&bench, &builds[build]);
    }
    bench_group(&bench, builds[0].groups[2]);
    bench_claim_value(&bench, "cores of the dispatcher",
                      bench_median(&bench, "dispatcher, cores"), false, 1);
    for (int path = 0; path < ALL; path++)
        claim_p99(&bench, paths[path]);
    bench_print(&bench);
    hr_pool_unref(pool);
    return 0;
}
