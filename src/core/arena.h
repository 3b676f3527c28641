/*
 * core/arena.h - scratch memory that is freed all at once.
 *
 * An arena belongs to one thread. If a round needed several blocks, the reset replaces
 * them by a single block that holds as much, so that steady state allocates nothing.
 * After a peak, a later reset frees the large block and sizes the next one by recent use.
 * Bytes that are not allocated are poisoned under ASan.
 */
#ifndef HR_CORE_ARENA_H
#define HR_CORE_ARENA_H

#include <stddef.h>

/* Scratch of small records is released once there is this much, which keeps it in cache.
 */
#define HR_SCRATCH_KEPT 16384

struct hr_arena_block;
struct hr_arena {
    char *at, *end;
    struct hr_arena_block *blocks; /* newest first; allocation is from the first */
    size_t used_bytes;             /* allocated since the last reset, padding included */
    size_t recent_bytes; /* decaying maximum of used_bytes; what a reset keeps */
};

void hr__arena_init(struct hr_arena *arena);   /* allocates nothing */
void hr__arena_finish(struct hr_arena *arena); /* frees all blocks */

/* Returns `bytes` bytes, aligned to 64, or to 16 below 64 bytes; contents undefined. NULL
 * when out of memory. */
void *hr__arena_alloc(struct hr_arena *arena, size_t bytes);

/* Same, zeroed. */
void *hr__arena_zalloc(struct hr_arena *arena, size_t bytes);

/* Frees all pieces at once and keeps a block for the next round. */
void hr__arena_reset(struct hr_arena *arena);

#endif
