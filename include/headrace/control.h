/*
 * headrace/control.h - asking a running dispatcher over its control port: what workers,
 * jobs and consumers it has, and letting a worker finish and leave.
 *
 * The port speaks HTTP and JSON (docs/control.json describes it); these functions are
 * what the commands status, workers, jobs, consumers, drain and top use. They block until
 * the answer has come, or options.timeout_ns has passed.
 */
#ifndef HR_CONTROL_H
#define HR_CONTROL_H

#include "headrace/base.h"

HR_BEGIN_DECLS

struct hr_control_options {
    const char *address;    /* "host:port" of the control port */
    const char *token_file; /* as in headrace/service.h */
    uint64_t timeout_ns;
    uint64_t reserved[4]; /* zero */
};

/* Defaults: 127.0.0.1:7071, 10 s. */
HR_API void hr_control_options_init(struct hr_control_options *options);

struct hr_control_worker {
    char address[256]; /* where clients reach it */
    bool draining;     /* it gets no more leases */
    uint64_t leases;   /* that it has */
    uint64_t positions_leased,
        positions_finished;    /* of those; since it connected. A position is a batch */
    uint64_t positions_shared; /* of those: made for another run (hr_worker_options) */
    double position_seconds;   /* measured time for one; 0: unknown */
    double silent_seconds;     /* since its last message */
    char compression[24]; /* of what it sends over TCP: "none", "zstd", "lz4", several
                             for several clients */
    uint64_t bytes_made, bytes_sent; /* of that: before compression, and as it was sent */
};

struct hr_control_job {
    char name[129];
    uint64_t positions, cursor; /* of the run; that its client has taken, or that its
                                   consumers have committed */
    uint64_t positions_leased;
    uint64_t generation; /* how often a client of it has begun */
    bool connected, done;
    bool stands; /* for 2 s it took nothing and was sent nothing, though workers have some
                  */
    uint64_t consumers, consumers_connected; /* 0: it has one client */
    uint64_t weight;      /* relative to other runs; the highest of its consumers' */
    uint64_t reserved[3]; /* zero */
};

/* One of several consumers of a run (hr_iter_options.service_consumer) that is in use: a
 * client of it is connected, or a consumer has splits of it. */
struct hr_control_consumer {
    char job[129], name[129];
    bool connected;      /* its client is */
    uint64_t generation; /* of its incarnation, counted over all consumers of the run */
    uint64_t checkpoint; /* number of the last committed one; 0: none */
    uint64_t splits, splits_taken; /* that it has not committed; of those, taken whole */
    uint64_t reserved[4];          /* zero */
};

/* The dispatcher's journal (hr_dispatcher_options.journal). */
enum hr_control_journal {
    HR_CONTROL_JOURNAL_NONE,
    HR_CONTROL_JOURNAL_HELD,
    HR_CONTROL_JOURNAL_LOST, /* another dispatcher has it, or it cannot be reached */
};

struct hr_control_status {
    char version[64], address[256];
    double uptime_seconds;
    uint64_t connections, connections_max, clients, positions_finished;
    struct hr_control_worker *workers;
    struct hr_control_job *jobs; /* those that have several consumers come last */
    size_t worker_count, job_count;
    struct hr_control_consumer *consumers; /* in order of their runs */
    size_t consumer_count;
    uint64_t jobs_known;
    enum hr_control_journal journal;
};

/* HR_ERR_IO, HR_ERR_TIMEOUT, HR_ERR_DENIED (the token), HR_ERR_FORMAT (another program
 * answers), HR_ERR_UNSUPPORTED (no libevent). */
HR_API HR_CHECK enum hr_err
hr_control_status(const struct hr_control_options *options,
                  struct hr_control_status **ret_status, struct hr_error *reterr);
/* NULL is allowed. */
HR_API void hr_control_status_free(struct hr_control_status *status);

/* The body of the answer to GET `path`, such as "/v1/workers"; free it with hr_free().
 * Fails like hr_control_status, and with HR_ERR_NOT_FOUND. */
HR_API HR_CHECK enum hr_err
hr_control_get(const struct hr_control_options *options, const char *path,
               char **ret_body, struct hr_error *reterr);

/* Tells the worker that clients reach at `worker` ("host:port") to finish what it has and
 * leave. Returns at once; the worker is in hr_control_status until it is gone.
 * HR_ERR_NOT_FOUND, and as above. */
HR_API HR_CHECK enum hr_err hr_control_drain(const struct hr_control_options *options,
                                             const char *worker, struct hr_error *reterr);

/* Takes from a consumer of a run (hr_iter_options.service_consumer) what it has not
 * committed, for the others; it is refused until it starts again from its checkpoint.
 * HR_ERR_NOT_FOUND, and as above. */
HR_API HR_CHECK enum hr_err
hr_control_evict(const struct hr_control_options *options, const char *job,
                 const char *consumer, struct hr_error *reterr);

HR_END_DECLS

#endif
