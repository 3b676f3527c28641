/*
 * store/web_test.c - reads over HTTP from a server that fails, stalls, cuts, changes and
 * lies. Outcomes and counts are checked, not times.
 */
#include "core/alloc.h"
#include "core/file.h"
#include "store/store.h"
#include "store/web_internal.h"
#include "tests/support/check.h"
#include "tests/support/server.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 300000

static unsigned char byte_of(size_t at)
{
    return (unsigned char)(at * 31 + (at >> 8) * 7);
}

static void put(const char *name, size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    char path[1024];

    CHECK(data != NULL);
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(i);
    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, data, bytes, NULL));
    free(data);
}

static const char *root(void)
{
    static const char *uri;

    if (uri == NULL) {
        uri = http_server_start(check_temp_dir());
        put("x", SIZE);
        put("small", 5000);
        put("empty", 0);
    }
    return uri;
}

/* "FAULTS/NAME" or "NAME". */
static const char *at(const char *name)
{
    static char uris[4][600];
    static int turn;
    char *uri = uris[turn++ % 4];

    snprintf(uri, sizeof uris[0], "%s/%s%s", root(),
             strchr(name, '/') != NULL ? "f/" : "", name);
    return uri;
}

/* Limits are read when the next request starts the thread. */
static void set_limit(const char *name, const char *value)
{
    hr__web_stop();
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static struct hr_web_stats stats_now(void)
{
    struct hr_web_stats stats;

    hr__web_stats(&stats);
    return stats;
}

/* What the server did since the last call. */
static const char *server_log(void)
{
    static char *text;
    char path[1024];
    size_t bytes;

    hr__free(text);
    text = NULL;
    snprintf(path, sizeof path, "%s/log", check_temp_dir());
    if (hr__file_read(path, 1 << 20, &text, &bytes, NULL) != HR_OK)
        return "";
    CHECK_EQ_INT(unlink(path), 0);
    return text;
}

static void check_bytes(const unsigned char *data, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != byte_of((size_t)offset + i))
            check_failed(__FILE__, __LINE__, "byte %zu of %zu is wrong", i, bytes);
}

static enum hr_err
read_range(const char *uri, uint64_t offset, size_t bytes, struct hr_error *error)
{
    unsigned char *data = malloc(bytes + 1);
    struct hr_object object;
    bool waited;
    enum hr_err err = hr__store_open(uri, &object, error);

    CHECK(data != NULL);
    if (err == HR_OK) {
        err = hr__store_read(&object, offset, data, bytes, NULL, &waited, error);
        hr__store_close(&object);
        if (err == HR_OK)
            check_bytes(data, offset, bytes);
    }
    free(data);
    return err;
}

static void read_ok(const char *uri, uint64_t offset, size_t bytes)
{
    struct hr_error error = {0};
    enum hr_err err = read_range(uri, offset, bytes, &error);

    if (err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s: %s", uri, error.message);
}

static void fails(const char *uri, enum hr_err expected, const char *part)
{
    struct hr_error error = {0};
    enum hr_err err = read_range(uri, 5, SIZE - 5, &error);

    CHECK_HAS(error.message, part);
    CHECK_ERR(expected, err);
}

/* ---- reads in flight ---- */

struct flight {
    struct hr_store_read read; /* first */
    struct hr_range range;
    struct hr_error error;
    unsigned char *data;
    atomic_int done;
    enum hr_err err;
};

static unsigned room_us; /* that the thread of the requests is kept */
static int begun, most_begun;

static enum hr_err give_room(struct hr_store_read *read, void **ret_data)
{
    struct flight *flight = (struct flight *)read;

    if (room_us > 0)
        usleep(room_us);
    if (++begun > most_begun)
        most_begun = begun;
    flight->data = malloc(read->bytes + 1);
    *ret_data = flight->data;
    return flight->data != NULL ? HR_OK : HR_ERR_MEMORY;
}

static void arrived(struct hr_store_read *read, enum hr_err err)
{
    struct flight *flight = (struct flight *)read;

    begun -= err == HR_OK;
    flight->err = err;
    atomic_store(&flight->done, 1);
}

static struct hr_store_read *
read_of(struct flight *flight, const char *uri, uint64_t offset, uint64_t bytes)
{
    *flight = (struct flight){
        .range = {.offset = offset, .bytes = bytes}
    };
    snprintf(flight->range.uri, sizeof flight->range.uri, "%s", uri);
    flight->read = (struct hr_store_read){.range = &flight->range,
                                          .error = &flight->error,
                                          .room = give_room,
                                          .done = arrived};
    return &flight->read;
}

static void begin(struct hr_channel *channel, struct flight *flight, const char *uri,
                  uint64_t offset, uint64_t bytes)
{
    hr__channel_submit(channel, read_of(flight, uri, offset, bytes));
}

static void check_flight(struct flight *flight)
{
    if (flight->err != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", flight->error.message);
    check_bytes(flight->data, flight->range.offset, flight->read.bytes);
    free(flight->data);
}

static void await_ok(struct flight *flight)
{
    while (atomic_load(&flight->done) == 0)
        usleep(1000);
    check_flight(flight);
}

static void fetch_ok(const char *uri, uint64_t offset, uint64_t bytes)
{
    struct flight flight;

    flight.err = hr__store_fetch(read_of(&flight, uri, offset, bytes), NULL);
    begun--;
    check_flight(&flight);
}

static struct hr_channel *open_channel(uint32_t depth)
{
    struct hr_channel_options options = {.depth = depth};
    struct hr_channel *channel;

    CHECK_OK(hr__channel_open(root(), &options, &channel, NULL));
    CHECK_EQ_INT(hr__channel_mode(channel), HR_CHANNEL_REQUESTS);
    return channel;
}

TEST(a_range_is_fetched_with_one_get)
{
    (void)server_log();
    fetch_ok(at("x"), 0, HR_RANGE_REST);
    fetch_ok(at("x"), 1234, 100000);
    fetch_ok(at("x"), SIZE - 10, HR_RANGE_REST);
    fetch_ok(at("cut=1000,times=1/x"), 0, SIZE);
    fetch_ok(at("noranges=1/x"), 1234, 1000);
    CHECK_EQ_STR(server_log(), "/x - 200\n"
                               "/x bytes=1234-101233 206\n"
                               "/x bytes=299990- 206\n"
                               "/f/cut=1000,times=1/x bytes=0-299999 206\n"
                               "/f/cut=1000,times=1/x bytes=1000-299999 206\n"
                               "/f/noranges=1/x bytes=1234-2233 200\n");
}

/* ---- names ---- */

TEST(names_are_sent_as_they_are_written)
{
    static const char *const names[] = {"a b.bin", "a#b{c}.bin", "a+b&c;d=e.bin",
                                        "gr\xc3\xbc\xc3\x9f\x65.bin"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char uri[600];

        snprintf(uri, sizeof uri, "%s/%s", root(), names[i]);
        put(names[i], 1000);
        read_ok(uri, 10, 990);
    }
    read_ok(at("a%20b.bin"), 0, 1000);
    read_ok(at("x?version=2"), 0, SIZE);
}

TEST(secrets_in_names_are_refused_and_not_repeated)
{
    static const char *const names[] = {
        "http://me:hunter2@127.0.0.1:1/x", "https://hunter2@127.0.0.1:1/x",
        "http://127.0.0.1:1/x?a=b&X-Amz-Signature=hunter2",
        "https://127.0.0.1:1/x?sig=hunter2&a"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hr_error error = {0};
        struct hr_object object;

        CHECK_ERR(HR_ERR_ARGUMENT, hr__store_open(names[i], &object, &error));
        CHECK(strstr(error.message, "hunter2") == NULL);
        CHECK(strstr(error.file, "hunter2") == NULL);
        CHECK_HAS(error.message, "must not contain");
    }
}

/* ---- answers ---- */

TEST(errors_name_the_object_and_the_status)
{
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_NOT_FOUND, read_range(at("none"), 0, 1, &error));
    CHECK_HAS(error.message, "/none: HTTP status 404");
    CHECK_ERR(HR_ERR_IO, read_range(at("status=403/x"), 0, 1, &error));
    CHECK_HAS(error.message, "HTTP status 403");
    CHECK_EQ_STR(error.file, at("status=403/x"));
    (void)server_log();
    fails(at("status=400/x"), HR_ERR_IO, "HTTP status 400");
    CHECK_EQ_STR(server_log(), "/f/status=400/x bytes=0-0 400\n"); /* not repeated */
}

TEST(failures_that_may_pass_are_repeated_up_to_a_limit)
{
    static const char *const passing[] = {"status=503,times=2/x", "status=429,times=2/x",
                                          "status=500,times=1/x", "status=408,times=1/x",
                                          "status=503,times=1,after=0/x"};
    struct hr_web_stats before = stats_now();

    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        read_ok(at(passing[i]), 7, 1000);
    CHECK(stats_now().retries >= before.retries + 7);
    set_limit("HEADRACE_HTTP_TRIES", "3");
    (void)server_log();
    fails(at("status=503/x"), HR_ERR_IO, "HTTP status 503, after 3 tries");
    CHECK_EQ_STR(server_log(), "/f/status=503/x bytes=0-0 503\n"
                               "/f/status=503/x bytes=0-0 503\n"
                               "/f/status=503/x bytes=0-0 503\n");
    fails("http://127.0.0.1:1/x", HR_ERR_IO, "http://127.0.0.1:1/x");
    set_limit("HEADRACE_HTTP_TRIES", NULL);
}

TEST(a_body_that_is_cut_is_resumed_at_the_byte_reached)
{
    struct hr_web_stats before = stats_now();

    (void)server_log();
    read_ok(at("cut=1000,times=3/x"), 0, SIZE);
    CHECK_EQ_STR(server_log(), "/f/cut=1000,times=3/x bytes=0-0 206\n"
                               "/f/cut=1000,times=3/x - 200\n"
                               "/f/cut=1000,times=3/x bytes=1000- 206\n"
                               "/f/cut=1000,times=3/x bytes=2000- 206\n");
    read_ok(at("cut=500,times=2/x"), 100, 2000);
    CHECK_EQ_STR(server_log(), "/f/cut=500,times=2/x bytes=0-0 206\n"
                               "/f/cut=500,times=2/x bytes=100-2099 206\n"
                               "/f/cut=500,times=2/x bytes=600-2099 206\n");
    CHECK(stats_now().resumed >= before.resumed + 3);
}

TEST(a_read_that_is_cut_for_good_names_the_byte_reached)
{
    struct hr_error error = {0};

    set_limit("HEADRACE_HTTP_TRIES", "3");
    CHECK_ERR(HR_ERR_IO, read_range(at("cut=100/x"), 1000, 5000, &error));
    CHECK_HAS(error.message, "the body ended early, after 3 tries");
    CHECK_HAS(error.message, "(at byte 1300 of 300000)");
    set_limit("HEADRACE_HTTP_TRIES", NULL);
}

/* Each GET brings 1000 bytes at most: 5000 need four stalls at least. */
TEST(a_body_that_stalls_is_resumed)
{
    struct hr_web_stats before = stats_now();

    set_limit("HEADRACE_HTTP_STALL_MS", "100");
    setenv("HEADRACE_HTTP_TRIES", "100", 1);
    setenv("HEADRACE_HTTP_HEDGE", "0", 1);
    read_ok(at("stall=1000/small"), 0, 5000);
    CHECK(stats_now().stalls >= before.stalls + 4);
    CHECK(stats_now().resumed >= before.resumed + 4);
    unsetenv("HEADRACE_HTTP_HEDGE");
    unsetenv("HEADRACE_HTTP_TRIES");
    set_limit("HEADRACE_HTTP_STALL_MS", NULL);
}

TEST(an_object_that_changes_is_named)
{
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_FORMAT, read_range(at("change=1/x"), 10, 100, &error));
    CHECK_HAS(error.message, "/x changed while it was read");
    /* in the middle of one read */
    CHECK_ERR(HR_ERR_FORMAT,
              read_range(at("change=2,cut=1000,times=9/x"), 0, SIZE, &error));
    CHECK_HAS(error.message, "changed while it was read (at byte 1000 of 300000)");
    read_ok(at("noetag=1/x"), 5, 1000);
}

TEST(a_server_without_ranges_is_read_whole_within_a_limit)
{
    struct hr_channel *channel = open_channel(4);
    struct flight flight;

    (void)server_log();
    read_ok(at("noranges=1/x"), 1234, 100000);
    CHECK_EQ_STR(server_log(), "/f/noranges=1/x bytes=0-0 200\n"
                               "/f/noranges=1/x - 200\n");
    begin(channel, &flight, at("noranges=1/x"), 1000, 2000);
    await_ok(&flight);
    hr__channel_close(channel);
    read_ok(at("noranges=1,cut=1000,times=2/x"), 0, SIZE);
    setenv("HEADRACE_HTTP_WHOLE_BYTES", "1000", 1);
    fails(at("noranges=1/x"), HR_ERR_UNSUPPORTED, "does not serve ranges");
    unsetenv("HEADRACE_HTTP_WHOLE_BYTES");
}

TEST(servers_that_lie_are_named)
{
    fails(at("wrong=1/x"), HR_ERR_FORMAT, "sends bytes from 1 instead of 0");
    fails(at("other=1/x"), HR_ERR_FORMAT, "sends bytes from 0 instead of 5");
    fails(at("headers=100000/x"), HR_ERR_LIMIT, "65536 bytes of headers");
    fails(at("noranges=1,nolength=1/x"), HR_ERR_UNSUPPORTED, "how long it is");
    read_ok(at("nolength=1/x"), 5, SIZE - 5);
    read_ok(at("piece=7/small"), 5, 4995);
}

TEST(redirects_are_followed_up_to_a_limit)
{
    read_ok(at("redirect=3/x"), 5, 1000);
    fails(at("redirect=100/x"), HR_ERR_IO, "redirect");
}

TEST(empty_objects_and_empty_ranges_are_read)
{
    struct hr_channel *channel = open_channel(4);
    struct flight flight;

    read_ok(at("empty"), 0, 0);
    read_ok(at("empty416=1/empty"), 0, 0);
    read_ok(at("noranges=1/empty"), 0, 0);
    begin(channel, &flight, at("x"), 7, 0);
    await_ok(&flight);
    begin(channel, &flight, at("x"), SIZE, HR_RANGE_REST);
    await_ok(&flight);
    begin(channel, &flight, at("empty416=1/empty"), 0, HR_RANGE_REST);
    await_ok(&flight);
    hr__channel_close(channel);
    fetch_ok(at("x"), 7, 0);
    fetch_ok(at("x"), SIZE, HR_RANGE_REST);
    fetch_ok(at("empty416=1/empty"), 0, HR_RANGE_REST);
}

/* ---- many ---- */

TEST(many_reads_with_some_that_fail_are_all_right)
{
    enum { READS = 300, DEPTH = 64 };
    struct hr_channel *channel;
    struct flight *flights = calloc(READS, sizeof *flights);
    struct hr_web_stats before = stats_now();

    CHECK(flights != NULL);
    set_limit("HEADRACE_HTTP_HEDGE", "0"); /* a hedge would do for a retry */
    channel = open_channel(DEPTH);
    for (size_t i = 0; i < READS; i++)
        begin(channel, &flights[i],
              at(i % 2 == 0 ? "each=20,status=503/x" : "each=20,cut=900/x"), i * 100,
              20000);
    for (size_t i = 0; i < READS; i++)
        await_ok(&flights[i]);
    CHECK(stats_now().retries >= before.retries + 14);
    CHECK_EQ_INT(stats_now().requests, before.requests + READS);
    hr__channel_close(channel);
    set_limit("HEADRACE_HTTP_HEDGE", NULL);
    free(flights);
}

/* They wait longer than a server may be silent. */
TEST(large_bodies_wait_for_each_other_and_are_not_silent_meanwhile)
{
    enum { READS = 16 };
    struct hr_web_stats before = stats_now();
    struct flight flights[READS];
    struct hr_channel *channel;

    set_limit("HEADRACE_HTTP_HEDGE", "0");
    set_limit("HEADRACE_HTTP_STALL_MS", "2000");
    room_us = 250000;
    begun = most_begun = 0;
    channel = open_channel(READS);
    for (int i = 0; i < READS; i++)
        begin(channel, &flights[i], at("x"), 0, SIZE);
    for (int i = 0; i < READS; i++)
        await_ok(&flights[i]);
    hr__channel_close(channel);
    room_us = 0;
    CHECK(most_begun < READS);
    CHECK_EQ_INT(stats_now().gets, before.gets + READS);
    CHECK_EQ_INT(stats_now().stalls, before.stalls);
    set_limit("HEADRACE_HTTP_STALL_MS", NULL);
    set_limit("HEADRACE_HTTP_HEDGE", NULL);
}

TEST(bodies_that_stall_do_not_keep_others_waiting)
{
    struct hr_channel *channel;
    struct flight flights[16];

    set_limit("HEADRACE_HTTP_HEDGE", "0");
    set_limit("HEADRACE_HTTP_STALL_MS", "3000000");
    channel = open_channel(16);
    for (int i = 0; i < 16; i++)
        begin(channel, &flights[i], at(i < 8 ? "stall=1000/x" : "x"), 0, SIZE);
    for (int i = 8; i < 16; i++)
        await_ok(&flights[i]);
    hr__channel_close(channel);
    for (int i = 0; i < 8; i++)
        free(flights[i].data);
    set_limit("HEADRACE_HTTP_STALL_MS", NULL);
    set_limit("HEADRACE_HTTP_HEDGE", NULL);
}

TEST(waiting_bodies_can_be_cancelled)
{
    struct hr_channel *channel = open_channel(32);
    struct flight flights[32];

    room_us = 20000;
    for (int i = 0; i < 32; i++)
        begin(channel, &flights[i], at("x"), 0, SIZE);
    usleep(50000);
    hr__channel_close(channel);
    room_us = 0;
    for (int i = 0; i < 32; i++) {
        CHECK(flights[i].err == HR_OK || flights[i].err == HR_ERR_CANCELLED);
        free(flights[i].data);
    }
}

/* A link on which a connection has `one` and all have `all`, in bytes per ms: the limit
 * after 100 windows. */
static uint32_t limit_of(uint64_t one, uint64_t all)
{
    struct hr_web_bodies bodies;
    uint64_t now = 0;

    hr__web_bodies_init(&bodies);
    for (int i = 0; i < 100; i++) {
        uint64_t rate = bodies.limit * one < all ? bodies.limit * one : all;

        bodies.waiting = 1;
        bodies.bytes += rate * 20;
        now += 20000000;
        hr__web_bodies_adapt(&bodies, now, 20000000);
    }
    return bodies.tries ? bodies.before : bodies.limit;
}

TEST(as_many_bodies_run_as_the_rate_gains_from)
{
    CHECK_EQ_INT(limit_of(1000000, 1000000), 2);
    CHECK_EQ_INT(limit_of(1000000, 4000000), 4);
    CHECK_EQ_INT(limit_of(10000, 1000000), 128);
    CHECK_EQ_INT(limit_of(1, 1000000), 1024);
}

TEST(connections_are_kept)
{
    struct hr_web_stats before = stats_now(), after;

    set_limit("HEADRACE_HTTP_HEDGE", "0");
    for (int i = 0; i < 50; i++)
        read_ok(at("x"), 10, 1000);
    after = stats_now();
    CHECK_EQ_INT(after.gets, before.gets + 100);
    CHECK_EQ_INT(after.connections, before.connections + 1);
    set_limit("HEADRACE_HTTP_HEDGE", NULL);
}

/* The first GET of the object never brings a byte, and stalls are not noticed: only a
 * second one can. */
TEST(a_request_that_is_silent_for_long_is_hedged)
{
    struct hr_web_stats before = stats_now();
    struct hr_channel *channel;
    struct flight flight;

    set_limit("HEADRACE_HTTP_STALL_MS", "3000000");
    channel = open_channel(4);
    for (int i = 0; i < 64; i++) {
        begin(channel, &flight, at("x"), 10, 1000);
        await_ok(&flight);
    }
    begin(channel, &flight, at("stall=0,times=1/x"), 10, 1000);
    await_ok(&flight);
    begin(channel, &flight, at("stall=700,times=1/x"), 20, 1000);
    await_ok(&flight);
    CHECK(stats_now().hedges >= before.hedges + 2);
    CHECK(stats_now().hedges_won >= before.hedges_won + 2);
    hr__channel_close(channel);
    set_limit("HEADRACE_HTTP_STALL_MS", NULL);
}

TEST(a_read_that_a_thread_waits_for_overtakes_reads_ahead)
{
    struct hr_channel *channel;
    struct flight flights[4];

    set_limit("HEADRACE_HTTP_HEDGE", "0");
    set_limit("HEADRACE_HTTP_CONNECTIONS", "1");
    channel = open_channel(4);
    for (int i = 0; i < 4; i++) /* the first has the connection for good */
        begin(channel, &flights[i], at("stall=10/x"), 0, 1000);
    read_ok(at("x"), 10, 1000);
    hr__channel_close(channel);
    for (int i = 0; i < 4; i++)
        free(flights[i].data);
    set_limit("HEADRACE_HTTP_CONNECTIONS", NULL);
    set_limit("HEADRACE_HTTP_HEDGE", NULL);
}

TEST(closing_a_channel_ends_reads_that_are_silent)
{
    struct hr_channel *channel = open_channel(4);
    struct flight flights[6];

    for (int i = 0; i < 6; i++) /* two of them wait for their turn */
        begin(channel, &flights[i], at("stall=10/x"), 0, 1000);
    hr__channel_close(channel);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ_INT(atomic_load(&flights[i].done), 1);
        CHECK_ERR(HR_ERR_CANCELLED, flights[i].err);
        free(flights[i].data);
    }
}

#ifndef __SANITIZE_THREAD__ /* it allows a child no threads */
TEST(a_forked_child_reads_for_itself)
{
    int status;
    pid_t child;

    read_ok(at("x"), 0, SIZE);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        read_ok(at("x"), 3, 100000);
        hr__web_stop();
        _exit(0);
    }
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    read_ok(at("x"), 0, SIZE);
}
#endif
