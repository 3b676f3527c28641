/*
 * net/sigpipe.c - see sigpipe.h.
 */
#include "net/sigpipe.h"

#include <pthread.h>
#include <time.h>

void hr__pipe_guard(struct hr_pipe_guard *guard)
{
    sigset_t pending, pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    guard->pending = sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &guard->before);
}

void hr__pipe_unguard(const struct hr_pipe_guard *guard)
{
    const struct timespec none = {0, 0};
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    while (!guard->pending && sigtimedwait(&pipe, NULL, &none) == SIGPIPE)
        continue;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}
