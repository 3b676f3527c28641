/*
 * store/web_internal.h - shared by web.c, which carries requests out, and web_answer.c,
 * which reads what servers answer.
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

/* Counts bytes of bodies. */
void hr__web_count_bytes(size_t bytes);

#endif
