/*
 * core/arena.h - scratch memory that is freed all at once.
 *
 * A thread owns an arena. A round that needed several blocks is followed by one with a
 * single block that holds them all, so that in steady state no allocation is made; after
 * a peak the block is given up at a reset, for one of the recent need. Ranges that are
 * not given out are poisoned under ASan.
 */
#ifndef HR_CORE_ARENA_H
#define HR_CORE_ARENA_H

#include <stddef.h>

struct hr_arena_block;
struct hr_arena {
    char *at, *end;
    struct hr_arena_block *blocks; /* newest first; the first one is being filled */
    size_t used_bytes;             /* given out since the last reset, with padding */
    size_t recent_bytes; /* decaying maximum of used_bytes, decides what a reset keeps */
};

void hr__arena_init(struct hr_arena *arena);   /* allocates nothing */
void hr__arena_finish(struct hr_arena *arena); /* frees all pieces */

/* `bytes` bytes, aligned to 64 (contents undefined) or to 16 for small pieces (< 64
 * bytes); NULL when out of memory. */
void *hr__arena_alloc(struct hr_arena *arena, size_t bytes);

/* Same, zeroed. */
void *hr__arena_zalloc(struct hr_arena *arena, size_t bytes);

/* Give everything back, keep blocks for the next round. */
void hr__arena_reset(struct hr_arena *arena);

#endif
