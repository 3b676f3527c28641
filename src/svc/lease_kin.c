/*
 * svc/lease_kin.c - which workers made which positions for jobs that have the same
 * records.
 *
 * A worker keeps what it made for one job while another one needs it (fleet/shelf.h), so
 * that one should get it there. The table is a hint: what a worker does not have any
 * more, it makes again. It holds the latest leases; what is older is leased as if nobody
 * had it, and so is everything while no other job has a client: what was made for a run
 * that has ended is gone.
 */
#include <assert.h>

#include "core/alloc.h"
#include "svc/lease_internal.h"

#define RANGES 512u

struct hr_lease_kin {
    uint32_t jobs, present; /* of those, jobs that have a client */
    uint32_t count, next;   /* of the ranges; where the next one goes */
    struct {
        struct hr_frame_range range;
        hr_peer worker;
    } ranges[RANGES];
};

static void note(struct hr_lease_kin *kin, struct hr_frame_range range, hr_peer worker)
{
    kin->ranges[kin->next].range = range;
    kin->ranges[kin->next].worker = worker;
    kin->next = (kin->next + 1) % RANGES;
    kin->count += kin->count < RANGES;
}

/* What the first of the jobs has had leased while it was alone. */
static void note_leases(struct hr_lease_kin *kin, const struct hr_lease_job *job)
{
    for (uint32_t rank = 0; rank < job->world; rank++) {
        const struct hr_ranges *leases = &job->consumers[rank].leases;
        struct hr_share share = hr__lease_share(job, rank);

        for (size_t i = 0; i < leases->count; i++) {
            uint64_t from = hr__share_position(&share, leases->items[i].from);
            uint64_t count = leases->items[i].until - leases->items[i].from;

            note(kin, (struct hr_frame_range){from, from + count},
                 leases->items[i].worker);
        }
    }
}

/* Another job that has the same records, or NULL. */
static struct hr_lease_job *
find_other(struct hr_dispatcher *d, const struct hr_lease_job *job)
{
    for (size_t i = 0; i < d->job_count; i++)
        if (&d->jobs[i] != job && d->jobs[i].options.kin == job->options.kin)
            return &d->jobs[i];
    return NULL;
}

enum hr_err hr__lease_kin_join(struct hr_dispatcher *d, struct hr_lease_job *job,
                               struct hr_error *reterr)
{
    struct hr_lease_job *other = job->options.kin != 0 ? find_other(d, job) : NULL;

    if (other == NULL)
        return HR_OK;
    if (other->kin == NULL) {
        other->kin = hr__calloc(1, sizeof *other->kin);
        if (other->kin == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        other->kin->jobs = 1;
        other->kin->present = other->clients != 0;
        note_leases(other->kin, other);
    }
    assert(job->clients == 0);
    job->kin = other->kin;
    job->kin->jobs++;
    return HR_OK;
}

void hr__lease_kin_present(struct hr_lease_job *job, bool present)
{
    if (job->kin == NULL)
        return;
    job->kin->present += present ? 1 : -1u;
    assert(job->kin->present <= job->kin->jobs);
}

void hr__lease_kin_leave(struct hr_lease_job *job)
{
    if (job->kin != NULL && --job->kin->jobs == 0)
        hr__free(job->kin);
    job->kin = NULL;
}

void hr__lease_kin_note(struct hr_lease_job *job, struct hr_frame_range range,
                        hr_peer worker)
{
    if (job->kin != NULL && job->kin->jobs > 1)
        note(job->kin, range, worker);
}

/* The latest lease counts. */
hr_peer
hr__lease_kin_find(const struct hr_lease_job *job, uint64_t position, uint64_t *ret_until)
{
    const struct hr_lease_kin *kin = job->kin;
    uint32_t count = kin != NULL && kin->present > 1 ? kin->count : 0;

    for (uint32_t i = 1; i <= count; i++) {
        uint32_t at = (kin->next + RANGES - i) % RANGES;

        if (kin->ranges[at].range.from <= position &&
            position < kin->ranges[at].range.until) {
            *ret_until = kin->ranges[at].range.until;
            return kin->ranges[at].worker;
        }
    }
    return 0;
}
