/*
 * net/sigpipe.h - libevent and splice() write without MSG_NOSIGNAL, so a peer that is
 * gone would end the process.
 */
#ifndef HR_NET_SIGPIPE_H
#define HR_NET_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

/* Blocks SIGPIPE in this thread; and discards what came meanwhile and restores its mask.
 */
struct hr_pipe_guard {
    sigset_t before;
    bool pending; /* already before */
};
void hr__pipe_guard(struct hr_pipe_guard *guard);
void hr__pipe_unguard(const struct hr_pipe_guard *guard);

#endif
