/*
 * proc/event.c - waiting for a word in shared memory to change.
 */
#include "proc/event.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "core/clock.h"

#define LOOK_NS 50000 /* a wait that was shorter is worth looking for */
/* Looks between two offers of the core. No pause instruction: under a hypervisor it takes
 * so long that a request of 256 small records cost 53 ns a record with it and 42 without.
 */
#define LOOKS 32
#define POLL_MS 20

static bool changed(const atomic_uint *word, unsigned old)
{
    return atomic_load(word) != old;
}

void hr__event_signal(struct hr_event *event, atomic_uint *word, unsigned value,
                      atomic_uint *other_sleeps)
{
    char byte = 0;

    assert(event->fd >= 0 && word != other_sleeps);
    atomic_store(word, value);
    if (atomic_load(other_sleeps) != 0)
        while (send(event->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
               errno == EINTR)
            ;
}

static bool look(const atomic_uint *word, unsigned old, uint64_t until)
{
    do {
        for (int i = 0; i < LOOKS; i++)
            if (changed(word, old))
                return true;
        sched_yield();
    } while (hr__now_ns() < until);
    return changed(word, old);
}

/* Take what has come. False at the end of the other side. */
static bool drain(int fd)
{
    char bytes[64];
    ssize_t got;

    do
        got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

static enum hr_event_outcome
sleep_until(struct hr_event *event, const atomic_uint *word, unsigned old,
            atomic_uint *own_sleeps, const atomic_bool *cancel)
{
    struct pollfd poller = {.fd = event->fd, .events = POLLIN};
    enum hr_event_outcome verdict = HR_EVENT_SIGNALLED;

    atomic_store(own_sleeps, 1);
    while (!changed(word, old)) {
        if (cancel != NULL && atomic_load(cancel)) {
            verdict = HR_EVENT_CANCELLED;
            break;
        }
        if (poll(&poller, 1, cancel != NULL ? POLL_MS : -1) == 0) {
            verdict = changed(word, old) ? HR_EVENT_SIGNALLED : HR_EVENT_LATE;
            break;
        }
        if (!drain(event->fd)) {
            verdict = changed(word, old) ? HR_EVENT_SIGNALLED : HR_EVENT_ENDED;
            break;
        }
    }
    atomic_store(own_sleeps, 0);
    return verdict;
}

enum hr_event_outcome
hr__event_wait(struct hr_event *event, const atomic_uint *word, unsigned old,
               atomic_uint *own_sleeps, const atomic_bool *cancel)
{
    enum hr_event_outcome verdict = HR_EVENT_SIGNALLED;
    uint64_t from;

    assert(event->fd >= 0 && atomic_load(own_sleeps) == 0);
    if (changed(word, old))
        return HR_EVENT_SIGNALLED;
    from = hr__now_ns();
    if (!event->look || !look(word, old, from + LOOK_NS))
        verdict = sleep_until(event, word, old, own_sleeps, cancel);
    event->look = hr__now_ns() - from < LOOK_NS;
    return verdict;
}
