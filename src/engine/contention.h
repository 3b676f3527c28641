/*
 * engine/contention.h - fewer threads where they would only queue for a lock of user
 * code, such as an interpreter's.
 *
 * If n threads spend the share w of their time in that queue, n (1 - w) of them run. When
 * that is well below n, as many threads as run are allowed and the others sleep: a lock
 * that changes hands costs two switches of context. If fewer records are made then, all
 * are allowed again: something else holds the lock, such as the consumer. After a while
 * it is tried again.
 */
#ifndef HR_ENGINE_CONTENTION_H
#define HR_ENGINE_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

/* Guarded by the engine's lock. */
struct hr_contention {
    int threads, allowed;
    /* Of the pieces of work since `since_ns`, the last decision. */
    uint64_t busy_ticks, queued_ticks, records, since_ns;
    uint32_t pieces;
    double rate; /* records per ns before fewer were allowed; 0: compared */
    uint64_t retry_ns, pause_ns; /* no other decision before; the time until then */
};

void hr__contention_init(struct hr_contention *c, int threads);
/* A thread has done a piece of work in `busy_ticks`, of which it queued for
 * `queued_ticks`. */
void hr__contention_note(struct hr_contention *c, uint64_t busy_ticks,
                         uint64_t queued_ticks, uint64_t records, uint64_t now_ns);
/* Allows all threads if the pause is over. Called by threads that are not allowed, when
 * they wake. */
void hr__contention_retry(struct hr_contention *c, uint64_t now_ns);

#endif
