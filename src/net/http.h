/*
 * net/http.h - HTTP/1.1 beside frames: a server beside a net, and one request to such a
 * server. libevent's evhttp reads the protocol; it is loaded when needed.
 *
 * The server has a thread and a loop of its own: an answer does not wait for thousands of
 * frames, only for the lock of the net, and there it comes first.
 *
 * The server is for people and monitoring: small answers, at most 64 connections at a
 * time (further ones wait in the system's backlog), which are closed after 5 s of
 * silence, and, while others wait, 5 s after their last request; heads of 8 kB and bodies
 * of 64 kB. A long answer is made in pieces, the next one when the system has taken the
 * last: it takes little memory and holds the lock for a short time only.
 */
#ifndef HR_NET_HTTP_H
#define HR_NET_HTTP_H

#include "core/str.h"
#include "net/net.h"

struct hr_http_request {
    bool post;         /* else GET or HEAD */
    const char *path;  /* without the query */
    const char *query; /* after '?', not decoded; "" if there is none */
    const char *body;  /* NUL-terminated */
    size_t body_bytes;
};

/* How far a body that is made in pieces has got, as its maker counts; zero at first. */
struct hr_http_place {
    uint64_t number, limit;
    uint32_t part, count;
};

/* Appends the next piece, which takes a short time; returns false if it was the last. In
 * the server's thread, with the lock. */
typedef bool
hr_http_more_fn(void *user, struct hr_http_place *place, struct hr_str *ret_body);

struct hr_http_answer {
    int status;
    const char *type; /* Content-Type */
    struct hr_str body;
    hr_http_more_fn *more; /* makes the rest of the body; NULL: this is all */
    struct hr_http_place place;
};

/* Fills the answer, which is 200 and JSON to begin with. In the server's thread, with the
 * lock. */
typedef void
hr_http_fn(void *user, const struct hr_http_request *request, struct hr_http_answer *ret);

struct hr_http_options {
    const char *listen;    /* "host:port" */
    struct hr_token token; /* required as "Authorization: Bearer", if there is one ... */
    const char *const *open; /* ... but for these paths; ends with NULL */
    hr_http_fn *answer;
    void *user;
};

struct hr_http;

/* Listens. HR_ERR_ARGUMENT, HR_ERR_IO, HR_ERR_MEMORY, HR_ERR_UNSUPPORTED. */
HR_CHECK enum hr_err
hr__http_open(struct hr_net *net, const struct hr_http_options *options,
              struct hr_http **ret_http, struct hr_error *reterr);
/* Before hr__net_close(), without the lock; stops it. NULL is allowed. */
void hr__http_close(struct hr_http *http);
const char *hr__http_address(const struct hr_http *http);
/* Begins to serve, once, with a thread; ends that. HR_ERR_MEMORY, HR_ERR_LIMIT. */
HR_CHECK enum hr_err hr__http_start(struct hr_http *http, struct hr_error *reterr);
void hr__http_stop(struct hr_http *http);

/* One request; waits for the answer. `body` NULL: GET, else POST of JSON. The answer's
 * body is appended to *ret_body. HR_ERR_IO, HR_ERR_TIMEOUT, HR_ERR_DENIED (401),
 * HR_ERR_NOT_FOUND (404), HR_ERR_ARGUMENT (other 4xx), HR_ERR_STATE (5xx), with the
 * server's message. SIGPIPE is blocked meanwhile. */
HR_CHECK enum hr_err
hr__http_request(const char *address, const struct hr_token *token, const char *path,
                 const char *body, uint64_t timeout_ns, struct hr_str *ret_body,
                 struct hr_error *reterr);

#endif
