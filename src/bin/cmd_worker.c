/*
 * cmd_worker.c - headrace worker: a worker process of a run, and how a run starts them.
 *
 * A worker runs the steps of a graph that its plan assigns to processes. It has no user
 * code: programs with user code start their own workers.
 */
#include "cli.h"
#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "headrace/code.h"

#define WORKER_FD 3

extern char **environ;

struct worker_options {
    int64_t fd;
};

/* clang-format off */
static const struct cli_option worker_table[] = {
    {"fd", 0, CLI_INT, offsetof(struct worker_options, fd), "N",
     "file descriptor of the socket to the parent process; default 3", 0, INT32_MAX},
};

static const struct cli_example worker_examples[] = {
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

static int worker_run(void *values, const struct cli_rest *rest)
{
    const struct worker_options *options = values;
    struct hr_error error = {0};

    (void)rest;
    signal(SIGINT, SIG_IGN); /* the run handles Ctrl-C and stops its workers */
    if (hr_code_serve((int)options->fd, no_code, NULL, &error) != HR_OK)
        return cli_library_failed(&error);
    return CLI_OK;
}

const struct cli_command cmd_worker = {
    .name = "worker",
    .summary = "run steps of a graph for another process",
    .args = "",
    .text =
        "Serves requests on an inherited socket until the other side closes it. A run "
        "starts workers itself if its plan assigns steps to processes; there is no "
        "reason to start one by hand.",
    CLI_OPTIONS(worker_table, struct worker_options),
    CLI_EXAMPLES(worker_examples),
    .defaults = &(const struct worker_options){WORKER_FD},
    .run = worker_run,
};

/* ---- starting them ---- */

static enum hr_err start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    char *args[] = {"headrace", "worker", NULL};
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
