/*
 * net/lookup_test.c - lookups with a slow name server. The getaddrinfo() of this file
 * blocks for "slow.test" until a test releases it.
 */
#include "net/lookup.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/address.h"
#include "net/net.h"
#include "tests/support/check.h"

#define MS 1000000u
#define WAIT_S 20 /* of a test that fails */

static sem_t answers; /* of the name server */
static atomic_int answered;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct timespec until;
    int code;

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "slow.test") != 0 || (hints->ai_flags & AI_NUMERICHOST) != 0)
        return strcmp(host, "unknown.test") == 0 ? EAI_NONAME
                                                 : real(host, port, hints, ret);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    while (sem_timedwait(&answers, &until) != 0)
        if (hr__wall_ns() / 1000000000u > (uint64_t)until.tv_sec)
            break;
    code = real("127.0.0.1", port, hints, ret);
    answered++;
    return code;
}

static void await_answers(int count)
{
    while (answered < count)
        usleep(1000);
}

TEST(numbers_are_known_at_once)
{
    struct hr_lookups lookups = {0};
    struct sockaddr_storage at;
    struct hr_error error = {0};
    socklen_t bytes;

    CHECK_OK(hr__look_up(&lookups, "127.0.0.1:7070", 0, &at, &bytes, NULL));
    CHECK_EQ_INT(ntohs(((struct sockaddr_in *)&at)->sin_port), 7070);
    CHECK_OK(hr__look_up(&lookups, "[::1]:7070", 0, &at, &bytes, NULL));
    CHECK_ERR(HR_ERR_ARGUMENT, hr__look_up(&lookups, "host", 0, &at, &bytes, &error));
    CHECK_EQ_INT(lookups.count, 0);
}

TEST(a_name_is_asked_for_until_it_is_known)
{
    struct hr_lookups lookups = {0};
    struct sockaddr_storage at;
    struct hr_error error = {0};
    socklen_t bytes;
    enum hr_err code;

    sem_init(&answers, 0, 0);
    answered = 0;
    for (int i = 0; i < 10; i++) {
        code = hr__look_up(&lookups, "slow.test:7070", MS, &at, &bytes, &error);
        CHECK_ERR(HR_ERR_TIMEOUT, code);
        CHECK_EQ_INT(lookups.count, 1);
    }
    CHECK_HAS(error.message, "cannot look up 'slow.test:7070'");
    sem_post(&answers);
    do {
        code = hr__look_up(&lookups, "slow.test:7070", MS, &at, &bytes, &error);
    } while (code == HR_ERR_TIMEOUT);
    CHECK_OK(code);
    CHECK_EQ_INT(ntohs(((struct sockaddr_in *)&at)->sin_port), 7070);
    CHECK_EQ_INT(lookups.count, 0);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__look_up(&lookups, "unknown.test:1",
                                            WAIT_S * 1000ul * MS, &at, &bytes, &error));
    CHECK_HAS(error.message, "unknown.test:1");
}

TEST(lookups_are_limited_and_end_without_their_owner)
{
    struct hr_lookups lookups = {0};
    struct sockaddr_storage at;
    struct hr_error error = {0};
    enum hr_err code = HR_ERR_TIMEOUT;
    socklen_t bytes;
    int count = 0;

    sem_init(&answers, 0, 0);
    answered = 0;
    for (; code == HR_ERR_TIMEOUT && count < 1000; count++) {
        char address[32];

        snprintf(address, sizeof address, "slow.test:%d", count + 1);
        code = hr__look_up(&lookups, address, 0, &at, &bytes, &error);
    }
    CHECK_ERR(HR_ERR_LIMIT, code);
    count--;
    CHECK_EQ_INT(lookups.count, count);
    hr__lookups_finish(&lookups);
    for (int i = 0; i < count; i++)
        sem_post(&answers);
    await_answers(count);
}

/* ---- the loop ---- */

static struct hr_net *net;
static char address[HR_NET_ADDRESS_MAX];
static atomic_int pending, connected;
static bool connecting;

static void on_tick(void *user)
{
    struct hr_error error = {0};
    enum hr_err code;
    uint32_t peer;

    (void)user;
    if (connecting)
        return;
    code = hr__net_connect(net, address, &peer, &error);
    if (code == HR_OK)
        connecting = true;
    else if (code == HR_ERR_TIMEOUT && ++pending == 5)
        sem_post(&answers); /* after five ticks that were not held up */
}

static void on_connected(void *user, uint32_t peer)
{
    (void)user;
    (void)peer;
    connected++;
    hr__net_stop(net);
}

static const struct hr_net_hooks hooks = {.tick = on_tick, .connected = on_connected};

TEST(a_slow_name_server_does_not_hold_up_the_loop)
{
    const struct hr_net_options options = {.peers_max = 4,
                                           .payload_max = 4096,
                                           .queue_max = 4096,
                                           .tick_ns = 5 * MS,
                                           .hooks = &hooks};

    sem_init(&answers, 0, 0);
    answered = pending = connected = 0;
    CHECK_OK(hr__net_open(&options, &net, NULL));
    CHECK_OK(hr__net_listen(net, "127.0.0.1:0", NULL));
    snprintf(address, sizeof address, "slow.test:%s",
             strrchr(hr__net_address(net), ':') + 1);
    hr__net_run(net);
    CHECK(pending >= 5);
    CHECK_EQ_INT(connected, 1);
    hr__net_close(net);
}
