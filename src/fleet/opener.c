/*
 * fleet/opener.c - opens a worker's jobs, each in a thread of its own: to list a large
 * folder or reach a slow server may take minutes, while the maker serves other jobs.
 *
 * Until a job is open, the role has nothing to send to its clients (`waiting`).
 */
#include "fleet/worker.h"

#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
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

/* What a thread works on is its own: it may outlive the worker. */
struct hr_worker_opening {
    struct hr_worker_process *worker;
    struct hr_worker_job *job;
    pthread_t thread;
    int threads;
    bool local; /* for a client on this host */
    char *text; /* the job's */
    size_t bytes;
    /* Unless 0: the job is open, and a graph is wanted that makes packs of this size. */
    uint64_t pack;
    struct hr_graph *plain; /* then, the job's */
    bool ended;             /* under the worker's lock */
    pthread_mutex_t lock;   /* held while the job gets what was made */
    bool left;              /* the worker has ended; under `lock` */
    /* Made: */
    struct hr_graph *graph;
    struct hr_outputs outputs;
    struct hr_pool *pool;
    struct hr_error error; /* or why it cannot be opened */
};

static struct hr_worker_opening *
create(struct hr_worker_process *w, struct hr_worker_job *job, bool local)
{
    struct hr_worker_opening *opening = hr__calloc(1, sizeof *opening);

    if (opening == NULL)
        return NULL;
    opening->text = hr__malloc(job->bytes + 1);
    if (opening->text == NULL) {
        hr__free(opening);
        return NULL;
    }
    memcpy(opening->text, job->text, job->bytes + 1);
    opening->bytes = job->bytes;
    opening->worker = w;
    opening->job = job;
    opening->threads = w->threads;
    opening->local = local;
    pthread_mutex_init(&opening->lock, NULL);
    return opening;
}

static void destroy(struct hr_worker_opening *opening)
{
    hr__graph_unref(opening->graph);
    hr__graph_unref(opening->plain);
    hr_pool_unref(opening->pool);
    pthread_mutex_destroy(&opening->lock);
    hr__free(opening->text);
    hr__free(opening);
}

static enum hr_err open_graph(struct hr_worker_opening *opening, struct hr_error *reterr)
{
    struct hr_iter_options options;
    struct hr_job read = {0};
    enum hr_err code;

    hr_iter_options_init(&options);
    options.threads = opening->threads;
    opening->pool = opening->local ? hr__pool_create_shared() : hr_pool_create(0);
    if (opening->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__job_parse(opening->text, opening->bytes, &read, &options, reterr));
    options.epochs = 0; /* those of the first client; others may have more */
    code = hr_graph_freeze(read.graph, reterr);
    if (code == HR_OK)
        code = check_fingerprint(&read, reterr);
    if (code == HR_OK)
        code = hr__outputs_init(&opening->outputs, read.graph, &options, reterr);
    opening->outputs.bare = read.records;
    if (code == HR_OK)
        opening->graph = read.graph;
    else
        hr__graph_unref(read.graph);
    return code;
}

/* ---- threads ---- */

static void give_job(struct hr_worker_opening *opening)
{
    struct hr_worker_process *w = opening->worker;
    struct hr_worker_job *job = opening->job;

    if (opening->error.code != HR_OK)
        hr__error_prefix(&opening->error, "worker %s cannot run the graph", w->address);
    job->error = opening->error;
    job->graph = opening->graph;
    opening->graph = NULL;
    job->outputs = opening->outputs;
    job->pool = opening->pool;
    opening->pool = NULL;
    job->opened = true;
}

/* The job gets what was made, or why it was not. */
static void hand_over(struct hr_worker_opening *opening)
{
    struct hr_worker_process *w = opening->worker;
    struct hr_worker_job *job = opening->job;

    hr__net_lock(w->base.net);
    if (opening->pack == 0) {
        give_job(opening);
    } else { /* without it, records are made one by one */
        job->packed = opening->graph;
        opening->graph = NULL;
    }
    opening->ended = true;
    for (uint32_t i = 1; i <= w->peers_max; i++) /* others may wait for a thread */
        w->role.clients[i].waiting = false;
    pthread_cond_signal(&w->work);
    job->holds--;
    hr__worker_job_release(w, job);
    hr__net_unlock(w->base.net);
}

static void *run_opening(void *user)
{
    struct hr_worker_opening *opening = user;
    struct hr_error error = {0};
    enum hr_err code;
    bool left;

    code = opening->pack > 0 ? hr__outputs_pack(&opening->outputs, opening->pack,
                                                &opening->graph, &error)
                             : open_graph(opening, &error);
    if (code != HR_OK)
        opening->error = error;
    HR_KILL_POINT("graph.opened");
    pthread_mutex_lock(&opening->lock);
    left = opening->left;
    if (!left)
        hand_over(opening);
    pthread_mutex_unlock(&opening->lock);
    if (left)
        destroy(opening);
    return NULL;
}

/* Under the lock: the place of one that is free, or NULL. */
static struct hr_worker_opening **find_free(struct hr_worker_process *w)
{
    for (size_t i = 0; i < HR_WORKER_OPENINGS; i++) {
        struct hr_worker_opening *opening = w->openings[i];

        if (opening != NULL && opening->ended) {
            pthread_join(opening->thread, NULL); /* it has released the lock */
            destroy(opening);
            w->openings[i] = NULL;
        }
        if (w->openings[i] == NULL)
            return &w->openings[i];
    }
    return NULL;
}

/* Under the lock. Takes the opening, also on failure. */
static enum hr_err start(struct hr_worker_opening *opening, struct hr_worker_opening **at,
                         struct hr_error *reterr)
{
    enum hr_err code;

    if (opening == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__thread_start(&opening->thread, "hr-opener", run_opening, opening, reterr);
    if (code != HR_OK) {
        destroy(opening);
        return code;
    }
    *at = opening;
    opening->job->holds++;
    return HR_OK;
}

/* Under the lock. Without a free thread it is tried again when one has ended. */
static void
begin_opening(struct hr_worker_process *w, struct hr_worker_job *job, bool local)
{
    struct hr_worker_opening **at = find_free(w);

    if (at == NULL)
        return;
    if (start(create(w, job, local), at, &job->error) == HR_OK)
        job->opening = true;
    else
        job->opened = true;
}

void hr__worker_pack(struct hr_worker_process *w, struct hr_worker_job *job,
                     uint64_t size)
{
    struct hr_worker_opening **at = find_free(w), *opening;

    if (at == NULL)
        return;
    opening = create(w, job, false);
    if (opening != NULL) {
        opening->pack = size;
        opening->outputs = job->outputs;
        opening->plain = job->graph;
        hr__graph_ref(job->graph);
    }
    job->packing = start(opening, at, NULL) == HR_OK;
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

/* ---- the end ---- */

/* Whether a thread still opens a job. Under the lock. */
static bool any_opens(const struct hr_worker_process *w)
{
    for (size_t i = 0; i < HR_WORKER_OPENINGS; i++)
        if (w->openings[i] != NULL && !w->openings[i]->ended)
            return true;
    return false;
}

/* Without the worker's lock, which the thread may wait for. */
static void leave_or_join(struct hr_worker_process *w, struct hr_worker_opening *opening)
{
    bool left;

    pthread_mutex_lock(&opening->lock);
    hr__net_lock(w->base.net);
    left = opening->left = !opening->ended;
    if (left) {
        opening->job->holds--;
        hr__worker_job_release(w, opening->job);
    }
    hr__net_unlock(w->base.net);
    if (left)
        pthread_detach(opening->thread);
    pthread_mutex_unlock(&opening->lock);
    if (left)
        return;
    pthread_join(opening->thread, NULL);
    destroy(opening);
}

void hr__worker_end_openings(struct hr_worker_process *w, uint64_t until_ns)
{
    hr__net_lock(w->base.net);
    while (any_opens(w) && hr__now_ns() < until_ns)
        hr__cond_wait(&w->work, hr__net_mutex(w->base.net), until_ns);
    hr__net_unlock(w->base.net);
    for (size_t i = 0; i < HR_WORKER_OPENINGS; i++)
        if (w->openings[i] != NULL)
            leave_or_join(w, w->openings[i]);
}
