/*
 * store/web_bodies.c - which bodies are received at a time.
 *
 * A body takes the memory of its range when its first byte is taken. Until then it costs
 * no more than the buffers of its connection: libcurl pauses the transfer. Bodies begin
 * in the order of their requests, as many at a time as the rate of all of them gains
 * from: few where one thread or the server is the limit, all where the connections are.
 * So the first ranges are complete early, and little memory is written for the first
 * time.
 */
#include "store/web_internal.h"

#include "store/store.h"

#define FIRST_LIMIT 2
#define FACTOR 2 /* from a limit to the next that is tried */
#define MOST 1024
#define HOLD 64                           /* windows after one that has not gained */
#define WAIT_NS UINT64_C(10000000000)     /* servers end connections that are not read */
#define SMALL_BYTES ((uint64_t)256 << 10) /* what the first read of a body may bring */

void hr__web_bodies_init(struct hr_web_bodies *bodies)
{
    *bodies = (struct hr_web_bodies){.limit = FIRST_LIMIT};
}

static void add_waiting(struct hr_web_bodies *bodies, struct hr_web_attempt *attempt)
{
    struct hr_web_attempt **link = &bodies->first;

    while (*link != NULL && (*link)->request->serial < attempt->request->serial)
        link = &(*link)->next;
    attempt->next = *link;
    *link = attempt;
    attempt->body = HR_WEB_BODY_WAITS;
    attempt->waits_ns = attempt->heard_ns;
    bodies->waiting++;
}

bool hr__web_body_waits(struct hr_web_attempt *attempt)
{
    struct hr_web_bodies *bodies = attempt->bodies;
    const struct hr_web_request *request = attempt->request;
    uint64_t bytes = attempt->response.length;
    long status = attempt->response.status;

    if (attempt->body != HR_WEB_BODY_FREE || request->want != HR_WEB_RANGE ||
        request->urgent || request->begun || (status != 200 && status != 206) ||
        bytes == HR_BYTES_UNKNOWN || bytes <= SMALL_BYTES)
        return false;
    if (bodies->running < bodies->limit && bodies->waiting == 0) {
        attempt->body = HR_WEB_BODY_RUNS;
        bodies->running++;
        return false;
    }
    add_waiting(bodies, attempt);
    return true;
}

struct hr_web_attempt *hr__web_body_next(struct hr_web_bodies *bodies, uint64_t now)
{
    struct hr_web_attempt *first = bodies->first;

    if (first == NULL ||
        (bodies->running >= bodies->limit && now - first->waits_ns < WAIT_NS))
        return NULL;
    hr__web_body_ends(first);
    first->body = HR_WEB_BODY_RUNS;
    bodies->running++;
    first->heard_ns = now;
    return first;
}

void hr__web_body_ends(struct hr_web_attempt *attempt)
{
    struct hr_web_bodies *bodies = attempt->bodies;
    struct hr_web_attempt **link = &bodies->first;

    if (attempt->body == HR_WEB_BODY_WAITS) {
        while (*link != attempt)
            link = &(*link)->next;
        *link = attempt->next;
        bodies->waiting--;
    }
    bodies->running -= attempt->body == HR_WEB_BODY_RUNS;
    attempt->body = HR_WEB_BODY_FREE;
}

/* After a window in which bodies waited: tries a higher limit, and keeps it if the rate
 * gains a third. */
void hr__web_bodies_adapt(struct hr_web_bodies *bodies, uint64_t now, uint64_t window_ns)
{
    uint64_t passed_us = (now - bodies->since_ns) / 1000, rate;

    if (bodies->waiting > 0 && now - bodies->since_ns < window_ns)
        return;
    rate = passed_us > 0 ? bodies->bytes * 1000 / passed_us : 0;
    bodies->since_ns = now;
    bodies->bytes = 0;
    if (bodies->waiting == 0)
        return; /* the limit did not matter */
    if (bodies->tries && rate < bodies->rate + bodies->rate / 3) {
        bodies->limit = bodies->before;
        bodies->hold = HOLD;
    } else {
        bodies->rate = rate;
    }
    bodies->tries = bodies->hold == 0 && bodies->limit < MOST;
    if (bodies->tries) {
        bodies->before = bodies->limit;
        bodies->limit *= FACTOR;
    } else if (bodies->hold > 0) {
        bodies->hold--;
    }
}
