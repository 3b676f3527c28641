/*
 * net/conn.c - what one connection reads and writes.
 */
#include "net/net_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/kill_point.h"

#define WRITE_PARTS 32 /* of one system call */

/* Whether a part is spliced where its message may be. */
static bool is_spliceable(const struct hr_net_part *part)
{
    return part->bytes >= HR_NET_SPLICE_MIN &&
           hr__buffer_has_pages(part->owner, part->data, part->bytes);
}

/* ---- the end ---- */

static void free_out(struct hr_net_out *out)
{
    for (size_t i = 0; i < out->part_count; i++)
        hr_buffer_unref(out->parts[i].owner);
    if (out->fd >= 0)
        close(out->fd);
    hr__free(out);
}

/* Of a message that the peer may still receive. */
static void drop_out(struct hr_net_out *out)
{
    for (size_t i = 0; out->spliced && i < out->part_count; i++)
        if (is_spliceable(&out->parts[i]))
            hr__buffer_retire(out->parts[i].owner);
    free_out(out);
}

static void drop_queue(struct hr_conn *conn)
{
    while (conn->first != NULL) {
        struct hr_net_out *out = conn->first;

        conn->first = out->next;
        drop_out(out);
    }
    conn->last = NULL;
    conn->queued = conn->control = 0;
}

/* The first of the messages that were spliced, out of their list. */
static struct hr_net_out *pop_spliced(struct hr_conn *conn)
{
    struct hr_net_out *out = conn->first_spliced;

    conn->first_spliced = out->next;
    if (conn->first_spliced == NULL)
        conn->last_spliced = NULL;
    conn->net->spliced -= out->body_bytes;
    return out;
}

void hr__conn_free(struct hr_conn *conn)
{
    if (conn->on_read != NULL)
        hr__event.free(conn->on_read);
    if (conn->on_write != NULL)
        hr__event.free(conn->on_write);
    if (conn->fd >= 0)
        close(conn->fd);
    for (size_t i = 0; i < conn->fd_count; i++)
        close(conn->fds[i]);
    drop_queue(conn);
    while (conn->first_spliced != NULL)
        drop_out(pop_spliced(conn));
    hr__tls_unlink(conn->tls);
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

    if (conn->tls != NULL && errnum == EPROTO) {
        hr__conn_kill(conn, hr__tls_failure(conn->tls));
        return;
    }
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
    } else if (!hr__conn_has_output(conn) && !conn->shut) {
        conn->shut = true;
        if (conn->tls != NULL)
            hr__tls_say_end(conn->tls);
        (void)shutdown(conn->fd, SHUT_WR);
    }
}

/* ---- writing ---- */

bool hr__conn_has_output(const struct hr_conn *conn)
{
    return conn->first != NULL || (conn->tls != NULL && hr__tls_waiting(conn->tls) > 0);
}

void hr__conn_arm(struct hr_conn *conn)
{
    bool wanted = hr__conn_has_output(conn) && conn->state != HR_CONN_DEAD;

    if (conn->state == HR_CONN_CONNECTING || conn->writes == wanted)
        return;
    conn->writes = wanted;
    if (wanted)
        hr__event.add(conn->on_write, NULL);
    else
        hr__event.del(conn->on_write);
}

/* System calls' parts. */
struct gather {
    struct iovec *parts;
    size_t count, most;
};

/* Adds what lies at [*skip, ...) of these bytes, of which at most *room are taken. */
static void
add_part(struct gather *g, const void *data, size_t bytes, size_t *skip, size_t *room)
{
    size_t from = *skip < bytes ? *skip : bytes, more = bytes - from;

    *skip -= from;
    more = more < *room ? more : *room;
    *room -= more;
    if (more > 0 && g->count < g->most)
        g->parts[g->count++] = (struct iovec){(char *)(uintptr_t)data + from, more};
}

/* The hash of the body after its next run. */
static uint64_t sum_run(const struct hr_net_out *out, size_t bytes)
{
    struct iovec list[HR_NET_PARTS_MAX];
    struct gather run = {list, 0, HR_NET_PARTS_MAX};
    size_t skip = out->summed;

    for (size_t i = 0; i < out->part_count; i++)
        add_part(&run, out->parts[i].data, out->parts[i].bytes, &skip, &bytes);
    assert(bytes == 0);
    return hr__frame_sum_parts(out->sum, list, run.count);
}

/* Hashes the body up to a run beyond what was sent. */
static void sum_ahead(struct hr_net_out *out)
{
    size_t sent = out->sent < out->head_bytes ? 0 : out->sent - out->head_bytes;

    while (out->summed < out->body_bytes && out->summed < sent + HR_FRAME_RUN) {
        size_t left = out->body_bytes - out->summed;
        size_t bytes = left < HR_FRAME_RUN ? left : HR_FRAME_RUN;

        out->sum = sum_run(out, bytes);
        out->summed += bytes;
    }
}

/* Bytes [from, until) of a message that are to be spliced, and where they lie. */
struct stretch {
    size_t from, until;
    const char *data;
};

/* The first stretch whose end was not sent: a part. */
static bool find_stretch(const struct hr_net_out *out, struct stretch *ret)
{
    size_t at = out->head_bytes;

    for (size_t i = 0; out->splices && i < out->part_count; i++) {
        const struct hr_net_part *part = &out->parts[i];
        size_t until = at + part->bytes;

        if (until > out->sent && is_spliceable(part)) {
            *ret = (struct stretch){at, until, part->data};
            return true;
        }
        at = until;
    }
    return false;
}

/* Splices what comes next of the first message. As sendmsg(); 0: it is to be copied. */
static ssize_t splice_next(struct hr_conn *conn)
{
    struct hr_net_out *out = conn->first;
    struct hr_net *net = conn->net;
    struct stretch stretch;
    size_t until;
    ssize_t done;

    if (out == NULL || !find_stretch(out, &stretch) || out->sent < stretch.from)
        return 0;
    if (!out->spliced && net->spliced > HR_NET_SPLICED_MAX) {
        out->splices = false;
        return 0;
    }
    sum_ahead(out);
    until = out->head_bytes + out->summed;
    until = until < stretch.until ? until : stretch.until;
    done = hr__splicer_send(&net->splicer, conn->fd,
                            stretch.data + (out->sent - stretch.from), until - out->sent);
    out->splices = done != 0;
    out->spliced = out->spliced || done > 0;
    return done;
}

/* Adds what may be sent of a message without splicing. False if there is more of it. */
static bool add_message(struct hr_net_out *out, struct gather *g)
{
    size_t skip = out->sent, room = out->bytes - out->sent;
    struct stretch stretch;
    bool whole;

    if (out->part_count > 0) {
        sum_ahead(out);
        if (out->summed < out->body_bytes)
            room = out->head_bytes + out->summed - out->sent;
    }
    if (find_stretch(out, &stretch)) {
        size_t before = stretch.from > out->sent ? stretch.from - out->sent : 0;

        room = room < before ? room : before;
    }
    whole =
        room == out->bytes - out->sent && g->count + out->part_count + 2 <= WRITE_PARTS;
    add_part(g, out->head, out->head_bytes, &skip, &room);
    for (size_t i = 0; i < out->part_count; i++)
        add_part(g, out->parts[i].data, out->parts[i].bytes, &skip, &room);
    if (out->part_count > 0)
        add_part(g, &out->sum, HR_FRAME_TAIL, &skip, &room);
    return whole;
}

static size_t gather(struct hr_conn *conn, struct iovec *parts)
{
    struct gather g = {parts, 0, WRITE_PARTS};

    for (struct hr_net_out *out = conn->first; out != NULL && g.count < WRITE_PARTS;
         out = out->next)
        if ((out->fd >= 0 && out != conn->first) || !add_message(out, &g))
            break;
    return g.count;
}

/* Keeps a message that was sent until the peer says that it has it. */
static void keep_spliced(struct hr_conn *conn, struct hr_net_out *out)
{
    assert(out->number > conn->large_received);
    out->next = NULL;
    if (conn->first_spliced == NULL)
        conn->first_spliced = out;
    else
        conn->last_spliced->next = out;
    conn->last_spliced = out;
    conn->net->spliced += out->body_bytes;
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
        if (out->part_count == 0)
            conn->control -= out->bytes;
        else
            conn->sent = true;
        conn->first = out->next;
        if (conn->first == NULL)
            conn->last = NULL;
        if (out->number > 0)
            conn->large_sent = out->number;
        if (out->spliced)
            keep_spliced(conn, out);
        else
            free_out(out);
    }
}

void hr__conn_write(struct hr_conn *conn)
{
    while (hr__conn_has_output(conn)) {
        struct iovec parts[WRITE_PARTS];
        ssize_t done = splice_next(conn);

        if (done == 0)
            done = hr__conn_transmit(conn, parts, gather(conn, parts));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (done < 0) {
            kill_errno(conn, errno, "the connection was lost while sending");
            return;
        }
        HR_KILL_POINT("net.wrote");
        written(conn, (size_t)done);
    }
}

/* ---- reading ---- */

void hr__conn_refuse(struct hr_conn *conn, const struct hr_error *error)
{
    struct hr_frame frame = {.type = HR_FRAME_ERROR};

    if (error->code == HR_ERR_DENIED)
        conn->net->denied++;
    frame.u.error.code = error->code;
    snprintf(frame.u.error.text, sizeof frame.u.error.text, "%.*s",
             (int)HR_FRAME_TEXT_MAX, error->message);
    hr__net_send(conn->net, conn->peer, &frame);
    conn->why = *error;
    hr__net_drop(conn->net, conn->peer);
}

void hr__conn_authenticate(struct hr_conn *conn)
{
    const struct hr_token *token = &conn->net->options.token;
    const struct hr_frame frame = {.type = HR_FRAME_AUTH};
    struct hr_buffer *body;

    if (token->bytes == 0)
        return;
    body = hr_buffer_create(token->bytes);
    if (body == NULL) {
        hr__net_drop(conn->net, conn->peer);
        return;
    }
    memcpy(hr_buffer_data(body), token->text, token->bytes);
    hr__net_send_body(conn->net, conn->peer, &frame,
                      &(struct hr_net_part){hr_buffer_data(body), token->bytes, body}, 1);
    hr_buffer_unref(body);
}

/* An AUTH frame. A side without a token lets everybody in. */
static void check_token(struct hr_conn *conn, const struct hr_buffer *data)
{
    const struct hr_net_options *options = &conn->net->options;
    const void *text = hr_buffer_data((struct hr_buffer *)data);
    size_t bytes = hr_buffer_bytes(data);
    struct hr_error error = {0};

    if (!conn->intake.guarded)
        return;
    conn->tenant = hr__tenants_find(&options->tenants, text, bytes);
    if (hr__token_is(&options->token, text, bytes) || conn->tenant != NULL) {
        conn->intake.guarded = false;
        return;
    }
    hr__fail(&error, HR_ERR_DENIED, "the token is wrong");
    hr__conn_refuse(conn, &error);
}

/* A RECEIVED frame: the peer has these large bodies. */
static void check_received(struct hr_conn *conn, uint64_t number)
{
    struct hr_error error = {0};

    if (number <= conn->large_received || number > conn->large_sent) {
        hr__fail(&error, HR_ERR_FORMAT,
                 "the peer says that it has received what was not sent");
        hr__conn_refuse(conn, &error);
        return;
    }
    conn->large_received = number;
    while (conn->first_spliced != NULL && conn->first_spliced->number <= number)
        free_out(pop_spliced(conn));
}

/* Whether a body is acknowledged, and may be spliced. */
static bool is_large(const struct hr_conn *conn, enum hr_frame_type type, size_t bytes)
{
    return !conn->intake.sealed && hr__frame_is_large(type, bytes);
}

/* Tells the sender of a large body that it has come. */
static void acknowledge(struct hr_conn *conn)
{
    const struct hr_frame frame = {.type = HR_FRAME_RECEIVED,
                                   .position = ++conn->large_in};

    hr__net_send(conn->net, conn->peer, &frame);
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
            hr__conn_expect_no_tls(conn, &error);
            hr__conn_refuse(conn, &error);
            return;
        }
        bytes += used;
        count -= used;
        if (complete && frame.type == HR_FRAME_AUTH) {
            check_token(conn, data);
            hr_buffer_unref(data);
        } else if (complete && frame.type == HR_FRAME_RECEIVED) {
            check_received(conn, frame.position);
        } else if (complete) {
            bool large =
                data != NULL && is_large(conn, frame.type, hr_buffer_bytes(data));

            hooks->frame(conn->net->options.user, conn->peer, &frame, data);
            if (large)
                acknowledge(conn);
        }
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

    bool more = room > HR_NET_READ_ONCE;

    room = more ? HR_NET_READ_ONCE : room;
    parts[0] = (struct iovec){to, room};
    parts[1] = (struct iovec){net->scratch, sizeof net->scratch};
    do {
        got = hr__conn_receive(conn, parts + (room == 0), room == 0 || more ? 1 : 2);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0) {
        kill_errno(conn, got == 0 ? ECONNRESET : errno, "the peer is gone");
        return 0;
    }
    HR_KILL_POINT("net.read");
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
    if (got > 0 && conn->tls != NULL && hr__tls_has_more(conn->tls))
        hr__event.active(conn->on_read, EV_READ, 1); /* the socket may have no more */
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
    conn->handed += out->bytes;
    if (first) {
        hr__conn_write(conn);
        conn->sent = false; /* the caller sees that */
    }
    if (!hr__conn_has_output(conn) || conn->writes || conn->listed)
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

/* Room for a message; NULL, and the connection ends, without memory. */
static struct hr_net_out *new_out(struct hr_conn *conn, size_t parts, size_t head_bytes)
{
    size_t bytes = sizeof(struct hr_net_out) + parts * sizeof(struct hr_net_part);
    struct hr_net_out *out = hr__malloc(bytes + head_bytes);

    if (out == NULL) {
        kill_for_memory(conn);
        return NULL;
    }
    *out =
        (struct hr_net_out){.fd = -1, .part_count = parts, .head = (char *)out + bytes};
    return out;
}

/* `fd` is taken over, also on failure. */
static void
send_control(struct hr_net *net, uint32_t peer, const struct hr_frame *frame, int fd)
{
    struct hr_conn *conn = open_conn(net, peer);
    struct hr_net_out *out;

    if (conn == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (conn->control > net->options.queue_max) {
        struct hr_error why = {0};

        hr__fail(&why, HR_ERR_LIMIT, "the peer does not read: %zu bytes wait for it",
                 conn->queued);
        hr__conn_kill(conn, &why);
        out = NULL;
    } else {
        out = new_out(conn, 0, HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX);
    }
    if (out == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    out->fd = fd;
    out->head_bytes = out->bytes = hr__frame_write(frame, out->head);
    conn->control += out->bytes;
    enqueue(conn, out);
}

void hr__net_send(struct hr_net *net, uint32_t peer, const struct hr_frame *frame)
{
    send_control(net, peer, frame, -1);
}

void hr__net_send_fd(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                     int fd)
{
    send_control(net, peer, frame, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void hr__net_send_body(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                       const struct hr_net_part *parts, size_t count)
{
    struct hr_conn *conn = open_conn(net, peer);
    struct hr_net_out *out;

    assert(count > 0 && count <= HR_NET_PARTS_MAX);
    if (conn == NULL)
        return;
    out = new_out(conn, count, HR_FRAME_HEAD);
    if (out == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        out->parts[i] = parts[i];
        out->body_bytes += parts[i].bytes;
        hr_buffer_ref(parts[i].owner);
    }
    out->sum = hr__frame_write_body(frame, out->body_bytes, out->head);
    out->summed = conn->intake.sealed ? out->body_bytes : 0;
    if (is_large(conn, frame->type, out->body_bytes)) {
        out->number = ++conn->large_out;
        out->splices = true;
    }
    out->head_bytes = HR_FRAME_HEAD;
    out->bytes = HR_FRAME_HEAD + out->body_bytes + HR_FRAME_TAIL;
    enqueue(conn, out);
}

const struct hr_tenant *hr__net_tenant(const struct hr_net *net, uint32_t peer)
{
    const struct hr_conn *conn = open_conn(net, peer);

    return conn != NULL ? conn->tenant : NULL;
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

void hr__net_traffic(const struct hr_net *net, uint32_t peer,
                     struct hr_net_traffic *ret_traffic)
{
    const struct hr_conn *conn = open_conn(net, peer);

    *ret_traffic = (struct hr_net_traffic){0};
    if (conn == NULL || conn->local)
        return;
    hr__conn_traffic(conn->fd, ret_traffic);
    ret_traffic->handed = conn->handed;
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
