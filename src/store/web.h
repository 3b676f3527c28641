/*
 * store/web.h - ranges of objects over HTTP(S) by libcurl: many GETs in flight.
 *
 * One thread of the process carries out all requests with one connection pool. It starts
 * with the first request and ends with the process. A request that fails for a reason
 * that may pass (no connection, 408, 429, 5xx, a body that is cut short, silence) is
 * repeated after a pause, from the byte that it reached. A request that is silent for
 * longer than nearly all others is hedged: a second GET asks for what is missing, and the
 * first to finish wins. The bytes of one request come from one version of its object:
 * another ETag, Last-Modified or length ends it with HR_ERR_FORMAT.
 *
 * Environment, read when the thread starts: HEADRACE_HTTP_CONNECTIONS (128),
 * HEADRACE_HTTP_TRIES (6), HEADRACE_HTTP_STALL_MS (20000), HEADRACE_HTTP_CONNECT_MS
 * (10000), HEADRACE_HTTP_HEDGE (95, a percentile; 0: never), HEADRACE_HTTP_WHOLE_BYTES
 * (1 GiB), CURL_CA_BUNDLE.
 */
#ifndef HR_STORE_WEB_H
#define HR_STORE_WEB_H

#include "core/hash.h"
#include "core/str.h"
#include "headrace/base.h"
#include "store/store.h"

/* What one GET sends besides its range. */
struct hr_web_get {
    struct hr_str url;
    struct hr_str headers; /* lines "name: value\n" */
    bool redirects;        /* follow them */
};

/* A dialect of HTTP. */
struct hr_web_kind {
    /* Fills in the GET of an attempt; an error ends the request. */
    enum hr_err (*prepare)(const char *uri, const char *query, struct hr_web_get *get,
                           struct hr_error *reterr);
    /* What the body of a failed GET says, as text for a message; NULL, or false: nothing.
     */
    bool (*explain)(const char *body, size_t bytes, char *text, size_t room);
};

enum hr_web_want {
    HR_WEB_RANGE, /* bytes from offset, into the memory that room gives */
    HR_WEB_LOOK,  /* size and identity only */
    HR_WEB_TEXT,  /* the body of an answer, into `text`: at most `bytes` */
};

/* One request. The caller sets the first part and leaves it alone until done. */
struct hr_web_request {
    const struct hr_web_kind *kind;
    const char *uri, *query; /* query: for the kind, or NULL */
    enum hr_web_want want;
    uint64_t offset, bytes; /* RANGE: HR_RANGE_REST is allowed */
    struct hr_error *error; /* or NULL */
    /* RANGE: called once, when size and identity are known. Sets `need` and returns
     * memory for as many bytes, or an error, which ends the request. */
    enum hr_err (*room)(struct hr_web_request *request, void **ret_data);
    /* Called once, last. Both by the thread of the requests, which holds no lock. */
    void (*done)(struct hr_web_request *request, enum hr_err err);
    void *user;  /* of done */
    void *place; /* of room */
    /* results, from room on */
    uint64_t object_bytes;
    struct hr_hash128 identity;
    bool lasting;    /* it comes of a tag */
    bool has_ranges; /* LOOK: the server serves them */
    size_t need, got;
    struct hr_str text; /* the caller finishes it */
    /* private */
    struct hr_web_request *next;
    struct hr_web_attempt *attempts[2];
    char *data;
    uint64_t due_ns, serial; /* serial: in the order of their beginning */
    int failures;            /* since the last progress */
    bool urgent;             /* somebody waits for it */
    bool begun, hedged;
    bool plain; /* without a Range header */
    atomic_bool cancelled;
};

/* Any thread; does not wait. HR_ERR_MEMORY, or the error of a thread that did not start;
 * then done is not called. */
HR_CHECK enum hr_err
hr__web_submit(struct hr_web_request *request, struct hr_error *reterr);
/* Ends the request with HR_ERR_CANCELLED soon, unless it is done before that. */
void hr__web_cancel(struct hr_web_request *request);
/* Submits and waits; `done` and `user` are set here. */
HR_CHECK enum hr_err hr__web_fetch(struct hr_web_request *request);

/* The bytes that objects of servers without ranges may have. */
uint64_t hr__web_whole_bytes(void);

/* Ends the thread and closes all connections; requests in flight are cancelled. The next
 * request starts it again. */
void hr__web_stop(void);

/* Since the start of the process. */
struct hr_web_stats {
    uint64_t requests, gets; /* gets: attempts, retries and hedges included */
    uint64_t retries, resumed, stalls, hedges, hedges_won;
    uint64_t bytes; /* of bodies */
    uint64_t connections;
};
void hr__web_stats(struct hr_web_stats *ret_stats);

#endif
