/*
 * core/thread.h - threads that start in one way.
 *
 * Mutexes and condition variables are pthread's own. This adds creation through the fault
 * door, a name for debuggers, and blocked signals: a thread of the library never takes
 * one.
 */
#ifndef HR_CORE_THREAD_H
#define HR_CORE_THREAD_H

#include "headrace/base.h"
#include <pthread.h>

/* `name` has 15 bytes at most; join the thread. HR_ERR_MEMORY, or HR_ERR_LIMIT
 * where no more may be started; the error names it. */
HR_CHECK enum hr_err
hr__thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *),
                 void *user, struct hr_error *reterr);

/* Joins a thread that is about to end; after `timeout_ns` it detaches it instead. */
void hr__thread_join_for(pthread_t thread, uint64_t timeout_ns);

#endif
