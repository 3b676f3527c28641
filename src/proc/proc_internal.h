/*
 * proc/proc_internal.h - the parent's side of a worker process, in parts: peer.c (its
 * life and end), proc.c (the order of requests, and what a death means for records),
 * send.c (records into `in`), take.c (results out of `out`).
 */
#ifndef HR_PROC_INTERNAL_H
#define HR_PROC_INTERNAL_H

#include "core/arena.h"
#include "proc/event.h"
#include "proc/request.h"
#include "proc/shm.h"

/* A worker process. */
struct hr_peer {
    const struct hr_code_host *host;
    const struct hr_proc_program *program;
    const atomic_bool *cancel;
    struct hr_proc *channels[HR_PROC_CHANNELS];
    struct hr_event event; /* fd -1: there is none */
    int64_t id;
    void (*at)(void *user, uint32_t node, const struct hr_record_id *id); /* or NULL */
    void *at_user;
    bool broken;      /* it was not waited for, and its answers are not wanted */
    unsigned request; /* number of the last one */
    uint64_t replaced;
};

/* Records that were given and how far they are. */
struct hr_proc_progress {
    struct hr_proc_record *records;
    size_t count, done;
    size_t at;       /* the record that the last peer died at */
    unsigned deaths; /* at it, in a row */
    unsigned lost;   /* peers in a row that died at no record */
    bool alone;      /* the next request takes one record */
    bool under_way;  /* a request was posted, and its outcome is not known yet */
    unsigned request;
    size_t posted; /* records of that program; 0: not even one has room */
    enum hr_err code;
    struct hr_error error; /* when code is not HR_OK */
};

struct hr_proc {
    struct hr_peer *peer;
    uint32_t channel;
    const struct hr_proc_program *program;
    size_t bytes_max; /* of this channel; SIZE_MAX: none */
    struct hr_proc_map map;
    struct hr_arena arena; /* results, until the next run */
    struct hr_shm in, out;
    struct hr_proc_progress progress;

    /* Bytes of the regions that hold pages, and the most that was needed of late. */
    size_t in_held, out_held, in_recent, out_recent;
    unsigned requests; /* since that was looked at */
    struct hr_proc_stats stats;
    struct hr_proc_time *times; /* of this run, per node */
};

#define HR_PROC_DEATHS_MAX 3
#define HR_PROC_SHM_START 65536

static inline struct hr_proc_in_head *hr__proc_in_head(const struct hr_proc *proc)
{
    return (struct hr_proc_in_head *)proc->in.base;
}

static inline struct hr_proc_out_head *hr__proc_out_head(const struct hr_proc *proc)
{
    return (struct hr_proc_out_head *)proc->out.base;
}

/* The heads that hold the peer's own words. */
static inline struct hr_proc_in_head *hr__peer_in_head(const struct hr_peer *peer)
{
    return hr__proc_in_head(peer->channels[0]);
}

static inline struct hr_proc_out_head *hr__peer_out_head(const struct hr_peer *peer)
{
    return hr__proc_out_head(peer->channels[0]);
}

/* peer.c: a peer that is ready; one that ends before gets three tries. Its memory is new:
 * what the channels held is lost. */
HR_CHECK enum hr_err hr__peer_begin(struct hr_peer *peer, struct hr_error *reterr);
/* Let it go, politely or not. */
void hr__peer_part(struct hr_peer *peer, bool kill);
/* "; the last one was killed by SIGSEGV" for a peer that has ended, as far as the host
 * knows, else "". Returns `text`. */
#define HR_PEER_ENDED 120 /* bytes of it */
const char *hr__peer_ended(const struct hr_peer *peer, char *text, size_t room);
bool hr__peer_cancelled(const struct hr_peer *peer);
enum hr_err hr__peer_fail_cancelled(struct hr_error *reterr);

/* How many of the records may travel together, by bytes; at least one. The bytes of an
 * identity among them, and of `in` that they take. */
size_t hr__proc_fit(struct hr_proc *proc, const struct hr_proc_record *records,
                    size_t count, size_t *ret_id_bytes, size_t *ret_bytes);

/* Lay a request of these records out in `in`, which has room. */
HR_CHECK enum hr_err
hr__proc_put(struct hr_proc *proc, const struct hr_proc_record *records, size_t count,
             size_t id_bytes, struct hr_error *reterr);

/*
 * Take the results of the first `done` records of the request that was put last.
 * *ret_taken of them were sound: fewer than `done` when the peer has written nonsense
 * (*ret_nonsense says what; else it is NULL). Everything is checked once it is copied,
 * so the peer may still be writing. Fails when memory is out, or with the error of a
 * record that says HR_ERR_CANCELLED.
 */
HR_CHECK enum hr_err
hr__proc_take(struct hr_proc *proc, struct hr_proc_record *records, size_t done,
              size_t *ret_taken, const char **ret_nonsense, struct hr_error *reterr);

/* Copy results of these records out of shared memory, which the next request needs. */
HR_CHECK enum hr_err hr__proc_keep(struct hr_proc *proc, struct hr_proc_record *records,
                                   size_t count, struct hr_error *reterr);

#endif
