/*
 * fleet/roster.c - see roster.h.
 */
#include "fleet/roster.h"

#include <string.h>

#include "core/alloc.h"

static void release(struct hr_roster_worker *worker)
{
    hr__borrow_finish(&worker->borrower);
    hr__free(worker->address);
    *worker = (struct hr_roster_worker){0};
}

void hr__roster_finish(struct hr_roster *roster)
{
    for (size_t i = 0; i < HR_ROSTER_MAX; i++)
        release(&roster->workers[i]);
}

struct hr_roster_worker *hr__roster_find(struct hr_roster *roster, uint32_t peer)
{
    for (size_t i = 0; i < HR_ROSTER_MAX; i++)
        if (roster->workers[i].peer == peer && roster->workers[i].address != NULL)
            return &roster->workers[i];
    return NULL;
}

/* ---- the list ---- */

/* Finds the next line that may be an address. Returns what follows it; NULL at the end.
 */
static const char *
next_line(const char *text, const char *end, const char **ret_line, size_t *ret_length)
{
    while (text < end) {
        const char *line = text, *stop = memchr(text, '\n', (size_t)(end - text));
        size_t length;

        if (stop == NULL)
            return NULL;
        length = (size_t)(stop - line);
        text = stop + 1;
        if (length == 0 || length >= HR_NET_ADDRESS_MAX ||
            memchr(line, '\0', length) != NULL)
            continue;
        *ret_line = line;
        *ret_length = length;
        return text;
    }
    return NULL;
}

static struct hr_roster_worker *
find_address(struct hr_roster *roster, const char *address, size_t length)
{
    for (size_t i = 0; i < HR_ROSTER_MAX; i++) {
        struct hr_roster_worker *worker = &roster->workers[i];

        if (worker->address != NULL && strlen(worker->address) == length &&
            memcmp(worker->address, address, length) == 0)
            return worker;
    }
    return NULL;
}

/* A free place, else that of the worker that has not been listed for the longest time.
 * NULL: all are listed. */
static struct hr_roster_worker *find_place(struct hr_roster *roster)
{
    struct hr_roster_worker *oldest = NULL;

    for (size_t i = 0; i < HR_ROSTER_MAX; i++) {
        struct hr_roster_worker *worker = &roster->workers[i];

        if (worker->address == NULL)
            return worker;
        if (!worker->listed && (oldest == NULL || worker->left_ns < oldest->left_ns))
            oldest = worker;
    }
    return oldest;
}

static void
mark_listed(struct hr_roster *roster, const char *text, const char *end, uint64_t now)
{
    struct hr_roster_worker *worker;
    const char *line;
    size_t length;

    for (size_t i = 0; i < HR_ROSTER_MAX; i++) {
        if (roster->workers[i].listed)
            roster->workers[i].left_ns = now;
        roster->workers[i].listed = false;
    }
    while ((text = next_line(text, end, &line, &length)) != NULL)
        if ((worker = find_address(roster, line, length)) != NULL)
            worker->listed = true;
}

void hr__roster_take(struct hr_roster *roster, const char *text, size_t bytes,
                     uint64_t now, struct hr_actions *actions)
{
    const char *end = text + bytes, *line;
    struct hr_roster_worker *place;
    size_t length;

    mark_listed(roster, text, end, now);
    while ((text = next_line(text, end, &line, &length)) != NULL) {
        if (find_address(roster, line, length) != NULL ||
            (place = find_place(roster)) == NULL)
            continue;
        if (place->peer != 0)
            hr__close(actions, place->peer);
        release(place);
        place->address = hr__strndup(line, length);
        place->listed = place->address != NULL;
    }
}

void hr__roster_expire(struct hr_roster *roster, uint64_t now, struct hr_actions *actions)
{
    for (size_t i = 0; i < HR_ROSTER_MAX; i++) {
        struct hr_roster_worker *worker = &roster->workers[i];

        if (worker->address == NULL || worker->listed)
            continue;
        if (worker->peer == 0) {
            release(worker);
        } else if (now - worker->left_ns >= HR_ROSTER_LINGER_NS &&
                   hr__actions_left(actions) > 0) {
            worker->left_ns = now; /* it is gone when `lost` says so */
            hr__close(actions, worker->peer);
        }
    }
}
