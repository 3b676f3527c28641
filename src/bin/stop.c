/*
 * stop.c - the handler resets itself, so that a second signal has its default action.
 */
#include "stop.h"

#include <signal.h>

static struct hr_iter *volatile watched;
static volatile sig_atomic_t requested;

static void handle(int number)
{
    struct hr_iter *iter = watched;

    (void)number;
    requested = 1;
    if (iter != NULL)
        hr_iter_cancel(iter);
}

void stop_watch(struct hr_iter *iter)
{
    struct sigaction action = {.sa_handler = handle, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    watched = iter;
    if (requested) { /* requested before there was anything to cancel */
        if (iter != NULL)
            hr_iter_cancel(iter);
        return;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void stop_unwatch(void)
{
    watched = NULL;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

bool stop_requested(void)
{
    return requested != 0;
}
