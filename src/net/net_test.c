/*
 * net/net_test.c - the loop over real sockets of this machine: torn and malformed frames,
 * peers that do not read, peers that die.
 *
 * A net in a thread of its own echoes what it receives; plain sockets are its peers.
 */
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/rng.h"
#include "core/thread.h"
#include "net/address.h"
#include "tests/support/check.h"

#define PEERS 8
#define PAYLOAD_MAX (6u << 20)
#define QUEUE_MAX 100000
#define WAIT_MS 20000

struct echo {
    struct hr_net *net;
    pthread_t thread;
    pthread_cond_t changed;
    uint32_t accepted, connected, lost, sent, last_connected;
    bool knows; /* whoever sends a frame */
    bool flood; /* answers each frame with messages without end */
    size_t flooded, most_queued;
    struct hr_error why; /* of the last one lost */
};

/* ---- the net ---- */

static void changed(struct echo *e)
{
    pthread_cond_broadcast(&e->changed);
}

static void on_accepted(void *user, uint32_t peer)
{
    struct echo *e = user;

    CHECK(peer >= 1 && peer <= PEERS);
    e->accepted++;
    changed(e);
}

static void on_connected(void *user, uint32_t peer)
{
    struct echo *e = user;

    e->connected++;
    e->last_connected = peer;
    changed(e);
}

static void flood(struct echo *e, uint32_t peer)
{
    const struct hr_frame frame = {.type = HR_FRAME_PROGRESS};
    uint32_t lost = e->lost;

    for (; e->lost == lost && e->flooded < 1000000; e->flooded++) {
        size_t queued;

        hr__net_send(e->net, peer, &frame);
        queued = hr__net_queued(e->net, peer);
        e->most_queued = queued > e->most_queued ? queued : e->most_queued;
    }
}

/* Sends a body in several parts. */
static void send_torn(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                      struct hr_buffer *body)
{
    const char *data = hr_buffer_data(body);
    size_t bytes = hr_buffer_bytes(body),
           cuts[] = {0, bytes / 7, bytes / 7, bytes / 2, bytes};
    struct hr_net_part parts[4];

    for (size_t i = 0; i < 4; i++)
        parts[i] = (struct hr_net_part){data + cuts[i], cuts[i + 1] - cuts[i], body};
    hr__net_send_body(net, peer, frame, parts, 4);
}

static void
on_frame(void *user, uint32_t peer, const struct hr_frame *frame, struct hr_buffer *data)
{
    struct echo *e = user;

    if (e->knows)
        hr__net_know(e->net, peer);
    if (e->flood)
        flood(e, peer);
    else if (frame->type == HR_FRAME_GOODBYE)
        hr__net_drop(e->net, peer);
    else if (data != NULL)
        send_torn(e->net, peer, frame, data);
    else
        hr__net_send(e->net, peer, frame);
    hr_buffer_unref(data);
}

static void on_lost(void *user, uint32_t peer, const struct hr_error *why)
{
    struct echo *e = user;

    (void)peer;
    e->lost++;
    e->why = *why;
    changed(e);
}

static void on_sent(void *user, uint32_t peer)
{
    struct echo *e = user;

    (void)peer;
    e->sent++;
    changed(e);
}

static const struct hr_net_hooks hooks = {.accepted = on_accepted,
                                          .connected = on_connected,
                                          .frame = on_frame,
                                          .lost = on_lost,
                                          .sent = on_sent};

static void *loop(void *user)
{
    hr__net_run(((struct echo *)user)->net);
    return NULL;
}

/* Without a loop and a listener. `stranger_ns`: as in hr_net_options. */
static struct echo *make_wary(uint64_t stranger_ns)
{
    struct echo *e = hr__calloc(1, sizeof *e);
    const struct hr_net_options options = {.peers_max = PEERS,
                                           .payload_max = PAYLOAD_MAX,
                                           .queue_max = QUEUE_MAX,
                                           .tick_ns = 10000000,
                                           .stranger_ns = stranger_ns,
                                           .hooks = &hooks,
                                           .user = e};

    CHECK(e != NULL);
    hr__cond_init(&e->changed);
    CHECK_OK(hr__net_open(&options, &e->net, NULL));
    return e;
}

static struct echo *make(void)
{
    return make_wary(0);
}

static void run(struct echo *e)
{
    CHECK_EQ_INT(pthread_create(&e->thread, NULL, loop, e), 0);
}

static struct echo *start(void)
{
    struct echo *e = make();

    CHECK_OK(hr__net_listen(e->net, "127.0.0.1:0", NULL));
    run(e);
    return e;
}

static void stop(struct echo *e)
{
    hr__net_stop(e->net);
    pthread_join(e->thread, NULL);
    hr__net_close(e->net);
    pthread_cond_destroy(&e->changed);
    hr__free(e);
}

/* Waits until the counter is at least `count`; fails after a long time. */
static void wait_for(struct echo *e, const uint32_t *counter, uint32_t count)
{
    uint64_t until = hr__now_ns() + (uint64_t)WAIT_MS * 1000000;

    hr__net_lock(e->net);
    while (*counter < count) {
        CHECK(hr__now_ns() < until);
        hr__cond_wait(&e->changed, hr__net_mutex(e->net), hr__now_ns() + 100000000);
    }
    hr__net_unlock(e->net);
}

/* ---- a plain socket ---- */

static int dial(const struct echo *e)
{
    struct sockaddr_storage at;
    socklen_t bytes;
    int fd;

    CHECK_OK(hr__address_parse(hr__net_address(e->net), &at, &bytes, NULL));
    fd = socket(at.ss_family, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK_EQ_INT(connect(fd, (struct sockaddr *)&at, bytes), 0);
    return fd;
}

static void push(int fd, const void *bytes, size_t count)
{
    CHECK_EQ_INT(send(fd, bytes, count, MSG_NOSIGNAL), count);
}

/* Reads `count` bytes; false if the stream ends before. */
static bool pull(int fd, char *to, size_t count)
{
    while (count > 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t got;

        CHECK_EQ_INT(poll(&wait, 1, WAIT_MS), 1);
        got = read(fd, to, count);
        if (got <= 0)
            return false;
        to += got;
        count -= (size_t)got;
    }
    return true;
}

static void push_frame(int fd, enum hr_frame_type type, uint64_t position)
{
    const struct hr_frame frame = {.type = type, .position = position};
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];

    push(fd, bytes, hr__frame_write(&frame, bytes));
}

static bool pull_frame(int fd, struct hr_frame *ret_frame)
{
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];
    struct hr_frame_head head;

    if (!pull(fd, bytes, HR_FRAME_HEAD))
        return false;
    CHECK_OK(hr__frame_read_head(bytes, &head, NULL));
    CHECK(pull(fd, bytes + HR_FRAME_HEAD, head.bytes));
    CHECK_OK(hr__frame_read(bytes, &head, bytes + HR_FRAME_HEAD, ret_frame, NULL));
    return true;
}

static void check_echo(int fd, uint64_t position)
{
    struct hr_frame frame;

    push_frame(fd, HR_FRAME_PROGRESS, position);
    CHECK(pull_frame(fd, &frame));
    CHECK_EQ_INT(frame.type, HR_FRAME_PROGRESS);
    CHECK_EQ_INT(frame.position, position);
}

/* ---- tests ---- */

TEST(frames_come_back_however_they_are_torn)
{
    static char bytes[HR_FRAME_HEAD + PAYLOAD_MAX + HR_FRAME_TAIL], back[sizeof bytes];
    struct echo *e = start();
    uint64_t large = 0;
    struct hr_rng rng;
    int fd = dial(e);

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (uint64_t i = 0; i < 30; i++) {
        size_t most = i % 10 == 0 ? PAYLOAD_MAX : i % 3 == 0 ? HR_FRAME_LARGE : 2000;
        size_t payload = hr__rng_below(&rng, most), sent = 0;
        struct hr_frame frame = {.type = HR_FRAME_DATA, .position = i, .count = 1};
        uint64_t sum;

        for (size_t k = 0; k < payload; k++)
            bytes[HR_FRAME_HEAD + k] = (char)hr__rng_u64(&rng);
        sum = hr__frame_sum(hr__frame_write_body(&frame, payload, bytes),
                            bytes + HR_FRAME_HEAD, payload);
        memcpy(bytes + HR_FRAME_HEAD + payload, &sum, HR_FRAME_TAIL);
        while (sent < HR_FRAME_HEAD + payload + HR_FRAME_TAIL) {
            size_t piece = 1 + hr__rng_below(&rng, 1u << hr__rng_below(&rng, 18));
            size_t rest = HR_FRAME_HEAD + payload + HR_FRAME_TAIL - sent;

            piece = piece < rest ? piece : rest;
            push(fd, bytes + sent, piece);
            sent += piece;
        }
        CHECK(pull(fd, back, sent));
        CHECK_EQ_INT(memcmp(bytes, back, sent), 0);
        if (payload >= HR_FRAME_LARGE) {
            CHECK(pull_frame(fd, &frame));
            CHECK_EQ_INT(frame.type, HR_FRAME_RECEIVED);
            CHECK_EQ_INT(frame.position, ++large);
            push_frame(fd, HR_FRAME_RECEIVED, large);
        }
        check_echo(fd, i);
    }
    close(fd);
    wait_for(e, &e->lost, 1);
    CHECK(e->why.code == HR_ERR_IO);
    CHECK_HAS(e->why.message, "the peer is gone");
    stop(e);
}

TEST(a_malformed_frame_is_answered_and_nobody_else_is_disturbed)
{
    struct echo *e = start();
    int good = dial(e), bad = dial(e);
    const char *request = "GET / HTTP/1.1\r\nHost: dispatcher\r\nAccept: */*\r\n\r\n";
    struct hr_frame frame;

    check_echo(good, 1);
    check_echo(bad, 2);
    push(bad, request, strlen(request));
    CHECK(pull_frame(bad, &frame));
    CHECK_EQ_INT(frame.type, HR_FRAME_ERROR);
    CHECK_EQ_INT(frame.u.error.code, HR_ERR_FORMAT);
    CHECK_HAS(frame.u.error.text, "check the port");
    CHECK(!pull_frame(bad, &frame));
    close(bad);
    wait_for(e, &e->lost, 1);
    CHECK_EQ_INT(e->why.code, HR_ERR_FORMAT);
    check_echo(good, 3);
    close(good);
    stop(e);
}

TEST(a_peer_that_does_not_read_is_closed_within_bounded_memory)
{
    struct echo *e = start();
    int good, fd = dial(e);

    wait_for(e, &e->accepted, 1);
    hr__net_lock(e->net);
    e->flood = true;
    hr__net_unlock(e->net);
    push_frame(fd, HR_FRAME_PROGRESS, 1);
    wait_for(e, &e->lost, 1);
    CHECK_EQ_INT(e->why.code, HR_ERR_LIMIT);
    CHECK_HAS(e->why.message, "does not read");
    CHECK(e->most_queued <= QUEUE_MAX + HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX);
    hr__net_lock(e->net);
    e->flood = false;
    hr__net_unlock(e->net);
    good = dial(e);
    check_echo(good, 1);
    close(good);
    close(fd);
    stop(e);
}

TEST(a_body_waits_in_its_buffer_and_the_sender_is_told_when_it_is_gone)
{
    struct hr_buffer *payload = hr_buffer_create(30 << 20);
    struct hr_frame frame = {.type = HR_FRAME_DATA, .count = 1};
    struct echo *e = start();
    static char part[1 << 20];
    int fd = dial(e);

    CHECK(payload != NULL);
    memset(hr_buffer_data(payload), 7, hr_buffer_bytes(payload));
    wait_for(e, &e->accepted, 1);
    hr__net_lock(e->net);
    send_torn(e->net, 1, &frame, payload);
    CHECK(hr__net_queued(e->net, 1) > 0);
    CHECK(!hr_buffer_is_writable(payload));
    CHECK_EQ_INT(e->sent, 0);
    hr__net_unlock(e->net);
    CHECK(pull(fd, part, HR_FRAME_HEAD));
    for (int i = 0; i < 30; i++)
        CHECK(pull(fd, part, sizeof part));
    CHECK(pull(fd, part, HR_FRAME_TAIL));
    wait_for(e, &e->sent, 1);
    hr__net_lock(e->net);
    CHECK_EQ_INT(hr__net_queued(e->net, 1), 0);
    hr__net_unlock(e->net);
    push_frame(fd, HR_FRAME_RECEIVED, 1);
    check_echo(fd, 1);
    hr__net_lock(e->net);
    CHECK(hr_buffer_is_writable(payload));
    hr__net_unlock(e->net);
    hr_buffer_unref(payload);
    close(fd);
    stop(e);
}

/* A body of `bytes` bytes of `value`, from a pool. */
static struct hr_buffer *get_body(struct hr_pool *pool, size_t bytes, int value)
{
    struct hr_buffer *body;

    CHECK_OK(hr_pool_get(pool, bytes, &body));
    memset(hr_buffer_data(body), value, bytes);
    return body;
}

static void send_whole(struct echo *e, struct hr_buffer *body)
{
    const struct hr_frame frame = {.type = HR_FRAME_DATA, .count = 1};
    const struct hr_net_part part = {hr_buffer_data(body), hr_buffer_bytes(body), body};

    hr__net_lock(e->net);
    hr__net_send_body(e->net, 1, &frame, &part, 1);
    hr__net_unlock(e->net);
    hr_buffer_unref(body);
}

TEST(what_a_peer_reads_after_the_end_is_what_was_sent)
{
    struct hr_pool *pool = hr_pool_create(0);
    struct echo *e = start();
    struct hr_buffer *other;
    char head[HR_FRAME_HEAD];
    static char part[1 << 16];
    ssize_t got, seen = 0;
    int fd = dial(e);

    wait_for(e, &e->accepted, 1);
    send_whole(e, get_body(pool, 30 << 20, 7));
    hr__net_lock(e->net);
    hr__net_drop(e->net, 1);
    hr__net_unlock(e->net);
    wait_for(e, &e->lost, 1);
    other = get_body(pool, 30 << 20, 9);
    CHECK(pull(fd, head, sizeof head));
    for (; (got = read(fd, part, sizeof part)) > 0; seen += got)
        for (ssize_t i = 0; i < got; i++)
            CHECK_EQ_INT(part[i], 7);
    CHECK(seen > 0);
    hr_buffer_unref(other);
    hr_pool_unref(pool);
    close(fd);
    stop(e);
}

TEST(a_peer_that_never_says_what_it_has_received_holds_bounded_memory)
{
    struct hr_pool *pool = hr_pool_create(0);
    const size_t bytes = 8u << 20;
    static char back[HR_FRAME_HEAD + (8u << 20) + HR_FRAME_TAIL];
    struct hr_pool_stats stats;
    struct echo *e = start();
    uint32_t count = 0;
    int fd = dial(e);

    wait_for(e, &e->accepted, 1);
    for (; count < HR_NET_SPLICED_MAX / bytes + 10; count++) {
        send_whole(e, get_body(pool, bytes, 1));
        CHECK(pull(fd, back, sizeof back));
    }
    hr__net_lock(e->net); /* the last one is accounted for */
    hr__net_unlock(e->net);
    hr_pool_stats(pool, &stats);
    CHECK(stats.used_bytes <= HR_NET_SPLICED_MAX + bytes);
    push_frame(fd, HR_FRAME_RECEIVED, count - 1);
    check_echo(fd, 1);
    hr_pool_stats(pool, &stats);
    CHECK(stats.used_bytes <= bytes);
    close(fd);
    wait_for(e, &e->lost, 1);
    stop(e);
    hr_pool_stats(pool, &stats);
    CHECK_EQ_INT(stats.used_bytes, 0);
    hr_pool_unref(pool);
}

TEST(a_peer_that_has_received_what_was_not_sent_is_refused)
{
    struct echo *e = start();
    struct hr_frame frame;
    int fd = dial(e);

    push_frame(fd, HR_FRAME_RECEIVED, 1);
    CHECK(pull_frame(fd, &frame));
    CHECK_EQ_INT(frame.type, HR_FRAME_ERROR);
    CHECK_EQ_INT(frame.u.error.code, HR_ERR_FORMAT);
    CHECK_HAS(frame.u.error.text, "was not sent");
    close(fd);
    wait_for(e, &e->lost, 1);
    stop(e);
}

TEST(a_drop_sends_the_rest_first)
{
    struct echo *e = start();
    struct hr_frame frame;
    int fd = dial(e);

    push_frame(fd, HR_FRAME_PROGRESS, 5);
    push_frame(fd, HR_FRAME_GOODBYE, 0);
    push_frame(fd, HR_FRAME_PROGRESS, 6); /* ignored */
    CHECK(pull_frame(fd, &frame));
    CHECK_EQ_INT(frame.position, 5);
    CHECK(!pull_frame(fd, &frame));
    hr__net_lock(e->net);
    CHECK_EQ_INT(e->lost, 0); /* it waits for the peer to read */
    hr__net_unlock(e->net);
    close(fd);
    wait_for(e, &e->lost, 1);
    CHECK_EQ_INT(e->why.code, HR_ERR_CANCELLED);
    fd = dial(e); /* this one never closes */
    push_frame(fd, HR_FRAME_GOODBYE, 0);
    wait_for(e, &e->lost, 2);
    close(fd);
    stop(e);
}

TEST(one_connection_too_many_is_told_so)
{
    struct echo *e = start();
    struct hr_frame frame;
    int fds[PEERS], more;

    for (int i = 0; i < PEERS; i++)
        fds[i] = dial(e);
    wait_for(e, &e->accepted, PEERS);
    more = dial(e);
    CHECK(pull_frame(more, &frame));
    CHECK_EQ_INT(frame.u.error.code, HR_ERR_LIMIT);
    CHECK_HAS(frame.u.error.text, "there are 8 connections already");
    CHECK(!pull_frame(more, &frame));
    close(more);
    for (int i = 0; i < PEERS; i++) {
        check_echo(fds[i], (uint64_t)i);
        close(fds[i]);
    }
    wait_for(e, &e->lost, PEERS);
    more = dial(e); /* numbers are free again */
    check_echo(more, 1);
    close(more);
    stop(e);
}

#define HOUR_NS ((uint64_t)3600 * 1000000000)

TEST(idle_connections_give_way_and_known_ones_stay)
{
    struct echo *e = make_wary(HOUR_NS);
    int known, idle[500], late;
    struct hr_net_counts counts;
    struct hr_frame frame;

    e->knows = true;
    CHECK_OK(hr__net_listen(e->net, "127.0.0.1:0", NULL));
    run(e);
    known = dial(e);
    check_echo(known, 1);
    for (int i = 0; i < 500; i++)
        idle[i] = dial(e);
    wait_for(e, &e->accepted, 501);
    late = dial(e);
    check_echo(late, 2); /* in the place of an idle one */
    check_echo(known, 3);
    hr__net_lock(e->net);
    hr__net_counts(e->net, &counts);
    hr__net_unlock(e->net);
    CHECK_EQ_INT(counts.open, PEERS);
    CHECK_EQ_INT(counts.strangers_closed, 502 - PEERS);
    CHECK_EQ_INT(counts.turned_away, 0);
    CHECK(pull_frame(idle[0], &frame)); /* the oldest one */
    CHECK_EQ_INT(frame.u.error.code, HR_ERR_LIMIT);
    CHECK_HAS(frame.u.error.text, "said no HELLO");
    CHECK(!pull_frame(idle[0], &frame));
    for (int i = 0; i < 500; i++)
        close(idle[i]);
    close(known);
    close(late);
    stop(e);
}

TEST(a_connection_that_says_nothing_is_closed_and_told_why)
{
    struct echo *e = make_wary(50000000);
    struct hr_frame frame;
    int fd;

    CHECK_OK(hr__net_listen(e->net, "127.0.0.1:0", NULL));
    run(e);
    fd = dial(e);
    CHECK(pull_frame(fd, &frame));
    CHECK_EQ_INT(frame.u.error.code, HR_ERR_TIMEOUT);
    CHECK(!pull_frame(fd, &frame));
    close(fd);
    wait_for(e, &e->lost, 1);
    CHECK_EQ_INT(e->why.code, HR_ERR_TIMEOUT);
    stop(e);
}

TEST(who_is_turned_away_while_sending_is_told_why)
{
    static char junk[100000];
    struct echo *e = start();
    struct hr_frame frame;
    int fds[PEERS], more;

    for (int i = 0; i < PEERS; i++)
        fds[i] = dial(e);
    wait_for(e, &e->accepted, PEERS);
    for (int i = 0; i < 100; i++) { /* more than linger at a time */
        more = dial(e);
        push(more, junk, sizeof junk);
        if (i < 10) {
            CHECK(pull_frame(more, &frame));
            CHECK_EQ_INT(frame.u.error.code, HR_ERR_LIMIT);
        }
        close(more);
    }
    check_echo(fds[0], 1);
    for (int i = 0; i < PEERS; i++)
        close(fds[i]);
    stop(e);
}

TEST(two_nets_connect_and_the_death_of_one_is_seen_by_the_other)
{
    struct echo *a = make(), *b = start();
    uint32_t peer;

    CHECK_OK(hr__net_connect(a->net, hr__net_address(b->net), &peer, NULL));
    run(a);
    wait_for(a, &a->connected, 1);
    CHECK_EQ_INT(a->last_connected, peer);
    wait_for(b, &b->accepted, 1);
    stop(b);
    wait_for(a, &a->lost, 1);
    stop(a);
}

TEST(a_refused_connection_is_lost_with_the_reason)
{
    struct echo *a = make(), *b = start();
    char gone[HR_NET_ADDRESS_MAX];
    struct hr_error error = {0};
    uint32_t peer;

    snprintf(gone, sizeof gone, "%s", hr__net_address(b->net));
    stop(b);
    CHECK_ERR(HR_ERR_ARGUMENT, hr__net_connect(a->net, "somewhere", &peer, &error));
    CHECK_HAS(error.message, "write HOST:PORT");
    CHECK_ERR(HR_ERR_ARGUMENT, hr__net_connect(a->net, "h:123456", &peer, &error));
    CHECK_OK(hr__net_connect(a->net, gone, &peer, NULL));
    run(a);
    wait_for(a, &a->lost, 1);
    CHECK_EQ_INT(a->why.code, HR_ERR_IO);
    CHECK_HAS(a->why.message, gone);
    CHECK_HAS(a->why.message, "refused");
    stop(a);
}

TEST(a_port_in_use_is_named)
{
    struct echo *e = start();
    struct hr_error error = {0};
    struct hr_net *other = NULL;

    CHECK_OK(hr__net_open(
        &(struct hr_net_options){.peers_max = 1, .tick_ns = 10000000, .hooks = &hooks},
        &other, NULL));
    CHECK_ERR(HR_ERR_IO, hr__net_listen(other, hr__net_address(e->net), &error));
    CHECK_HAS(error.message, hr__net_address(e->net));
    CHECK_HAS(error.message, "in use");
    hr__net_close(other);
    stop(e);
}

TEST(failing_allocations_leak_nothing)
{
    int files = check_open_files();

    for (uint64_t nth = 1;; nth++) {
        const struct hr_net_options options = {
            .peers_max = 1, .tick_ns = 10000000, .hooks = &hooks};
        struct hr_net *net = NULL;
        enum hr_err code;
        uint64_t calls;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__net_open(&options, &net, NULL);
        calls = hr__fault_calls();
        hr__fault_arm(0, 0);
        if (code == HR_OK)
            hr__net_close(net);
        CHECK_EQ_INT(check_open_files(), files);
        if (calls < nth)
            break;
        CHECK_ERR(HR_ERR_MEMORY, code);
    }
}
