/*
 * svc/share.h - which positions of an epoch a consumer owns.
 *
 * The positions from `base` on are divided into splits of `split` positions, and rank k
 * of n consumers owns splits k, k + n, k + 2n, ... Roles count a consumer's positions
 * 0, 1, 2, ... without gaps, as `local` positions; only messages and checkpoints have
 * the positions of the epoch. Numbers stay below HR_FRAME_POSITION_MAX.
 */
#ifndef HR_SVC_SHARE_H
#define HR_SVC_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct hr_share {
    uint64_t base, end; /* positions of the epoch; base <= end */
    uint64_t split;     /* > 0 */
    uint32_t world, rank;
};

/* The number of owned positions below `position`. */
static inline uint64_t hr__share_below(const struct hr_share *share, uint64_t position)
{
    uint64_t at = position < share->end ? position : share->end, number, whole;

    if (at <= share->base)
        return 0;
    at -= share->base;
    number = at / share->split;
    whole = number / share->world + (number % share->world > share->rank);
    return whole * share->split +
           (number % share->world == share->rank ? at % share->split : 0);
}

static inline uint64_t hr__share_size(const struct hr_share *share)
{
    return hr__share_below(share, share->end);
}

/* The position of the epoch of a local one; the epoch's end for those beyond the last. */
static inline uint64_t hr__share_position(const struct hr_share *share, uint64_t local)
{
    uint64_t number = local / share->split;

    if (local >= hr__share_size(share))
        return share->end;
    return share->base + (number * share->world + share->rank) * share->split +
           local % share->split;
}

/* How many local positions from `local` on are neighbours in the epoch. */
static inline uint64_t hr__share_run(const struct hr_share *share, uint64_t local)
{
    uint64_t rest = hr__share_size(share) - local;
    uint64_t run = share->split - local % share->split;

    return share->world == 1 || rest < run ? rest : run;
}

/* Whether the consumer owns `count` (> 0) neighbours from `position` on; sets *ret_local
 * to the first. */
static inline bool hr__share_owns(const struct hr_share *share, uint64_t position,
                                  uint64_t count, uint64_t *ret_local)
{
    uint64_t local = hr__share_below(share, position);

    *ret_local = local;
    return local < hr__share_size(share) &&
           hr__share_position(share, local) == position &&
           count <= hr__share_run(share, local);
}

#endif
