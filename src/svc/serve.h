/*
 * svc/serve.h - a worker: leases in, frames out.
 *
 * It works for one or several dispatchers, which know nothing of each other: each leases
 * to it for the clients that have joined it.
 *
 * A worker knows its open leases and its clients' credit, and nothing that must survive
 * it. It sends the positions of a lease in order, the lowest lease of a client first, as
 * far as the client's credit goes, and beyond it one frame at the client's cursor; among
 * clients the one whose frames have taken the least time by its weight. What a frame
 * contains is a function of graph, seed, epoch and position, so it does not matter who
 * else sends it.
 */
#ifndef HR_SVC_SERVE_H
#define HR_SVC_SERVE_H

#include "svc/action.h"

#define HR_SERVE_DISPATCHERS 8u

struct hr_serve_options {
    uint64_t nonce;
    size_t peers_max;         /* numbers of connections */
    uint32_t leases_max;      /* ranges; told to the dispatcher */
    uint32_t frame_positions; /* of a frame, at most */
    uint64_t turn_ns;         /* a client is served before another one is */
    uint64_t beat_ns;
};

struct hr_serve_lease {
    uint64_t id, job;
    uint32_t rank, generation;
    hr_peer dispatcher;       /* that leased it */
    uint64_t from, at, until; /* positions of the epoch; `at` is the next one */
    uint64_t deadline_ns;
    uint32_t open;              /* frames in the making */
    uint64_t frames_ns, run_ns; /* that it took: see struct hr_serve_took */
};

struct hr_serve_client {
    bool joined;
    uint64_t order; /* in which connections joined */
    uint64_t job;
    uint32_t weight; /* against other clients */
    uint32_t rank, generation;
    uint64_t total, sent; /* bytes: allowed, sent */
    /* On its frames by its weight, and what it missed while it wanted none: since
     * left_ns of the worker's virtual_ns. */
    uint64_t spent_ns, left_ns;
    bool wants;      /* when the worker looked last */
    bool seen;       /* in this look */
    uint64_t cursor; /* position of the epoch: what is below was taken */
    bool making;     /* a frame for it is in the making */
    bool full;       /* set by the caller: its connection takes nothing more now */
    bool waiting;    /* set by the caller: nothing can be made for it yet */
    uint32_t
        frame_positions; /* set by the caller: of a frame, or 0: as the options say */
};

struct hr_worker {
    struct hr_serve_options options;
    hr_peer dispatchers[HR_SERVE_DISPATCHERS]; /* connected ones; 0: free */
    struct hr_serve_client *clients;           /* by number of the connection */
    hr_peer top;                               /* none beyond it has joined */
    struct hr_serve_lease *leases;
    uint32_t lease_count;
    uint64_t last_id, last_order, told_ns;
    /* Virtual time, as in weighted fair queueing: what a client of weight 1 that always
     * wanted a frame would have got. */
    uint64_t virtual_ns;
    uint64_t wants_weight; /* sum over clients that want a frame */
    hr_peer last;          /* the client that was served last, or 0 */
    uint64_t turn_ns;      /* that it has been served without another one between */
};

/* HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__serve_init(struct hr_worker *worker, const struct hr_serve_options *options,
               struct hr_error *reterr);
void hr__serve_finish(struct hr_worker *worker);

/* Whether nothing is left to send: every lease that it has is for a client that is not
 * connected. */
bool hr__serve_is_done(const struct hr_worker *worker);

/* Events: a connection to a dispatcher was made, of HR_SERVE_DISPATCHERS at most; one was
 * lost; a message came. */
void hr__serve_connected(struct hr_worker *worker, hr_peer dispatcher, uint64_t now,
                         struct hr_actions *actions);
void hr__serve_lost(struct hr_worker *worker, hr_peer peer);
void hr__serve_frame(struct hr_worker *worker, hr_peer peer, const struct hr_frame *frame,
                     uint64_t now, struct hr_actions *actions);
void hr__serve_tick(struct hr_worker *worker, uint64_t now, struct hr_actions *actions);

bool hr__serve_is_dispatcher(const struct hr_worker *worker, hr_peer peer);

/* A frame to make and send. */
struct hr_serve_task {
    uint64_t lease, job;
    uint32_t rank, generation;
    uint64_t position, until; /* of the lease: what follows the frame, up to there */
    uint32_t count;
    hr_peer client;
    uint64_t order; /* of the client's connection */
};

/* The next one; false if nothing can be sent now. May be called again before the frame
 * was sent: then it is for another client. */
bool hr__serve_next(struct hr_worker *worker, struct hr_serve_task *ret_task,
                    struct hr_actions *actions);

/* Only the first `count` positions of a task are sent now, perhaps none: the others are a
 * later one's, after those of other clients. */
void hr__serve_shorten(struct hr_worker *worker, struct hr_serve_task *task,
                       uint32_t count);

/* What a frame took the worker. Clients share work: to wait for a batch, whose run has
 * threads of its own and leaves the core to others meanwhile, is none. A lease's time is
 * that of its frames or of its run, which makes batches while others' are sent. */
struct hr_serve_took {
    uint64_t ns;
    uint64_t work_ns; /* of that, without waits */
    uint64_t run_ns;  /* of a run that ended with this frame: its CPU time by the cores */
};

/* The frame was sent, or could not be: its connection is gone. */
void hr__serve_sent(struct hr_worker *worker, const struct hr_serve_task *task,
                    size_t bytes, struct hr_serve_took took, struct hr_actions *actions);

#endif
