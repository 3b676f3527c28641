/*
 * net/net.c - the loop: connecting, time, and telling what was lost.
 */
#include "net/net_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hash.h"
#include "net/address.h"
#include "net/sigpipe.h"

/* A peer that vanishes without a word is noticed after about this long. */
#define SILENT_S 10
#define PROBE_S 2
/* How long a name server is waited for, before the loop and in it. */
#define LOOKUP_NS 10000000000ul
#define LOOKUP_RUN_NS 2000000ul
#define THIS_HOST 1u /* for hr__net_host() */
#define OTHER_HOST 2u

void hr__net_lock(struct hr_net *net)
{
    pthread_mutex_lock(&net->lock);
}

void hr__net_lock_first(struct hr_net *net)
{
    pthread_mutex_lock(&net->first);
    __atomic_store_n(&net->waits_first, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&net->lock);
    __atomic_store_n(&net->waits_first, false, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&net->first);
}

void hr__net_lock_after_first(struct hr_net *net)
{
    if (__atomic_load_n(&net->waits_first, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&net->first);
        pthread_mutex_unlock(&net->first);
    }
    pthread_mutex_lock(&net->lock);
}

void hr__net_unlock(struct hr_net *net)
{
    pthread_mutex_unlock(&net->lock);
}

pthread_mutex_t *hr__net_mutex(struct hr_net *net)
{
    return &net->lock;
}

static void wake(const struct hr_net *net)
{
    const uint64_t one = 1;
    int saved = errno;

    (void)!write(net->wake_fd, &one, sizeof one); /* full: it wakes anyway */
    errno = saved;
}

void hr__net_wake(struct hr_net *net)
{
    if (!__atomic_exchange_n(&net->woken, true, __ATOMIC_ACQ_REL))
        wake(net);
}

void hr__net_stop(struct hr_net *net)
{
    __atomic_store_n(&net->stopped, true, __ATOMIC_RELEASE);
    wake(net);
}

/* ---- connections ---- */

static void on_conn(evutil_socket_t fd, short what, void *user);

/* Whether both ends are on this machine. */
static bool is_local(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;

    return getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) == 0 &&
           hr__address_is_same_host(&own, &peer);
}

static uint64_t host_of(int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t bytes = sizeof peer;
    char host[HR_NET_ADDRESS_MAX];
    uint16_t port;

    if (is_local(fd))
        return THIS_HOST;
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0)
        return 0;
    hr__address_parts(&peer, bytes, host, sizeof host, &port);
    return host[0] != '\0' ? hr__hash64(host, strlen(host), 0) | OTHER_HOST : 0;
}

uint64_t hr__net_host(const struct hr_net *net, uint32_t peer)
{
    const struct hr_conn *conn = peer <= net->options.peers_max ? net->conns[peer] : NULL;

    if (conn == NULL)
        return 0;
    return conn->local ? THIS_HOST : host_of(conn->fd);
}

/* Settings that only help: failure is harmless. Congestion controls that pace (BBR) take
 * a third of the throughput of a connection without a network. */
static void tune_open(int fd)
{
    if (is_local(fd))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", strlen("cubic"));
}

static void tune(int fd)
{
    const int one = 1, silent_s = SILENT_S, silent_ms = SILENT_S * 1000,
              probe_s = PROBE_S, probes = SILENT_S / PROBE_S;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silent_s, sizeof silent_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof probe_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
}

static bool is_unix(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t bytes = sizeof domain;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 &&
           domain == AF_UNIX;
}

struct hr_conn *hr__net_new_conn(struct hr_net *net, int fd, enum hr_conn_state state)
{
    struct hr_conn *conn = hr__calloc(1, sizeof *conn);

    if (conn == NULL) {
        close(fd);
        return NULL;
    }
    conn->net = net;
    conn->fd = fd;
    conn->local = is_unix(fd);
    conn->state = state;
    hr__intake_init(&conn->intake, net->pool, net->options.payload_max);
    conn->intake.sealed = conn->local;
    conn->on_read = hr__event.new(net->base, fd, EV_READ | EV_PERSIST, on_conn, conn);
    conn->on_write = hr__event.new(net->base, fd, EV_WRITE | EV_PERSIST, on_conn, conn);
    if (conn->on_read == NULL || conn->on_write == NULL ||
        hr__event.add(state == HR_CONN_CONNECTING ? conn->on_write : conn->on_read,
                      NULL) != 0) {
        hr__conn_free(conn);
        return NULL;
    }
    tune(fd);
    if (state == HR_CONN_OPEN)
        tune_open(fd);
    return conn;
}

/* There must be a free number. */
struct hr_conn *hr__net_add_conn(struct hr_net *net, int fd, enum hr_conn_state state)
{
    struct hr_conn *conn = hr__net_new_conn(net, fd, state);

    if (conn == NULL)
        return NULL;
    conn->peer = net->free[--net->free_count];
    net->conns[conn->peer] = conn;
    return conn;
}

/* Releases its number, or its place among those that were refused one, and frees it. */
static void remove_conn(struct hr_net *net, struct hr_conn *conn)
{
    if (conn->peer != 0) {
        net->conns[conn->peer] = NULL;
        net->free[net->free_count++] = conn->peer;
    } else {
        struct hr_conn **at = &net->away;

        while (*at != conn)
            at = &(*at)->next_away;
        *at = conn->next_away;
        net->away_count--;
    }
    hr__conn_free(conn);
}

static void arm_listed(struct hr_net *net)
{
    while (net->to_arm != NULL) {
        struct hr_conn *conn = net->to_arm;

        net->to_arm = conn->next_to_arm;
        conn->listed = false;
        hr__conn_arm(conn);
    }
}

void hr__net_settle(struct hr_net *net)
{
    const struct hr_net_hooks *hooks = net->options.hooks;

    arm_listed(net);
    while (net->dead != NULL) {
        struct hr_conn *conn = net->dead;

        net->dead = conn->next_dead;
        if (hooks->lost != NULL && conn->told)
            hooks->lost(net->options.user, conn->peer, &conn->why);
        remove_conn(net, conn);
        arm_listed(net);
    }
}

static void finish_connect(struct hr_conn *conn)
{
    const struct hr_net *net = conn->net;
    struct hr_error why = {0};
    int failed = 0;
    socklen_t bytes = sizeof failed;

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &failed, &bytes) != 0)
        failed = errno;
    hr__event.del(conn->on_write);
    if (failed == 0 && hr__event.add(conn->on_read, NULL) != 0)
        failed = ENOMEM;
    if (failed != 0) {
        hr__fail_errno(&why, HR_ERR_IO, failed, "cannot connect to %s", conn->address);
        hr__conn_kill(conn, &why);
        return;
    }
    tune_open(conn->fd);
    if (net->options.tls != NULL && !conn->local)
        hr__conn_secure(conn);
    else
        hr__net_opened(conn);
}

void hr__net_opened(struct hr_conn *conn)
{
    const struct hr_net_hooks *hooks = conn->net->options.hooks;
    bool accepted = conn->address[0] == '\0';

    conn->state = HR_CONN_OPEN;
    conn->told = true;
    if (!accepted)
        hr__conn_authenticate(conn);
    if (accepted && hooks->accepted != NULL)
        hooks->accepted(conn->net->options.user, conn->peer);
    else if (!accepted && hooks->connected != NULL)
        hooks->connected(conn->net->options.user, conn->peer);
}

static void write_more(struct hr_conn *conn)
{
    struct hr_net *net = conn->net;

    hr__conn_write(conn);
    if (!conn->sent || conn->state != HR_CONN_OPEN)
        return;
    conn->sent = false;
    if (net->options.hooks->sent != NULL)
        net->options.hooks->sent(net->options.user, conn->peer);
}

static void on_conn(evutil_socket_t fd, short what, void *user)
{
    struct hr_conn *conn = user;
    struct hr_net *net = conn->net;

    (void)fd;
    hr__net_lock_after_first(net);
    if (conn->state == HR_CONN_CONNECTING)
        finish_connect(conn);
    else if (conn->state == HR_CONN_SHAKING)
        hr__conn_shake(conn);
    else if (conn->state != HR_CONN_DEAD && (what & EV_WRITE))
        write_more(conn);
    else if (conn->state != HR_CONN_DEAD)
        hr__conn_read(conn);
    hr__conn_arm(conn);
    hr__conn_end_closing(conn);
    hr__net_settle(net);
    hr__net_unlock(net);
}

enum hr_err hr__net_connect(struct hr_net *net, const char *address, uint32_t *ret_peer,
                            struct hr_error *reterr)
{
    struct sockaddr_storage to;
    socklen_t bytes;
    struct hr_conn *conn;
    int fd;

    if (net->free_count == 0)
        return hr__fail(reterr, HR_ERR_LIMIT, "there are %u connections already",
                        net->options.peers_max);
    HR_TRY(hr__look_up(&net->lookups, address, net->runs ? LOOKUP_RUN_NS : LOOKUP_NS, &to,
                       &bytes, reterr));
    fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot connect to %s", address);
    if (connect(fd, (struct sockaddr *)&to, bytes) != 0 && errno != EINPROGRESS) {
        hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot connect to %s", address);
        close(fd);
        return HR_ERR_IO;
    }
    conn = hr__net_add_conn(net, fd, HR_CONN_CONNECTING);
    if (conn == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for a connection");
    snprintf(conn->address, sizeof conn->address, "%s", address);
    conn->told = true;
    *ret_peer = conn->peer;
    return HR_OK;
}

void hr__net_counts(const struct hr_net *net, struct hr_net_counts *ret)
{
    *ret = (struct hr_net_counts){
        .turned_away = net->turned_away,
        .strangers_closed = net->strangers_closed,
        .denied = net->denied,
        .longest_tick_ns = net->longest_ns[0] > net->longest_ns[1] ? net->longest_ns[0]
                                                                   : net->longest_ns[1],
        .open = net->options.peers_max - net->free_count};
}

/* ---- the loop ---- */

static void on_wake(evutil_socket_t fd, short what, void *user)
{
    struct hr_net *net = user;
    uint64_t count;

    (void)what;
    (void)!read(fd, &count, sizeof count);
    hr__net_lock_after_first(net);
    __atomic_store_n(&net->woken, false, __ATOMIC_RELEASE);
    if (net->options.hooks->woken != NULL)
        net->options.hooks->woken(net->options.user);
    hr__net_settle(net);
    hr__net_unlock(net);
    if (__atomic_load_n(&net->stopped, __ATOMIC_ACQUIRE))
        hr__event.base_loopbreak(net->base);
}

static void note_tick(struct hr_net *net, uint64_t took)
{
    uint64_t now = hr__now_ns();

    if (now - net->longest_since_ns >= HR_NET_LONGEST_NS) {
        net->longest_ns[1] = net->longest_ns[0];
        net->longest_ns[0] = 0;
        net->longest_since_ns = now;
    }
    if (took > net->longest_ns[0])
        net->longest_ns[0] = took;
}

static void on_tick(evutil_socket_t fd, short what, void *user)
{
    struct hr_net *net = user;
    uint64_t begin = hr__cpu_thread_ns();

    (void)fd;
    (void)what;
    hr__net_lock_after_first(net);
    for (uint32_t i = 1;
         (net->closing > 0 || net->options.tls != NULL) && i <= net->options.peers_max;
         i++)
        if (net->conns[i] != NULL) {
            hr__conn_end_closing(net->conns[i]);
            hr__conn_end_shaking(net->conns[i]);
        }
    for (struct hr_conn *conn = net->away; conn != NULL; conn = conn->next_away)
        hr__conn_end_closing(conn);
    hr__net_expire_strangers(net);
    if (net->on_accept != NULL && !net->accepts)
        net->accepts = hr__event.add(net->on_accept, NULL) == 0 &&
                       (net->on_accept_local == NULL ||
                        hr__event.add(net->on_accept_local, NULL) == 0);
    if (net->options.hooks->tick != NULL)
        net->options.hooks->tick(net->options.user);
    hr__net_settle(net);
    note_tick(net, hr__cpu_thread_ns() - begin);
    hr__net_unlock(net);
}

static enum hr_err open_events(struct hr_net *net, struct hr_error *reterr)
{
    const struct timeval tick = {(time_t)(net->options.tick_ns / 1000000000),
                                 (suseconds_t)(net->options.tick_ns % 1000000000 / 1000)};

    HR_TRY(hr__event_load(reterr));
    net->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (net->wake_fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot make an eventfd");
    net->base = hr__event.base_new();
    if (net->base == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "cannot make an event loop");
    net->on_wake =
        hr__event.new(net->base, net->wake_fd, EV_READ | EV_PERSIST, on_wake, net);
    net->on_tick = hr__event.new(net->base, -1, EV_PERSIST, on_tick, net);
    if (net->on_wake == NULL || net->on_tick == NULL ||
        hr__event.add(net->on_wake, NULL) != 0 || hr__event.add(net->on_tick, &tick) != 0)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

enum hr_err hr__net_open(const struct hr_net_options *options, struct hr_net **ret_net,
                         struct hr_error *reterr)
{
    struct hr_net *net = hr__calloc(1, sizeof *net);
    enum hr_err code = HR_ERR_MEMORY;

    if (net == NULL) {
        struct hr_tenants tenants = options->tenants;

        hr__tenants_finish(&tenants);
        hr__tls_close(options->tls);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    net->options = *options;
    net->wake_fd = net->listen_fd = net->local_fd = -1;
    hr__splicer_init(&net->splicer);
    pthread_mutex_init(&net->lock, NULL);
    pthread_mutex_init(&net->first, NULL);
    net->conns = hr__calloc((size_t)options->peers_max + 1, sizeof(struct hr_conn *));
    net->free = hr__calloc(options->peers_max, sizeof *net->free);
    net->pool = hr_pool_create(0); /* bounded by the connections and their frames */
    for (uint32_t i = options->peers_max; net->free != NULL && i >= 1; i--)
        net->free[net->free_count++] = i;
    if (net->conns == NULL || net->free == NULL || net->pool == NULL)
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    else
        code = open_events(net, reterr);
    if (code != HR_OK) {
        hr__net_close(net);
        return code;
    }
    *ret_net = net;
    return HR_OK;
}

void hr__net_run(struct hr_net *net)
{
    struct hr_pipe_guard guard;

    hr__net_lock(net);
    net->runs = true;
    hr__net_unlock(net);
    hr__pipe_guard(&guard);
    hr__event.base_loop(net->base, 0);
    hr__pipe_unguard(&guard);
}

void hr__net_close(struct hr_net *net)
{
    if (net == NULL)
        return;
    for (uint32_t i = 1; net->conns != NULL && i <= net->options.peers_max; i++)
        if (net->conns[i] != NULL)
            hr__conn_free(net->conns[i]);
    while (net->away != NULL)
        remove_conn(net, net->away);
    hr__lookups_finish(&net->lookups);
    if (net->on_wake != NULL)
        hr__event.free(net->on_wake);
    if (net->on_tick != NULL)
        hr__event.free(net->on_tick);
    if (net->on_accept != NULL)
        hr__event.free(net->on_accept);
    if (net->on_accept_local != NULL)
        hr__event.free(net->on_accept_local);
    if (net->base != NULL)
        hr__event.base_free(net->base);
    hr__splicer_close(&net->splicer);
    if (net->listen_fd >= 0)
        close(net->listen_fd);
    if (net->local_fd >= 0)
        close(net->local_fd);
    if (net->wake_fd >= 0)
        close(net->wake_fd);
    hr_pool_unref(net->pool);
    hr__tenants_finish(&net->options.tenants);
    hr__tls_close(net->options.tls);
    hr__free(net->conns);
    hr__free(net->free);
    pthread_mutex_destroy(&net->lock);
    pthread_mutex_destroy(&net->first);
    hr__free(net);
}
