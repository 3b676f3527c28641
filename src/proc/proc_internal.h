/*
 * proc/proc_internal.h - the parent's side of a worker process, in parts: proc.c (life,
 * death, the order of trips), send.c (records into `in`), take.c (results out of `out`).
 */
#ifndef HR_PROC_INTERNAL_H
#define HR_PROC_INTERNAL_H

#include "core/arena.h"
#include "proc/area.h"
#include "proc/bell.h"
#include "proc/wire.h"

struct hr_proc {
    const struct hr_code_host *host;
    const struct hr_proc_trip *trip;
    size_t bytes_max; /* SIZE_MAX: none */
    const atomic_bool *cancel;
    struct hr_proc_map map;
    struct hr_arena arena; /* results, until the next run */

    /* The peer. */
    struct hr_bell bell; /* fd -1: there is none */
    int64_t id;
    bool busy; /* it has a request that nobody waited for */
    struct hr_area in, out;
    unsigned request;

    /* Bytes of the areas that hold pages, and the most that was needed of late. */
    size_t in_held, out_held, in_recent, out_recent;
    unsigned trips; /* since that was looked at */
    struct hr_proc_stats stats;
};

static inline struct hr_proc_in_head *hr__proc_in_head(const struct hr_proc *proc)
{
    return (struct hr_proc_in_head *)proc->in.base;
}

static inline struct hr_proc_out_head *hr__proc_out_head(const struct hr_proc *proc)
{
    return (struct hr_proc_out_head *)proc->out.base;
}

/* How many of the records may travel together, by bytes; at least one. The bytes of `in`
 * that they take. */
size_t hr__proc_fit(struct hr_proc *proc, const struct hr_proc_record *records,
                    size_t count, size_t *ret_bytes);

/* Lay a request of these records out in `in`, which has room. */
HR_CHECK enum hr_err
hr__proc_put(struct hr_proc *proc, const struct hr_proc_record *records, size_t count,
             struct hr_error *reterr);

/*
 * Take the results of the first `done` records of the request that was put last.
 * *ret_taken of them were sound: fewer than `done` when the peer has written nonsense
 * (*ret_nonsense says what; else it is NULL). Everything is checked once it is copied,
 * so the peer may go on writing. Fails when memory is out, or with the error of a record
 * that says HR_ERR_CANCELLED.
 */
HR_CHECK enum hr_err
hr__proc_take(struct hr_proc *proc, struct hr_proc_record *records, size_t done,
              size_t *ret_taken, const char **ret_nonsense, struct hr_error *reterr);

/* Copy results of these records out of shared memory, which the next trip needs. */
HR_CHECK enum hr_err hr__proc_keep(struct hr_proc *proc, struct hr_proc_record *records,
                                   size_t count, struct hr_error *reterr);

#endif
