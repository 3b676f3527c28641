/*
 * cmd_worker.c - headrace worker: a worker of a service; without a dispatcher a worker
 * process of a run, and how a run starts them.
 *
 * A worker process runs the steps of a graph that its plan assigns to processes. It has
 * no user code: programs with user code start their own workers.
 */
#include "cli.h"
#include "serve.h"
#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "headrace/code.h"

#define WORKER_FD 3
#define PEERS 1024 /* connections of a worker of a service */
#define HELLO_SECONDS 10
#define DRAIN_SECONDS 30
#define KEEP_BYTES ((int64_t)512 << 20)

extern char **environ;

struct worker_options {
    int64_t fd, threads, peers, hello_timeout, drain_timeout, keep;
    const char *dispatcher, *listen, *address, *token_file, *tenants;
    const char *tls_cert, *tls_key, *tls_ca, *tls_client_ca, *tls_name;
    const char *config, *compress;
    bool insecure, show_config, tcp_only;
};

#define AT(field) offsetof(struct worker_options, field)

/* clang-format off */
static const struct cli_option worker_table[] = {
    {"dispatcher", 0, CLI_TEXT, AT(dispatcher), "HOST:PORT,...",
     "make batches for the runs of this dispatcher (headrace dispatcher), or of all of up to 8"},
    {"listen", 0, CLI_TEXT, AT(listen), "HOST:PORT",
     "where clients connect; port 0: a free one; default 127.0.0.1:0"},
    {"address", 0, CLI_TEXT, AT(address), "HOST:PORT",
     "under which clients reach it; default: as it listens"},
    {"threads", 't', CLI_INT, AT(threads), "N",
     "threads that make batches; default 0: the CPUs this process may use", 0, 4096},
    {"peers", 0, CLI_INT, AT(peers), "N",
     "connections at a time; default 1024", 1, 65536},
    {"hello-timeout", 0, CLI_INT, AT(hello_timeout), "SECONDS",
     "close connections that have not said who they are by then; default 10", 1, 3600},
    {"drain-timeout", 0, CLI_INT, AT(drain_timeout), "SECONDS",
     "after SIGTERM or headrace drain, finish what was begun by then; default 30", 0, 86400},
    {"keep", 0, CLI_BYTES, AT(keep), "BYTES",
     "keep batches up to this for runs of an equal job that need them later, so that they are "
     "made once; default 512MiB, 0: none"},
    {"token-file", 0, CLI_TEXT, AT(token_file), "FILE",
     "file with the token that all processes of the service share; default: "
     "HEADRACE_TOKEN_FILE or HEADRACE_TOKEN of the environment"},
    {"tenants", 0, CLI_TEXT, AT(tenants), "FILE",
     "file of tenants, who have runs by tokens of their own: a line for each, NAME TOKEN [runs=N]; the dispatcher's"},
    {"tls-cert", 0, CLI_TEXT, AT(tls_cert), "FILE",
     "talk TLS, with this certificate; PEM, with its chain; default: "
     "HEADRACE_TLS_CERT of the environment"},
    {"tls-key", 0, CLI_TEXT, AT(tls_key), "FILE",
     "its private key, PEM, without a passphrase; default: HEADRACE_TLS_KEY"},
    {"tls-ca", 0, CLI_TEXT, AT(tls_ca), "FILE",
     "CAs that signed the certificate of the dispatcher, PEM; default: "
     "HEADRACE_TLS_CA"},
    {"tls-name", 0, CLI_TEXT, AT(tls_name), "NAME",
     "that its certificate is for; default: HEADRACE_TLS_NAME, else the host that it connects to"},
    {"tls-client-ca", 0, CLI_TEXT, AT(tls_client_ca), "FILE",
     "take only connections with a certificate that a CA in FILE signed; default: "
     "HEADRACE_TLS_CLIENT_CA"},
    CLI_OPTION_CONFIG, CLI_OPTION_SHOW_CONFIG,
    {"insecure", 0, CLI_FLAG, AT(insecure), NULL,
     "listen beyond this machine without a token"},
    {"tcp-only", 0, CLI_FLAG, AT(tcp_only), NULL,
     "send to clients on this host over TCP too, not through shared memory"},
    {"compress", 0, CLI_TEXT, AT(compress), "HOW",
     "what goes over TCP: auto (default): by zstd or LZ4 while that is measured to deliver more; "
     "none; lz4 or zstd: always, if the client takes it"},
    {"fd", 0, CLI_INT, AT(fd), "N",
     "without --dispatcher: file descriptor of the socket to the parent process; default "
     "3", 0, INT32_MAX},
};

static const struct cli_example worker_examples[] = {
    {"headrace worker --dispatcher 127.0.0.1:7070",
     "makes batches for headrace run --service 127.0.0.1:7070"},
    {"headrace run train.yaml --variant processes",
     "starts worker processes as needed"},
};
/* clang-format on */

static const struct hr_code *no_code(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

static void print_notice(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "headrace: %s\n", text);
}

/* A worker of a service. */
static int worker_serve(const struct worker_options *options)
{
    struct hr_worker_options worker;
    struct hr_service *service;
    struct hr_error error = {0};
    int code = serve_allow_connections(options->peers);

    if (code != CLI_OK)
        return code;
    hr_worker_options_init(&worker);
    worker.dispatcher = options->dispatcher;
    worker.listen = options->listen;
    worker.address = options->address;
    worker.threads = (int)options->threads;
    worker.tcp_only = options->tcp_only;
    worker.compress = options->compress;
    worker.peers_max = (uint32_t)options->peers;
    worker.keep_bytes = (uint64_t)options->keep;
    worker.drain_ns = (uint64_t)options->drain_timeout * 1000000000;
    worker.token_file = options->token_file;
    worker.tenants_file = options->tenants;
    worker.tls_cert = options->tls_cert;
    worker.tls_key = options->tls_key;
    worker.tls_ca = options->tls_ca;
    worker.tls_client_ca = options->tls_client_ca;
    worker.tls_name = options->tls_name;
    worker.insecure = options->insecure;
    worker.hello_ns = (uint64_t)options->hello_timeout * 1000000000;
    worker.notice = print_notice;
    if (hr_worker_open(&worker, &service, &error) != HR_OK)
        return cli_library(&error);
    return serve_until_stopped(service, "worker");
}

extern const struct cli_command cmd_worker;

static int worker_run(void *values, const struct cli_rest *rest)
{
    const struct worker_options *options = values;
    struct hr_error error = {0};

    (void)rest;
    if (options->show_config)
        return cli_show_settings(&cmd_worker, options);
    if (options->dispatcher != NULL)
        return worker_serve(options);
    signal(SIGINT, SIG_IGN); /* the run handles Ctrl-C and stops its workers */
    if (hr_code_serve((int)options->fd, no_code, NULL, &error) != HR_OK)
        return cli_library_failed(&error);
    return CLI_OK;
}

const struct cli_command cmd_worker = {
    .name = "worker",
    .summary = "make batches for a service",
    .args = "",
    .text =
        "With --dispatcher: makes batches for the runs of a service until it is stopped: "
        "at once by Ctrl-C; by SIGTERM or headrace drain after it has sent what it has "
        "begun. It needs the data under the same paths as the clients, keeps nothing, "
        "and may be killed and started again at any time. Anyone who can connect to it "
        "can read any file that it can read: beyond this machine it listens only with a "
        "token (--token-file). Without --dispatcher: serves requests on an inherited "
        "socket until the other side closes it; a run starts such workers itself.",
    CLI_OPTIONS(worker_table, struct worker_options),
    CLI_EXAMPLES(worker_examples),
    .defaults = &(const struct worker_options){.fd = WORKER_FD,
                                               .listen = "127.0.0.1:0",
                                               .compress = "auto",
                                               .peers = PEERS,
                                               .keep = KEEP_BYTES,
                                               .hello_timeout = HELLO_SECONDS,
                                               .drain_timeout = DRAIN_SECONDS},
    .settings_unless = "fd",
    .run = worker_run,
};

/* ---- starting them ---- */

static enum hr_err start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    /* --fd: no settings for the worker of a service */
    char *args[] = {"headrace", "worker", "--fd", "3", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int failed;

    (void)user;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue; /* workers are the only children */
    failed = posix_spawn_file_actions_init(&actions);
    if (failed == 0) {
        failed = posix_spawn_file_actions_adddup2(&actions, fd, WORKER_FD);
        if (failed == 0)
            failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (failed != 0) {
        reterr->code = HR_ERR_IO;
        snprintf(reterr->message, sizeof reterr->message,
                 "cannot start a worker process: %s", strerror(failed));
        return HR_ERR_IO;
    }
    *ret_id = pid;
    return HR_OK;
}

static void stop(void *user, int64_t id)
{
    (void)user;
    kill((pid_t)id, SIGKILL);
}

int worker_host(struct hr_graph *graph)
{
    const struct hr_code_host host = {.start = start, .kill = stop};
    struct hr_error error = {0};

    if (hr_graph_code_host(graph, &host, &error) != HR_OK)
        return cli_library(&error);
    return CLI_OK;
}
