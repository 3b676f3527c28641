/*
 * net/splice.h - bytes that the system reads where they lie, instead of a copy.
 */
#ifndef HR_NET_SPLICE_H
#define HR_NET_SPLICE_H

#include <stdbool.h>
#include <sys/types.h>

/* A pipe, empty between calls. -1: not open yet. */
struct hr_splicer {
    int in, out, nowhere;
    bool is_small; /* the system gave less of a pipe than is of use */
};

void hr__splicer_init(struct hr_splicer *splicer);
void hr__splicer_close(struct hr_splicer *splicer);

/* As send() to a TCP socket that does not block. What it took must not change until the
 * peer has read it. 0: the system cannot do that with this memory or now; copy. */
ssize_t
hr__splicer_send(struct hr_splicer *splicer, int fd, const char *data, size_t bytes);

#endif
