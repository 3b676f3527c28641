/*
 * op/share.h - how many records of an epoch a rank has, be it that an op shards or that
 * the run does.
 */
#ifndef HR_OP_SHARE_H
#define HR_OP_SHARE_H

#include <stdint.h>

#include "headrace/engine.h"

/* Of `n` records; world is at least 1, rank below it. */
static inline uint64_t
hr__share_count(uint64_t n, uint64_t rank, uint64_t world, enum hr_even even)
{
    if (even == HR_EVEN_DROP)
        return n / world;
    if (even == HR_EVEN_REPEAT || even == HR_EVEN_PAD)
        return n / world + (n % world != 0);
    return n / world + (rank < n % world);
}

#endif
