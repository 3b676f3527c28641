/*
 * headrace/service.h - the service: workers on any machines make the batches of a run.
 *
 * A dispatcher tells workers which batches to make; clients (hr_iter_open with
 * options.service) receive them from the workers, each once and in order: the same bytes
 * as a run without a service. A worker, the dispatcher or a client may die at any moment;
 * the others continue when it is back, and a client that starts again resumes from its
 * state. Workers need the data under the same paths, and no code: they make batches where
 * any can be made by itself, else the records of a graph's first part, and the client
 * does the rest (docs/service.md).
 *
 *     hr_dispatcher_options_init(&options);
 *     hr_dispatcher_open(&options, &service, &error);
 *     hr_service_run(service, &error);             // until hr_service_stop
 *     hr_service_close(service);
 *
 * Anyone who can connect to a worker can read any file that the worker can read. So all
 * listen on this machine only by default, and beyond it only with a token that all
 * processes of the service share, or if options.insecure says so. The token is sent as
 * it is: use TLS, or a network where nobody else listens.
 *
 * TLS 1.3 is used if it is given certificates, all in PEM files. Those who listen have
 * one of their own (tls_cert, tls_key); those who connect know the CAs that signed it
 * (tls_ca) and check it for the host that they connect to, or for tls_name. A worker does
 * both. With tls_client_ca a listener asks those who connect for a certificate, too,
 * signed by one of these CAs. What is NULL comes from HEADRACE_TLS_CERT,
 * HEADRACE_TLS_KEY, HEADRACE_TLS_CA, HEADRACE_TLS_CLIENT_CA and HEADRACE_TLS_NAME.
 */
#ifndef HR_SERVICE_H
#define HR_SERVICE_H

#include "headrace/base.h"

HR_BEGIN_DECLS

struct hr_service;

struct hr_dispatcher_options {
    const char *listen;      /* "host:port"; port 0: one that is free */
    uint32_t peers_max;      /* connections of workers and clients together */
    uint32_t jobs_max;       /* runs at a time */
    const char *control;     /* "host:port" of HTTP for people and monitoring
                                (headrace/control.h, docs/control.json); NULL: none */
    const char *events_file; /* what happens is appended to it, an object of JSON per line
                                (docs/formats/events.md); NULL: nowhere */
    uint64_t hello_ns;       /* a connection that has not said who it is is closed then */
    const char *token_file;  /* with the token that all of a service share; NULL: as the
                                environment says (HEADRACE_TOKEN_FILE, HEADRACE_TOKEN) */
    const char *tls_cert; /* PEM files of TLS, see above; NULL: as the environment says */
    const char *tls_key;
    const char *tls_client_ca;
    bool insecure;      /* may listen beyond this machine without a token */
    bool journal_power; /* commits to a folder survive a power cut, too, by an fsync each
                         */
    uint32_t workers_per_run; /* that a run connects to, at most 64 */
    const char *tenants_file; /* tenants, who have runs by tokens of their own: a line for
                                 each (docs/service.md); NULL: there are none. Workers
                                 need the file, too */
    const char *journal;      /* of runs that are consumed by several clients
                                 (hr_iter_options.service_consumer): a folder for this
                                 dispatcher, which is made if it is missing, or the address of
                                 a database that dispatchers may share,
                                 "postgresql://USER@HOST/DATABASE"; NULL: none, such runs are
                                 refused */
    uint64_t journal_ns; /* a run that nobody has used for so long leaves the journal */
    uint64_t evict_ns;   /* what a consumer has not committed goes to others when it has
                            had no connection for so long */
};

struct hr_worker_options {
    const char *dispatcher; /* "host:port"; several, at most 8, with commas between them:
                               the worker serves the runs of each */
    const char *listen;     /* for clients: "host:port"; port 0: one that is free */
    const char *address; /* "host:port" at which clients reach it; NULL: as it listens */
    uint32_t peers_max;  /* connections of clients, and the dispatcher's */
    int threads;         /* that make batches; 0: the CPUs this process may use */
    uint64_t hello_ns;   /* as above */
    uint64_t drain_ns;   /* for hr_service_drain() to finish its leases in */
    const char *token_file; /* with the token that all of a service share; NULL: as the
                               environment says (HEADRACE_TOKEN_FILE, HEADRACE_TOKEN) */
    const char *tls_cert;   /* PEM files of TLS, and a name, see above; NULL: as the
                               environment says */
    const char *tls_key;
    const char *tls_ca;
    const char *tls_client_ca;
    const char *tls_name;
    bool insecure;        /* may listen beyond this machine without a token */
    bool tcp_only;        /* no shared memory for clients on this host */
    const char *compress; /* what is sent over TCP: "auto" or NULL: by zstd or LZ4 while
                             that is measured to deliver more; "none"; "lz4", "zstd":
                             always, if the client takes it */
    uint64_t keep_bytes; /* of batches that other runs of an equal job still need, so that
                            they are made once for all; 0: none are kept */
    const char *tenants_file; /* as above */
    /* Called by the thread that runs the service, with a line to show: that a dispatcher
     * cannot be reached, and why; that it is reached again. NULL: nobody is told. */
    void (*notice)(void *user, const char *text);
    void *user;
    uint64_t reserved[6]; /* zero */
};

/* Defaults: 127.0.0.1 and a free port; 1024 connections; 256 jobs; 64 workers per run;
 * 10 s; journal_ns 30 days; evict_ns 60 s; drain_ns 30 s; keep_bytes 512 MiB. */
HR_API void hr_dispatcher_options_init(struct hr_dispatcher_options *options);
HR_API void hr_worker_options_init(struct hr_worker_options *options);

/* Begins to listen. A worker connects to its dispatcher once it runs, and again whenever
 * that is lost. HR_ERR_UNSUPPORTED if the library was built without libevent, or it is
 * not installed. */
HR_API HR_CHECK enum hr_err
hr_dispatcher_open(const struct hr_dispatcher_options *options,
                   struct hr_service **ret_service, struct hr_error *reterr);
HR_API HR_CHECK enum hr_err
hr_worker_open(const struct hr_worker_options *options, struct hr_service **ret_service,
               struct hr_error *reterr);

/* The address at which it listens, with the port that was drawn. Valid until close. */
HR_API const char *hr_service_address(const struct hr_service *service);

/* Serves in this thread, with threads of its own, until hr_service_stop(), which any
 * thread and any signal handler may call, also before. Fails if threads cannot be
 * started, and if the dispatcher refuses a worker permanently: HR_ERR_DENIED for a wrong
 * token or certificate, HR_ERR_UNSUPPORTED for another release. */
HR_API HR_CHECK enum hr_err
hr_service_run(struct hr_service *service, struct hr_error *reterr);
HR_API void hr_service_stop(struct hr_service *service);

/* A worker finishes the leases that it has, gets no more, and stops; a dispatcher, which
 * keeps nothing, stops. From any thread and any signal handler, also before
 * hr_service_run. */
HR_API void hr_service_drain(struct hr_service *service);

/* The address of a dispatcher's control port; "" without one. */
HR_API const char *hr_service_control_address(const struct hr_service *service);

/* After hr_service_run has returned. NULL is allowed. */
HR_API void hr_service_close(struct hr_service *service);

HR_END_DECLS

#endif
