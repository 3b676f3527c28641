/*
 * fleet/opener.c - opens a worker's jobs, each in a thread of its own: to list a large
 * folder or reach a slow server may take minutes, while the maker serves other jobs.
 *
 * Until a job is open, the role has nothing to send to its clients (`waiting`).
 */
#include "fleet/worker.h"

#include <string.h>

#include "core/kill_point.h"
#include "core/thread.h"
#include "fleet/job.h"

static enum hr_err check_fingerprint(const struct hr_job *job, struct hr_error *reterr)
{
    char own[HR_FINGERPRINT_BYTES];

    HR_TRY(hr_graph_fingerprint(job->graph, own));
    if (strcmp(own, job->fingerprint) == 0)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_GRAPH,
                    "the worker's data or release differs from the client's: its graph "
                    "has fingerprint %s, the client's %s",
                    own, job->fingerprint);
}

/* `local`: for a client on this host. */
static enum hr_err
open_graph(const struct hr_worker_process *w, struct hr_worker_job *job, bool local,
           struct hr_error *reterr)
{
    struct hr_iter_options options;
    struct hr_job read = {0};
    enum hr_err code;

    hr_iter_options_init(&options);
    options.threads = w->threads;
    job->pool = local ? hr__pool_create_shared() : hr_pool_create(0);
    if (job->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__job_parse(job->text, job->bytes, &read, &options, reterr));
    code = hr_graph_freeze(read.graph, reterr);
    if (code == HR_OK)
        code = check_fingerprint(&read, reterr);
    if (code == HR_OK)
        code = hr__outputs_init(&job->outputs, read.graph, &options, reterr);
    job->outputs.bare = read.records;
    if (code == HR_OK)
        job->graph = read.graph;
    else
        hr__graph_unref(read.graph);
    return code;
}

/* ---- threads ---- */

static void *run_opening(void *user)
{
    struct hr_worker_opening *opening = user;
    struct hr_worker_process *w = opening->worker;
    struct hr_worker_job *job = opening->job;
    struct hr_error error = {0};

    if (open_graph(w, job, opening->local, &error) != HR_OK) {
        hr__error_prefix(&error, "worker %s cannot run the graph", w->address);
        job->error = error;
    }
    HR_KILL_POINT("graph.opened");
    hr__net_lock(w->base.net);
    job->opened = true;
    opening->ended = true;
    for (uint32_t i = 1; i <= w->peers_max; i++) /* others may wait for a thread */
        w->role.clients[i].waiting = false;
    pthread_cond_signal(&w->work);
    job->holds--;
    hr__worker_job_release(w, job);
    hr__net_unlock(w->base.net);
    return NULL;
}

/* Under the lock: one that is free, or NULL. */
static struct hr_worker_opening *find_free(struct hr_worker_process *w)
{
    for (size_t i = 0; i < HR_WORKER_OPENINGS; i++) {
        struct hr_worker_opening *opening = &w->openings[i];

        if (opening->ended) {
            pthread_join(opening->thread, NULL); /* it has released the lock */
            *opening = (struct hr_worker_opening){0};
        }
        if (opening->job == NULL)
            return opening;
    }
    return NULL;
}

/* Under the lock. Without a free thread it is tried again when one has ended. */
static void
begin_opening(struct hr_worker_process *w, struct hr_worker_job *job, bool local)
{
    struct hr_worker_opening *opening = find_free(w);

    if (opening == NULL)
        return;
    *opening = (struct hr_worker_opening){.worker = w, .job = job, .local = local};
    if (hr__thread_start(&opening->thread, "hr-opener", run_opening, opening,
                         &job->error) != HR_OK) {
        opening->job = NULL;
        job->opened = true;
        return;
    }
    job->opening = true;
    job->holds++;
}

bool hr__worker_has_opened(struct hr_worker_process *w, uint32_t client)
{
    struct hr_worker_job *job = w->peers[client].job;

    if (!job->opened && !job->opening)
        begin_opening(w, job, hr__net_is_local(w->base.net, client));
    if (!job->opened)
        w->role.clients[client].waiting = true;
    return job->opened;
}

void hr__worker_end_openings(struct hr_worker_process *w)
{
    for (size_t i = 0; i < HR_WORKER_OPENINGS; i++) {
        while (w->openings[i].job != NULL && !w->openings[i].ended)
            pthread_cond_wait(&w->work, hr__net_mutex(w->base.net));
        if (w->openings[i].ended)
            pthread_join(w->openings[i].thread, NULL);
    }
}
