/*
 * net/net_internal.h - private interface between net.c (the loop), accept.c (new
 * connections) and conn.c (what one connection reads and writes).
 */
#ifndef HR_NET_NET_INTERNAL_H
#define HR_NET_NET_INTERNAL_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "net/event.h"
#include "net/intake.h"
#include "net/lookup.h"
#include "net/net.h"
#include "net/splice.h"
#include "net/tls.h"

#define HR_NET_SCRATCH 65536u /* bytes that are read at once */
#define HR_NET_FDS_MAX 64u    /* that came and were not taken */
#define HR_NET_READ_ONCE                                                                 \
    (1u << 19)                     /* of a body in one system call: it stays in cache    \
                                    */
#define HR_NET_READ_MAX (1u << 20) /* from one connection before others get a turn */
#define HR_NET_LONGEST_NS 5000000000ul /* that the longest tick is kept for, twice */
#define HR_NET_LINGER_NS 1000000000ul  /* for the rest, and for the peer to read it */
#define HR_NET_SPLICE_MIN (1u << 17)   /* of a part: shorter ones are copied */
#define HR_NET_AWAY_MAX                                                                  \
    64u /* connections without a place that are told so, at a time                       \
         */

/* A message that waits: its head, and its body with its hash. The body is hashed run by
 * run shortly before it is sent. What is spliced of it stays until the peer has it. */
struct hr_net_out {
    struct hr_net_out *next;
    size_t bytes, sent; /* of all */
    size_t head_bytes, body_bytes, summed;
    uint64_t sum;
    uint64_t number;   /* of a large body, from 1; else 0 */
    bool splices;      /* it may */
    bool spliced;      /* something was */
    int fd;            /* sent with it, or -1 */
    size_t part_count; /* 0: a control message */
    char *head;        /* after the parts */
    struct hr_net_part parts[];
};

enum hr_conn_state {
    HR_CONN_CONNECTING,
    HR_CONN_SHAKING, /* hands with TLS, until `deadline_ns`: nothing can be sent yet */
    HR_CONN_OPEN,
    HR_CONN_CLOSING, /* sends the rest; ends with the peer's end, or at `deadline_ns` */
    HR_CONN_DEAD,    /* listed; `lost` is due */
};

struct hr_conn {
    struct hr_net *net;
    uint32_t peer; /* 0: it was refused a place */
    int fd;
    bool local;              /* a Unix socket */
    int fds[HR_NET_FDS_MAX]; /* that came, oldest first */
    size_t fd_count;
    enum hr_conn_state state;
    bool writes;             /* on_write is added */
    bool sent;               /* a body was, from the queue: the hook is due */
    bool listed;             /* in hr_net.to_arm */
    bool shut;               /* the peer was told that nothing follows */
    bool told;               /* hooks know it: the hook `lost` will be called */
    bool heard;              /* the peer's first byte began TLS */
    struct hr_tls_link *tls; /* or NULL */
    struct event *on_read, *on_write;
    struct hr_intake intake;
    const struct hr_tenant *tenant; /* whose token it began with, or NULL */
    struct hr_net_out *first, *last;
    size_t queued, control; /* bytes; of those, control messages */
    struct hr_net_out *first_spliced, *last_spliced; /* sent; the peer has not said that
                                                        it has them */
    uint64_t large_in;                               /* large bodies that came */
    uint64_t large_out, large_sent,                  /* that were to be sent; that were */
        large_received;                              /* that the peer says have come */
    uint64_t handed; /* bytes that were to be sent so far */
    uint64_t deadline_ns;
    struct hr_conn *next_dead, *next_to_arm;
    bool stranger; /* listed in hr_net.first_stranger */
    uint64_t accepted_ns;
    struct hr_conn *next_stranger, *previous_stranger, *next_away;
    struct hr_error why;
    char address[HR_NET_ADDRESS_MAX]; /* that it connects to; "" if accepted */
};

struct hr_net {
    struct hr_net_options options;
    pthread_mutex_t lock, first; /* `first` is held while one waits to go first */
    bool waits_first;            /* by __atomic */
    struct event_base *base;
    struct event *on_wake, *on_tick, *on_accept, *on_accept_local;
    int wake_fd, listen_fd, local_fd;
    bool stopped, woken;                      /* by __atomic */
    uint64_t longest_ns[2], longest_since_ns; /* ticks: since then, and before */
    struct hr_pool *pool;
    struct hr_conn **conns;                         /* by number */
    uint32_t *free, free_count;                     /* numbers of no connection */
    struct hr_conn *first_stranger, *last_stranger; /* in order of accepted_ns */
    struct hr_conn *away; /* connections without a number, in HR_CONN_CLOSING */
    uint32_t away_count;
    uint64_t turned_away, strangers_closed, denied;
    uint32_t closing; /* connections in HR_CONN_CLOSING */
    struct hr_lookups lookups;
    bool runs; /* the loop has begun */
    struct hr_conn *dead;
    struct hr_conn *to_arm; /* have something to write that the system did not take */
    bool accepts;           /* on_accept is added */
    struct hr_splicer splicer;
    size_t spliced; /* bytes of bodies in lists of spliced messages */
    char address[HR_NET_ADDRESS_MAX];
    char scratch[HR_NET_SCRATCH];
};

/* accept.c. A listening socket, and its address with the port that was drawn.
 * HR_ERR_ARGUMENT, HR_ERR_NOT_FOUND, HR_ERR_IO. */
HR_CHECK enum hr_err
hr__net_open_listener(const char *address, int *ret_fd, char *ret_address, size_t room,
                      struct hr_error *reterr);

/* conn.c. Frees it; it must not be listed anywhere. */
void hr__conn_free(struct hr_conn *conn);
/* Ends the connection: `lost` is called by the loop. Keeps the first reason. */
void hr__conn_kill(struct hr_conn *conn, const struct hr_error *why);
/* Reads what has arrived and calls hooks. */
void hr__conn_read(struct hr_conn *conn);
/* Sends an ERROR frame and closes. */
void hr__conn_refuse(struct hr_conn *conn, const struct hr_error *error);
/* Sends the token, if the net has one: the first frame of a connection. */
void hr__conn_authenticate(struct hr_conn *conn);
/* Takes it out of the list of strangers; does nothing if it is not there. */
void hr__conn_know(struct hr_conn *conn);
/* Whether anything waits to be written. */
bool hr__conn_has_output(const struct hr_conn *conn);
/* Writes what the system takes. */
void hr__conn_write(struct hr_conn *conn);
/* Adds or removes the write event as the queue demands. In the loop. */
void hr__conn_arm(struct hr_conn *conn);
/* Ends a closing connection that has nothing more to do. */
void hr__conn_end_closing(struct hr_conn *conn);

/* net.c. For the loop: the lock, after one who waits to go first. */
void hr__net_lock_after_first(struct hr_net *net);
/* net.c. Arms what has to be written and tells what was lost. Hooks may cause more of
 * both. */
void hr__net_settle(struct hr_net *net);
/* net.c. A connection without a number. `fd` is taken over, also on failure. */
struct hr_conn *hr__net_new_conn(struct hr_net *net, int fd, enum hr_conn_state state);

/* accept.c. Closes those who have not said who they are in time. */
void hr__net_expire_strangers(struct hr_net *net);
/* accept.c, net.c. An accepting or connecting socket; it is taken over, also on
 * failure. */
enum hr_err hr__net_accept_at(struct hr_net *net, int fd, struct event **ret_event,
                              struct hr_error *reterr);
struct hr_conn *hr__net_add_conn(struct hr_net *net, int fd, enum hr_conn_state state);

/* net.c. The connection is ready for frames; calls the hook for that. */
void hr__net_opened(struct hr_conn *conn);

/* secure.c. Begins TLS on a connection that was just made or accepted. */
void hr__conn_secure(struct hr_conn *conn);
/* Continues the handshake. */
void hr__conn_shake(struct hr_conn *conn);
/* Ends a handshake that takes too long. */
void hr__conn_end_shaking(struct hr_conn *conn);
/* Of malformed bytes: replaces the error if they are the beginning of TLS. */
void hr__conn_expect_no_tls(const struct hr_conn *conn, struct hr_error *error);

/* traffic.c. What the system knows about a TCP connection: all but `handed`. */
void hr__conn_traffic(int fd, struct hr_net_traffic *ret_traffic);

/* local.c. Whether the other end of a Unix socket is a process of this user. */
bool hr__net_is_same_user(int fd);
/* Reads into the parts, and keeps descriptors. As readv(). */
ssize_t hr__conn_receive(struct hr_conn *conn, struct iovec *parts, size_t count);
/* Sends the parts, and the descriptor of the first message. As sendmsg(). */
ssize_t hr__conn_transmit(struct hr_conn *conn, struct iovec *parts, size_t count);

#endif
