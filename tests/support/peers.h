/*
 * tests/support/peers.h - worker processes of a test: the test program itself, again.
 *
 * A test that wants them has a constructor that asks peers_told() and, in a peer, calls
 * peers_serve(); so a peer ends before any test would run.
 */
#ifndef HR_TESTS_PEERS_H
#define HR_TESTS_PEERS_H

#include <pthread.h>
#include <sys/types.h>

#include "headrace/code.h"

#define PEERS_MAX 1024

struct peers {
    char told[64]; /* what every peer is given */
    pthread_mutex_t lock;
    pid_t pids[PEERS_MAX]; /* guarded by `lock`, as is count */
    int count;
    bool refuse; /* fail to start any */
};

/* peers_finish() it when no iterator uses it: waits for every process that was started.
 */
void peers_init(struct peers *peers, const char *told);
void peers_finish(struct peers *peers);

/* Makes them the graph's worker processes. */
enum hr_err
peers_host(struct peers *peers, struct hr_graph *graph, struct hr_error *reterr);

/* The same graph with all its code in worker processes. */
void peers_text(const char *text, char *to, size_t room);

/* In a peer what it was given, else NULL. */
const char *peers_told(void);
_Noreturn void
peers_serve(const struct hr_code *(*find)(void *user, const char *name), void *user);

#endif
