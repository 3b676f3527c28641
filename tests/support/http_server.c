/*
 * tests/support/http_server.c - starts http_server.py. It serves until its standard input
 * ends: when this process does, however that comes.
 */
#include "tests/support/http_server.h"
#include "tests/support/check.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Only python3 keeps these ends; other children of the test must not. */
static void open_pipe(int ends[2])
{
    CHECK_EQ_INT(pipe2(ends, O_CLOEXEC), 0);
}

const char *http_server_start(const char *folder)
{
    static char uri[64];
    char script[1024], text[16] = "";
    int in[2], out[2];
    ssize_t bytes;
    pid_t child;

    snprintf(script, sizeof script, "%s/tests/support/http_server.py",
             check_source_dir());
    setenv("no_proxy", "*", 1);
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
    bytes = read(out[0], text, sizeof text - 1); /* one line, written at once */
    close(out[0]);
    if (bytes <= 0)
        SKIP("python3 cannot be started");
    snprintf(uri, sizeof uri, "http://127.0.0.1:%d", (int)strtol(text, NULL, 10));
    return uri;
}
