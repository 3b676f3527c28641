/*
 * net/conn.c - what one connection reads and writes.
 */
#include "net/net_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"

#define WRITE_PARTS 32 /* of one system call */

/* ---- the end ---- */

static void drop_queue(struct hr_conn *conn)
{
    while (conn->first != NULL) {
        struct hr_net_out *out = conn->first;

        conn->first = out->next;
        hr_buffer_unref(out->payload);
        hr__free(out);
    }
    conn->last = NULL;
    conn->queued = conn->control = 0;
}

void hr__conn_free(struct hr_conn *conn)
{
    if (conn->on_read != NULL)
        hr__event.free(conn->on_read);
    if (conn->on_write != NULL)
        hr__event.free(conn->on_write);
    if (conn->fd >= 0)
        close(conn->fd);
    drop_queue(conn);
    hr__intake_finish(&conn->intake);
    hr__free(conn);
}

void hr__conn_know(struct hr_conn *conn)
{
    struct hr_net *net = conn->net;

    if (!conn->stranger)
        return;
    conn->stranger = false;
    if (conn->previous_stranger != NULL)
        conn->previous_stranger->next_stranger = conn->next_stranger;
    else
        net->first_stranger = conn->next_stranger;
    if (conn->next_stranger != NULL)
        conn->next_stranger->previous_stranger = conn->previous_stranger;
    else
        net->last_stranger = conn->previous_stranger;
}

void hr__conn_kill(struct hr_conn *conn, const struct hr_error *why)
{
    struct hr_net *net = conn->net;

    if (conn->state == HR_CONN_DEAD)
        return;
    hr__conn_know(conn);
    if (conn->state == HR_CONN_CLOSING)
        net->closing--;
    else
        conn->why = *why;
    conn->state = HR_CONN_DEAD;
    conn->next_dead = net->dead;
    net->dead = conn;
    hr__net_wake(net);
}

static void kill_errno(struct hr_conn *conn, int errnum, const char *what)
{
    struct hr_error why = {0};

    hr__fail_errno(&why, HR_ERR_IO, errnum, "%s", what);
    hr__conn_kill(conn, &why);
}

/* Closing at once would throw away what the peer has not read, if it has sent more. */
void hr__conn_end_closing(struct hr_conn *conn)
{
    if (conn->state != HR_CONN_CLOSING)
        return;
    if (hr__now_ns() >= conn->deadline_ns) {
        hr__conn_kill(conn, &conn->why);
    } else if (conn->first == NULL && !conn->shut) {
        conn->shut = true;
        (void)shutdown(conn->fd, SHUT_WR);
    }
}

/* ---- writing ---- */

void hr__conn_arm(struct hr_conn *conn)
{
    bool wanted = conn->first != NULL && conn->state != HR_CONN_DEAD;

    if (conn->state == HR_CONN_CONNECTING || conn->writes == wanted)
        return;
    conn->writes = wanted;
    if (wanted)
        hr__event.add(conn->on_write, NULL);
    else
        hr__event.del(conn->on_write);
}

static size_t gather(const struct hr_conn *conn, struct iovec *parts)
{
    size_t count = 0;

    for (struct hr_net_out *out = conn->first; out != NULL && count + 2 <= WRITE_PARTS;
         out = out->next) {
        size_t sent = out->sent, skip = 0;

        if (sent < out->head_bytes)
            parts[count++] = (struct iovec){out->head + sent, out->head_bytes - sent};
        else
            skip = sent - out->head_bytes;
        if (out->bytes > out->head_bytes)
            parts[count++] = (struct iovec){(char *)hr_buffer_data(out->payload) + skip,
                                            out->bytes - out->head_bytes - skip};
    }
    return count;
}

static void written(struct hr_conn *conn, size_t bytes)
{
    conn->queued -= bytes;
    while (bytes > 0) {
        struct hr_net_out *out = conn->first;
        size_t rest = out->bytes - out->sent;

        if (bytes < rest) {
            out->sent += bytes;
            return;
        }
        bytes -= rest;
        if (out->payload == NULL)
            conn->control -= out->bytes;
        else
            conn->sent = true;
        conn->first = out->next;
        if (conn->first == NULL)
            conn->last = NULL;
        hr_buffer_unref(out->payload);
        hr__free(out);
    }
}

void hr__conn_write(struct hr_conn *conn)
{
    while (conn->first != NULL) {
        struct iovec parts[WRITE_PARTS];
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = gather(conn, parts)};
        ssize_t done = sendmsg(conn->fd, &message, MSG_NOSIGNAL);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (done < 0) {
            kill_errno(conn, errno, "the connection was lost while sending");
            return;
        }
        written(conn, (size_t)done);
    }
}

/* ---- reading ---- */

void hr__conn_refuse(struct hr_conn *conn, const struct hr_error *error)
{
    struct hr_frame frame = {.type = HR_FRAME_ERROR};

    frame.u.error.code = error->code;
    snprintf(frame.u.error.text, sizeof frame.u.error.text, "%.*s",
             (int)HR_FRAME_TEXT_MAX, error->message);
    hr__net_send(conn->net, conn->peer, &frame);
    conn->why = *error;
    hr__net_drop(conn->net, conn->peer);
}

/* The frames in `count` bytes. */
static void take(struct hr_conn *conn, const char *bytes, size_t count)
{
    const struct hr_net_hooks *hooks = conn->net->options.hooks;

    while (count > 0 && conn->state == HR_CONN_OPEN) {
        struct hr_error error = {0};
        struct hr_buffer *data = NULL;
        struct hr_frame frame;
        bool complete;
        size_t used;

        if (hr__intake_add(&conn->intake, bytes, count, &used, &complete, &frame, &data,
                           &error) != HR_OK) {
            hr__conn_refuse(conn, &error);
            return;
        }
        bytes += used;
        count -= used;
        if (complete)
            hooks->frame(conn->net->options.user, conn->peer, &frame, data);
    }
}

/* One system call. Returns the number of bytes, 0 when there is nothing more. */
static size_t read_once(struct hr_conn *conn)
{
    struct hr_net *net = conn->net;
    struct iovec parts[2];
    char *to = NULL;
    size_t room = hr__intake_room(&conn->intake, &to);
    ssize_t got;

    parts[0] = (struct iovec){to, room};
    parts[1] = (struct iovec){net->scratch, sizeof net->scratch};
    do {
        got = readv(conn->fd, parts + (room == 0), room == 0 ? 1 : 2);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0) {
        kill_errno(conn, got == 0 ? ECONNRESET : errno, "the peer is gone");
        return 0;
    }
    if ((size_t)got <= room) {
        hr__intake_wrote(&conn->intake, (size_t)got);
        return (size_t)got;
    }
    if (room > 0)
        hr__intake_wrote(&conn->intake, room);
    take(conn, net->scratch, (size_t)got - room);
    return (size_t)got;
}

void hr__conn_read(struct hr_conn *conn)
{
    size_t total = 0, got;

    if (conn->state == HR_CONN_CLOSING) { /* ignored, but its end is not */
        ssize_t rest = read(conn->fd, conn->net->scratch, sizeof conn->net->scratch);

        if (rest == 0 || (rest < 0 && errno != EAGAIN && errno != EINTR))
            kill_errno(conn, rest < 0 ? errno : ECONNRESET, "the peer is gone");
        return;
    }
    do {
        got = read_once(conn);
        total += got;
    } while (got > 0 && total < HR_NET_READ_MAX && conn->state == HR_CONN_OPEN);
}

/* ---- sending ---- */

static struct hr_conn *open_conn(const struct hr_net *net, uint32_t peer)
{
    struct hr_conn *conn = peer <= net->options.peers_max ? net->conns[peer] : NULL;

    return conn != NULL && conn->state == HR_CONN_OPEN ? conn : NULL;
}

static void enqueue(struct hr_conn *conn, struct hr_net_out *out)
{
    bool first = conn->first == NULL;

    out->next = NULL;
    if (first)
        conn->first = out;
    else
        conn->last->next = out;
    conn->last = out;
    conn->queued += out->bytes;
    if (first) {
        hr__conn_write(conn);
        conn->sent = false; /* the caller sees that */
    }
    if (conn->first == NULL || conn->writes || conn->listed)
        return;
    conn->listed = true;
    conn->next_to_arm = conn->net->to_arm;
    conn->net->to_arm = conn;
    hr__net_wake(conn->net);
}

static void kill_for_memory(struct hr_conn *conn)
{
    struct hr_error why = {0};

    hr__fail(&why, HR_ERR_MEMORY, "no memory for a message");
    hr__conn_kill(conn, &why);
}

void hr__net_send(struct hr_net *net, uint32_t peer, const struct hr_frame *frame)
{
    struct hr_conn *conn = open_conn(net, peer);
    struct hr_net_out *out;

    if (conn == NULL)
        return;
    if (conn->control > net->options.queue_max) {
        struct hr_error why = {0};

        hr__fail(&why, HR_ERR_LIMIT, "the peer does not read: %zu bytes wait for it",
                 conn->queued);
        hr__conn_kill(conn, &why);
        return;
    }
    out = hr__malloc(sizeof *out + HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX);
    if (out == NULL) {
        kill_for_memory(conn);
        return;
    }
    out->head_bytes = out->bytes = hr__frame_write(frame, out->head);
    out->payload = NULL;
    out->sent = 0;
    conn->control += out->bytes;
    enqueue(conn, out);
}

void hr__net_send_body(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                       struct hr_buffer *payload)
{
    struct hr_conn *conn = open_conn(net, peer);
    struct hr_net_out *out;

    if (conn == NULL)
        return;
    out = hr__malloc(sizeof *out + HR_FRAME_HEAD);
    if (out == NULL) {
        kill_for_memory(conn);
        return;
    }
    hr__frame_write_body(frame, hr_buffer_data(payload), hr_buffer_bytes(payload),
                         out->head);
    out->head_bytes = HR_FRAME_HEAD;
    out->bytes = HR_FRAME_HEAD + hr_buffer_bytes(payload);
    out->payload = hr_buffer_ref(payload);
    out->sent = 0;
    enqueue(conn, out);
}

void hr__net_know(struct hr_net *net, uint32_t peer)
{
    if (peer <= net->options.peers_max && net->conns[peer] != NULL)
        hr__conn_know(net->conns[peer]);
}

size_t hr__net_queued(const struct hr_net *net, uint32_t peer)
{
    const struct hr_conn *conn = open_conn(net, peer);

    return conn != NULL ? conn->queued : 0;
}

void hr__net_drop(struct hr_net *net, uint32_t peer)
{
    struct hr_conn *conn = peer <= net->options.peers_max ? net->conns[peer] : NULL;

    if (conn == NULL || conn->state == HR_CONN_DEAD || conn->state == HR_CONN_CLOSING)
        return;
    if (conn->why.code == HR_OK)
        hr__fail(&conn->why, HR_ERR_CANCELLED, "this side closed the connection");
    if (conn->state == HR_CONN_CONNECTING) {
        const struct hr_error why = conn->why;

        hr__conn_kill(conn, &why);
        return;
    }
    conn->state = HR_CONN_CLOSING;
    conn->deadline_ns = hr__now_ns() + HR_NET_LINGER_NS;
    net->closing++;
    hr__conn_end_closing(conn);
}
