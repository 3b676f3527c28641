/*
 * proc/bell.h - waiting for a word in shared memory to change.
 *
 * Each side has a word that counts what it has said, and a flag that says that it sleeps.
 * Saying is storing the word; a byte goes over the socket only when the other side
 * sleeps. Waiting looks at the word for a while, letting other threads have the core
 * (sched_yield), and then sleeps on the socket, where the end of the other process shows
 * as well. Looking is worth it only for short waits, so a wait begins with it when the
 * last one was short.
 */
#ifndef HR_PROC_BELL_H
#define HR_PROC_BELL_H

#include <stdatomic.h>

#include "core/error.h"

struct hr_bell {
    int fd;
    bool look; /* the last wait was short */
};

enum hr_bell_verdict {
    HR_BELL_RANG,
    HR_BELL_ENDED, /* the other side closed the socket or died */
    HR_BELL_CANCELLED,
};

/* The word becomes `value`; wake the other side if it sleeps. */
void hr__bell_ring(struct hr_bell *bell, atomic_uint *word, unsigned value,
                   atomic_uint *other_sleeps);

/* Until *word is no longer `old`. *cancel (may be NULL) is looked at every 20 ms at
 * least. */
enum hr_bell_verdict
hr__bell_wait(struct hr_bell *bell, const atomic_uint *word, unsigned old,
              atomic_uint *own_sleeps, const atomic_bool *cancel);

#endif
