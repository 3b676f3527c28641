/*
 * fleet/worker.h - private interface between worker.c (events), maker.c (batches),
 * opener.c (their jobs) and squeeze.c (their compression).
 */
#ifndef HR_FLEET_WORKER_H
#define HR_FLEET_WORKER_H

#include "engine/engine.h"
#include "engine/outputs.h"
#include "fleet/compressed.h"
#include "fleet/loan.h"
#include "fleet/service.h"
#include "fleet/shelf.h"
#include "svc/serve.h"

struct hr_worker_opening; /* opener.c */

/* What the jobs of clients that read the same batches have in common. The text comes from
 * the first of them. */
struct hr_worker_job {
    struct hr_worker_job *next;
    char *text;
    size_t bytes;
    struct hr_str kin; /* what their texts have in common (job.h) */
    bool consumers;    /* each batch is for one of its clients: none is kept */
    uint32_t peers;    /* connections that brought one */
    uint32_t holds;    /* by the maker and an opening */
    bool opening, opened;
    /* The opening's, then the maker's: */
    struct hr_graph *graph;
    struct hr_outputs outputs;
    struct hr_pool *pool;  /* of its batches */
    struct hr_error error; /* why it cannot be opened */
    uint32_t frame_positions;
    struct hr_shelf shelf; /* under the lock */
    /* Makes packs of the records of a job that sends them one by one, once they are seen
     * to come fast; or NULL. Set once, under the lock. */
    struct hr_graph *packed;
    bool packing; /* the opener was asked for it */
    bool cheap;   /* a record costs less to make again than to keep */
};

/* How a client's frames are compressed, and what the last review saw. */
struct hr_worker_link {
    struct hr_compression_choice choice;
    uint64_t reviewed_ns; /* 0: there is no client */
    uint64_t bytes;       /* of parcels, since then */
    struct hr_net_traffic traffic;
    uint64_t cpu_ns, made; /* of the process: see below */
};

struct hr_worker_peer {
    struct hr_worker_job *job; /* of a client, or NULL */
    uint64_t job_id;           /* that the client gives it */
    uint64_t serial;           /* of the connection that has the number now */
    bool follows;              /* it has joined: */
    uint32_t follower;         /* of the job's kept batches */
    struct hr_lender lender;   /* of a client on this host */
    struct hr_worker_link link;
};

/* A run of neighbouring batches that is being made: one lease, usually. The maker's. Its
 * engine may make packs, whose rows are the batches. */
struct hr_worker_range {
    struct hr_worker_job *job; /* NULL: free */
    uint64_t next, until, used;
    struct hr_engine *engine;
    uint64_t first, opened_ns; /* its first batch; when it was opened */
    int nice;
    struct hr_graph *packed; /* the job's, or NULL */
    struct hr_batch *rows;   /* the pack that `next` is a row of, or NULL */
    int64_t row;             /* of it */
    bool waits;              /* for a batch, while others are served */
    bool begun;              /* its next batch is for a frame that was put off */
};
#define HR_WORKER_RANGES 8u

#define HR_WORKER_OPENINGS 8u /* threads that open jobs */

struct hr_worker_process {
    struct hr_service base;
    struct hr_worker role;
    struct hr_actions actions;
    struct hr_fleet_list dispatchers;
    char *address;
    uint32_t peers_max;
    int threads;
    /* To each of them: the connection, made or not; 0: none. */
    struct hr_worker_dispatcher {
        uint32_t peer;
        uint64_t retry_ns;
        char lost[200];   /* why it is not connected, as told; empty: nothing was */
        uint64_t told_ns; /* when */
    } links[HR_FLEET_DISPATCHERS];
    /* Draining: leases are finished until drain_until_ns, then connections closed until
     * leave_until_ns; 0: not begun. */
    uint64_t drain_ns, drain_until_ns, leave_until_ns;
    void (*notice)(void *user, const char *text); /* of the options */
    void *notice_user;
    uint64_t serial;
    struct hr_worker_peer *peers; /* by number */
    struct hr_worker_job *jobs;
    struct hr_shelf_budget keep;
    uint64_t shared; /* positions that were sent and not made for the client */
    struct hr_worker_opening *openings[HR_WORKER_OPENINGS]; /* NULL: free */
    /* The maker. */
    pthread_t thread;
    pthread_cond_t work;
    bool stopping; /* by __atomic */
    struct hr_pool *pool;
    struct hr_worker_range ranges[HR_WORKER_RANGES];
    uint64_t clock;              /* dates the use of ranges */
    bool waits;                  /* a frame: those that are made meanwhile do not */
    struct hr_serve_took served; /* what all frames took */
    struct hr_squeezer squeezer;
    /* Compression. */
    unsigned kinds, cpus; /* kinds that are allowed, and that this process can write */
    uint64_t squeeze_ns;  /* CPU time that it took */
    uint64_t made;        /* bytes of all parcels */
    uint64_t tcp_made, tcp_sent; /* of those that went over TCP; as they were sent */
    uint64_t told_ns, told_made; /* the last TRAFFIC frame: when; what it said */
    uint64_t told_shared;
    uint32_t told_kinds;
};

/* Under the lock: drops a hold or a connection's claim of a job; frees it when it was the
 * last and the maker holds it no longer. */
void hr__worker_job_release(struct hr_worker_process *w, struct hr_worker_job *job);

/* Under the lock: sends a message to the dispatchers that are connected. */
void hr__worker_tell(struct hr_worker_process *w, const struct hr_frame *frame);

/* The maker's thread. */
void *hr__worker_make(void *user);

/* ---- opener.c; by the maker ---- */

/* Under the lock. Whether the client's job is open, or cannot be opened (its error says
 * why). Else it is being opened from now on, and the role has nothing to send to the
 * client until then. */
bool hr__worker_has_opened(struct hr_worker_process *w, uint32_t client);
/* Under the lock. Has the graph opened that makes packs of `size` records of an open job,
 * if a thread is free. */
void hr__worker_pack(struct hr_worker_process *w, struct hr_worker_job *job,
                     uint64_t size);
/* Waits for all that end by then; the others are left behind. */
void hr__worker_end_openings(struct hr_worker_process *w, uint64_t until_ns);

/* ---- squeeze.c ---- */

/* Reads options.compress, and finds out what this process can write. HR_ERR_ARGUMENT;
 * HR_ERR_UNSUPPORTED if a library is not there. */
HR_CHECK enum hr_err hr__squeeze_open(struct hr_worker_process *w, const char *compress,
                                      struct hr_error *reterr);

/* Under the lock. A client says which kinds it takes. */
void hr__squeeze_client(struct hr_worker_process *w, uint32_t peer, unsigned kinds);
/* Tells the dispatchers now and then what compression does, and what was shared. */
void hr__squeeze_tell(struct hr_worker_process *w, uint64_t now);

/* A frame of the maker. */
struct hr_squeeze {
    enum hr_compression kind;
    unsigned samples;       /* kinds to measure */
    struct hr_buffer *body; /* of a COMPRESSED frame; NULL: it goes as it is */
    unsigned measured, failed;
    struct hr_compression_cost costs[HR_COMPRESSION_KINDS];
    uint64_t ns;
};

/* Under the lock: what is to be done with the client's next frame. */
void hr__squeeze_begin(struct hr_worker_process *w, uint32_t peer,
                       struct hr_squeeze *ret_squeeze);
/* Without it: does that. */
void hr__squeeze_run(struct hr_worker_process *w, struct hr_squeeze *squeeze,
                     const struct hr_parcel_pieces *pieces);
/* Under the lock again: the frame was handed over as `sent` bytes. */
void hr__squeeze_end(struct hr_worker_process *w, uint32_t peer,
                     const struct hr_squeeze *squeeze, size_t bytes, size_t sent);

#endif
