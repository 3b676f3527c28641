/*
 * net/splice_test.c - bytes that the system reads where they lie; and a user who has no
 * pipes left that are of use.
 */
#include "net/splice.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "tests/support/check.h"

#define BYTES ((size_t)1 << 20)
#define OTHER_USER 54321 /* has no pipes */
#define PIPES_MAX 400

/* fds[0] writes, and does not block; fds[1] reads. */
static void connect_pair(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(door >= 0 && fds[0] >= 0);
    CHECK_EQ_INT(bind(door, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ_INT(listen(door, 1), 0);
    CHECK_EQ_INT(getsockname(door, (struct sockaddr *)&at, &length), 0);
    CHECK_EQ_INT(connect(fds[0], (struct sockaddr *)&at, sizeof at), 0);
    fds[1] = accept(door, NULL, NULL);
    CHECK(fds[1] >= 0);
    CHECK_EQ_INT(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    close(door);
}

TEST(what_is_sent_arrives)
{
    int fds[2], files = check_open_files();
    struct hr_splicer splicer;
    char *sent = hr__pages_alloc(BYTES), *got = malloc(BYTES);
    size_t at = 0, end = 0;

    CHECK(sent != NULL && got != NULL);
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 7 >> 3);
    connect_pair(fds);
    hr__splicer_init(&splicer);
    while (at < BYTES) {
        ssize_t moved = hr__splicer_send(&splicer, fds[0], sent + at, BYTES - at);

        CHECK(moved != 0);
        at += moved > 0 ? (size_t)moved : 0;
        while (end < at) {
            ssize_t part = read(fds[1], got + end, at - end);

            CHECK(part > 0);
            end += (size_t)part;
        }
    }
    CHECK(memcmp(sent, got, BYTES) == 0);
    hr__splicer_close(&splicer);
    close(fds[0]);
    close(fds[1]);
    free(got);
    hr__pages_free(sent, BYTES);
    CHECK_EQ_INT(check_open_files(), files);
}

/* Whether a pipe of this user is small now. */
static bool use_up_pipes(void)
{
    for (int i = 0; i < PIPES_MAX; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        if (fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) < 0 &&
            fcntl(ends[0], F_GETPIPE_SZ) < 64 << 10)
            return true;
    }
    return false;
}

enum outcome { COPIES, SENDS, NO_LIMIT };

static enum outcome send_without_pipes(int fd)
{
    struct hr_splicer splicer;
    char *data = hr__pages_alloc(BYTES);
    enum outcome outcome = COPIES;

    if (data == NULL || (geteuid() == 0 && setuid(OTHER_USER) != 0) || !use_up_pipes())
        return NO_LIMIT;
    memset(data, 1, BYTES);
    hr__splicer_init(&splicer);
    for (int i = 0; i < 2; i++)
        if (hr__splicer_send(&splicer, fd, data, BYTES) != 0 || splicer.in >= 0)
            outcome = SENDS;
    return outcome;
}

TEST(a_small_pipe_is_not_used)
{
    int fds[2], status;
    pid_t child;

    connect_pair(fds);
    child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(send_without_pipes(fds[0]));
    CHECK_EQ_INT(waitpid(child, &status, 0), child);
    close(fds[0]);
    close(fds[1]);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_LIMIT)
        SKIP("this system does not limit a user's pipes");
    CHECK_EQ_INT(WEXITSTATUS(status), COPIES);
}
