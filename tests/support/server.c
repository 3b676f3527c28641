/*
 * tests/support/server.c - starts servers of this folder. They serve until their standard
 * input ends: when this process does, however that comes.
 */
#include "tests/support/server.h"
#include "tests/support/check.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Only python3 keeps these ends; other children of the test must not. */
static void open_pipe(int ends[2])
{
    CHECK_EQ_INT(pipe2(ends, O_CLOEXEC), 0);
}

/* The line that the script prints once it serves; false if there is none. `folder` may be
 * NULL. */
static bool start(const char *name, const char *folder, char *line, size_t room)
{
    char script[1024];
    int in[2], out[2];
    ssize_t bytes;
    pid_t child;

    snprintf(script, sizeof script, "%s/tests/support/%s", check_source_dir(), name);
    open_pipe(in);
    open_pipe(out);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", script, folder, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    bytes = read(out[0], line, room - 1); /* one line, written at once */
    close(out[0]);
    line[bytes > 0 ? bytes : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return bytes > 0;
}

const char *http_server_start(const char *folder)
{
    static char uri[64];
    char text[16];

    setenv("no_proxy", "*", 1);
    if (!start("http_server.py", folder, text, sizeof text))
        SKIP("python3 cannot be started");
    snprintf(uri, sizeof uri, "http://127.0.0.1:%d", (int)strtol(text, NULL, 10));
    return uri;
}

const char *gluster_start(const char *folder)
{
    static char uri[300];

    if (!start("gluster.py", folder, uri, sizeof uri))
        SKIP("GlusterFS cannot be started");
    return uri;
}

const char *postgres_start(void)
{
    static char uri[100];

    if (!start("postgres.py", NULL, uri, sizeof uri))
        SKIP("PostgreSQL cannot be started");
    return uri;
}
