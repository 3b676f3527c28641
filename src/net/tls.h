/*
 * net/tls.h - TLS 1.3 for connections, by OpenSSL.
 *
 * A process has one hr_tls, made from files at its start, and a link per connection. A
 * link encrypts and decrypts in memory and does the system calls itself, many records in
 * one, so that a record of 16 kB does not cost a call. It never blocks. Not thread-safe:
 * the net's lock guards it.
 *
 * Certificates are always verified: chain, dates, and the name or IP address that was
 * dialled. There is no way to turn that off. Sessions are not resumed.
 */
#ifndef HR_NET_TLS_H
#define HR_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "headrace/base.h"

/* Paths of PEM files, and a name. NULL: as the environment says (HEADRACE_TLS_CERT,
 * HEADRACE_TLS_KEY, HEADRACE_TLS_CA, HEADRACE_TLS_CLIENT_CA, HEADRACE_TLS_NAME), or not
 * given; "": not given. */
struct hr_tls_files {
    const char *cert, *key; /* own certificate, with its chain, and its key */
    const char *ca;         /* CAs of listeners */
    const char
        *client_ca;   /* CAs of those who connect; not given: they need no certificate */
    const char *name; /* that listeners' certificates are for; not given: the host that
                         was dialled */
};

enum hr_tls_use { HR_TLS_LISTENS = 1, HR_TLS_CONNECTS = 2 };

struct hr_tls;

/* For what a process does (`uses`, a sum of hr_tls_use). *ret_tls is NULL if nothing that
 * concerns it is given: it then talks without TLS. A listener needs cert and key; who
 * connects needs ca; a process that does both needs all three, so that no part of a
 * service is left without TLS by mistake. All files are read and checked now.
 * HR_ERR_ARGUMENT, HR_ERR_FORMAT, HR_ERR_IO, HR_ERR_NOT_FOUND, HR_ERR_MEMORY,
 * HR_ERR_UNSUPPORTED (no OpenSSL 3). */
HR_CHECK enum hr_err hr__tls_open(const struct hr_tls_files *files, unsigned uses,
                                  struct hr_tls **ret_tls, struct hr_error *reterr);
void hr__tls_close(struct hr_tls *tls); /* after its links. NULL is allowed */

/* Whether those who connect must have a certificate. NULL is allowed. */
bool hr__tls_asks_clients(const struct hr_tls *tls);

struct hr_tls_link;

/* On a socket that does not block and stays the caller's. `address`: the "host:port" that
 * was dialled; NULL: accepted. HR_ERR_MEMORY, HR_ERR_IO. */
HR_CHECK enum hr_err hr__tls_link(struct hr_tls *tls, int fd, const char *address,
                                  struct hr_tls_link **ret_link, struct hr_error *reterr);
void hr__tls_unlink(struct hr_tls_link *link); /* NULL is allowed */

/* Continues the handshake as far as the socket lets it. HR_ERR_DENIED if one side does
 * not trust the other, which trying again will not change, HR_ERR_LIMIT if the listener
 * has no place; HR_ERR_IO. */
HR_CHECK enum hr_err
hr__tls_shake(struct hr_tls_link *link, bool *ret_done, struct hr_error *reterr);

/* As readv(). -1 with EPROTO: hr__tls_failure() says why. */
ssize_t hr__tls_read(struct hr_tls_link *link, const struct iovec *parts, size_t count);
/* Whether hr__tls_read() may return bytes although the socket has none. */
bool hr__tls_has_more(const struct hr_tls_link *link);

/* As writev(); what was taken may wait (hr__tls_waiting) for the next call, whose `count`
 * may be 0. The caller repeats what was not taken. */
ssize_t hr__tls_write(struct hr_tls_link *link, const struct iovec *parts, size_t count);
size_t hr__tls_waiting(const struct hr_tls_link *link);
/* Tells the peer that nothing follows. */
void hr__tls_say_end(struct hr_tls_link *link);

const struct hr_error *hr__tls_failure(const struct hr_tls_link *link);

/* An alert in the clear, for a listener that has no place: shake gives HR_ERR_LIMIT. */
#define HR_TLS_NO_PLACE "\x15\x03\x03\x00\x02\x02\x50"
#define HR_TLS_NO_PLACE_BYTES 7u

/* What the first byte of a stream says. */
static inline bool hr__tls_begins(unsigned char first)
{
    return first == 0x16 || first == 0x15; /* handshake, alert */
}

#endif
