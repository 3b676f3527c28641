/*
 * tests/support/peers.h - worker processes for tests, which run the test program itself.
 *
 * A test that uses them has a constructor that checks peers_argument() and, in a worker
 * process ("peer"), calls peers_serve(); so a peer exits before any test would run.
 */
#ifndef HR_TESTS_PEERS_H
#define HR_TESTS_PEERS_H

#include <pthread.h>
#include <sys/types.h>

#include "headrace/code.h"

#define PEERS_MAX 1024

struct peers {
    char argument[64]; /* passed to every peer */
    pthread_mutex_t lock;
    pid_t pids[PEERS_MAX]; /* guarded by `lock`, as is count */
    int count;
    bool refuse; /* refuse to start peers */
};

/* Call peers_finish() once no iterator uses it; waits for every process that was started.
 */
void peers_init(struct peers *peers, const char *argument);
void peers_finish(struct peers *peers);

/* Sets them as the graph's worker processes. */
enum hr_err
peers_host(struct peers *peers, struct hr_graph *graph, struct hr_error *reterr);

/* Copies a graph's text with `variant: processes` added to all user code. */
void peers_text(const char *text, char *to, size_t room);

/* In a peer the argument passed to it, else NULL. */
const char *peers_argument(void);
_Noreturn void
peers_serve(const struct hr_code *(*find)(void *user, const char *name), void *user);

#endif
