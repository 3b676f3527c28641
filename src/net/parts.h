/*
 * net/parts.h - a body in pieces. Pure: no socket, also in builds without a net.
 */
#ifndef HR_NET_PARTS_H
#define HR_NET_PARTS_H

#include "headrace/buffer.h"

/* A piece of a body. */
struct hr_net_part {
    const char *data;
    size_t bytes;
    struct hr_buffer *owner;
};
#define HR_NET_PARTS_MAX 256u

/* The `bytes` bytes of the parts from `at` on, which are there: in place if they lie in
 * one part, else copied to `room`. */
const char *hr__net_gather(const struct hr_net_part *parts, size_t count, size_t at,
                           size_t bytes, char *room);

#endif
