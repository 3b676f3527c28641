/*
 * proc/event.h - waiting for a word in shared memory to change.
 *
 * Each side has a word that counts what it has said, and a flag that says that it sleeps.
 * Saying is storing the word; a byte goes over the socket only when the other side
 * sleeps. Waiting looks at the word for a while, letting other threads have the core
 * (sched_yield), and then sleeps on the socket, where the end of the other process shows
 * as well. Looking is worth it only for short waits, so a wait begins with it when the
 * last one was short.
 */
#ifndef HR_PROC_EVENT_H
#define HR_PROC_EVENT_H

#include <stdatomic.h>

#include "core/error.h"

struct hr_event {
    int fd;
    bool look; /* the last wait was short */
};

enum hr_event_outcome {
    HR_EVENT_SIGNALLED,
    HR_EVENT_ENDED, /* the other side closed the socket or died */
    HR_EVENT_LATE,  /* with `cancel`: not yet, after some milliseconds; wait again */
    HR_EVENT_CANCELLED,
};

/* The word becomes `value`; wake the other side if it sleeps. */
void hr__event_signal(struct hr_event *event, atomic_uint *word, unsigned value,
                      atomic_uint *other_sleeps);

/* Until *word is no longer `old`. *cancel (may be NULL) is looked at every 20 ms at
 * least. */
enum hr_event_outcome
hr__event_wait(struct hr_event *event, const atomic_uint *word, unsigned old,
               atomic_uint *own_sleeps, const atomic_bool *cancel);

#endif
