/*
 * store/web.c - GETs by libcurl's multi interface, in one thread.
 *
 * HTTP/1.1 only: for large bodies many connections are faster than many streams of one.
 */
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/store_internal.h"
#include "store/web_internal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define URGENT_CONNECTIONS 8
#define LOOK_EVERY_NS (5 * HR_WEB_MS) /* at the times of running requests */

static struct {
    pthread_mutex_t mutex;
    struct hr_web_transport *current; /* or NULL */
    bool prepared, exiting;
} lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct hr_web_counts hr__web_counts;

void hr__web_stats(struct hr_web_stats *ret_stats)
{
    ret_stats->requests = atomic_load(&hr__web_counts.requests);
    ret_stats->gets = atomic_load(&hr__web_counts.gets);
    ret_stats->retries = atomic_load(&hr__web_counts.retries);
    ret_stats->resumed = atomic_load(&hr__web_counts.resumed);
    ret_stats->stalls = atomic_load(&hr__web_counts.stalls);
    ret_stats->hedges = atomic_load(&hr__web_counts.hedges);
    ret_stats->hedges_won = atomic_load(&hr__web_counts.hedges_won);
    ret_stats->bytes = atomic_load(&hr__web_counts.bytes);
    ret_stats->connections = atomic_load(&hr__web_counts.connections);
}

/* ---- limits ---- */

static uint64_t
number_of(const char *variable, uint64_t usual, uint64_t least, uint64_t most)
{
    const char *text = getenv(variable);
    uint64_t value;

    if (text == NULL || !hr__bytes_parse(text, &value))
        return usual;
    return value < least ? least : value < most ? value : most;
}

static void read_limits(struct hr_web_limits *limits)
{
    limits->connections = number_of("HEADRACE_HTTP_CONNECTIONS", 128, 1, 1024);
    limits->tries = number_of("HEADRACE_HTTP_TRIES", 6, 1, 100);
    limits->stall_ns =
        number_of("HEADRACE_HTTP_STALL_MS", 20000, 10, 3600000) * HR_WEB_MS;
    limits->connect_ms = number_of("HEADRACE_HTTP_CONNECT_MS", 10000, 10, 3600000);
    limits->hedge_percent = number_of("HEADRACE_HTTP_HEDGE", 95, 0, 99);
}

uint64_t hr__web_whole_bytes(void)
{
    return number_of("HEADRACE_HTTP_WHOLE_BYTES", (uint64_t)1 << 30, 0, UINT64_MAX);
}

/* ---- the thread ---- */

/* Those that somebody waits for overtake reads ahead. */
static void add_ready(struct hr_web_transport *t, struct hr_web_request *request)
{
    if (request->urgent && t->ready != NULL) {
        request->next = t->ready;
        t->ready = request;
        return;
    }
    request->next = NULL;
    *t->ready_end = request;
    t->ready_end = &request->next;
}

/* Takes what was submitted; false once it must stop. */
static bool accept_submitted(struct hr_web_transport *t, bool *ret_cancelled)
{
    struct hr_web_request *request;

    pthread_mutex_lock(&lock.mutex);
    while ((request = t->submitted) != NULL) {
        t->submitted = request->next;
        add_ready(t, request);
    }
    t->submitted_end = &t->submitted;
    *ret_cancelled = t->any_cancelled;
    t->any_cancelled = false;
    pthread_mutex_unlock(&lock.mutex);
    return !atomic_load(&t->stop);
}

static struct hr_web_request *next_cancelled(struct hr_web_request *list, bool all)
{
    while (list != NULL && !all && !atomic_load(&list->cancelled))
        list = list->next;
    return list;
}

/* Those that wait are made running first, from where they end as all do. */
static void cancel_of(struct hr_web_transport *t, struct hr_web_request **list, bool all)
{
    struct hr_web_request *request;

    while ((request = next_cancelled(*list, all)) != NULL) {
        if (list != &t->running) {
            hr__web_unlink(list, request);
            request->next = t->running;
            t->running = request;
        }
        hr__fail(request->error, HR_ERR_CANCELLED, "reading %s was cancelled",
                 request->uri);
        hr__web_end(t, request, HR_ERR_CANCELLED);
    }
}

static void cancel_requests(struct hr_web_transport *t, bool all)
{
    cancel_of(t, &t->running, all);
    cancel_of(t, &t->delayed, all);
    cancel_of(t, &t->ready, all);
    t->ready_end = &t->ready;
    while (*t->ready_end != NULL)
        t->ready_end = &(*t->ready_end)->next;
}

/* Urgent ones have connections of their own. */
static bool
may_start(const struct hr_web_transport *t, const struct hr_web_request *request)
{
    return t->active < t->limits.connections + (request->urgent ? URGENT_CONNECTIONS : 0);
}

/* Starts what may be started; returns when to look again at the latest. */
static uint64_t start_requests(struct hr_web_transport *t, uint64_t now)
{
    struct hr_web_request **link = &t->delayed, *request;
    uint64_t soon = now + 1000 * HR_WEB_MS;

    while ((request = *link) != NULL) {
        if (request->due_ns > now) {
            soon = soon < request->due_ns ? soon : request->due_ns;
            link = &request->next;
            continue;
        }
        *link = request->next;
        add_ready(t, request);
    }
    while ((request = t->ready) != NULL && may_start(t, request)) {
        t->ready = request->next;
        if (t->ready == NULL)
            t->ready_end = &t->ready;
        hr__web_run(t, request);
    }
    if (t->running != NULL && soon > now + LOOK_EVERY_NS)
        soon = now + LOOK_EVERY_NS;
    return soon;
}

static void *run(void *user)
{
    struct hr_web_transport *t = user;
    bool cancelled;
    int running;

    while (accept_submitted(t, &cancelled)) {
        uint64_t now = hr__now_ns(), soon;

        if (cancelled)
            cancel_requests(t, false);
        soon = start_requests(t, now);
        hr__curl.multi_perform(t->multi, &running);
        hr__web_reap(t);
        hr__web_begin_bodies(t, hr__now_ns());
        if (now - t->looked_ns >= LOOK_EVERY_NS) {
            t->looked_ns = now;
            hr__web_check_times(t, now);
        }
        if (t->ready == NULL || !may_start(t, t->ready))
            hr__curl.multi_poll(t->multi, NULL, 0,
                                (int)((soon - now + HR_WEB_MS - 1) / HR_WEB_MS), NULL);
    }
    cancel_requests(t, true);
    return NULL;
}

static void free_transport(struct hr_web_transport *t)
{
    while (t->idle != NULL) {
        struct hr_web_attempt *attempt = t->idle;

        t->idle = attempt->next;
        hr__curl.easy_cleanup(attempt->easy);
        hr__free(attempt);
    }
    if (t->multi != NULL)
        hr__curl.multi_cleanup(t->multi);
    hr__free(t);
}

static enum hr_err
create_transport(struct hr_web_transport **ret_transport, struct hr_error *reterr)
{
    struct hr_web_transport *t = hr__calloc(1, sizeof *t);
    enum hr_err err = HR_ERR_MEMORY;

    if (t == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    t->submitted_end = &t->submitted;
    t->ready_end = &t->ready;
    t->random = hr__now_ns();
    read_limits(&t->limits);
    hr__web_bodies_init(&t->bodies);
    t->multi = hr__curl.multi_init();
    if (t->multi == NULL) {
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    } else {
        hr__curl.multi_setopt(t->multi, CURLMOPT_MAXCONNECTS,
                              (long)(t->limits.connections + URGENT_CONNECTIONS));
        err = hr__thread_start(&t->thread, "hr-http", run, t, reterr);
    }
    if (err == HR_OK)
        *ret_transport = t;
    else
        free_transport(t);
    return err;
}

/* A child has the memory of the requests but not their thread: it starts afresh. */
static void forget_in_child(void)
{
    pthread_mutex_init(&lock.mutex, NULL);
    lock.current = NULL;
}

static void stop_at_exit(void)
{
    pthread_mutex_lock(&lock.mutex);
    lock.exiting = true;
    pthread_mutex_unlock(&lock.mutex);
    hr__web_stop();
}

/* Once per process; lock held. */
static enum hr_err prepare_process(struct hr_error *reterr)
{
    if (lock.exiting)
        return hr__fail(reterr, HR_ERR_CANCELLED, "the process is about to exit");
    if (lock.prepared)
        return HR_OK;
    HR_TRY(hr__curl_load(reterr));
    if (hr__curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return hr__fail(reterr, HR_ERR_INTERNAL, "libcurl cannot be used");
    /* after what curl registers, so that this runs before it */
    if (pthread_atfork(NULL, NULL, forget_in_child) != 0 || atexit(stop_at_exit) != 0)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    lock.prepared = true;
    return HR_OK;
}

enum hr_err hr__web_submit(struct hr_web_request *request, struct hr_error *reterr)
{
    enum hr_err err;

    assert(request->want != HR_WEB_RANGE ||
           (request->room != NULL && request->bytes > 0));
    request->next = NULL;
    request->attempts[0] = request->attempts[1] = NULL;
    request->data = NULL;
    request->got = request->need = 0;
    request->failures = 0;
    request->begun = request->hedged = request->plain = request->has_ranges = false;
    atomic_store(&request->cancelled, false);
    hr__str_init(&request->text);
    pthread_mutex_lock(&lock.mutex);
    err = prepare_process(reterr);
    if (err == HR_OK && lock.current == NULL)
        err = create_transport(&lock.current, reterr);
    if (err == HR_OK) {
        *lock.current->submitted_end = request;
        lock.current->submitted_end = &request->next;
        hr__curl.multi_wakeup(lock.current->multi);
        hr__web_count(&hr__web_counts.requests, 1);
    }
    pthread_mutex_unlock(&lock.mutex);
    return err;
}

void hr__web_cancel(struct hr_web_request *request)
{
    pthread_mutex_lock(&lock.mutex);
    atomic_store(&request->cancelled, true);
    if (lock.current != NULL) {
        lock.current->any_cancelled = true;
        hr__curl.multi_wakeup(lock.current->multi);
    }
    pthread_mutex_unlock(&lock.mutex);
}

void hr__web_stop(void)
{
    struct hr_web_transport *t;

    pthread_mutex_lock(&lock.mutex);
    t = lock.current;
    lock.current = NULL;
    pthread_mutex_unlock(&lock.mutex);
    if (t == NULL)
        return;
    atomic_store(&t->stop, true);
    hr__curl.multi_wakeup(t->multi);
    pthread_join(t->thread, NULL);
    free_transport(t);
}

/* ---- waiting ---- */

struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool done;
    enum hr_err err;
};

static void wake(struct hr_web_request *request, enum hr_err err)
{
    struct waiter *waiter = request->user;

    pthread_mutex_lock(&waiter->mutex);
    waiter->done = true;
    waiter->err = err;
    pthread_cond_signal(&waiter->cond);
    pthread_mutex_unlock(&waiter->mutex);
}

enum hr_err hr__web_fetch(struct hr_web_request *request)
{
    struct waiter waiter = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                            .cond = PTHREAD_COND_INITIALIZER};
    struct hr_error *error = request->error;

    request->done = wake;
    request->user = &waiter;
    request->urgent = true;
    HR_TRY(hr__web_submit(request, error));
    pthread_mutex_lock(&waiter.mutex);
    while (!waiter.done)
        pthread_cond_wait(&waiter.cond, &waiter.mutex);
    pthread_mutex_unlock(&waiter.mutex);
    pthread_mutex_destroy(&waiter.mutex);
    pthread_cond_destroy(&waiter.cond);
    return waiter.err;
}
