/*
 * tests/support/peers.c - starts this program as a worker process.
 */
#include "tests/support/peers.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/check.h"

#define PEER_FD 100
#define VARIABLE "HEADRACE_TEST_PEER"

extern char **environ;

void peers_init(struct peers *peers, const char *argument)
{
    memset(peers, 0, sizeof *peers);
    snprintf(peers->argument, sizeof peers->argument, "%s", argument);
    pthread_mutex_init(&peers->lock, NULL);
}

void peers_finish(struct peers *peers)
{
    for (int i = 0; i < peers->count; i++)
        CHECK_EQ_INT(waitpid(peers->pids[i], NULL, 0), peers->pids[i]);
    pthread_mutex_destroy(&peers->lock);
}

static pid_t spawn(const struct peers *peers, int fd)
{
    char *args[] = {(char *)(uintptr_t) "peer", NULL}, *env[256], argument[128];
    posix_spawn_file_actions_t actions;
    size_t count = 0;
    pid_t pid = 0;
    int code;

    for (; environ[count] != NULL && count < 254; count++)
        env[count] = environ[count];
    snprintf(argument, sizeof argument, VARIABLE "=%s", peers->argument);
    env[count] = argument;
    env[count + 1] = NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, PEER_FD);
    code = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, env);
    posix_spawn_file_actions_destroy(&actions);
    CHECK_EQ_INT(code, 0);
    return pid;
}

static enum hr_err
host_start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    struct peers *peers = user;
    pid_t pid;

    if (peers->refuse) {
        reterr->code = HR_ERR_IO;
        snprintf(reterr->message, sizeof reterr->message,
                 "the test refuses to start processes");
        return HR_ERR_IO;
    }
    pid = spawn(peers, fd);
    pthread_mutex_lock(&peers->lock);
    CHECK(peers->count < PEERS_MAX);
    peers->pids[peers->count++] = pid;
    pthread_mutex_unlock(&peers->lock);
    *ret_id = pid;
    return HR_OK;
}

static void host_kill(void *user, int64_t id)
{
    (void)user;
    kill((pid_t)id, SIGKILL);
}

enum hr_err
peers_host(struct peers *peers, struct hr_graph *graph, struct hr_error *reterr)
{
    struct hr_code_host host = {.user = peers, .start = host_start, .kill = host_kill};

    return hr_graph_code_host(graph, &host, reterr);
}

void peers_text(const char *text, char *to, size_t room)
{
    static const char place[] = "{code:", variant[] = "{variant: processes, code:";
    size_t length = 0;

    while (*text != '\0') {
        CHECK(length + sizeof variant < room);
        if (strncmp(text, place, sizeof place - 1) == 0) {
            memcpy(to + length, variant, sizeof variant - 1);
            length += sizeof variant - 1;
            text += sizeof place - 1;
        } else {
            to[length++] = *text++;
        }
    }
    to[length] = '\0';
}

const char *peers_argument(void)
{
    return getenv(VARIABLE);
}

_Noreturn void
peers_serve(const struct hr_code *(*find)(void *user, const char *name), void *user)
{
    _exit(hr_code_serve(PEER_FD, find, user, NULL) == HR_OK ? 0 : 1);
}
