/*
 * fleet/bound.c - see bound.h.
 */
#include "fleet/bound.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "fleet/dispatcher.h"

#define WINDOW 4096u  /* splits beyond the first that is not committed */
#define SPLITS 256u   /* of a job at least, unless they would be longer than: */
#define SPLIT_MAX 64u /* positions */
#define AHEAD_MIN 4u  /* splits of a consumer that are not taken */
#define AHEAD_MAX 32u
#define TTL_NS (60000 * HR_FLEET_MS)
#define SERVED_NS (5000 * HR_FLEET_MS)
#define FAILED_NS (10000 * HR_FLEET_MS) /* between lines of the log about the journal */
#define EXPIRE_NS ((uint64_t)3600000 * HR_FLEET_MS)

static struct hr_net *net_of(struct hr_dispatcher_process *d)
{
    return d->base.net;
}

/* ---- jobs in memory ---- */

static struct hr_bound_job *find_job(const struct hr_dispatcher_process *d, uint64_t id)
{
    for (struct hr_bound_job *job = d->bound; job != NULL; job = job->next)
        if (job->about.id == id)
            return job;
    return NULL;
}

static void free_job(struct hr_bound_job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        hr__free(job->names[i]);
    hr__bind_finish(&job->binder);
    hr__free(job);
}

/* Out of memory with it; its clients are gone, or are forgotten. */
static void drop_job(struct hr_dispatcher_process *d, struct hr_bound_job *job)
{
    struct hr_bound_job **at = &d->bound;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    free_job(job);
}

/* Its binder is ahead of the journal now, so nobody may hear what it says. */
static void fail_job(struct hr_dispatcher_process *d, struct hr_bound_job *job,
                     const struct hr_error *error)
{
    uint64_t now = hr__now_ns();

    if (d->journal_failed_ns == 0 || now - d->journal_failed_ns >= FAILED_NS) {
        d->journal_failed_ns = now;
        hr__events_add(d->events, "journal_failed", "job", job->about.name, "why",
                       error->message, NULL);
    }
    for (uint32_t i = 1; i <= d->peers_max; i++)
        if (d->peers[i].bound == job) {
            d->peers[i].bound = NULL;
            hr__fleet_refuse(net_of(d), i, error);
        }
    drop_job(d, job);
}

/* Gets the journal back if it is lost. Another dispatcher may have it meanwhile, so what
 * is in memory of it is out of date. */
static enum hr_err recover(struct hr_dispatcher_process *d, struct hr_error *reterr)
{
    struct hr_error why = {0};
    enum hr_err code;

    if (!hr__journal_is_lost(d->journal))
        return HR_OK;
    code = hr__journal_recover(d->journal, &why);
    if (code == HR_OK)
        hr__fail(&why, HR_ERR_IO, "the connection to the journal was lost meanwhile");
    while (d->bound != NULL)
        fail_job(d, d->bound, &why);
    if (code != HR_OK) {
        if (reterr != NULL)
            *reterr = why;
        return code;
    }
    hr__events_add(d->events, "journal_taken", NULL);
    return HR_OK;
}

/* ---- what binders want done ---- */

/* Says whom an error is about: binders know ranks. */
static void name_consumer(const struct hr_dispatcher_peer *peer, struct hr_frame *frame)
{
    const struct hr_bound_job *job = peer->bound;
    char text[sizeof frame->u.error.text];

    if (frame->type != HR_FRAME_ERROR || job == NULL || !peer->named)
        return;
    memcpy(text, frame->u.error.text, sizeof text);
    snprintf(frame->u.error.text, sizeof frame->u.error.text,
             "consumer '%.50s' of job '%.50s': %.130s", job->names[peer->rank],
             job->about.name, text);
}

/* Workers were welcomed by the dispatcher's role. */
static void edit_actions(struct hr_dispatcher_process *d)
{
    size_t count = 0;

    for (size_t i = 0; i < d->actions.count; i++) {
        struct hr_action *action = &d->actions.items[i];
        const struct hr_dispatcher_peer *peer = &d->peers[action->peer];

        if (action->kind == HR_ACTION_SEND && peer->bound == NULL &&
            action->u.frame.type == HR_FRAME_WELCOME)
            continue;
        if (action->kind == HR_ACTION_SEND)
            name_consumer(peer, &action->u.frame);
        d->actions.items[count++] = *action;
    }
    d->actions.count = count;
}

/* Not of those that leave in good order. */
static void log_evictions(struct hr_dispatcher_process *d, const struct hr_bound_job *job)
{
    for (size_t i = 0; i < d->actions.count; i++) {
        const struct hr_action *action = &d->actions.items[i];

        if (action->kind == HR_ACTION_JOURNAL && action->u.row.kind == HR_ROW_EVICT)
            hr__events_add(d->events, "consumer_evicted", "job", job->about.name,
                           "consumer", job->names[action->u.row.rank], NULL);
    }
}

static void add_counts(struct hr_dispatcher_process *d, struct hr_bound_job *job)
{
    const struct hr_bind_counts *now = &job->binder.counts, *was = &job->counted;
    struct hr_lease_counts *sum = &d->counts;

    sum->leases += now->leases - was->leases;
    sum->positions += now->positions - was->positions;
    sum->leases_finished += now->leases_finished - was->leases_finished;
    sum->positions_finished += now->positions_finished - was->positions_finished;
    sum->leases_expired += now->leases_expired - was->leases_expired;
    sum->positions_taken += now->positions_taken - was->positions_taken;
    job->counted = *now;
}

/* Journals, then sends. False if the job is gone. */
static bool perform(struct hr_dispatcher_process *d, struct hr_bound_job *job)
{
    struct hr_error error = {0};

    add_counts(d, job);
    if (hr__journal_write(d->journal, &job->binder, &d->actions, &error) != HR_OK) {
        d->actions.count = 0;
        fail_job(d, job, &error);
        return false;
    }
    edit_actions(d);
    hr__fleet_perform(net_of(d), &d->actions);
    return true;
}

/* ---- workers ---- */

static uint32_t
count_workers(const struct hr_dispatcher_process *d, const struct hr_bound_job *job)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i <= d->peers_max; i++)
        count += job->binder.peers[i].role == HR_FRAME_WORKER;
    return count;
}

/* Enough splits for each consumer to keep its part of the workers busy. */
static void set_ahead(const struct hr_dispatcher_process *d, struct hr_bound_job *job)
{
    uint32_t consumers = 0, ahead;

    for (uint32_t r = 0; r < job->count; r++)
        consumers += job->binder.consumers[r].peer != 0;
    consumers = consumers > 0 ? consumers : 1;
    ahead = 2 * ((count_workers(d, job) + consumers - 1) / consumers);
    ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead;
    job->binder.options.ahead = ahead < AHEAD_MAX ? ahead : AHEAD_MAX;
}

/* Introduces workers to a job, up to the number that its clients connect to. */
static void introduce(struct hr_dispatcher_process *d, struct hr_bound_job *job)
{
    uint32_t count = count_workers(d, job);

    for (uint32_t i = 1; i <= d->peers_max && count < d->role.options.team_max; i++) {
        const struct hr_lease_peer *worker = &d->role.peers[i];
        struct hr_frame hello = {.type = HR_FRAME_HELLO, .count = worker->slots};

        if (worker->role != HR_FRAME_WORKER || worker->leaving ||
            d->peers[i].address == NULL || job->binder.peers[i].role != 0)
            continue;
        hello.u.hello.role = HR_FRAME_WORKER;
        hr__bind_frame(&job->binder, i, &hello, hr__now_ns(), &d->actions);
        if (!perform(d, job))
            return;
        job->lists_due = true;
        count++;
    }
    set_ahead(d, job);
}

static void
send_list(struct hr_dispatcher_process *d, const struct hr_bound_job *job, uint32_t to)
{
    struct hr_action_workers workers = {0};

    for (uint32_t i = 1; i <= d->peers_max; i++)
        if (job->binder.peers[i].role == HR_FRAME_WORKER &&
            workers.count < HR_ACTION_WORKERS_MAX)
            workers.peers[workers.count++] = i;
    hr__dispatcher_send_workers(d, to, &workers);
}

static void send_lists(struct hr_dispatcher_process *d, struct hr_bound_job *job)
{
    job->lists_due = false;
    for (uint32_t i = 1; i <= d->peers_max; i++)
        if (d->peers[i].bound == job)
            send_list(d, job, i);
}

bool hr__bound_worker(struct hr_dispatcher_process *d, uint32_t peer,
                      const struct hr_frame *frame)
{
    bool finished = frame->type == HR_FRAME_FINISHED;
    struct hr_bound_job *next;
    uint64_t was;

    for (struct hr_bound_job *job = d->bound; job != NULL; job = next) {
        next = job->next;
        if (job->binder.peers[peer].role != HR_FRAME_WORKER ||
            (finished && job->about.id != frame->job) ||
            (!finished && frame->type != HR_FRAME_PROGRESS &&
             frame->type != HR_FRAME_GOODBYE))
            continue;
        was = job->binder.peers[peer].finished;
        hr__bind_frame(&job->binder, peer, frame, hr__now_ns(), &d->actions);
        d->peers[peer].finished += job->binder.peers[peer].finished - was;
        (void)perform(d, job);
        if (finished)
            return true;
    }
    return false;
}

struct hr_bind_work hr__bound_work(const struct hr_dispatcher_process *d, uint32_t peer)
{
    struct hr_bind_work sum = {0};

    for (const struct hr_bound_job *job = d->bound; job != NULL; job = job->next) {
        struct hr_bind_work work;

        if (peer != 0 && job->binder.peers[peer].held == 0)
            continue;
        work = hr__bind_work(&job->binder, peer);
        sum.committed += work.committed;
        sum.leased += work.leased;
        sum.leases += work.leases;
    }
    return sum;
}

void hr__bound_worker_came(struct hr_dispatcher_process *d)
{
    struct hr_bound_job *next;

    for (struct hr_bound_job *job = d->bound; job != NULL; job = next) {
        next = job->next;
        introduce(d, job);
    }
}

void hr__bound_worker_lost(struct hr_dispatcher_process *d, uint32_t peer)
{
    struct hr_bound_job *next;

    for (struct hr_bound_job *job = d->bound; job != NULL; job = next) {
        next = job->next;
        if (job->binder.peers[peer].role != HR_FRAME_WORKER)
            continue;
        hr__bind_lost(&job->binder, peer, hr__now_ns(), &d->actions);
        job->lists_due = true;
        if (perform(d, job))
            introduce(d, job); /* another one in its place */
    }
}

/* ---- jobs ---- */

static enum hr_err
add_name(void *user, uint32_t rank, const char *name, struct hr_error *reterr)
{
    struct hr_bound_job *job = user;

    if (rank >= HR_BOUND_CONSUMERS)
        return hr__fail(reterr, HR_ERR_LIMIT, "a job has at most %u consumers",
                        HR_BOUND_CONSUMERS);
    job->names[rank] = hr__strdup(name);
    if (job->names[rank] == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    job->count = rank + 1;
    return HR_OK;
}

static enum hr_err init_job(struct hr_dispatcher_process *d, struct hr_bound_job *job,
                            struct hr_error *reterr)
{
    const struct hr_bind_options options = {.job = job->about.id,
                                            .end = job->about.end,
                                            .split = job->about.split,
                                            .consumers = HR_BOUND_CONSUMERS,
                                            .window = WINDOW,
                                            .ahead = AHEAD_MIN,
                                            .peers_max = d->peers_max,
                                            .ttl_ns = TTL_NS,
                                            .served_ns = SERVED_NS,
                                            .silent_ns = HR_FLEET_SILENT_NS,
                                            .absent_ns = d->evict_ns,
                                            .journal = hr__journal_number(d->journal)};
    uint64_t now = hr__now_ns();

    HR_TRY(hr__bind_init(&job->binder, &options, reterr));
    HR_TRY(hr__journal_restore(d->journal, &job->binder, add_name, job, reterr));
    for (uint32_t r = 0; r < job->count; r++)
        job->binder.consumers[r].acted_ns = now; /* it may be on its way back */
    return HR_OK;
}

static enum hr_err
load_job(struct hr_dispatcher_process *d, const struct hr_journal_job *about,
         struct hr_bound_job **ret_job, struct hr_error *reterr)
{
    struct hr_bound_job **at = &d->bound, *job;
    uint32_t count = 0;
    enum hr_err code;

    for (; *at != NULL; at = &(*at)->next)
        count++;
    if (count >= d->jobs_max)
        return hr__fail(reterr, HR_ERR_LIMIT, "the dispatcher has its %u jobs",
                        d->jobs_max);
    job = hr__calloc(1, sizeof *job);
    if (job == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    job->about = *about;
    code = init_job(d, job, reterr);
    if (code != HR_OK) {
        free_job(job);
        return code;
    }
    job->number = d->bound_number++;
    *at = job;
    *ret_job = job;
    return HR_OK;
}

static const char *name_of(const struct hr_tenant *tenant)
{
    return tenant != NULL ? tenant->name : "";
}

static enum hr_err
make_job(struct hr_dispatcher_process *d, const struct hr_bound_head *head,
         struct hr_journal_job *ret_about, struct hr_error *reterr)
{
    struct hr_journal_job about = {
        .id = head->id, .end = head->end, .split = head->end / SPLITS};

    about.split = about.split < 1 ? 1 : about.split;
    about.split = about.split < SPLIT_MAX ? about.split : SPLIT_MAX;
    snprintf(about.name, sizeof about.name, "%s", head->name);
    snprintf(about.tenant, sizeof about.tenant, "%s", name_of(head->tenant));
    HR_TRY(hr__journal_add(d->journal, &about, reterr));
    hr__events_add(d->events, "job_added", "job", head->name,
                   head->tenant != NULL ? "tenant" : NULL, name_of(head->tenant), NULL);
    *ret_about = about;
    return HR_OK;
}

/* The job, from memory, from the journal, or new. */
static enum hr_err
get_job(struct hr_dispatcher_process *d, const struct hr_bound_head *head,
        struct hr_bound_job **ret_job, struct hr_error *reterr)
{
    struct hr_bound_job *job;
    struct hr_journal_job about;
    enum hr_err code = HR_OK;

    if (d->journal == NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "this dispatcher has no journal, which several consumers of one "
                        "job need: start it with --journal FOLDER");
    HR_TRY(recover(d, reterr));
    job = find_job(d, head->id);
    if (job != NULL)
        about = job->about;
    else
        code = hr__journal_find(d->journal, head->id, &about, reterr);
    if (code == HR_ERR_NOT_FOUND)
        code = make_job(d, head, &about, reterr);
    if (code != HR_OK)
        return code;
    if (strcmp(about.tenant, name_of(head->tenant)) != 0)
        return hr__fail(reterr, HR_ERR_DENIED, "the run is another tenant's");
    if (about.end != head->end)
        return hr__fail(reterr, HR_ERR_FORMAT, "the job is known with another end");
    if (job == NULL)
        HR_TRY(load_job(d, &about, &job, reterr));
    *ret_job = job;
    return HR_OK;
}

void hr__bound_take_job(struct hr_dispatcher_process *d, uint32_t peer,
                        const struct hr_bound_head *head)
{
    struct hr_dispatcher_peer *p = &d->peers[peer];
    struct hr_bound_job *job = NULL;
    struct hr_error error = {0};

    if (get_job(d, head, &job, &error) != HR_OK) {
        d->jobs_refused += error.code == HR_ERR_LIMIT;
        hr__events_add(d->events, "job_refused", "job", head->name, "why", error.message,
                       NULL);
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    p->bound = job;
    p->is_client = true;
    p->list_number = d->list_number; /* its list is the job's */
    snprintf(p->job, sizeof p->job, "%s", head->name);
    job->clients++;
    HR_KILL_POINT("job.found");
    introduce(d, job);
    if (p->bound != NULL)
        send_list(d, job, peer);
}

/* ---- consumers ---- */

static enum hr_err
take_name(struct hr_dispatcher_process *d, struct hr_bound_job *job, const char *name,
          uint32_t *ret_rank, struct hr_error *reterr)
{
    uint32_t rank = 0;

    while (rank < job->count && strcmp(job->names[rank], name) != 0)
        rank++;
    if (rank == job->count) {
        HR_TRY(add_name(job, rank, name, reterr));
        if (hr__journal_name(d->journal, job->about.id, rank, name, reterr) != HR_OK) {
            hr__free(job->names[--job->count]);
            return reterr->code;
        }
    }
    *ret_rank = rank;
    return HR_OK;
}

void hr__bound_take_name(struct hr_dispatcher_process *d, uint32_t peer, const char *text,
                         size_t bytes)
{
    struct hr_dispatcher_peer *p = &d->peers[peer];
    char name[HR_FRAME_NAME_MAX + 1];
    struct hr_error error = {0};
    enum hr_err code;

    if (p->bound == NULL || p->named || bytes == 0 || bytes > HR_FRAME_NAME_MAX ||
        !hr__frame_is_plain(text, bytes)) {
        code = hr__fail(&error, HR_ERR_FORMAT,
                        "a CONSUMER frame is a name, and comes once after a JOB of "
                        "several consumers");
    } else {
        memcpy(name, text, bytes);
        name[bytes] = '\0';
        code = take_name(d, p->bound, name, &p->rank, &error);
    }
    if (code != HR_OK)
        hr__fleet_refuse(net_of(d), peer, &error);
    else
        p->named = true;
}

/* What the binder has noted, and is not in the journal. */
static void pass_kill_point(enum hr_frame_type type)
{
    if (type == HR_FRAME_HELLO)
        HR_KILL_POINT("consumer.taken");
    if (type == HR_FRAME_COMMIT)
        HR_KILL_POINT("commit.taken");
    if (type == HR_FRAME_GOODBYE)
        HR_KILL_POINT("consumer.left");
}

static void log_client(struct hr_dispatcher_process *d, uint32_t peer)
{
    struct hr_dispatcher_peer *p = &d->peers[peer];

    if (p->known || p->bound == NULL ||
        p->bound->binder.peers[peer].role != HR_FRAME_CLIENT)
        return;
    p->known = true;
    hr__events_add(d->events, "client_joined", "job", p->job, "consumer",
                   p->bound->names[p->rank], NULL);
    hr__net_know(net_of(d), peer);
}

void hr__bound_client(struct hr_dispatcher_process *d, uint32_t peer,
                      const struct hr_frame *frame)
{
    struct hr_bound_job *job = d->peers[peer].bound;
    struct hr_frame told = *frame;
    struct hr_error error = {0};

    if (frame->type == HR_FRAME_HELLO &&
        (!d->peers[peer].named || frame->u.hello.role != HR_FRAME_CLIENT)) {
        hr__fail(&error, HR_ERR_STATE, "a CONSUMER frame must come before HELLO");
        hr__fleet_refuse(net_of(d), peer, &error);
        return;
    }
    if (frame->type == HR_FRAME_HELLO)
        told.u.hello.rank = d->peers[peer].rank;
    hr__bind_frame(&job->binder, peer, &told, hr__now_ns(), &d->actions);
    pass_kill_point(frame->type);
    if (!perform(d, job))
        return;
    if (frame->type == HR_FRAME_COMMIT)
        HR_KILL_POINT("commit.answered");
    if (frame->type == HR_FRAME_HELLO)
        set_ahead(d, job);
    log_client(d, peer);
}

void hr__bound_client_lost(struct hr_dispatcher_process *d, uint32_t peer)
{
    struct hr_bound_job *job = d->peers[peer].bound;

    d->peers[peer].bound = NULL;
    job->clients--;
    hr__bind_lost(&job->binder, peer, hr__now_ns(), &d->actions);
    if (perform(d, job))
        set_ahead(d, job);
}

/* ---- time ---- */

/* Nobody is connected, and nothing waits to be taken from anybody. */
static bool is_idle(const struct hr_bound_job *job)
{
    if (job->clients > 0)
        return false;
    for (uint32_t r = 0; r < job->count; r++)
        if (job->binder.consumers[r].bound > 0)
            return false;
    return true;
}

/* Jobs that nobody has used for long leave the journal. */
static void expire(struct hr_dispatcher_process *d, uint64_t now)
{
    struct hr_error error = {0};
    enum hr_err code = HR_OK;

    if (d->expired_ns != 0 && now - d->expired_ns < EXPIRE_NS)
        return;
    d->expired_ns = now;
    for (struct hr_bound_job *job = d->bound; code == HR_OK && job != NULL;
         job = job->next)
        code = hr__journal_touch(d->journal, job->about.id, &error);
    if (code == HR_OK)
        code = hr__journal_expire(d->journal, d->journal_s, &error);
    if (code != HR_OK)
        hr__events_add(d->events, "journal_failed", "why", error.message, NULL);
}

void hr__bound_tick(struct hr_dispatcher_process *d, uint64_t now)
{
    struct hr_bound_job *next;

    if (d->journal == NULL || recover(d, NULL) != HR_OK)
        return;
    for (struct hr_bound_job *job = d->bound; job != NULL; job = next) {
        next = job->next;
        hr__bind_tick(&job->binder, now, &d->actions);
        log_evictions(d, job);
        if (!perform(d, job))
            continue;
        if (job->lists_due)
            send_lists(d, job);
        if (is_idle(job))
            drop_job(d, job);
    }
    expire(d, now);
}

uint32_t
hr__bound_count(const struct hr_dispatcher_process *d, const struct hr_tenant *tenant)
{
    uint32_t count = 0;

    for (const struct hr_bound_job *job = d->bound; job != NULL; job = job->next)
        count += !hr__bind_is_done(&job->binder) &&
                 (tenant == NULL || strcmp(job->about.tenant, tenant->name) == 0);
    return count;
}

/* ---- evicting ---- */

enum hr_err hr__bound_evict(struct hr_dispatcher_process *d, const char *name,
                            const char *consumer, struct hr_error *reterr)
{
    struct hr_bound_job *next;
    bool found = false;

    for (struct hr_bound_job *job = d->bound; job != NULL; job = next) {
        uint32_t rank = 0;

        next = job->next;
        while (rank < job->count && strcmp(job->names[rank], consumer) != 0)
            rank++;
        if (strcmp(job->about.name, name) != 0 || rank == job->count)
            continue;
        found = true;
        hr__bind_evict(&job->binder, rank, hr__now_ns(), &d->actions);
        log_evictions(d, job);
        (void)perform(d, job);
    }
    if (found)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_NOT_FOUND,
                    "no job '%s' with a consumer '%s' is in use here", name, consumer);
}

void hr__bound_close(struct hr_dispatcher_process *d)
{
    while (d->bound != NULL)
        drop_job(d, d->bound);
    hr__journal_close(d->journal);
}
