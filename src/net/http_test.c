/*
 * net/http_test.c - the server beside a net: it is answered while frames keep the loop
 * busy, and long bodies are made in pieces.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "net/address.h"
#include "net/http.h"
#include "net/net_internal.h"
#include "tests/support/check.h"

#define MS 1000000u
#define PEERS 50u
#define WAIT_MS 20000
#define PIECE_BYTES 65536u
#define PIECES 4000u /* of a long body: more than sockets hold */

struct loop {
    struct hr_net *net;
    struct hr_http *http;
    pthread_t thread;
    uint32_t frames;
    bool slow, waited; /* see be_slow() */
    uint32_t locks, last_locks, passed_over;
    uint32_t pieces, short_pieces;
    int busy; /* by __atomic: frames come */
    int fds[PEERS];
};

/* Takes a while. Whoever waits for the lock at the end of a frame must have had it before
 * the next one. */
static void be_slow(struct loop *l)
{
    uint64_t until = hr__now_ns() + MS / 4;
    bool waits = __atomic_load_n(&l->net->waits_first, __ATOMIC_ACQUIRE);

    l->passed_over += waits && l->waited && l->locks == l->last_locks;
    while (hr__now_ns() < until)
        continue;
    l->waited = __atomic_load_n(&l->net->waits_first, __ATOMIC_ACQUIRE);
    l->last_locks = l->locks;
}

static void
on_frame(void *user, uint32_t peer, const struct hr_frame *frame, struct hr_buffer *data)
{
    struct loop *l = user;

    (void)peer;
    (void)frame;
    hr_buffer_unref(data);
    if (l->slow)
        be_slow(l);
    l->frames++;
}

static const struct hr_net_hooks hooks = {.frame = on_frame};

/* ---- answers ---- */

static bool add_long(void *user, struct hr_http_place *place, struct hr_str *out)
{
    static char bytes[PIECE_BYTES];
    struct loop *l = user;

    memset(bytes, 'a' + (int)(place->number % 26), sizeof bytes);
    hr__str_add_bytes(out, bytes, sizeof bytes);
    l->pieces++;
    return ++place->number < PIECES;
}

/* 1000 numbers, and some end with the first piece. */
static bool add_numbers(void *user, struct hr_http_place *place, struct hr_str *out)
{
    struct loop *l = user;

    l->short_pieces++;
    for (int i = 0; i < 10; i++)
        hr__str_addf(out, "%llu,", (unsigned long long)place->number++);
    return place->number < place->part;
}

static void
answer(void *user, const struct hr_http_request *request, struct hr_http_answer *ret)
{
    (void)user;
    if (strcmp(request->path, "/long") == 0) {
        ret->more = add_long;
    } else if (strcmp(request->path, "/ping") == 0) {
        hr__str_add(&ret->body, "pong");
    } else {
        hr__str_add(&ret->body, "numbers:");
        ret->place.part = strcmp(request->path, "/ten") == 0 ? 10 : 1000;
        ret->more = add_numbers;
    }
}

/* ---- its life ---- */

static void *run(void *user)
{
    hr__net_run(((struct loop *)user)->net);
    return NULL;
}

static struct loop *start(void)
{
    static const char *const open[] = {NULL};
    struct loop *l = hr__calloc(1, sizeof *l);
    const struct hr_net_options options = {
        .peers_max = PEERS, .queue_max = 1000, .tick_ns = MS, .hooks = &hooks, .user = l};
    const struct hr_http_options http = {
        .listen = "127.0.0.1:0", .open = open, .answer = answer, .user = l};

    CHECK(l != NULL);
    CHECK_OK(hr__net_open(&options, &l->net, NULL));
    CHECK_OK(hr__net_listen(l->net, "127.0.0.1:0", NULL));
    CHECK_OK(hr__http_open(l->net, &http, &l->http, NULL));
    CHECK_OK(hr__http_start(l->http, NULL));
    CHECK_EQ_INT(pthread_create(&l->thread, NULL, run, l), 0);
    return l;
}

static void stop(struct loop *l)
{
    hr__net_stop(l->net);
    pthread_join(l->thread, NULL);
    hr__http_close(l->http);
    hr__net_close(l->net);
    hr__free(l);
}

static int dial(const char *address)
{
    struct sockaddr_storage at;
    socklen_t bytes;
    int fd;

    CHECK_OK(hr__address_parse(address, &at, &bytes, NULL));
    fd = socket(at.ss_family, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK_EQ_INT(connect(fd, (struct sockaddr *)&at, bytes), 0);
    return fd;
}

static void ask(int fd, const char *method, const char *path, const char *version)
{
    char text[256];
    int length = snprintf(text, sizeof text, "%s %s HTTP/%s\r\nHost: x\r\n\r\n", method,
                          path, version);

    CHECK_EQ_INT(send(fd, text, (size_t)length, MSG_NOSIGNAL), length);
}

/* What comes until the other side closes. */
static void read_all(int fd, struct hr_str *out)
{
    char bytes[4096];
    ssize_t got;

    do {
        struct pollfd wait = {.fd = fd, .events = POLLIN};

        CHECK_EQ_INT(poll(&wait, 1, WAIT_MS), 1);
        got = read(fd, bytes, sizeof bytes);
        if (got > 0)
            hr__str_add_bytes(out, bytes, (size_t)got);
    } while (got > 0);
}

static void check_numbers(const struct loop *l, const char *path, unsigned until)
{
    const struct hr_token none = {0};
    struct hr_str got, wanted;

    hr__str_init(&got);
    hr__str_init(&wanted);
    hr__str_add(&wanted, "numbers:");
    for (unsigned i = 0; i < until; i++)
        hr__str_addf(&wanted, "%u,", i);
    CHECK_OK(hr__http_request(hr__http_address(l->http), &none, path, NULL,
                              (uint64_t)WAIT_MS * MS, &got, NULL));
    CHECK_EQ_STR(hr__str_text(&got), hr__str_text(&wanted));
    hr__str_finish(&got);
    hr__str_finish(&wanted);
}

TEST(a_body_comes_in_pieces_and_whole)
{
    struct loop *l = start();
    struct hr_str text;
    int fd;

    check_numbers(l, "/numbers", 1000);
    CHECK_EQ_INT(l->short_pieces, 100);
    check_numbers(l, "/ten", 10);
    CHECK_EQ_INT(l->short_pieces, 101);
    hr__str_init(&text);
    fd = dial(hr__http_address(l->http));
    ask(fd, "GET", "/numbers", "1.0"); /* knows no chunks: the end is the end */
    read_all(fd, &text);
    close(fd);
    CHECK_HAS(hr__str_text(&text), "\r\n\r\nnumbers:0,1,2,");
    CHECK_HAS(hr__str_text(&text), ",998,999,");
    CHECK(strstr(hr__str_text(&text), "chunked") == NULL);
    hr__str_finish(&text);
    hr__str_init(&text);
    fd = dial(hr__http_address(l->http));
    ask(fd, "HEAD", "/numbers", "1.0");
    read_all(fd, &text);
    close(fd);
    CHECK_HAS(hr__str_text(&text), "200");
    CHECK(strstr(hr__str_text(&text), "numbers") == NULL);
    hr__str_finish(&text);
    hr__str_init(&text);
    fd = dial(hr__http_address(l->http));
    ask(fd, "HEAD", "/ping", "1.0");
    read_all(fd, &text);
    close(fd);
    CHECK(strstr(hr__str_text(&text), "pong") == NULL);
    hr__str_finish(&text);
    stop(l);
}

static void check_pong(const struct loop *l)
{
    const struct hr_token none = {0};
    struct hr_str got;

    hr__str_init(&got);
    CHECK_OK(hr__http_request(hr__http_address(l->http), &none, "/ping", NULL,
                              (uint64_t)WAIT_MS * MS, &got, NULL));
    CHECK_EQ_STR(hr__str_text(&got), "pong");
    hr__str_finish(&got);
}

static void push_frame(int fd)
{
    const struct hr_frame frame = {.type = HR_FRAME_PROGRESS};
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];
    size_t count = hr__frame_write(&frame, bytes);

    CHECK_EQ_INT(send(fd, bytes, count, MSG_NOSIGNAL), count);
}

/* Sends frames as fast as the loop takes them. */
static void *keep_busy(void *user)
{
    struct loop *l = user;

    while (__atomic_load_n(&l->busy, __ATOMIC_ACQUIRE))
        for (uint32_t i = 0; i < PEERS; i++)
            push_frame(l->fds[i]);
    return NULL;
}

TEST(an_answer_comes_while_frames_keep_the_loop_busy)
{
    struct loop *l = start();
    uint32_t frames;
    pthread_t thread;

    for (uint32_t i = 0; i < PEERS; i++)
        l->fds[i] = dial(hr__net_address(l->net));
    __atomic_store_n(&l->busy, 1, __ATOMIC_RELEASE);
    CHECK_EQ_INT(pthread_create(&thread, NULL, keep_busy, l), 0);
    for (int i = 0; i < 100; i++)
        check_pong(l);
    check_numbers(l, "/numbers", 1000);
    __atomic_store_n(&l->busy, 0, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    hr__net_lock(l->net);
    frames = l->frames;
    hr__net_unlock(l->net);
    CHECK(frames > 0);
    for (uint32_t i = 0; i < PEERS; i++)
        close(l->fds[i]);
    stop(l);
}

TEST(who_waits_first_gets_the_lock_before_the_loop_takes_it_again)
{
    struct loop *l = start();
    uint32_t wanted = 0, frames;

    for (uint32_t i = 0; i < PEERS; i++)
        l->fds[i] = dial(hr__net_address(l->net));
    for (int round = 0; round < 10; round++) {
        hr__net_lock(l->net); /* the loop stands still: all arrive at once */
        l->slow = true;
        for (uint32_t i = 0; i < PEERS; i++)
            push_frame(l->fds[i]);
        hr__net_unlock(l->net);
        wanted += PEERS;
        do {
            hr__net_lock_first(l->net);
            l->locks++;
            frames = l->frames;
            hr__net_unlock(l->net);
        } while (frames < wanted);
    }
    hr__net_lock(l->net);
    CHECK_EQ_INT(l->passed_over, 0);
    hr__net_unlock(l->net);
    for (uint32_t i = 0; i < PEERS; i++)
        close(l->fds[i]);
    stop(l);
}

TEST(a_reader_that_does_not_read_holds_up_nobody_and_gathers_nothing)
{
    struct loop *l = start();
    int slow = dial(hr__http_address(l->http)), gone = dial(hr__http_address(l->http));
    char byte;

    ask(slow, "GET", "/long", "1.1");
    ask(gone, "GET", "/long", "1.1");
    CHECK_EQ_INT(read(slow, &byte, 1), 1);
    CHECK_EQ_INT(read(gone, &byte, 1), 1);
    close(gone);
    check_pong(l);
    check_numbers(l, "/numbers", 1000);
    hr__net_lock(l->net);
    CHECK(l->pieces >= 2 && l->pieces < PIECES);
    hr__net_unlock(l->net);
    stop(l); /* with an answer that is not complete */
    close(slow);
}

TEST(failing_allocations_end_an_answer_and_leak_nothing)
{
    struct loop *l = start();

    for (uint64_t nth = 1, calls = nth; calls >= nth; nth++) {
        int fd = dial(hr__http_address(l->http));

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        ask(fd, "GET", "/numbers", "1.0");
        for (char byte; read(fd, &byte, 1) == 1;)
            continue;
        calls = hr__fault_calls();
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        close(fd);
        CHECK(nth < 10000);
    }
    check_pong(l);
    check_numbers(l, "/numbers", 1000);
    stop(l);
}
