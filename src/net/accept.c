/*
 * net/accept.c - listening: new connections, strangers among them, and those for which
 * there is no place.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/address.h"
#include "net/net_internal.h"

#define BACKLOG 512
#define ACCEPTS_MAX 64 /* before connections get a turn */

/* ---- no place ---- */

static void send_no_place(const struct hr_net *net, int fd, bool secured)
{
    struct hr_frame frame = {.type = HR_FRAME_ERROR};
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];

    if (secured) { /* no frame is taken before the handshake */
        (void)!send(fd, HR_TLS_NO_PLACE, HR_TLS_NO_PLACE_BYTES, MSG_NOSIGNAL);
        return;
    }
    frame.u.error.code = HR_ERR_LIMIT;
    snprintf(frame.u.error.text, sizeof frame.u.error.text,
             "there are %u connections already; raise the limit or try again later",
             net->options.peers_max);
    (void)!send(fd, bytes, hr__frame_write(&frame, bytes), MSG_NOSIGNAL);
}

/* Tells a connection that there is no place for it. It lingers: closing at once could
 * discard the message if the peer is still sending. */
static void turn_away(struct hr_net *net, int fd, bool secured)
{
    struct hr_conn *conn;

    net->turned_away++;
    send_no_place(net, fd, secured);
    if (net->away_count == HR_NET_AWAY_MAX) {
        close(fd);
        return;
    }
    conn = hr__net_new_conn(net, fd, HR_CONN_CLOSING);
    if (conn == NULL)
        return;
    conn->deadline_ns = hr__now_ns() + HR_NET_LINGER_NS;
    net->closing++;
    conn->next_away = net->away;
    net->away = conn;
    net->away_count++;
    hr__conn_end_closing(conn);
}

/* ---- strangers ---- */

static void add_stranger(struct hr_net *net, struct hr_conn *conn)
{
    if (net->options.stranger_ns == 0)
        return;
    conn->stranger = true;
    conn->accepted_ns = hr__now_ns();
    conn->next_stranger = NULL;
    conn->previous_stranger = net->last_stranger;
    if (net->last_stranger != NULL)
        net->last_stranger->next_stranger = conn;
    else
        net->first_stranger = conn;
    net->last_stranger = conn;
}

static void drop_stranger(struct hr_conn *conn, enum hr_err code, const char *text)
{
    struct hr_error why = {0};

    hr__fail(&why, code, "%s", text);
    if (conn->state == HR_CONN_OPEN) {
        conn->net->strangers_closed++;
        hr__conn_refuse(conn, &why);
    } else if (conn->state == HR_CONN_SHAKING) {
        conn->net->strangers_closed++;
        hr__conn_kill(conn, &why);
    }
}

/* Makes room for a new connection: the oldest stranger is closed without lingering. */
static void evict_stranger(struct hr_net *net)
{
    struct hr_conn *conn = net->first_stranger;

    drop_stranger(conn, HR_ERR_LIMIT,
                  "this connection said no HELLO, and another one needed its place");
    hr__conn_kill(conn, &conn->why);
    hr__net_settle(net);
}

void hr__net_expire_strangers(struct hr_net *net)
{
    uint64_t now = hr__now_ns();
    struct hr_conn *next;

    for (struct hr_conn *conn = net->first_stranger; conn != NULL; conn = next) {
        next = conn->next_stranger;
        if (now - conn->accepted_ns < net->options.stranger_ns)
            return;
        drop_stranger(conn, HR_ERR_TIMEOUT,
                      "this connection said no HELLO in time; connect again");
    }
}

/* ---- new connections ---- */

/* Gives a new connection a number, or turns it away. `secured`: it begins with TLS. */
static void place(struct hr_net *net, int fd, bool secured)
{
    struct hr_conn *conn;

    if (net->free_count == 0 && net->first_stranger != NULL)
        evict_stranger(net);
    if (net->free_count == 0) {
        turn_away(net, fd, secured);
        return;
    }
    conn = hr__net_add_conn(net, fd, HR_CONN_OPEN);
    if (conn == NULL)
        return;
    conn->intake.guarded = net->options.token.bytes > 0;
    add_stranger(net, conn);
    if (secured)
        hr__conn_secure(conn);
    else
        hr__net_opened(conn);
}

static void on_accept(evutil_socket_t listener, short what, void *user)
{
    struct hr_net *net = user;

    (void)what;
    hr__net_lock_after_first(net);
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
            net->accepts = false; /* they wait until the next tick */
            if (net->on_accept != NULL)
                hr__event.del(net->on_accept);
            if (net->on_accept_local != NULL)
                hr__event.del(net->on_accept_local);
        }
        if (fd < 0)
            break;
        if (listener == net->local_fd && !hr__net_is_same_user(fd)) {
            close(fd);
            continue;
        }
        place(net, fd, net->options.tls != NULL && listener != net->local_fd);
    }
    hr__net_settle(net);
    hr__net_unlock(net);
}

static enum hr_err listen_at(int fd, const struct sockaddr_storage *at, socklen_t bytes,
                             const char *address, struct hr_error *reterr)
{
    const int one = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)at, bytes) != 0 || listen(fd, BACKLOG) != 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot listen at %s", address);
    return HR_OK;
}

enum hr_err hr__net_accept_at(struct hr_net *net, int fd, struct event **ret_event,
                              struct hr_error *reterr)
{
    struct event *event =
        hr__event.new(net->base, fd, EV_READ | EV_PERSIST, on_accept, net);

    if (event == NULL || hr__event.add(event, NULL) != 0) {
        if (event != NULL)
            hr__event.free(event);
        close(fd);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    *ret_event = event;
    return HR_OK;
}

enum hr_err hr__net_open_listener(const char *address, int *ret_fd, char *ret_address,
                                  size_t room, struct hr_error *reterr)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    enum hr_err code;
    int fd;

    HR_TRY(hr__address_parse(address, &at, &bytes, reterr));
    fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot listen at %s", address);
    code = listen_at(fd, &at, bytes, address, reterr);
    if (code != HR_OK) {
        close(fd);
        return code;
    }
    bytes = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &bytes) == 0)
        hr__address_print(&at, bytes, ret_address, room);
    *ret_fd = fd;
    return HR_OK;
}

enum hr_err
hr__net_listen(struct hr_net *net, const char *address, struct hr_error *reterr)
{
    int fd = -1;

    HR_TRY(
        hr__net_open_listener(address, &fd, net->address, sizeof net->address, reterr));
    HR_TRY(hr__net_accept_at(net, fd, &net->on_accept, reterr));
    net->listen_fd = fd;
    net->accepts = true;
    return HR_OK;
}

void hr__net_stop_listening(struct hr_net *net)
{
    if (net->on_accept != NULL)
        hr__event.free(net->on_accept);
    net->on_accept = NULL;
    if (net->on_accept_local != NULL)
        hr__event.free(net->on_accept_local);
    net->on_accept_local = NULL;
    if (net->listen_fd >= 0)
        close(net->listen_fd);
    if (net->local_fd >= 0)
        close(net->local_fd);
    net->listen_fd = net->local_fd = -1;
}

const char *hr__net_address(const struct hr_net *net)
{
    return net->address;
}
