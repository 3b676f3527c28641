/*
 * core/arena.c - see arena.h.
 *
 * Each new block of a round is twice as large as the one before, up to a limit, so a
 * round needs few of them, and gives back what the one before has left over; the reset
 * frees all but one. With a single block, pieces allocated one after another are adjacent
 * in memory. Pieces cannot be freed singly and have no destructors.
 */
#include "core/arena.h"
#include "core/alloc.h"
#include "core/poison.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define BLOCK_MIN ((size_t)64 << 10)
#define HEAD_BYTES 64
#define GROWTH_MAX ((size_t)4 << 20)  /* of a block beyond what is asked for */
#define RELEASE_MIN ((size_t)1 << 20) /* less is not worth a system call */
#define PAGES_MIN ((size_t)512 << 10) /* a block that is pages of its own */

struct hr_arena_block {
    struct hr_arena_block *next;
    size_t bytes; /* usable bytes after the header */
};

static char *block_data(struct hr_arena_block *block)
{
    return (char *)block + HEAD_BYTES;
}

/* Large blocks are pages of their own: freed to the heap, they might stay resident there.
 */
static struct hr_arena_block *make_block(size_t bytes)
{
    struct hr_arena_block *block = HEAD_BYTES + bytes >= PAGES_MIN
                                       ? hr__pages_alloc(HEAD_BYTES + bytes)
                                       : hr__aligned_alloc(64, HEAD_BYTES + bytes);

    if (block != NULL)
        block->bytes = bytes;
    return block;
}

static void free_block(struct hr_arena_block *block)
{
    HR_UNPOISON(block_data(block), block->bytes);
    if (HEAD_BYTES + block->bytes >= PAGES_MIN)
        hr__pages_free(block, HEAD_BYTES + block->bytes);
    else
        hr__free(block);
}

static void free_blocks(struct hr_arena *arena)
{
    while (arena->blocks != NULL) {
        struct hr_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        free_block(block);
    }
    arena->at = arena->end = NULL;
}

static void open_block(struct hr_arena *arena)
{
    assert(arena->blocks != NULL);
    arena->at = block_data(arena->blocks);
    arena->end = arena->at + arena->blocks->bytes;
    HR_POISON(arena->at, arena->blocks->bytes);
}

void hr__arena_init(struct hr_arena *arena)
{
    memset(arena, 0, sizeof *arena);
}

void hr__arena_finish(struct hr_arena *arena)
{
    free_blocks(arena);
    hr__arena_init(arena);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The rest of the block stays unused until the reset, but earlier rounds have used it: it
 * would count twice beside the block that takes its place. */
static void release_rest(struct hr_arena *arena)
{
    size_t rest = (size_t)(arena->end - arena->at);

    if (rest >= RELEASE_MIN)
        hr__pages_release(arena->at, rest);
}

static struct hr_arena_block *grow(struct hr_arena *arena, size_t need)
{
    size_t bytes = larger(need, larger(BLOCK_MIN, arena->recent_bytes));
    struct hr_arena_block *block;

    if (arena->blocks != NULL)
        bytes = larger(need, smaller(2 * arena->blocks->bytes, GROWTH_MAX));
    bytes = (bytes + 63) & ~(size_t)63;
    block = make_block(bytes);
    if (block == NULL)
        return NULL;
    release_rest(arena);
    block->next = arena->blocks;
    arena->blocks = block;
    open_block(arena);
    return block;
}

void *hr__arena_alloc(struct hr_arena *arena, size_t bytes)
{
    size_t align = bytes < 64 ? 16 : 64;
    size_t pad = -(uintptr_t)arena->at & (align - 1), need;
    char *piece;

    assert(arena->at <= arena->end);
    if (bytes > SIZE_MAX / 4)
        return NULL;
    need = bytes != 0 ? (bytes + 15) & ~(size_t)15 : 16;
    if (arena->at == NULL || pad + need > (size_t)(arena->end - arena->at)) {
        if (grow(arena, need) == NULL)
            return NULL;
        pad = 0;
    }
    piece = arena->at + pad;
    arena->at = piece + need;
    arena->used_bytes += pad + need;
    HR_UNPOISON(piece, bytes);
    return piece;
}

void *hr__arena_zalloc(struct hr_arena *arena, size_t bytes)
{
    void *piece = hr__arena_alloc(arena, bytes);

    if (piece != NULL)
        memset(piece, 0, bytes);
    return piece;
}

void hr__arena_reset(struct hr_arena *arena)
{
    size_t decayed = arena->recent_bytes - arena->recent_bytes / 64;

    /* Padding depends on a block's start: one merged block may need up to 63 bytes
     * more. */
    arena->recent_bytes = larger(arena->used_bytes, decayed);
    arena->used_bytes = 0;
    if (arena->blocks == NULL)
        return;
    if (arena->blocks->next != NULL) {
        arena->recent_bytes += 4096;
        free_blocks(arena);
    } else if (arena->blocks->bytes / 4 > larger(arena->recent_bytes, BLOCK_MIN)) {
        free_blocks(arena);
    } else {
        open_block(arena);
    }
}
