/*
 * cmd_status.c - headrace status, workers, jobs, consumers, top, drain, evict: a running
 * dispatcher, asked over its control port.
 */
#include "cli.h"
#include "headrace/control.h"
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONTROL "127.0.0.1:7071"
#define TIMEOUT_SECONDS 10
#define DRAIN_SECONDS 60

struct status_options {
    const char *control, *token_file;
    int64_t timeout, interval, count;
    bool json, all;
};

#define AT(field) offsetof(struct status_options, field)

#define OPTION_CONTROL                                                                   \
    {                                                                                    \
        "control", 0, CLI_TEXT, AT(control), "HOST:PORT",                                \
            "the dispatcher's control port; default 127.0.0.1:7071"                      \
    }
#define OPTION_TOKEN                                                                     \
    {                                                                                    \
        "token-file", 0, CLI_TEXT, AT(token_file), "FILE",                               \
            "file with the service's token; default: HEADRACE_TOKEN_FILE or "            \
            "HEADRACE_TOKEN of the environment"                                          \
    }
#define OPTION_TIMEOUT(text_)                                                            \
    {                                                                                    \
        "timeout", 0, CLI_INT, AT(timeout), "SECONDS", text_, 1, 86400                   \
    }

static void
ask_options(const struct status_options *options, struct hr_control_options *ret)
{
    hr_control_options_init(ret);
    ret->address = options->control;
    ret->token_file = options->token_file;
    ret->timeout_ns = (uint64_t)options->timeout * 1000000000;
}

/* Of lists: the port's answers have 1000 entries at most where no limit is named. */
#define ALL "?limit=999999999999999999"

static int print_body(const struct status_options *options, const char *path)
{
    struct hr_control_options asked;
    struct hr_error error = {0};
    char *body;

    ask_options(options, &asked);
    if (hr_control_get(&asked, path, &body, &error) != HR_OK)
        return cli_library_failed(&error);
    fputs(body, stdout);
    hr_free(body);
    return CLI_OK;
}

static int
ask(const struct status_options *options, struct hr_control_status **ret_status)
{
    struct hr_control_options asked;
    struct hr_error error = {0};

    ask_options(options, &asked);
    if (hr_control_status(&asked, ret_status, &error) != HR_OK)
        return cli_library_failed(&error);
    return CLI_OK;
}

/* ---- tables ---- */

static const char *count_text(char *text, size_t room, uint64_t count)
{
    return term_count(text, room, count);
}

static void print_head(const struct hr_control_status *s)
{
    char up[32], finished[32];

    printf("dispatcher at %s, version %s, up %s\n", s->address, s->version,
           term_seconds(up, sizeof(up), s->uptime_seconds));
    printf("%zu workers, %llu clients, %llu jobs, %llu of %llu connections, %s batches "
           "sent\n",
           s->worker_count, (unsigned long long)s->clients,
           (unsigned long long)s->jobs_known, (unsigned long long)s->connections,
           (unsigned long long)s->connections_max,
           count_text(finished, sizeof(finished), s->positions_finished));
    if (s->journal == HR_CONTROL_JOURNAL_HELD)
        puts("holds its journal");
    else if (s->journal == HR_CONTROL_JOURNAL_LOST)
        puts("does not hold its journal: another dispatcher does, or it cannot be "
             "reached");
}

/* Of the same worker or job a while ago: its count; `now` if it is new. */
static uint64_t finished_before(const struct hr_control_status *before,
                                const struct hr_control_worker *worker)
{
    for (size_t i = 0; before != NULL && i < before->worker_count; i++)
        if (strcmp(before->workers[i].address, worker->address) == 0 &&
            before->workers[i].positions_finished <= worker->positions_finished)
            return before->workers[i].positions_finished;
    return worker->positions_finished;
}

static uint64_t
cursor_before(const struct hr_control_status *before, const struct hr_control_job *job)
{
    for (size_t i = 0; before != NULL && i < before->job_count; i++)
        if (strcmp(before->jobs[i].name, job->name) == 0 &&
            before->jobs[i].cursor <= job->cursor)
            return before->jobs[i].cursor;
    return job->cursor;
}

/* `before`: some seconds earlier, for rates; or NULL. */
static void
print_workers(const struct hr_control_status *s, const struct hr_control_status *before)
{
    double seconds = before != NULL ? s->uptime_seconds - before->uptime_seconds : 0;

    printf("%-28s %-9s %7s %9s %12s %12s %12s %-11s%s\n", "WORKER", "STATE", "LEASES",
           "IN WORK", "SENT", "SHARED", "PER BATCH", "COMPRESSION",
           before != NULL ? "     BATCHES/s" : "");
    for (size_t i = 0; i < s->worker_count; i++) {
        const struct hr_control_worker *w = &s->workers[i];
        char sent[32], shared[32], each[32] = "-", ratio[16] = "", how[48];

        if (w->position_seconds > 0)
            term_seconds(each, sizeof(each), w->position_seconds);
        if (w->bytes_sent > 0 && w->bytes_sent < w->bytes_made)
            snprintf(ratio, sizeof(ratio), " %.0f%%",
                     100.0 * (double)w->bytes_sent / (double)w->bytes_made);
        snprintf(how, sizeof(how), "%s%s", w->compression, ratio);
        printf("%-28s %-9s %7llu %9llu %12s %12s %12s %-11s", w->address,
               w->draining ? "draining" : "serving", (unsigned long long)w->leases,
               (unsigned long long)w->positions_leased,
               count_text(sent, sizeof(sent), w->positions_finished),
               count_text(shared, sizeof(shared), w->positions_shared), each, how);
        if (seconds > 0)
            printf(" %13.1f",
                   (double)(w->positions_finished - finished_before(before, w)) /
                       seconds);
        putchar('\n');
    }
}

static void
print_jobs(const struct hr_control_status *s, const struct hr_control_status *before)
{
    double seconds = before != NULL ? s->uptime_seconds - before->uptime_seconds : 0;

    printf("%-28s %-12s %6s %14s %14s %7s %9s%s\n", "JOB", "CLIENT", "WEIGHT", "BATCHES",
           "TAKEN", "%", "IN WORK", before != NULL ? "     BATCHES/s" : "");
    for (size_t i = 0; i < s->job_count; i++) {
        const struct hr_control_job *j = &s->jobs[i];
        char all[32], taken[32], client[48];

        snprintf(client, sizeof(client), "%s",
                 j->done         ? "done"
                 : !j->connected ? "away"
                 : j->stands     ? "stands still"
                                 : "connected");
        if (j->consumers > 0 && j->connected)
            snprintf(client, sizeof(client), "%llu of %llu",
                     (unsigned long long)j->consumers_connected,
                     (unsigned long long)j->consumers);
        printf("%-28s %-12s %6llu %14s %14s %7.1f %9llu", j->name, client,
               (unsigned long long)j->weight, count_text(all, sizeof(all), j->positions),
               count_text(taken, sizeof(taken), j->cursor),
               j->positions > 0 ? 100.0 * (double)j->cursor / (double)j->positions : 100,
               (unsigned long long)j->positions_leased);
        if (seconds > 0)
            printf(" %13.1f", (double)(j->cursor - cursor_before(before, j)) / seconds);
        putchar('\n');
    }
}

static void print_consumers(const struct hr_control_status *s)
{
    printf("%-28s %-28s %-12s %12s %7s %7s\n", "JOB", "CONSUMER", "CLIENT", "CHECKPOINT",
           "SPLITS", "TAKEN");
    for (size_t i = 0; i < s->consumer_count; i++) {
        const struct hr_control_consumer *c = &s->consumers[i];
        char checkpoint[32] = "-";

        if (c->checkpoint > 0)
            count_text(checkpoint, sizeof(checkpoint), c->checkpoint);
        printf("%-28s %-28s %-12s %12s %7llu %7llu\n", c->job, c->name,
               c->connected ? "connected" : "away", checkpoint,
               (unsigned long long)c->splits, (unsigned long long)c->splits_taken);
    }
}

/* ---- status, workers, jobs, consumers ---- */

static int status_run(void *values, const struct cli_rest *rest)
{
    const struct status_options *options = values;
    struct hr_control_status *status;
    int code;

    (void)rest;
    if (options->json)
        return print_body(options, "/v1/status" ALL);
    code = ask(options, &status);
    if (code != CLI_OK)
        return code;
    print_head(status);
    if (status->worker_count > 0) {
        putchar('\n');
        print_workers(status, NULL);
    }
    if (status->job_count > 0) {
        putchar('\n');
        print_jobs(status, NULL);
    }
    if (status->consumer_count > 0) {
        putchar('\n');
        print_consumers(status);
    }
    hr_control_status_free(status);
    return CLI_OK;
}

static int workers_run(void *values, const struct cli_rest *rest)
{
    const struct status_options *options = values;
    struct hr_control_status *status;
    int code;

    (void)rest;
    if (options->json)
        return print_body(options, "/v1/workers" ALL);
    code = ask(options, &status);
    if (code != CLI_OK)
        return code;
    print_workers(status, NULL);
    hr_control_status_free(status);
    return CLI_OK;
}

static int jobs_run(void *values, const struct cli_rest *rest)
{
    const struct status_options *options = values;
    struct hr_control_status *status;
    int code;

    (void)rest;
    if (options->json)
        return print_body(options, "/v1/jobs" ALL);
    code = ask(options, &status);
    if (code != CLI_OK)
        return code;
    print_jobs(status, NULL);
    hr_control_status_free(status);
    return CLI_OK;
}

static int consumers_run(void *values, const struct cli_rest *rest)
{
    const struct status_options *options = values;
    struct hr_control_status *status;
    int code;

    (void)rest;
    if (options->json)
        return print_body(options, "/v1/consumers" ALL);
    code = ask(options, &status);
    if (code != CLI_OK)
        return code;
    print_consumers(status);
    hr_control_status_free(status);
    return CLI_OK;
}

/* ---- top ---- */

static void pause_for(double seconds)
{
    struct timespec left = {(time_t)seconds,
                            (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&left, NULL);
}

static int top_run(void *values, const struct cli_rest *rest)
{
    const struct status_options *options = values;
    struct hr_control_status *before = NULL, *status = NULL;
    bool live = !options->json && term_is_live(stdout);
    int code = CLI_OK;

    (void)rest;
    for (int64_t i = 0; code == CLI_OK && (options->count == 0 || i <= options->count);
         i++) {
        if (i > 0)
            pause_for((double)options->interval);
        if (options->json) {
            code = i > 0 ? print_body(options, "/v1/status" ALL) : CLI_OK;
            fflush(stdout);
            continue;
        }
        code = ask(options, &status);
        if (code == CLI_OK && before != NULL) {
            fputs(live ? "\033[H\033[2J" : "", stdout);
            print_head(status);
            putchar('\n');
            print_workers(status, before);
            putchar('\n');
            print_jobs(status, before);
            if (status->consumer_count > 0) {
                putchar('\n');
                print_consumers(status);
            }
            fputs(live ? "" : "\n", stdout);
            fflush(stdout);
        }
        if (code == CLI_OK) {
            hr_control_status_free(before);
            before = status;
        }
    }
    hr_control_status_free(before);
    return code;
}

/* ---- drain ---- */

static bool
has_worker(const struct hr_control_status *status, const struct cli_rest *workers)
{
    for (size_t i = 0; i < status->worker_count; i++)
        for (size_t k = 0; k < workers->count; k++)
            if (strcmp(status->workers[i].address, workers->words[k]) == 0)
                return true;
    return false;
}

/* Until none of them is connected. */
static int wait_gone(const struct status_options *options, const struct cli_rest *workers)
{
    double until = term_now() + (double)options->timeout;
    struct hr_control_status *status;
    bool there = true;

    while (there) {
        int code = ask(options, &status);

        if (code != CLI_OK)
            return code;
        there = has_worker(status, workers);
        hr_control_status_free(status);
        if (there && term_now() >= until)
            return cli_failed("the workers still serve after %lld s; they go on draining",
                              (long long)options->timeout);
        if (there)
            pause_for(0.02);
    }
    return CLI_OK;
}

static int
drain_these(const struct status_options *options, const struct cli_rest *workers)
{
    struct hr_control_options asked;
    struct hr_error error = {0};
    int code;

    ask_options(options, &asked);
    for (size_t i = 0; i < workers->count; i++)
        if (hr_control_drain(&asked, workers->words[i], &error) != HR_OK)
            return cli_library_failed(&error);
    code = wait_gone(options, workers);
    for (size_t i = 0; code == CLI_OK && i < workers->count; i++)
        printf("%s has left\n", workers->words[i]);
    return code;
}

static int drain_run(void *values, const struct cli_rest *rest)
{
    const struct status_options *options = values;
    struct hr_control_status *status;
    struct cli_rest *all;
    int code;

    if (options->all == (rest->count > 0))
        return cli_usage(
            "headrace drain expects workers, as headrace workers names them, "
            "or --all");
    if (!options->all)
        return drain_these(options, rest);
    code = ask(options, &status);
    if (code != CLI_OK)
        return code;
    all = calloc(1, sizeof(*all));
    if (all == NULL)
        code = cli_failed("out of memory");
    for (size_t i = 0;
         all != NULL && i < status->worker_count && all->count < CLI_WORDS_MAX; i++)
        all->words[all->count++] = status->workers[i].address;
    if (all != NULL)
        code = drain_these(options, all);
    free(all);
    hr_control_status_free(status);
    return code;
}

static int evict_run(void *values, const struct cli_rest *rest)
{
    struct hr_control_options asked;
    struct hr_error error = {0};

    ask_options(values, &asked);
    if (hr_control_evict(&asked, rest->words[0], rest->words[1], &error) != HR_OK)
        return cli_library_failed(&error);
    printf("%s is evicted from %s\n", rest->words[1], rest->words[0]);
    return CLI_OK;
}

/* ---- the commands ---- */

static const struct status_options defaults = {
    .control = CONTROL, .timeout = TIMEOUT_SECONDS, .interval = 2};
static const struct status_options drain_defaults = {.control = CONTROL,
                                                     .timeout = DRAIN_SECONDS};

#define TIMEOUT_HELP "wait for the answer at most this long; default 10"

/* clang-format off */
static const struct cli_option status_table[] = {
    OPTION_CONTROL, OPTION_TOKEN, OPTION_TIMEOUT(TIMEOUT_HELP), CLI_OPTION_JSON,
};
static const struct cli_option top_table[] = {
    OPTION_CONTROL, OPTION_TOKEN, OPTION_TIMEOUT(TIMEOUT_HELP),
    {"json", 0, CLI_FLAG, AT(json), NULL, "print one JSON object per line"},
    {"interval", 'i', CLI_INT, AT(interval), "SECONDS", "between two looks; default 2", 1, 3600},
    {"count", 'n', CLI_INT, AT(count), "N", "stop after so many; default 0: never", 0, 1000000},
};
static const struct cli_option drain_table[] = {
    OPTION_CONTROL, OPTION_TOKEN,
    OPTION_TIMEOUT("wait until they are gone at most this long; default 60"),
    {"all", 0, CLI_FLAG, AT(all), NULL, "all workers"},
};

static const struct cli_option evict_table[] = {
    OPTION_CONTROL, OPTION_TOKEN, OPTION_TIMEOUT(TIMEOUT_HELP),
};

static const struct cli_example status_examples[] = {
    {"headrace status", "the dispatcher of this machine, its workers, jobs and consumers"},
    {"headrace status --control gpu1:7071 --token-file token --json", "another one, for a program"},
};
static const struct cli_example workers_examples[] = {
    {"headrace workers", "who makes batches, and how fast"},
};
static const struct cli_example jobs_examples[] = {
    {"headrace jobs", "which runs there are, and how far they have got"},
};
static const struct cli_example consumers_examples[] = {
    {"headrace consumers", "which clients share a run, and what they have committed"},
    {"headrace consumers --json", "for a program"},
};
static const struct cli_example top_examples[] = {
    {"headrace top", "workers and jobs with their rates, and consumers, every two seconds"},
    {"headrace top -n 1 --json", "one look, for a program"},
};
static const struct cli_example drain_examples[] = {
    {"headrace drain 10.0.0.7:41003", "that worker sends what it has begun and stops"},
    {"headrace drain --all", "all of them"},
};
static const struct cli_example evict_examples[] = {
    {"headrace evict train gpu7", "others get what gpu7 has not committed"},
};
/* clang-format on */

#define CONTROL_TEXT "The dispatcher must have been started with --control. "

const struct cli_command cmd_status = {
    .name = "status",
    .summary = "show a dispatcher with its workers, jobs and consumers",
    .args = "",
    .text = CONTROL_TEXT "Counts are batches.",
    CLI_OPTIONS(status_table, struct status_options),
    CLI_EXAMPLES(status_examples),
    .defaults = &defaults,
    .run = status_run,
};

const struct cli_command cmd_workers = {
    .name = "workers",
    .summary = "list the workers of a dispatcher",
    .args = "",
    .text =
        CONTROL_TEXT "In work are the batches that a worker has been told to make and "
                     "has not sent.",
    CLI_OPTIONS(status_table, struct status_options),
    CLI_EXAMPLES(workers_examples),
    .defaults = &defaults,
    .run = workers_run,
};

const struct cli_command cmd_jobs = {
    .name = "jobs",
    .summary = "list the runs of a dispatcher",
    .args = "",
    .text = CONTROL_TEXT "Runs have random names unless headrace run --job gives one. "
                         "headrace consumers lists those that have several consumers.",
    CLI_OPTIONS(status_table, struct status_options),
    CLI_EXAMPLES(jobs_examples),
    .defaults = &defaults,
    .run = jobs_run,
};

const struct cli_command cmd_consumers = {
    .name = "consumers",
    .summary = "list the consumers of runs that have several",
    .args = "",
    .text = CONTROL_TEXT
    "SPLITS counts the ranges of up to 64 batches that a consumer has been given and has "
    "not committed, TAKEN those of them that it has received to the end. Runs that "
    "nobody uses are not listed. headrace run --consumer starts a consumer, headrace "
    "evict gives what it has not committed to the others.",
    CLI_OPTIONS(status_table, struct status_options),
    CLI_EXAMPLES(consumers_examples),
    .defaults = &defaults,
    .run = consumers_run,
};

const struct cli_command cmd_top = {
    .name = "top",
    .summary = "watch the workers, jobs and consumers of a dispatcher",
    .args = "",
    .text = CONTROL_TEXT "Runs until Ctrl-C, or --count looks.",
    CLI_OPTIONS(top_table, struct status_options),
    CLI_EXAMPLES(top_examples),
    .defaults = &defaults,
    .run = top_run,
};

const struct cli_command cmd_drain = {
    .name = "drain",
    .summary = "let workers finish and stop",
    .args = "[HOST:PORT...]",
    .args_max = CLI_WORDS_MAX,
    .complete = "",
    .text = "Tells workers to finish the batches that they have begun, and to stop. They "
            "get no more work; runs go on with the others, and no batch is lost or made "
            "twice. Waits until they are gone. " CONTROL_TEXT,
    CLI_OPTIONS(drain_table, struct status_options),
    CLI_EXAMPLES(drain_examples),
    .defaults = &drain_defaults,
    .run = drain_run,
};

const struct cli_command cmd_evict = {
    .name = "evict",
    .summary = "take from a consumer what it has not committed",
    .args = "JOB CONSUMER",
    .args_min = 2,
    .args_max = 2,
    .complete = "",
    .text = "For a run with several consumers (headrace consumers lists them): the "
            "others get "
            "what this one has taken and not committed, at once instead of after "
            "--evict-after. Is it alive, it is refused until it starts again from its "
            "committed checkpoint. " CONTROL_TEXT,
    CLI_OPTIONS(evict_table, struct status_options),
    CLI_EXAMPLES(evict_examples),
    .defaults = &defaults,
    .run = evict_run,
};
