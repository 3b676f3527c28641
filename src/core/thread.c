/*
 * core/thread.c - starts threads with signals blocked.
 *
 * Synchronous signals (SIGSEGV and the like) stay unblocked, so that the program's crash
 * handler still runs. A thread sets its own name: by the time its creator could, it might
 * have exited.
 */
#include "core/thread.h"
#include "core/alloc.h"
#include "core/error.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define NICE_MAX 19

struct start {
    void *(*run)(void *);
    void *user;
    char name[16]; /* the kernel's limit */
};

static void *enter(void *user)
{
    struct start start = *(struct start *)user;

    hr__free(user);
    (void)pthread_setname_np(pthread_self(), start.name);
    return start.run(start.user);
}

static int create_blocked(pthread_t *ret_thread, struct start *start)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all, before;
    int result;

    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = hr__fault(HR_FAULT_THREAD) ? EAGAIN
                                        : pthread_create(ret_thread, NULL, enter, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

enum hr_err hr__thread_start(pthread_t *ret_thread, const char *name,
                             void *(*run)(void *), void *user, struct hr_error *reterr)
{
    struct start *start = hr__malloc(sizeof *start);
    pthread_t thread;
    int result;

    if (start == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "no memory to start thread '%s'", name);
    start->run = run;
    start->user = user;
    snprintf(start->name, sizeof start->name, "%s", name);
    result = create_blocked(&thread, start);
    if (result != 0) {
        hr__free(start);
        return hr__fail_errno(reterr, HR_ERR_LIMIT, result,
                              "cannot start thread '%s' (see ulimit -u and pids.max)",
                              name);
    }
    *ret_thread = thread;
    return HR_OK;
}

/* Of the thread, not of the process, on Linux. */
void hr__thread_nice(int steps)
{
    int now = getpriority(PRIO_PROCESS, 0);

    assert(steps >= 0);
    (void)setpriority(PRIO_PROCESS, 0, now + steps < NICE_MAX ? now + steps : NICE_MAX);
}

void hr__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int hr__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};

    return pthread_cond_timedwait(cond, mutex, &until);
}

void hr__thread_join_for(pthread_t thread, uint64_t timeout_ns)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME,
                  &until); /* the only clock that older C libraries accept */
    until.tv_sec += (time_t)(timeout_ns / 1000000000u);
    until.tv_nsec += (long)(timeout_ns % 1000000000u);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    if (pthread_timedjoin_np(thread, NULL, &until) != 0)
        pthread_detach(thread);
}
