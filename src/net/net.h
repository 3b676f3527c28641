/*
 * net/net.h - frames over TCP: a loop with a listener and any number of connections.
 *
 * One thread runs the loop. Reading, connecting, timers and every hook happen in it;
 * any thread may send. One mutex, which the loop holds while it calls hooks, guards the
 * net and may guard what its user keeps beside it.
 *
 * Everything is bounded. A connection holds one incoming frame of at most payload_max
 * bytes, and at most queue_max bytes of outgoing control messages: a peer that does not
 * read is closed. How many bytes of bodies wait is up to the sender, which asks
 * hr__net_queued() and is told when the queue is empty. A peer that sends malformed bytes
 * receives an ERROR frame and is closed; other connections are not affected.
 *
 * Over TCP without TLS, large parts of bodies in pages of their own are not copied: the
 * system reads them where they lie, so their owners are kept until the peer confirms the
 * body (RECEIVED, which the net sends and takes itself: hooks do not see it). With
 * more than HR_NET_SPLICED_MAX bytes of bodies that were sent and not confirmed, further
 * ones are copied. Pages of a body that was not confirmed when its connection ended leave
 * the process instead of being used again.
 *
 * An accepted connection is a stranger until its owner calls hr__net_know(). Strangers
 * are closed after stranger_ns, and earlier, oldest first, when a new connection needs
 * the place. So idle connections, however many, keep nobody out. When all places are
 * taken by known peers, a new connection receives an ERROR frame with HR_ERR_LIMIT.
 *
 * With a token, connections that this side makes begin with it, and accepted ones must,
 * or receive an ERROR frame with HR_ERR_DENIED before anything is received for them.
 * AUTH frames do not reach the hooks.
 *
 * With TLS, all connections but those on one host by Unix sockets begin with a handshake;
 * `accepted` and `connected` come after it. A peer without TLS receives an ERROR frame
 * with HR_ERR_DENIED. `lost` with HR_ERR_DENIED: one side does not trust the other.
 *
 * Connections are numbered from 1 on. A number is reused only after `lost`.
 */
#ifndef HR_NET_NET_H
#define HR_NET_NET_H

#include <pthread.h>

#include "net/parts.h"
#include "net/tenants.h"
#include "net/tls.h"
#include "net/token.h"
#include "wire/frame.h"

#define HR_NET_ADDRESS_MAX 256u /* bytes of "host:port" with the terminating NUL */
#define HR_NET_SPLICED_MAX ((size_t)1 << 28) /* bytes */

/* All are called with the lock held; `frame` may release it for a while. NULL: not
 * needed. */
struct hr_net_hooks {
    /* A connection was accepted, or one that hr__net_connect() began is made. */
    void (*accepted)(void *user, uint32_t peer);
    void (*connected)(void *user, uint32_t peer);
    /* A frame; `data` is its body, a reference that the hook owns, or NULL. */
    void (*frame)(void *user, uint32_t peer, const struct hr_frame *frame,
                  struct hr_buffer *data);
    /* The connection is gone, or could not be made. HR_ERR_DENIED: it will not be made
     * next time either. */
    void (*lost)(void *user, uint32_t peer, const struct hr_error *why);
    /* A body that waited has been handed to the system. */
    void (*sent)(void *user, uint32_t peer);
    void (*tick)(void *user);
    void (*woken)(void *user); /* after hr__net_wake() */
};

struct hr_net_options {
    uint32_t peers_max;
    size_t payload_max; /* of incoming DATA */
    size_t queue_max;   /* outgoing control messages of a connection, in bytes */
    uint64_t tick_ns;
    uint64_t stranger_ns; /* to become known; 0: accepted connections are known */
    struct hr_token token;
    struct hr_tenants tenants; /* their tokens are accepted, too. The net's, also if it
                                  does not open */
    struct hr_tls *tls;        /* NULL: without. The net's, also if it does not open */
    const struct hr_net_hooks *hooks;
    void *user;
};

struct hr_net;

/* HR_ERR_MEMORY, HR_ERR_IO, HR_ERR_UNSUPPORTED (no libevent). */
HR_CHECK enum hr_err hr__net_open(const struct hr_net_options *options,
                                  struct hr_net **ret_net, struct hr_error *reterr);
/* After the loop has ended. Connections are closed without a hook. NULL is allowed. */
void hr__net_close(struct hr_net *net);

/* Runs the loop in the calling thread until hr__net_stop(). */
void hr__net_run(struct hr_net *net);
/* Any thread, with or without the lock; also signal handlers. */
void hr__net_stop(struct hr_net *net);
void hr__net_wake(struct hr_net *net);

void hr__net_lock(struct hr_net *net);
/* The same, but the loop waits as long: it would take the lock again and again while many
 * frames come. For one other thread. */
void hr__net_lock_first(struct hr_net *net);
void hr__net_unlock(struct hr_net *net);
pthread_mutex_t *hr__net_mutex(struct hr_net *net); /* for condition variables */

/* The rest is called with the lock held. */

/* Listens at "host:port"; port 0 draws one. HR_ERR_ARGUMENT, HR_ERR_IO. Before or in the
 * loop. */
HR_CHECK enum hr_err
hr__net_listen(struct hr_net *net, const char *address, struct hr_error *reterr);
/* Connections that exist stay. In the loop. */
void hr__net_stop_listening(struct hr_net *net);
/* "host:port" as it turned out; "" when it does not listen. */
const char *hr__net_address(const struct hr_net *net);

/* Begins to connect; `connected` or `lost` follows. In the loop, or before it. A host's
 * name is looked up in a thread: before the loop this waits for it up to 10 s, in the
 * loop 2 ms. HR_ERR_TIMEOUT: it is not known yet; call again later. HR_ERR_ARGUMENT,
 * HR_ERR_NOT_FOUND, HR_ERR_IO, HR_ERR_LIMIT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__net_connect(struct hr_net *net, const char *address,
                                     uint32_t *ret_peer, struct hr_error *reterr);

/* The tenant whose token an accepted connection began with; NULL: it was the service's
 * own, or none. Valid until hr__net_close(). */
const struct hr_tenant *hr__net_tenant(const struct hr_net *net, uint32_t peer);

/* The peer is no longer a stranger. */
void hr__net_know(struct hr_net *net, uint32_t peer);

/* Connections that were refused a place, strangers that were closed, and connections
 * without the token, so far. */
struct hr_net_counts {
    uint64_t turned_away, strangers_closed, denied;
    uint32_t open;            /* now, strangers included */
    uint64_t longest_tick_ns; /* CPU time of a tick, the longest of the last 5 to 10 s */
};
void hr__net_counts(const struct hr_net *net, struct hr_net_counts *ret_counts);

/* Sends a control message. Failure shows as `lost`. */
void hr__net_send(struct hr_net *net, uint32_t peer, const struct hr_frame *frame);
/* Sends a frame with a body in up to HR_NET_PARTS_MAX pieces, of whose owners a reference
 * is kept until it was sent, or until the peer has it. */
void hr__net_send_body(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                       const struct hr_net_part *parts, size_t count);
/* ---- one host (local.c) ---- */

/* Listens also for processes of this user on this host, at a name of its own: a Unix
 * socket without a file. HR_ERR_IO. */
HR_CHECK enum hr_err
hr__net_listen_local(struct hr_net *net, const char *name, struct hr_error *reterr);
/* As hr__net_connect(). HR_ERR_NOT_FOUND if no process of this user listens there. */
HR_CHECK enum hr_err hr__net_connect_local(struct hr_net *net, const char *name,
                                           uint32_t *ret_peer, struct hr_error *reterr);
/* Whether descriptors can be sent over a connection. */
bool hr__net_is_local(const struct hr_net *net, uint32_t peer);
/* Sends a control message with a copy of a descriptor. */
void hr__net_send_fd(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                     int fd);
/* The next descriptor that came with a frame, which the caller owns; -1: none. */
int hr__net_take_fd(struct hr_net *net, uint32_t peer);

/* A number of the machine on which the peer of a connection runs; 0: unknown. Different
 * addresses of one machine, but this one, look like different machines. */
uint64_t hr__net_host(const struct hr_net *net, uint32_t peer);

/* Bytes that wait. */
size_t hr__net_queued(const struct hr_net *net, uint32_t peer);

/* What was sent since a TCP connection began. While something is on its way, the network
 * and the peer are as fast as they can be, or the window is too small. */
struct hr_net_traffic {
    uint64_t handed, delivered; /* bytes: to be sent; that the peer has acknowledged */
    uint64_t busy_ns; /* time for which something was on its way; 0: the system does not
                         say (gVisor) */
};
/* Zero if the connection is not open, or not of TCP. */
void hr__net_traffic(const struct hr_net *net, uint32_t peer,
                     struct hr_net_traffic *ret_traffic);

/* Closes after what was sent before, within a second; `lost` follows. What the peer sends
 * meanwhile is ignored. */
void hr__net_drop(struct hr_net *net, uint32_t peer);

#endif
