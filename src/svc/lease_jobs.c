/*
 * svc/lease_jobs.c - the dispatcher's jobs: added, found, divided among consumers,
 * forgotten, and what a journal says of them.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "svc/lease_internal.h"

/* ---- setup ---- */

enum hr_err
hr__lease_init(struct hr_dispatcher *d, const struct hr_lease_options *options,
               struct hr_error *reterr)
{
    memset(d, 0, sizeof *d);
    d->options = *options;
    d->peers = hr__calloc(options->peers_max + 1, sizeof *d->peers);
    d->jobs = hr__calloc(options->jobs_max + 1, sizeof *d->jobs);
    d->index = hr__calloc(options->jobs_max + 1, sizeof *d->index);
    assert(options->team_max <= HR_LEASE_TEAM_MAX);
    if (d->peers == NULL || d->jobs == NULL || d->index == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < HR_LEASE_DOUBTS; i++)
        HR_TRY(hr__queue_init(&d->idle[i], (uint32_t)options->peers_max + 1, reterr));
    HR_TRY(hr__lease_team_init(d, reterr));
    HR_TRY(hr__queue_init(&d->crowded, (uint32_t)options->peers_max + 1, reterr));
    return hr__queue_init(&d->hungry, (uint32_t)options->jobs_max + 1, reterr);
}

static void free_consumers(struct hr_lease_consumer *consumers, uint32_t world,
                           struct hr_queue *hungry)
{
    for (uint32_t i = 0; consumers != NULL && i < world; i++) {
        hr__ranges_finish(&consumers[i].leases);
        hr__free(consumers[i].team);
    }
    hr__free(consumers);
    hr__queue_finish(hungry);
}

void hr__lease_finish(struct hr_dispatcher *d)
{
    for (size_t i = 0; i < d->job_count; i++) {
        hr__lease_kin_leave(&d->jobs[i]);
        free_consumers(d->jobs[i].consumers, d->jobs[i].world, &d->jobs[i].hungry);
    }
    for (size_t i = 0; i < HR_LEASE_DOUBTS; i++)
        hr__queue_finish(&d->idle[i]);
    hr__queue_finish(&d->crowded);
    hr__queue_finish(&d->hungry);
    hr__lease_team_finish(d);
    hr__free(d->index);
    hr__free(d->jobs);
    hr__free(d->peers);
    memset(d, 0, sizeof *d);
}

/* ---- consumers ---- */

struct hr_share hr__lease_share(const struct hr_lease_job *job, uint32_t rank)
{
    return (struct hr_share){.base = job->base,
                             .end = job->options.end,
                             .split = job->options.split,
                             .world = job->world,
                             .rank = rank};
}

static enum hr_err
init_consumer(const struct hr_dispatcher *d, uint64_t job,
              struct hr_lease_consumer *consumer, struct hr_error *reterr)
{
    size_t places = d->options.team_max;

    HR_TRY(hr__ranges_init(&consumer->leases, d->options.ranges_max, reterr));
    consumer->job = job;
    consumer->weight = 1;
    consumer->team = hr__calloc(places + 1, sizeof *consumer->team);
    if (consumer->team == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < places; i++)
        consumer->team[i].consumer = consumer;
    return HR_OK;
}

static enum hr_err new_consumers(const struct hr_dispatcher *d, uint64_t job,
                                 uint32_t world, struct hr_lease_consumer **ret_consumers,
                                 struct hr_queue *ret_hungry, struct hr_error *reterr)
{
    struct hr_lease_consumer *consumers = hr__calloc(world, sizeof *consumers);
    struct hr_queue hungry = {0};
    enum hr_err code = hr__queue_init(&hungry, world, reterr);

    if (consumers == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; code == HR_OK && i < world; i++)
        code = init_consumer(d, job, &consumers[i], reterr);
    if (code != HR_OK) {
        free_consumers(consumers, world, &hungry);
        return code;
    }
    *ret_consumers = consumers;
    *ret_hungry = hungry;
    return HR_OK;
}

enum hr_err hr__lease_seat_all(struct hr_dispatcher *d, struct hr_lease_job *job,
                               uint32_t world, struct hr_error *reterr)
{
    struct hr_lease_consumer *consumers;
    struct hr_queue hungry;

    HR_TRY(new_consumers(d, job->options.id, world, &consumers, &hungry, reterr));
    for (uint32_t i = 0; i < job->world; i++)
        hr__lease_end_all(d, &job->consumers[i]);
    free_consumers(job->consumers, job->world, &job->hungry);
    job->consumers = consumers;
    job->hungry = hungry;
    job->world = world;
    hr__lease_queue_job(d, job);
    return HR_OK;
}

/* ---- clients ---- */

void hr__lease_link(struct hr_dispatcher *d, struct hr_lease_job *job, hr_peer peer)
{
    struct hr_lease_peer *p = &d->peers[peer];

    if (job->clients == 0)
        hr__lease_kin_present(job, true);
    p->role = HR_FRAME_CLIENT;
    p->job = (size_t)(job - d->jobs);
    p->previous = 0;
    p->next = job->clients;
    if (p->next != 0)
        d->peers[p->next].previous = peer;
    job->clients = peer;
    d->client_count++;
}

void hr__lease_unlink(struct hr_dispatcher *d, hr_peer peer)
{
    struct hr_lease_peer *p = &d->peers[peer];
    struct hr_lease_job *job = &d->jobs[p->job];

    if (p->next != 0)
        d->peers[p->next].previous = p->previous;
    if (p->previous != 0)
        d->peers[p->previous].next = p->next;
    else
        job->clients = p->next;
    if (job->clients == 0)
        hr__lease_kin_present(job, false);
    p->next = p->previous = 0;
    p->role = 0;
    d->client_count--;
}

/* ---- jobs ---- */

/* The place of the job with this id, or where it would be. */
static size_t index_of(const struct hr_dispatcher *d, uint64_t id)
{
    size_t at = HR_BISECT(d->index, d->job_count, id, id);

    return at < d->job_count && d->index[at].id < id ? at + 1 : at;
}

struct hr_lease_job *hr__lease_find_job(const struct hr_dispatcher *d, uint64_t id)
{
    size_t at = index_of(d, id);

    return at < d->job_count && d->index[at].id == id ? &d->jobs[d->index[at].job] : NULL;
}

static void add_to_index(struct hr_dispatcher *d, uint64_t id, size_t job)
{
    size_t at = index_of(d, id);

    memmove(&d->index[at + 1], &d->index[at], (d->job_count - at) * sizeof *d->index);
    d->index[at] = (struct hr_lease_index){id, job};
}

enum hr_err
hr__lease_add_job(struct hr_dispatcher *d, const struct hr_lease_job_options *options,
                  struct hr_error *reterr)
{
    struct hr_lease_job *job = &d->jobs[d->job_count];
    enum hr_err code;

    if (options->split == 0 || options->window == 0 || options->world == 0 ||
        options->world > HR_LEASE_WORLD_MAX || options->end > HR_FRAME_POSITION_MAX ||
        hr__lease_find_job(d, options->id) != NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "job %016llx: it exists, or its split, window or number of "
                        "consumers is out of range",
                        (unsigned long long)options->id);
    if (d->job_count == d->options.jobs_max)
        return hr__fail(reterr, HR_ERR_LIMIT, "the dispatcher already has %zu jobs",
                        d->job_count);
    memset(job, 0, sizeof *job);
    job->options = *options;
    HR_TRY(hr__lease_kin_join(d, job, reterr));
    code = hr__lease_seat_all(d, job, options->world, reterr);
    if (code != HR_OK) {
        hr__lease_kin_leave(job);
        return code;
    }
    add_to_index(d, options->id, d->job_count);
    d->job_count++;
    d->changes += options->end == 0;
    return HR_OK;
}

bool hr__lease_job_is_done(const struct hr_lease_job *job)
{
    for (uint32_t i = 0; i < job->world; i++)
        if (job->consumers[i].acked < job->options.end)
            return false;
    return true;
}

/* The job at `from` takes the free place `to`. */
static void move_job(struct hr_dispatcher *d, size_t from, size_t to)
{
    d->jobs[to] = d->jobs[from];
    hr__queue_remove(&d->hungry, (uint32_t)from);
    hr__lease_queue_job(d, &d->jobs[to]);
    d->index[index_of(d, d->jobs[to].options.id)].job = to;
    for (hr_peer peer = d->jobs[to].clients; peer != 0; peer = d->peers[peer].next)
        d->peers[peer].job = to;
}

void hr__lease_remove_job(struct hr_dispatcher *d, size_t at)
{
    struct hr_lease_job *job = &d->jobs[at];
    size_t place = index_of(d, job->options.id);

    for (uint32_t i = 0; i < job->world; i++)
        hr__lease_end_all(d, &job->consumers[i]);
    while (job->clients != 0) /* they have said GOODBYE */
        hr__lease_unlink(d, job->clients);
    hr__lease_kin_leave(job);
    free_consumers(job->consumers, job->world, &job->hungry);
    hr__queue_remove(&d->hungry, (uint32_t)at);
    d->job_count--;
    memmove(&d->index[place], &d->index[place + 1],
            (d->job_count - place) * sizeof *d->index);
    if (at < d->job_count)
        move_job(d, d->job_count, at);
    d->changes++;
}

bool hr__lease_job_has_client(const struct hr_lease_job *job)
{
    for (uint32_t i = 0; i < job->world; i++)
        if (job->consumers[i].peer != 0)
            return true;
    return false;
}

static bool was_left(const struct hr_lease_job *job)
{
    for (uint32_t i = 0; i < job->world; i++)
        if (!job->consumers[i].left)
            return false;
    return true;
}

bool hr__lease_job_is_over(const struct hr_lease_job *job)
{
    return was_left(job) || hr__lease_job_is_done(job);
}

static bool was_taken_from(const struct hr_lease_job *job)
{
    for (uint32_t i = 0; i < job->world; i++)
        if (job->consumers[i].taken)
            return true;
    return false;
}

/* How long ago the job had to give way to others; -1: it need not. */
static int64_t overdue(const struct hr_lease_job *job, uint64_t now, uint64_t grace_ns)
{
    uint64_t idle = job->idle_since_ns != 0 ? now - job->idle_since_ns : 0;

    if (hr__lease_job_has_client(job))
        return -1;
    if (was_left(job))
        return (int64_t)idle;
    if (job->idle_since_ns == 0 || idle < grace_ns || was_taken_from(job))
        return -1;
    return (int64_t)(idle - grace_ns);
}

/* The job that is due longest, or the number of jobs. */
static size_t find_due(const struct hr_dispatcher *d, uint64_t now, uint64_t grace_ns)
{
    size_t found = d->job_count;
    int64_t longest = -1;

    for (size_t i = 0; i < d->job_count; i++) {
        int64_t due = overdue(&d->jobs[i], now, grace_ns);

        if (due > longest) {
            longest = due;
            found = i;
        }
    }
    return found;
}

bool hr__lease_has_place(const struct hr_dispatcher *d, uint64_t now, uint64_t grace_ns)
{
    return d->job_count < d->options.jobs_max ||
           find_due(d, now, grace_ns) < d->job_count;
}

bool hr__lease_make_place(struct hr_dispatcher *d, uint64_t now, uint64_t grace_ns)
{
    size_t at = find_due(d, now, grace_ns);

    if (at == d->job_count)
        return false;
    hr__lease_remove_job(d, at);
    return true;
}

/* ---- the journal ---- */

enum hr_err hr__lease_replay(struct hr_dispatcher *d, const struct hr_row *row,
                             struct hr_error *reterr)
{
    struct hr_lease_job *job = hr__lease_find_job(d, row->job);

    if (job == NULL)
        return hr__fail(reterr, HR_ERR_NOT_FOUND,
                        "the journal names job %016llx, which "
                        "does not exist",
                        (unsigned long long)row->job);
    if (row->kind == HR_ROW_MEMBERSHIP) {
        HR_TRY(hr__lease_seat_all(d, job, row->world, reterr));
        job->membership = (uint32_t)row->number;
        job->base = row->position;
        return HR_OK;
    }
    if (row->rank >= job->world ||
        (row->kind != HR_ROW_GENERATION && row->kind != HR_ROW_ACK))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the journal of job %016llx has a row that does not fit",
                        (unsigned long long)row->job);
    if (row->kind == HR_ROW_ACK) {
        job->consumers[row->rank].acked = row->position;
        return HR_OK;
    }
    job->consumers[row->rank].generation = row->generation;
    job->consumers[row->rank].nonce = row->number;
    if (row->generation > job->generation)
        job->generation = row->generation;
    return HR_OK;
}
