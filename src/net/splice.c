/*
 * net/splice.c - bytes that the system reads where they lie, instead of a copy.
 *
 * MSG_ZEROCOPY is no help on one host: over loopback and veth the kernel copies after
 * all, and pins pages and posts notices besides. Pages that pass through a pipe are not
 * copied, and nothing reports when they are free. So they may be written again only once
 * the peer has said that it received them.
 */
#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/sigpipe.h"

#define PIPE_BYTES (1 << 20)  /* what a user may have without asking for more */
#define PIPE_LEAST (64 << 10) /* of a user with many pipes, less: copying is faster */

void hr__splicer_init(struct hr_splicer *splicer)
{
    *splicer = (struct hr_splicer){.in = -1, .out = -1, .nowhere = -1};
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void hr__splicer_close(struct hr_splicer *splicer)
{
    close_one(&splicer->in);
    close_one(&splicer->out);
    close_one(&splicer->nowhere);
}

static bool open_pipe(struct hr_splicer *splicer)
{
    int ends[2];

    if (splicer->in >= 0 || splicer->is_small)
        return !splicer->is_small;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    splicer->out = ends[0];
    splicer->in = ends[1];
    splicer->is_small = fcntl(splicer->in, F_SETPIPE_SZ, PIPE_BYTES) < 0 &&
                        fcntl(splicer->in, F_GETPIPE_SZ) < PIPE_LEAST;
    splicer->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (!splicer->is_small && splicer->nowhere >= 0)
        return true;
    hr__splicer_close(splicer);
    return false;
}

/* Moves bytes of the pipe to `fd`; *left of them are still in the pipe. As splice(). */
static ssize_t empty(const struct hr_splicer *splicer, int fd, size_t *left)
{
    ssize_t moved = 1;

    while (*left > 0 && moved > 0) {
        moved = splice(splicer->out, NULL, fd, NULL, *left,
                       SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE);
        if (moved > 0)
            *left -= (size_t)moved;
    }
    return moved;
}

ssize_t
hr__splicer_send(struct hr_splicer *splicer, int fd, const char *data, size_t bytes)
{
    const struct iovec part = {(char *)(uintptr_t)data, bytes};
    struct hr_pipe_guard guard;
    ssize_t there, moved;
    size_t left;
    int why;

    if (!open_pipe(splicer))
        return 0;
    there = vmsplice(splicer->in, &part, 1, SPLICE_F_NONBLOCK);
    if (there <= 0)
        return 0;
    left = (size_t)there;
    hr__pipe_guard(&guard);
    moved = empty(splicer, fd, &left);
    why = errno;
    hr__pipe_unguard(&guard);
    there -= (ssize_t)left;
    if (left > 0 && empty(splicer, splicer->nowhere, &left) <= 0)
        hr__splicer_close(splicer); /* with what is in it */
    if (there > 0)
        return there;
    errno = why;
    return moved < 0 && why != EINVAL && why != ENOSYS ? -1 : 0;
}
