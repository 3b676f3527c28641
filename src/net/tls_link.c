/*
 * net/tls_link.c - one connection's TLS: see tls.h.
 *
 * OpenSSL calls its BIO once per record of 16 kB. This BIO collects records in memory,
 * which one system call then sends, and lets OpenSSL read several at once.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/alloc.h"
#include "core/error.h"
#include "net/net.h"
#include "net/ssl.h"

#define RECORD HR_TLS_RECORD
#define RECORD_MORE 64u /* its header, tag and type take at most this */
#define OUT_FIRST 4096u
#define OUT_MAX (8u * (RECORD + RECORD_MORE)) /* bytes that are sent at once */

struct hr_tls_link {
    struct hr_tls *tls;
    SSL *ssl;
    int fd;
    bool listens, failed;
    char *out; /* encrypted bytes at [from, until) of `room` */
    size_t from, until, room;
    uint64_t records; /* sent with the present key */
    char who[HR_NET_ADDRESS_MAX + 16], name[HR_NET_ADDRESS_MAX];
    struct hr_error error;
};

/* ---- bytes of the socket ---- */

/* Room for `more` bytes at the end. */
static bool reserve(struct hr_tls_link *link, size_t more)
{
    size_t room = link->room > 0 ? link->room : OUT_FIRST;
    char *out;

    if (link->until + more <= link->room)
        return true;
    if (link->from > 0) {
        memmove(link->out, link->out + link->from, link->until - link->from);
        link->until -= link->from;
        link->from = 0;
    }
    while (room < link->until + more)
        room *= 2;
    if (room <= link->room)
        return true;
    out = hr__realloc(link->out, room);
    if (out == NULL)
        return false;
    link->out = out;
    link->room = room;
    return true;
}

static int bio_write(BIO *bio, const char *data, size_t bytes, size_t *ret_written)
{
    struct hr_tls_link *link = hr__ssl.BIO_get_data(bio);

    hr__ssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (!reserve(link, bytes))
        return 0;
    memcpy(link->out + link->until, data, bytes);
    link->until += bytes;
    *ret_written = bytes;
    return 1;
}

static int bio_read(BIO *bio, char *to, size_t room, size_t *ret_read)
{
    struct hr_tls_link *link = hr__ssl.BIO_get_data(bio);
    ssize_t got;

    hr__ssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    do {
        got = recv(link->fd, to, room, 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        *ret_read = (size_t)got;
        return 1;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        hr__ssl.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    return 0;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *hr__tls_method(void)
{
    BIO_METHOD *method = hr__ssl.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "headrace");

    if (method == NULL)
        return NULL;
    if (hr__ssl.BIO_meth_set_write_ex(method, bio_write) == 1 &&
        hr__ssl.BIO_meth_set_read_ex(method, bio_read) == 1 &&
        hr__ssl.BIO_meth_set_ctrl(method, bio_ctrl) == 1)
        return method;
    hr__ssl.BIO_meth_free(method);
    return NULL;
}

/* Hands what waits to the system. False with errno set if that fails. */
static bool flush(struct hr_tls_link *link)
{
    while (link->from < link->until) {
        ssize_t done = send(link->fd, link->out + link->from, link->until - link->from,
                            MSG_NOSIGNAL);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        link->from += (size_t)done;
    }
    link->from = link->until = 0;
    return true;
}

/* ---- its life ---- */

/* The host of "host:port", without the brackets of IPv6. */
static void host_of(const char *address, char *to, size_t room)
{
    const char *colon = strrchr(address, ':');
    size_t bytes = colon != NULL ? (size_t)(colon - address) : strlen(address);

    if (bytes >= 2 && address[0] == '[' && address[bytes - 1] == ']') {
        address++;
        bytes -= 2;
    }
    snprintf(to, room, "%.*s", (int)bytes, address);
}

/* Whom the certificate of the listener must be for. */
static bool expect(struct hr_tls_link *link, const char *address)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    if (link->tls->name != NULL)
        snprintf(link->name, sizeof link->name, "%s", link->tls->name);
    else
        host_of(address, link->name, sizeof link->name);
    if (inet_pton(AF_INET, link->name, bytes) == 1 ||
        inet_pton(AF_INET6, link->name, bytes) == 1)
        return hr__ssl.X509_VERIFY_PARAM_set1_ip_asc(hr__ssl.SSL_get0_param(link->ssl),
                                                     link->name) == 1;
    hr__ssl.SSL_set_hostflags(link->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return hr__ssl.SSL_set1_host(link->ssl, link->name) == 1 &&
           hr__ssl.SSL_ctrl(link->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                            TLSEXT_NAMETYPE_host_name, link->name) == 1;
}

static bool open_link(struct hr_tls_link *link, const char *address)
{
    BIO *bio;

    link->ssl = hr__ssl.SSL_new(link->listens ? link->tls->listens : link->tls->connects);
    if (link->ssl == NULL)
        return false;
    bio = hr__ssl.BIO_new(link->tls->method);
    if (bio == NULL)
        return false;
    hr__ssl.BIO_set_data(bio, link);
    hr__ssl.BIO_set_init(bio, 1);
    hr__ssl.SSL_set_bio(link->ssl, bio, bio); /* which owns it now */
    if (link->listens)
        hr__ssl.SSL_set_accept_state(link->ssl);
    else
        hr__ssl.SSL_set_connect_state(link->ssl);
    return link->listens || expect(link, address);
}

enum hr_err hr__tls_link(struct hr_tls *tls, int fd, const char *address,
                         struct hr_tls_link **ret_link, struct hr_error *reterr)
{
    struct hr_tls_link *link = hr__calloc(1, sizeof *link);

    if (link == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory for a connection");
    link->tls = tls;
    link->fd = fd;
    link->listens = address == NULL;
    snprintf(link->who, sizeof link->who, "%s", address != NULL ? address : "the client");
    hr__ssl.ERR_clear_error();
    if (!open_link(link, address)) {
        hr__tls_unlink(link);
        return hr__fail(reterr, HR_ERR_IO, "TLS does not start: %s", hr__tls_reason());
    }
    *ret_link = link;
    return HR_OK;
}

void hr__tls_unlink(struct hr_tls_link *link)
{
    if (link == NULL)
        return;
    hr__ssl.SSL_free(link->ssl);
    hr__free(link->out);
    hr__free(link);
}

/* ---- the handshake ---- */

/* What a call of OpenSSL that returned `done` means: 0 to wait, or a failure, with errno
 * and link->error set. */
static int judge(struct hr_tls_link *link, int done)
{
    int saved = errno;

    switch (hr__ssl.SSL_get_error(link->ssl, done)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        hr__fail_errno(&link->error, HR_ERR_IO, ECONNRESET, "%s is gone", link->who);
        errno = ECONNRESET;
        break;
    case SSL_ERROR_SYSCALL:
        if (saved == 0 || saved == EAGAIN)
            saved = ECONNRESET;
        hr__fail_errno(&link->error, HR_ERR_IO, saved, "TLS with %s failed", link->who);
        errno = saved;
        break;
    default:
        hr__tls_explain(link->ssl, link->listens, link->who, link->name, &link->error);
        errno = EPROTO;
    }
    link->failed = true;
    return -1;
}

enum hr_err
hr__tls_shake(struct hr_tls_link *link, bool *ret_done, struct hr_error *reterr)
{
    int done, judged;

    *ret_done = false;
    errno = 0;
    hr__ssl.ERR_clear_error();
    done = hr__ssl.SSL_do_handshake(link->ssl);
    judged = done == 1 ? 0 : judge(link, done);
    if (!flush(link) && judged == 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "TLS with %s failed", link->who);
    if (judged == 0) {
        *ret_done = done == 1;
        return HR_OK;
    }
    if (reterr != NULL)
        *reterr = link->error;
    return link->error.code;
}

/* ---- reading and writing ---- */

ssize_t hr__tls_read(struct hr_tls_link *link, const struct iovec *parts, size_t count)
{
    size_t total = 0;

    if (link->failed) {
        errno = EPROTO;
        return -1;
    }
    hr__ssl.ERR_clear_error();
    for (size_t i = 0; i < count; i++)
        for (size_t have = 0; have < parts[i].iov_len;) {
            size_t got = 0;
            int done;

            errno = 0;
            done = hr__ssl.SSL_read_ex(link->ssl, (char *)parts[i].iov_base + have,
                                       parts[i].iov_len - have, &got);
            if (done == 1) {
                have += got;
                total += got;
                continue;
            }
            if (judge(link, done) == 0 && total == 0)
                errno = EAGAIN;
            return total > 0 ? (ssize_t)total : -1; /* a failure is reported next time */
        }
    return (ssize_t)total;
}

bool hr__tls_has_more(const struct hr_tls_link *link)
{
    return hr__ssl.SSL_has_pending(link->ssl) == 1;
}

/* Where the caller's bytes are taken from. */
struct source {
    const struct iovec *parts;
    size_t count, part, at;
};

/* The next bytes, up to a record: where they lie, or joined in tls->plain. */
static size_t next_record(struct hr_tls_link *link, struct source *s, const char **ret)
{
    size_t have = 0;

    while (s->part < s->count && have < RECORD) {
        const struct iovec *part = &s->parts[s->part];
        size_t more = part->iov_len - s->at, most = RECORD - have;
        const char *from = (const char *)part->iov_base + s->at;

        if (have == 0 && more >= RECORD) {
            s->at += RECORD;
            *ret = from;
            return RECORD;
        }
        more = more < most ? more : most;
        if (more > 0)
            memcpy(link->tls->plain + have, from, more);
        have += more;
        s->at += more;
        if (s->at == part->iov_len) {
            s->part++;
            s->at = 0;
        }
    }
    *ret = link->tls->plain;
    return have;
}

/* Encrypts it into `out`, which has room. */
static bool encrypt(struct hr_tls_link *link, const char *data, size_t bytes)
{
    size_t written = 0;
    int done;

    if (link->records++ == link->tls->key_records) {
        link->records = 0;
        (void)hr__ssl.SSL_key_update(link->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    errno = 0;
    done = hr__ssl.SSL_write_ex(link->ssl, data, bytes, &written);
    if (done == 1 && written == bytes)
        return true;
    if (judge(link, done) == 0) { /* the BIO takes everything */
        hr__fail(&link->error, HR_ERR_IO, "TLS with %s failed: it waits", link->who);
        link->failed = true;
    }
    errno = EPROTO;
    return false;
}

ssize_t hr__tls_write(struct hr_tls_link *link, const struct iovec *parts, size_t count)
{
    struct source source = {.parts = parts, .count = count};
    size_t total = 0;

    if (link->failed || !flush(link)) {
        errno = link->failed ? EPROTO : errno;
        return -1;
    }
    if (link->until > 0) {
        errno = EAGAIN;
        return -1;
    }
    hr__ssl.ERR_clear_error();
    while (link->until + RECORD + RECORD_MORE <= OUT_MAX) {
        const char *data;
        size_t bytes = next_record(link, &source, &data);

        if (bytes == 0)
            break;
        if (!encrypt(link, data, bytes))
            return -1;
        total += bytes;
    }
    return flush(link) ? (ssize_t)total : -1;
}

size_t hr__tls_waiting(const struct hr_tls_link *link)
{
    return link->until - link->from;
}

void hr__tls_say_end(struct hr_tls_link *link)
{
    if (link->failed)
        return;
    hr__ssl.ERR_clear_error();
    (void)hr__ssl.SSL_shutdown(link->ssl);
    (void)flush(link);
}

const struct hr_error *hr__tls_failure(const struct hr_tls_link *link)
{
    return &link->error;
}
