/*
 * support/kill_point.c - kills the process at a point (core/kill_point.h):
 * HEADRACE_KILL_AT="name:n" when it passes the point `name` for the n-th time. A name
 * that is not in the list ends it with a message.
 */
#include "core/kill_point.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINT(name, roles, runs, when) name,
static const char *const names[] = {
#include "core/kill_points.def"
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char armed[64];
static long armed_at;
static atomic_long passed;

static void check(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return;
    fprintf(stderr, "no kill point '%s' is in src/core/kill_points.def\n", name);
    abort();
}

static void arm(void)
{
    const char *text = getenv("HEADRACE_KILL_AT");

    if (text == NULL)
        return;
    if (sscanf(text, "%63[^:]:%ld", armed, &armed_at) != 2 || armed_at < 1) {
        fprintf(stderr, "HEADRACE_KILL_AT is name:n, not '%s'\n", text);
        abort();
    }
    check(armed);
}

/* Before main(): a misspelt name shows also if the process passes no point. */
__attribute__((constructor)) static void start(void)
{
    pthread_once(&once, arm);
}

void hr__kill_point(const char *name)
{
    pthread_once(&once, arm);
    check(name);
    if (strcmp(name, armed) != 0 || atomic_fetch_add(&passed, 1) + 1 != armed_at)
        return;
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}
