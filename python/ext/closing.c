/*
 * The end of a run whose user code may not return.
 *
 * A thread of its own closes the handle. Whoever asked waits for it, serving signals, and
 * gives up waiting when one of them raises.
 */
#include "ext.h"

#include <pthread.h>
#include <time.h>

/* A handle that is being closed; two references, the closer's and the waiter's. */
struct closing {
    atomic_int refs;
    atomic_bool done;
    struct hr_iter *iter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void closing_unref(struct closing *closing)
{
    if (atomic_fetch_sub(&closing->refs, 1) > 1)
        return;
    pthread_cond_destroy(&closing->changed);
    pthread_mutex_destroy(&closing->lock);
    free(closing);
}

static void *close_thread(void *user)
{
    struct closing *closing = user;

    hr_iter_close(closing->iter);
    pthread_mutex_lock(&closing->lock);
    atomic_store(&closing->done, true);
    pthread_cond_signal(&closing->changed);
    pthread_mutex_unlock(&closing->lock);
    closing_unref(closing);
    return NULL;
}

static struct closing *closing_create(struct hr_iter *iter)
{
    struct closing *closing = calloc(1, sizeof *closing);
    pthread_condattr_t monotonic;

    if (closing == NULL)
        return NULL;
    atomic_init(&closing->refs, 2);
    closing->iter = iter;
    pthread_mutex_init(&closing->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&closing->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return closing;
}

/* Without the interpreter's lock; true when it is closed. */
static bool wait_slice(struct closing *closing)
{
    struct timespec until;
    bool done;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += EXT_SLICE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&closing->lock);
    if (!atomic_load(&closing->done))
        pthread_cond_timedwait(&closing->changed, &closing->lock, &until);
    done = atomic_load(&closing->done);
    pthread_mutex_unlock(&closing->lock);
    return done;
}

/* Wait for at most `patience_ms`, serving signals unless `patience_ms` is given. -1 when
 * one of them raised. */
static int wait_closed(struct closing *closing, int patience_ms)
{
    for (int waited = 0; patience_ms <= 0 || waited < patience_ms;
         waited += EXT_SLICE_MS) {
        bool done;

        Py_BEGIN_ALLOW_THREADS;
        done = wait_slice(closing);
        Py_END_ALLOW_THREADS;
        if (done)
            break;
        if (patience_ms <= 0 && PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

int ext_close_beside(struct hr_iter *iter, int patience_ms)
{
    struct closing *closing = closing_create(iter);
    pthread_t thread;
    int result = 0;

    if (closing == NULL || pthread_create(&thread, NULL, close_thread, closing) != 0) {
        if (closing != NULL) {
            closing_unref(closing);
            closing_unref(closing);
        }
        if (patience_ms < 0) /* this thread may be one of the iterator's own */
            return 0;
        Py_BEGIN_ALLOW_THREADS;
        hr_iter_close(iter);
        Py_END_ALLOW_THREADS;
        return 0;
    }
    pthread_detach(thread);
    if (patience_ms >= 0)
        result = wait_closed(closing, patience_ms);
    closing_unref(closing);
    return result;
}
