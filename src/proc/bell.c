/*
 * proc/bell.c - waiting for a word in shared memory to change.
 */
#include "proc/bell.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "core/clock.h"

#define LOOK_NS 50000 /* a wait that was shorter is worth looking for */
/* Looks between two offers of the core. No pause instruction: under a hypervisor it takes
 * so long that a trip of 256 small records cost 53 ns a record with it and 42 without. */
#define LOOKS 32
#define POLL_MS 20

static bool changed(const atomic_uint *word, unsigned old)
{
    return atomic_load(word) != old;
}

void hr__bell_ring(struct hr_bell *bell, atomic_uint *word, unsigned value,
                   atomic_uint *other_sleeps)
{
    char byte = 0;

    atomic_store(word, value);
    if (atomic_load(other_sleeps) != 0)
        while (send(bell->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
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

static enum hr_bell_verdict
sleep_until(struct hr_bell *bell, const atomic_uint *word, unsigned old,
            atomic_uint *own_sleeps, const atomic_bool *cancel)
{
    struct pollfd poller = {.fd = bell->fd, .events = POLLIN};
    enum hr_bell_verdict verdict = HR_BELL_RANG;

    atomic_store(own_sleeps, 1);
    while (!changed(word, old)) {
        if (cancel != NULL && atomic_load(cancel)) {
            verdict = HR_BELL_CANCELLED;
            break;
        }
        if (poll(&poller, 1, cancel != NULL ? POLL_MS : -1) > 0 && !drain(bell->fd)) {
            verdict = changed(word, old) ? HR_BELL_RANG : HR_BELL_ENDED;
            break;
        }
    }
    atomic_store(own_sleeps, 0);
    return verdict;
}

enum hr_bell_verdict
hr__bell_wait(struct hr_bell *bell, const atomic_uint *word, unsigned old,
              atomic_uint *own_sleeps, const atomic_bool *cancel)
{
    enum hr_bell_verdict verdict = HR_BELL_RANG;
    uint64_t from;

    if (changed(word, old))
        return HR_BELL_RANG;
    from = hr__now_ns();
    if (!bell->look || !look(word, old, from + LOOK_NS))
        verdict = sleep_until(bell, word, old, own_sleeps, cancel);
    bell->look = hr__now_ns() - from < LOOK_NS;
    return verdict;
}
