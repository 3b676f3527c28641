/*
 * net/secure.c - connections before their first frame: handshakes, and peers of which one
 * has TLS and the other has not.
 *
 * An accepted connection costs nothing until its first byte: only then OpenSSL hears of
 * it. That byte says whether the peer speaks TLS or frames. So a wrong setting on either
 * side ends in a message, and not in a connection that is tried forever.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "net/net_internal.h"

#define SHAKE_NS 10000000000ul /* for a handshake */

static bool is_accepted(const struct hr_conn *conn)
{
    return conn->address[0] == '\0';
}

/* Says goodbye by what OpenSSL has sent, its alert, and lets the peer read that. */
static void end_handshake(struct hr_conn *conn, const struct hr_error *why)
{
    if (why->code == HR_ERR_DENIED)
        conn->net->denied++;
    conn->why = *why;
    hr__tls_unlink(conn->tls);
    conn->tls = NULL;
    hr__net_drop(conn->net, conn->peer);
}

/* The peer talks plainly. */
static void refuse_plain(struct hr_conn *conn)
{
    struct hr_error error = {0};

    if (is_accepted(conn)) {
        hr__fail(&error, HR_ERR_DENIED,
                 "this side speaks TLS only: give --tls-ca, or set HEADRACE_TLS_CA");
        conn->state = HR_CONN_OPEN; /* for the answer */
        hr__conn_refuse(conn, &error);
        return;
    }
    hr__fail(&error, HR_ERR_DENIED,
             "%s does not speak TLS: start it with --tls-cert and --tls-key, or connect "
             "without --tls-ca",
             conn->address);
    end_handshake(conn, &error);
}

/* Whether the peer has begun TLS; otherwise it has said nothing yet, or is refused. */
static bool hears_tls(struct hr_conn *conn)
{
    struct hr_error why = {0};
    unsigned char first;
    ssize_t got;

    if (conn->heard)
        return true;
    got = recv(conn->fd, &first, 1, MSG_PEEK);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return false;
    if (got <= 0) {
        hr__fail_errno(&why, HR_ERR_IO, got < 0 ? errno : ECONNRESET,
                       "the peer is gone before its handshake");
        hr__conn_kill(conn, &why);
        return false;
    }
    conn->heard = hr__tls_begins(first);
    if (!conn->heard)
        refuse_plain(conn);
    return conn->heard;
}

/* OpenSSL's part of it. False, and the connection ends, without memory. */
static bool link_tls(struct hr_conn *conn)
{
    struct hr_error why = {0};

    if (conn->tls != NULL)
        return true;
    if (hr__tls_link(conn->net->options.tls, conn->fd,
                     is_accepted(conn) ? NULL : conn->address, &conn->tls, &why) == HR_OK)
        return true;
    hr__conn_kill(conn, &why);
    return false;
}

static void step(struct hr_conn *conn)
{
    struct hr_error why = {0};
    bool done;

    if (hr__tls_shake(conn->tls, &done, &why) != HR_OK) {
        end_handshake(conn, &why);
        return;
    }
    if (!done)
        return;
    conn->intake.sealed = true;
    hr__net_opened(conn);
    if (conn->state == HR_CONN_OPEN && hr__tls_has_more(conn->tls))
        hr__conn_read(conn);
}

void hr__conn_secure(struct hr_conn *conn)
{
    conn->state = HR_CONN_SHAKING;
    conn->deadline_ns = hr__now_ns() + SHAKE_NS;
    if (!is_accepted(conn) && link_tls(conn))
        step(conn);
}

void hr__conn_shake(struct hr_conn *conn)
{
    if (hears_tls(conn) && link_tls(conn))
        step(conn);
}

void hr__conn_end_shaking(struct hr_conn *conn)
{
    struct hr_error why = {0};

    if (conn->state != HR_CONN_SHAKING || hr__now_ns() < conn->deadline_ns)
        return;
    hr__fail(&why, HR_ERR_TIMEOUT, "the TLS handshake with %s takes more than %lu s",
             is_accepted(conn) ? "the client" : conn->address, SHAKE_NS / 1000000000);
    hr__conn_kill(conn, &why);
}

void hr__conn_expect_no_tls(const struct hr_conn *conn, struct hr_error *error)
{
    if (conn->tls == NULL && error->code == HR_ERR_FORMAT &&
        hr__tls_begins((unsigned char)conn->intake.bytes[0]))
        hr__fail(error, HR_ERR_DENIED,
                 "the peer speaks TLS and this side does not: give --tls-cert and "
                 "--tls-key");
}
