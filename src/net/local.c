/*
 * net/local.c - connections on one host: Unix sockets, which pass descriptors.
 *
 * Sockets have names in the abstract namespace, so nothing is left behind by a process
 * that is killed. Both sides accept processes of their own user only, since anyone on the
 * host may take a name or connect to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/net_internal.h"

#define BACKLOG 512
#define FDS_AT_ONCE 8

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(FDS_AT_ONCE * sizeof(int))];
};

bool hr__net_is_same_user(int fd)
{
    struct ucred other;
    socklen_t bytes = sizeof other;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 &&
           other.uid == geteuid();
}

static socklen_t address_of(const char *name, struct sockaddr_un *ret)
{
    int length;

    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    length = snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "headrace/%s", name);
    if (length < 0 || (size_t)length >= sizeof ret->sun_path - 1)
        return 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

enum hr_err
hr__net_listen_local(struct hr_net *net, const char *name, struct hr_error *reterr)
{
    struct sockaddr_un at;
    socklen_t bytes = address_of(name, &at);
    int fd = open_socket();

    if (fd < 0 || bytes == 0 || bind(fd, (struct sockaddr *)&at, bytes) != 0 ||
        listen(fd, BACKLOG) != 0) {
        hr__fail_errno(reterr, HR_ERR_IO, errno,
                       "cannot listen for processes of this host as %s", name);
        if (fd >= 0)
            close(fd);
        return HR_ERR_IO;
    }
    HR_TRY(hr__net_accept_at(net, fd, &net->on_accept_local, reterr));
    net->local_fd = fd;
    return HR_OK;
}

enum hr_err hr__net_connect_local(struct hr_net *net, const char *name,
                                  uint32_t *ret_peer, struct hr_error *reterr)
{
    struct sockaddr_un to;
    socklen_t bytes = address_of(name, &to);
    struct hr_conn *conn;
    int fd = -1;

    if (net->free_count == 0)
        return hr__fail(reterr, HR_ERR_LIMIT, "there are %u connections already",
                        net->options.peers_max);
    if (bytes > 0)
        fd = open_socket();
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, bytes) != 0 ||
        !hr__net_is_same_user(fd)) {
        if (fd >= 0)
            close(fd);
        return hr__fail(reterr, HR_ERR_NOT_FOUND,
                        "no process of this user listens on this host as %s", name);
    }
    conn = hr__net_add_conn(net, fd, HR_CONN_CONNECTING);
    if (conn == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for a connection");
    snprintf(conn->address, sizeof conn->address, "%s", name);
    conn->told = true;
    *ret_peer = conn->peer;
    return HR_OK;
}

static struct hr_conn *local_conn(const struct hr_net *net, uint32_t peer)
{
    struct hr_conn *conn = peer <= net->options.peers_max ? net->conns[peer] : NULL;

    return conn != NULL && conn->local ? conn : NULL;
}

bool hr__net_is_local(const struct hr_net *net, uint32_t peer)
{
    return local_conn(net, peer) != NULL;
}

int hr__net_take_fd(struct hr_net *net, uint32_t peer)
{
    struct hr_conn *conn = local_conn(net, peer);
    int fd;

    if (conn == NULL || conn->fd_count == 0)
        return -1;
    fd = conn->fds[0];
    conn->fd_count--;
    memmove(conn->fds, conn->fds + 1, conn->fd_count * sizeof *conn->fds);
    return fd;
}

/* Descriptors beyond the limit are closed; the frames that they came with find none. */
static void keep_fds(struct hr_conn *conn, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL;
         c = CMSG_NXTHDR(message, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (conn->fd_count < HR_NET_FDS_MAX)
                conn->fds[conn->fd_count++] = fd;
            else
                close(fd);
        }
    }
}

ssize_t hr__conn_receive(struct hr_conn *conn, struct iovec *parts, size_t count)
{
    union control control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    ssize_t got;

    if (conn->tls != NULL)
        return hr__tls_read(conn->tls, parts, count);
    if (!conn->local)
        return readv(conn->fd, parts, (int)count);
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    got = recvmsg(conn->fd, &message, MSG_CMSG_CLOEXEC);
    if (got >= 0)
        keep_fds(conn, &message);
    return got;
}

ssize_t hr__conn_transmit(struct hr_conn *conn, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    struct hr_net_out *first = conn->first;
    union control control = {0};
    struct cmsghdr *c;
    ssize_t done;

    if (conn->tls != NULL)
        return hr__tls_write(conn->tls, parts, count);
    if (first->fd >= 0 && conn->local) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &first->fd, sizeof first->fd);
    }
    done = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
    if (done > 0 && first->fd >= 0) {
        close(first->fd);
        first->fd = -1;
    }
    return done;
}
