/*
 * fleet/dispatcher_test.c - a dispatcher's process with more workers, jobs and consumers
 * than one piece of an answer holds. Plain sockets are its peers.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/rng.h"
#include "fleet/control.h"
#include "fleet/job.h"
#include "headrace/service.h"
#include "net/address.h"
#include "net/http.h"
#include "tests/support/check.h"

#define WORKERS 150
#define JOBS 140
#define CONSUMERS 130 /* of SHARED jobs between them */
#define SHARED 3
#define WAIT_NS 20000000000ul

static struct hr_service *service;
static pthread_t thread;
static int workers[WORKERS], clients[JOBS];

/* ---- peers ---- */

static int dial(void)
{
    struct sockaddr_storage at;
    socklen_t bytes;
    int fd;

    CHECK_OK(hr__address_parse(hr_service_address(service), &at, &bytes, NULL));
    fd = socket(at.ss_family, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK_EQ_INT(connect(fd, (struct sockaddr *)&at, bytes), 0);
    return fd;
}

static void say(int fd, const struct hr_frame *frame, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0, size;
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];
    uint64_t sum;

    if (text == NULL) {
        size = hr__frame_write(frame, bytes);
    } else {
        sum = hr__frame_sum(hr__frame_write_body(frame, length, bytes), text, length);
        memcpy(bytes + HR_FRAME_HEAD, text, length);
        memcpy(bytes + HR_FRAME_HEAD + length, &sum, HR_FRAME_TAIL);
        size = HR_FRAME_HEAD + length + HR_FRAME_TAIL;
    }
    CHECK_EQ_INT(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* A worker that says it listens at this line. */
static int join_at(int at, const char *line)
{
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .count = 4};
    int fd = dial();

    hello.u.hello.nonce = (uint64_t)at + 1;
    hello.u.hello.role = HR_FRAME_WORKER;
    say(fd, &hello, NULL);
    say(fd, &(struct hr_frame){.type = HR_FRAME_WORKERS, .count = 1}, line);
    return fd;
}

static int join_worker(int at)
{
    char text[64];

    snprintf(text, sizeof text, "10.0.0.%d:7070\n", at);
    return join_at(at, text);
}

/* Returns the job's number. */
static uint64_t bring_job(int fd, int at)
{
    char text[128];

    snprintf(text, sizeof text, "{\"headrace_job\": 2, \"name\": \"run-%d\"}", at);
    say(fd, &(struct hr_frame){.type = HR_FRAME_JOB, .position = 10}, text);
    return hr__job_id(text, strlen(text));
}

static int join_client(int at)
{
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .position = 10};
    int fd = dial();

    hello.job = bring_job(fd, at);
    hello.u.hello.nonce = 1;
    hello.u.hello.world = 1;
    hello.u.hello.role = HR_FRAME_CLIENT;
    hello.u.hello.weight = 1;
    say(fd, &hello, NULL);
    return fd;
}

/* One of several consumers of a job. */
static int join_consumer(int at)
{
    struct hr_frame hello = {.type = HR_FRAME_HELLO, .position = 10};
    char job[128], name[32];
    int fd = dial();

    snprintf(job, sizeof job,
             "{\"headrace_job\": 2, \"name\": \"shared-%d\", \"consumers\": true}",
             at % SHARED);
    snprintf(name, sizeof name, "consumer-%d", at);
    say(fd, &(struct hr_frame){.type = HR_FRAME_JOB, .position = 10}, job);
    say(fd, &(struct hr_frame){.type = HR_FRAME_CONSUMER}, name);
    hello.job = hr__job_id(job, strlen(job));
    hello.u.hello.nonce = (uint64_t)at + 1;
    hello.u.hello.world = 1;
    hello.u.hello.role = HR_FRAME_CLIENT;
    hello.u.hello.weight = 1;
    say(fd, &hello, NULL);
    return fd;
}

/* ---- answers ---- */

/* The answer's body, to be freed by hr__str_finish(). */
static void ask(const char *path, struct hr_str *ret_body)
{
    const struct hr_token none = {0};

    hr__str_init(ret_body);
    CHECK_OK(hr__http_request(hr_service_control_address(service), &none, path, NULL,
                              WAIT_NS, ret_body, NULL));
}

static int times(const char *text, const char *part)
{
    int count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

static int times_in(const char *path, const char *part)
{
    struct hr_str body;
    int count;

    ask(path, &body);
    count = times(hr__str_text(&body), part);
    hr__str_finish(&body);
    return count;
}

static void wait_for(const char *line)
{
    uint64_t until = hr__now_ns() + WAIT_NS;

    while (times_in("/metrics", line) == 0) {
        CHECK(hr__now_ns() < until);
        usleep(1000);
    }
}

/* Whether exactly those of the list are in the text, each once. */
static void check_each(const char *text, const char *format, int count, const bool *gone)
{
    for (int i = 0; i < count; i++) {
        char part[64];

        snprintf(part, sizeof part, format, i);
        CHECK_EQ_INT(times(text, part), gone == NULL || !gone[i]);
    }
}

static void check_lists(const bool *gone)
{
    struct hr_str body;

    ask("/v1/status", &body);
    check_each(hr__str_text(&body), "\"10.0.0.%d:7070\"", WORKERS, gone);
    check_each(hr__str_text(&body), "\"run-%d\"", JOBS, NULL);
    CHECK_EQ_INT(times(hr__str_text(&body), "\"workers\":[{"), 1);
    CHECK_EQ_INT(times(hr__str_text(&body), "}],\"jobs\":[{"), 1);
    CHECK_EQ_INT(times(hr__str_text(&body), "}],\"consumers\":[]}\n"), 1);
    CHECK_EQ_INT(times(hr__str_text(&body), ",,"), 0);
    hr__str_finish(&body);
    CHECK_EQ_INT(times_in("/v1/jobs", "\"run-"), JOBS);
    CHECK_EQ_INT(times_in("/v1/jobs", "\"10.0.0."), 0);
    ask("/v1/workers", &body);
    CHECK_EQ_INT(strncmp(hr__str_text(&body), "{\"workers\":[{", 13), 0);
    check_each(hr__str_text(&body), "\"10.0.0.%d:7070\"", WORKERS, gone);
    CHECK_EQ_INT(times(hr__str_text(&body), "\"run-"), 0);
    CHECK_EQ_INT(times(hr__str_text(&body), "}],\"next\":0}\n"), 1);
    hr__str_finish(&body);
}

static void *run(void *user)
{
    (void)user;
    CHECK_OK(hr_service_run(service, NULL));
    return NULL;
}

/* With a journal in this folder, or NULL. */
static enum hr_err try_begin(uint32_t jobs_max, uint32_t peers_max, const char *journal)
{
    struct hr_dispatcher_options options;

    hr_dispatcher_options_init(&options);
    options.jobs_max = jobs_max;
    options.peers_max = peers_max;
    options.journal = journal;
    options.listen = options.control = "127.0.0.1:0";
    HR_TRY(hr_dispatcher_open(&options, &service, NULL));
    CHECK_EQ_INT(pthread_create(&thread, NULL, run, NULL), 0);
    return HR_OK;
}

static void begin_with(uint32_t jobs_max, uint32_t peers_max)
{
    CHECK_OK(try_begin(jobs_max, peers_max, NULL));
}

static void begin(void)
{
    begin_with(JOBS, WORKERS + JOBS);
}

static void end(void)
{
    hr_service_stop(service);
    pthread_join(thread, NULL);
    hr_service_close(service);
}

/* Checks that the reason for closing a connection contains `words`, and closes it. */
static void check_told(int fd, const char *words)
{
    char bytes[4096];
    size_t have = 0;
    ssize_t got;

    while ((got = recv(fd, bytes + have, sizeof bytes - have, 0)) > 0)
        have += (size_t)got;
    CHECK(memmem(bytes, have, words, strlen(words)) != NULL);
    close(fd);
}

TEST(jobs_of_strangers_keep_no_client_out)
{
    int strangers[3], client;

    begin_with(3, 100);
    for (int i = 0; i < 3; i++) {
        strangers[i] = dial();
        bring_job(strangers[i], i);
    }
    wait_for("\nheadrace_jobs 3\n");
    bring_job(strangers[0], 7);
    check_told(strangers[0], "a connection brings one job");
    for (int i = 8;; i++) {
        client = join_client(i);
        usleep(200000);
        if (times_in("/metrics", "\nheadrace_clients 1\n") == 1)
            break;
        close(client);
        CHECK(i < 80); /* it took a minute */
    }
    end();
    close(client);
    close(strangers[1]);
    close(strangers[2]);
}

TEST(addresses_that_could_rewrite_a_terminal_are_refused)
{
    static const char *const wrong[] = {"\x1b[2J:1\n", "\xc2\x9b:1\n", "\xff:1\n",
                                        "a:1\nb:2\n",  "a:1",          "\n"};

    begin();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        check_told(join_at((int)i, wrong[i]), "a WORKERS frame must be");
    CHECK_EQ_INT(times_in("/metrics", "\nheadrace_workers 0\n"), 1);
    end();
}

TEST(lists_longer_than_a_piece_name_each_worker_and_job_once)
{
    bool gone[WORKERS] = {false};
    struct hr_rng rng;
    char line[64];
    int left = 0;

    hr__rng_init(&rng, check_seed(), 0, 0);
    begin();
    for (int i = 0; i < WORKERS; i++)
        workers[i] = join_worker(i);
    for (int i = 0; i < JOBS; i++)
        clients[i] = join_client(i);
    snprintf(line, sizeof line, "\nheadrace_workers %d\n", WORKERS);
    wait_for(line);
    snprintf(line, sizeof line, "\nheadrace_clients %d\n", JOBS);
    wait_for(line);
    check_lists(gone);
    for (int i = 0; i < WORKERS; i++)
        if (hr__rng_below(&rng, 2) == 0) {
            close(workers[i]);
            gone[i] = true;
            left++;
        }
    snprintf(line, sizeof line, "\nheadrace_workers %d\n", WORKERS - left);
    wait_for(line);
    check_lists(gone);
    end();
    for (int i = 0; i < WORKERS; i++)
        if (!gone[i])
            close(workers[i]);
    for (int i = 0; i < JOBS; i++)
        close(clients[i]);
}

/* Whether the pages of this length name each consumer once. */
static void check_pages(unsigned limit)
{
    bool seen[CONSUMERS] = {false};
    unsigned long long after = 0;
    int count = 0;

    do {
        struct hr_str body;
        char path[64];
        const char *at;
        unsigned entries = 0, number;

        snprintf(path, sizeof path, "/v1/consumers?limit=%u&after=%llu", limit, after);
        ask(path, &body);
        for (at = hr__str_text(&body); (at = strstr(at, "\"consumer-")) != NULL; at++) {
            CHECK_EQ_INT(sscanf(at, "\"consumer-%u\"", &number), 1);
            CHECK(number < CONSUMERS && !seen[number]);
            seen[number] = true;
            entries++;
        }
        CHECK(entries <= limit);
        count += (int)entries;
        at = strstr(hr__str_text(&body), "\"next\":");
        CHECK(at != NULL && sscanf(at, "\"next\":%llu}\n", &after) == 1);
        hr__str_finish(&body);
    } while (after != 0);
    CHECK_EQ_INT(count, CONSUMERS);
}

TEST(lists_longer_than_a_piece_name_each_consumer_once)
{
    struct hr_control_options asked = {.timeout_ns = WAIT_NS};
    struct hr_control_status *status = NULL;
    int consumers[CONSUMERS], client;
    enum hr_err code = try_begin(JOBS, CONSUMERS + 10, check_temp_dir());

    if (code == HR_ERR_UNSUPPORTED)
        SKIP("built without SQLite, or it is not installed");
    CHECK_OK(code);
    for (int i = 0; i < CONSUMERS; i++)
        consumers[i] = join_consumer(i);
    client = join_client(0);
    wait_for("\nheadrace_consumers 130\n");
    wait_for("\nheadrace_clients 131\n");
    CHECK_EQ_INT(times_in("/metrics", "\nheadrace_jobs 4\n"), 1);
    for (unsigned limit = 1; limit < 3 * CONSUMERS; limit = 2 * limit + 1)
        check_pages(limit);
    CHECK_EQ_INT(times_in("/v1/status?limit=100", "\"consumer-"), 100);
    CHECK_EQ_INT(times_in("/v1/status?limit=0", "\"consumer_count\":130,"), 1);
    CHECK_EQ_INT(times_in("/v1/status?limit=0", "\"consumers\":[]}\n"), 1);
    asked.address = hr_service_control_address(service);
    CHECK_OK(hr_control_status(&asked, &status, NULL));
    CHECK_EQ_INT(status->consumer_count, CONSUMERS);
    CHECK_EQ_INT(status->job_count, 1 + SHARED);
    CHECK_EQ_INT(status->jobs_known, 1 + SHARED);
    CHECK_EQ_INT(status->clients, 1 + CONSUMERS);
    hr_control_status_free(status);
    for (int i = 0; i < CONSUMERS; i++)
        close(consumers[i]);
    wait_for("\nheadrace_clients 1\n");
    CHECK_EQ_INT(times_in("/metrics", "\nheadrace_consumers 0\n"), 1);
    end();
    close(client);
}

/* Raises the limit on open files to `count`; false if the hard limit is lower. */
static bool allow_files(rlim_t count)
{
    struct rlimit limit;

    CHECK_EQ_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < count)
        return false;
    limit.rlim_cur = limit.rlim_cur < count ? count : limit.rlim_cur;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static uint32_t next_page(void)
{
    struct hr_str body;
    unsigned next;

    ask("/v1/workers", &body);
    CHECK_EQ_INT(sscanf(strstr(hr__str_text(&body), "\"next\":"), "\"next\":%u", &next),
                 1);
    hr__str_finish(&body);
    return next;
}

TEST(a_list_without_a_limit_has_a_thousand_entries)
{
    const int count = HR_CONTROL_LIMIT + 3;
    static int fds[HR_CONTROL_LIMIT + 3];
    struct hr_control_options asked = {.timeout_ns = WAIT_NS};
    struct hr_control_status *status = NULL;
    char line[64];

    if (!allow_files(2 * (rlim_t)count + 100))
        SKIP("too few open files are allowed");
    begin_with(3, (uint32_t)count + 10);
    for (int i = 0; i < count; i++) {
        snprintf(line, sizeof line, "10.0.%d.%d:7070\n", i / 256, i % 256);
        fds[i] = join_at(i, line);
    }
    snprintf(line, sizeof line, "\nheadrace_workers %d\n", count);
    wait_for(line);
    CHECK_EQ_INT(times_in("/v1/workers", "\"10.0."), HR_CONTROL_LIMIT);
    CHECK_EQ_INT(times_in("/v1/status", "\"10.0."), HR_CONTROL_LIMIT);
    snprintf(line, sizeof line, "/v1/workers?after=%u", next_page());
    CHECK_EQ_INT(times_in(line, "\"10.0."), 3);
    CHECK_EQ_INT(times_in("/v1/workers" HR_CONTROL_ALL, "\"10.0."), count);
    asked.address = hr_service_control_address(service);
    CHECK_OK(hr_control_status(&asked, &status, NULL));
    CHECK_EQ_INT(status->worker_count, count); /* the command shows all */
    hr_control_status_free(status);
    end();
    for (int i = 0; i < count; i++)
        close(fds[i]);
}
