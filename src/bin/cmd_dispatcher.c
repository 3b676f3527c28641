/*
 * cmd_dispatcher.c - headrace dispatcher: tells the workers of a service what to make.
 */
#include "cli.h"
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define PEERS 1024
#define JOBS 256
#define WORKERS_PER_RUN 64
#define HELLO_SECONDS 10
#define JOURNAL_DAYS 30
#define EVICT_SECONDS 60
#define MORE_FILES 256 /* besides connections */

struct dispatcher_options {
    const char *listen, *token_file, *tenants, *control, *events;
    const char *tls_cert, *tls_key, *tls_client_ca;
    const char *config;
    bool insecure, show_config;
    const char *journal;
    int64_t peers, jobs, workers_per_run, hello_timeout, journal_days, evict_after;
    int journal_survives;
};

#define AT(field) offsetof(struct dispatcher_options, field)

/* clang-format off */
static const struct cli_option dispatcher_table[] = {
    {"listen", 0, CLI_TEXT, AT(listen), "HOST:PORT",
     "where workers and clients connect; port 0: a free one; default 127.0.0.1:7070"},
    {"peers", 0, CLI_INT, AT(peers), "N",
     "connections at a time; default 1024", 1, 65536},
    {"jobs", 0, CLI_INT, AT(jobs), "N",
     "runs at a time; default 256", 1, 65536},
    {"workers-per-run", 0, CLI_INT, AT(workers_per_run), "N",
     "workers that a run connects to; with more workers each run is given some of them; "
     "default 64", 1, WORKERS_PER_RUN},
    {"hello-timeout", 0, CLI_INT, AT(hello_timeout), "SECONDS",
     "close connections that have not said who they are by then; default 10", 1, 3600},
    {"control", 0, CLI_TEXT, AT(control), "HOST:PORT",
     "answer HTTP there: status, metrics, draining (docs/control.json); port 0: a free "
     "one; default: nowhere"},
    {"events", 0, CLI_TEXT, AT(events), "FILE",
     "append what happens to this file, an object of JSON per line"},
    {"journal", 0, CLI_TEXT, AT(journal), "FOLDER|ADDRESS",
     "keep there what several consumers of one run (headrace run --consumer) have committed: in "
     "a folder, or in a database of PostgreSQL, postgresql://USER@HOST/DATABASE, which several "
     "dispatchers may share; default: nowhere, such runs are refused"},
    {"journal-survives", 0, CLI_CHOICE, AT(journal_survives), "kill|power",
     "what no commit to a folder may be lost in: the death of this process (default), or also a "
     "power cut, which costs an fsync for each; in a database none is lost"},
    {"journal-days", 0, CLI_INT, AT(journal_days), "N",
     "a run that nobody has used for N days leaves the journal; default 30", 1, 36500},
    {"evict-after", 0, CLI_INT, AT(evict_after), "SECONDS",
     "what a consumer has not committed goes to others when it has had no connection for so long; "
     "default 60", 1, 86400},
    {"token-file", 0, CLI_TEXT, AT(token_file), "FILE",
     "file with the token that all processes of the service share; default: "
     "HEADRACE_TOKEN_FILE or HEADRACE_TOKEN of the environment"},
    {"tenants", 0, CLI_TEXT, AT(tenants), "FILE",
     "file of tenants, who have runs by tokens of their own: a line for each, NAME TOKEN [runs=N]; workers need it, too"},
    {"tls-cert", 0, CLI_TEXT, AT(tls_cert), "FILE",
     "talk TLS, with this certificate; PEM, with its chain; default: "
     "HEADRACE_TLS_CERT of the environment"},
    {"tls-key", 0, CLI_TEXT, AT(tls_key), "FILE",
     "its private key, PEM, without a passphrase; default: HEADRACE_TLS_KEY"},
    {"tls-client-ca", 0, CLI_TEXT, AT(tls_client_ca), "FILE",
     "take only connections with a certificate that a CA in FILE signed; default: "
     "HEADRACE_TLS_CLIENT_CA"},
    CLI_OPTION_CONFIG, CLI_OPTION_SHOW_CONFIG,
    {"insecure", 0, CLI_FLAG, AT(insecure), NULL,
     "listen beyond this machine without a token"},
};

static const struct cli_example dispatcher_examples[] = {
    {"headrace dispatcher",
     "for workers and clients on this machine"},
    {"headrace dispatcher --config /etc/headrace/dispatcher.conf --show-config",
     "check a file of settings"},
    {"headrace dispatcher --control 127.0.0.1:7071",
     "also answers headrace status, and Prometheus at /metrics"},
    {"headrace dispatcher --journal /var/lib/headrace",
     "also for runs with several consumers, served first come, first served"},
    {"headrace dispatcher --listen 10.0.0.2:7070 --token-file token --journal "
     "postgresql://headrace@db/headrace",
     "one of several that share a journal: another one goes on when it is gone"},
    {"headrace worker --dispatcher 127.0.0.1:7070",
     "one of its workers"},
    {"headrace run train.yaml --service 127.0.0.1:7070",
     "a run whose batches they make"},
};
/* clang-format on */

int serve_allow_connections(int64_t connections)
{
    rlim_t wanted = (rlim_t)connections + MORE_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return CLI_OK;
    if (limit.rlim_max < wanted)
        return cli_usage(
            "--peers %lld needs %lld open files; this process may have %lld: "
            "raise that limit (ulimit -Hn), or lower --peers",
            (long long)connections, (long long)wanted, (long long)limit.rlim_max);
    limit.rlim_cur = wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return cli_failed("cannot raise the limit of open files: %s", strerror(errno));
    return CLI_OK;
}

/* ---- until Ctrl-C ---- */

static struct hr_service *serving; /* read by the handler */

static void stop(int number)
{
    (void)number;
    hr_service_stop(serving);
}

/* The first SIGTERM; a second one stops at once. */
static void drain(int number)
{
    signal(number, stop);
    hr_service_drain(serving);
}

int serve_until_stopped(struct hr_service *service, const char *name)
{
    const struct sigaction at_once = {.sa_handler = stop},
                           orderly = {.sa_handler = drain};
    struct hr_error error = {0};
    enum hr_err code;

    serving = service;
    sigaction(SIGINT, &at_once, NULL);
    sigaction(SIGTERM, &orderly, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a log at its limit of size is like one on a full disk */
    printf("%s listens at %s\n", name, hr_service_address(service));
    if (hr_service_control_address(service)[0] != '\0')
        printf("%s control at http://%s\n", name, hr_service_control_address(service));
    fflush(stdout);
    code = hr_service_run(service, &error);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    hr_service_close(service);
    return code == HR_OK ? CLI_OK : cli_library_failed(&error);
}

/* ---- the command ---- */

extern const struct cli_command cmd_dispatcher;

static int dispatcher_run(void *values, const struct cli_rest *rest)
{
    const struct dispatcher_options *options = values;
    struct hr_dispatcher_options dispatcher;
    struct hr_service *service;
    struct hr_error error = {0};
    int code;

    (void)rest;
    if (options->show_config)
        return cli_show_settings(&cmd_dispatcher, options);
    code = serve_allow_connections(options->peers);
    if (code != CLI_OK)
        return code;
    hr_dispatcher_options_init(&dispatcher);
    dispatcher.listen = options->listen;
    dispatcher.peers_max = (uint32_t)options->peers;
    dispatcher.jobs_max = (uint32_t)options->jobs;
    dispatcher.workers_per_run = (uint32_t)options->workers_per_run;
    dispatcher.control = options->control;
    dispatcher.events_file = options->events;
    dispatcher.token_file = options->token_file;
    dispatcher.tenants_file = options->tenants;
    dispatcher.tls_cert = options->tls_cert;
    dispatcher.tls_key = options->tls_key;
    dispatcher.tls_client_ca = options->tls_client_ca;
    dispatcher.insecure = options->insecure;
    dispatcher.journal = options->journal;
    dispatcher.journal_power = options->journal_survives == 1;
    dispatcher.journal_ns = (uint64_t)options->journal_days * 86400 * 1000000000;
    dispatcher.evict_ns = (uint64_t)options->evict_after * 1000000000;
    dispatcher.hello_ns = (uint64_t)options->hello_timeout * 1000000000;
    if (hr_dispatcher_open(&dispatcher, &service, &error) != HR_OK)
        return cli_library(&error);
    return serve_until_stopped(service, "dispatcher");
}

const struct cli_command cmd_dispatcher = {
    .name = "dispatcher",
    .summary = "tell the workers of a service what to make",
    .args = "",
    .text =
        "Runs until it is stopped (Ctrl-C). Workers (headrace worker --dispatcher) and "
        "runs (headrace run --service) connect to it; batches go from the workers to the "
        "runs directly. It keeps no files, but for the journal if it has one "
        "(--journal), and may be "
        "killed and started again at any "
        "time: runs and workers connect again and continue. Beyond this machine it "
        "listens only with a token (--token-file), which workers and runs need too.",
    CLI_OPTIONS(dispatcher_table, struct dispatcher_options),
    CLI_EXAMPLES(dispatcher_examples),
    .defaults = &(const struct dispatcher_options){.listen = "127.0.0.1:7070",
                                                   .peers = PEERS,
                                                   .jobs = JOBS,
                                                   .workers_per_run = WORKERS_PER_RUN,
                                                   .hello_timeout = HELLO_SECONDS,
                                                   .journal_days = JOURNAL_DAYS,
                                                   .evict_after = EVICT_SECONDS},
    .settings_unless = "fd",
    .run = dispatcher_run,
};
