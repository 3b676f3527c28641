/*
 * store/web_internal.h - shared by web.c, the thread and what the process has of it;
 * web_requests.c, which carries requests out; web_bodies.c, which says when their bodies
 * begin; and web_answer.c, which reads what servers answer.
 */
#ifndef HR_STORE_WEB_INTERNAL_H
#define HR_STORE_WEB_INTERNAL_H

#include "store/curl.h"
#include "store/web.h"

#define HR_WEB_ERROR_BODY_BYTES 4096

/* What the headers of a response say. */
struct hr_web_response {
    long status;
    uint64_t length, first, last, total; /* HR_BYTES_UNKNOWN */
    bool has_range;                      /* Content-Range was there and well-formed */
    uint64_t retry_after_s;
    size_t header_bytes;
    char tag[256], modified[64];
};

enum hr_web_body {
    HR_WEB_BODY_FREE,  /* small, urgent, silent, resumed, or not there yet */
    HR_WEB_BODY_WAITS, /* paused before its first byte was taken */
    HR_WEB_BODY_RUNS,
};

/* Bodies of ranges, see web_bodies.c. */
struct hr_web_bodies {
    struct hr_web_attempt *first; /* that waits, by request */
    uint32_t limit;               /* of those that run, while others wait */
    uint32_t running, waiting;
    uint64_t since_ns, bytes; /* received in this window */
    uint64_t rate;            /* bytes per ms of a former window, with this limit */
    uint32_t before, hold;    /* the former limit; windows until another is tried */
    bool tries;               /* the limit is higher than `before`, for a window */
};

struct hr_web_attempt {
    struct hr_web_attempt *next; /* idle; that waits */
    CURL *easy;
    struct curl_slist *headers;
    struct hr_web_request *request;
    struct hr_web_bodies *bodies;
    enum hr_web_body body;
    struct hr_web_response response;
    uint64_t begun_ns, heard_ns; /* heard: last byte, or the beginning */
    uint64_t waits_ns;           /* since when the body waits */
    size_t from, at;             /* bytes of the range: where it began, what is next */
    uint64_t skip;               /* bytes of the body before those wanted */
    bool checked, answered;
    uint64_t body_bytes, unused; /* unused: after the wanted ones */
    bool stalled;
    bool broken;     /* by fault injection */
    enum hr_err err; /* final */
    struct hr_error why;
    size_t error_bytes;
    char error_body[HR_WEB_ERROR_BODY_BYTES];
    char curl_error[CURL_ERROR_SIZE];
};

#define HR_WEB_MS UINT64_C(1000000)
#define HR_WEB_SAMPLES 128 /* first bytes that a hedge is judged by */

/* Of the environment. */
struct hr_web_limits {
    uint64_t connections, tries, stall_ns, connect_ms, hedge_percent;
};

/* All but the list of submitted requests is the thread's. */
struct hr_web_transport {
    CURLM *multi;
    pthread_t thread;
    struct hr_web_limits limits;
    atomic_bool stop;
    /* under lock.mutex */
    struct hr_web_request *submitted, **submitted_end;
    bool any_cancelled;
    /* the thread's */
    struct hr_web_request *ready, **ready_end; /* in order */
    struct hr_web_request *delayed, *running;
    struct hr_web_attempt *idle;
    uint64_t active; /* attempts */
    uint64_t looked_ns;
    uint64_t samples[HR_WEB_SAMPLES], sample_count, hedge_after_ns;
    uint64_t finished, hedges;
    uint64_t random;
    uint64_t serial;
    struct hr_web_bodies bodies;
};

extern struct hr_web_counts {
    atomic_uint_fast64_t requests, gets, retries, resumed, stalls, hedges, hedges_won,
        bytes, connections;
} hr__web_counts;

static inline void hr__web_count(atomic_uint_fast64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* Takes a request off a list that it is on. */
void hr__web_unlink(struct hr_web_request **list, struct hr_web_request *request);
/* A request that is on no list is running from here on, until it has ended. */
void hr__web_run(struct hr_web_transport *t, struct hr_web_request *request);
/* A running request is over. */
void hr__web_end(struct hr_web_transport *t, struct hr_web_request *request,
                 enum hr_err err);
/* Looks at what libcurl is done with; at bodies that may begin; at attempts that are
 * silent for too long, by a time before the thread looked at its connections. */
void hr__web_reap(struct hr_web_transport *t);
void hr__web_begin_bodies(struct hr_web_transport *t, uint64_t now);
void hr__web_check_times(struct hr_web_transport *t, uint64_t now);

void hr__web_bodies_init(struct hr_web_bodies *bodies);
/* At the first byte of a body: true if it has to be paused. */
bool hr__web_body_waits(struct hr_web_attempt *attempt);
/* The first that waits, if it may begin now: the caller ends its pause. */
struct hr_web_attempt *hr__web_body_next(struct hr_web_bodies *bodies, uint64_t now);
/* One that waits or runs no longer counts. */
void hr__web_body_ends(struct hr_web_attempt *attempt);
/* Adapts the limit, once a window is over or if no body waits. */
void hr__web_bodies_adapt(struct hr_web_bodies *bodies, uint64_t now, uint64_t window_ns);

void hr__web_forget_response(struct hr_web_response *response);
/* CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION, of an attempt. */
size_t hr__web_take_header(char *line, size_t one, size_t bytes, void *user);
size_t hr__web_take_body(char *data, size_t one, size_t bytes, void *user);
/* Once per response, at its first byte or its end. Sets `answered` if a body follows that
 * is wanted. */
HR_CHECK enum hr_err hr__web_check_response(struct hr_web_attempt *attempt);
/* The first byte of the object that the attempt asks for. */
uint64_t hr__web_wanted_first(const struct hr_web_attempt *attempt);

/* How an attempt ended: with all that was wanted; for a reason that may pass; and the
 * reason as text, in attempt->why, with its error code. */
bool hr__web_is_complete(const struct hr_web_attempt *attempt, CURLcode code);
bool hr__web_may_pass(const struct hr_web_attempt *attempt, CURLcode code);
enum hr_err
hr__web_explain(struct hr_web_attempt *attempt, CURLcode code, uint64_t stall_ns);

#endif
