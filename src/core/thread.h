/*
 * core/thread.h - one way to start threads.
 *
 * Mutexes and condition variables are pthread's own. This adds fault injection on
 * creation, a name for debuggers, and blocked signals: no signal is delivered to a thread
 * of the library; and waits until a time of the monotonic clock.
 */
#ifndef HR_CORE_THREAD_H
#define HR_CORE_THREAD_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "headrace/base.h"

/* Asserts that the mutex is held; callers hold it themselves. */
static inline void hr__assert_locked(const pthread_mutex_t *mutex)
{
    assert(pthread_mutex_trylock((pthread_mutex_t *)(uintptr_t)mutex) == EBUSY);
    (void)mutex;
}

/* Starts a joinable thread; `name` has at most 15 bytes. HR_ERR_MEMORY, or HR_ERR_LIMIT
 * if the system refuses another thread; the message names the thread. */
HR_CHECK enum hr_err
hr__thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *),
                 void *user, struct hr_error *reterr);

/* A condition variable whose timed waits go by hr__now_ns(), and such a wait: 0, or an
 * error of pthread_cond_timedwait() such as ETIMEDOUT. */
void hr__cond_init(pthread_cond_t *cond);
int hr__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);

/* The calling thread, and those that it starts, get a smaller part of the cores while
 * others want them: each of the steps, up to 19, is a factor of about 1.25 (sched(7)). */
void hr__thread_nice(int steps);

/* Joins a thread that is about to exit; detaches it if that takes over `timeout_ns`. */
void hr__thread_join_for(pthread_t thread, uint64_t timeout_ns);

#endif
